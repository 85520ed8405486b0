package pvesim

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// statsInterval is the cycle of pvestatd, which broadcasts what cluster/resources shows of a VM beside its node and tags.
const statsInterval = 10 * time.Second

// changed marks a VM whose broadcast state is out of date. It is brought up to date by the next cycle.
func (w *World) changed(v *vm) {
	if len(w.stale) == 0 {
		into := w.clock.Since(w.born) % w.scaled(statsInterval)
		left := w.scaled(statsInterval) - into
		w.after(time.Duration(float64(left)*w.speed), w.broadcast)
	}
	w.stale[v.id] = true
}

// broadcast is one cycle of pvestatd on all nodes.
func (w *World) broadcast() {
	for id := range w.stale {
		if v := w.vms[id]; v != nil {
			v.stats = v.currentStats()
		}
	}
	clear(w.stale)
}

func (v *vm) currentStats() *vmStats {
	return &vmStats{
		name: v.name(), status: v.status(), maxMem: v.memory(), maxDisk: v.diskSize(), maxCPU: v.cpus(), running: v.running, started: v.started,
	}
}

func resources(c *call) reply {
	out := []any{}
	wanted := c.params["type"]
	if wanted == "" {
		out = append(out, c.poolResources()...)
	}
	if wanted == "" || wanted == "vm" {
		out = append(out, c.vmResources()...)
	}
	if wanted == "" || wanted == "node" {
		for _, n := range c.nodes {
			out = append(out, c.nodeResource(n))
		}
	}
	if wanted == "" || wanted == "storage" {
		out = append(out, c.storageResources()...)
	}
	return ok(out)
}

func (c *call) vmResources() []any {
	pools := map[proxmox.VMID]proxmox.PoolID{}
	for _, p := range c.pools {
		for id := range p.members {
			pools[id] = p.id
		}
	}
	out := make([]any, 0, len(c.vms))
	for _, id := range slices.Sorted(maps.Keys(c.vms)) {
		if c.canSee(id) {
			out = append(out, c.vmResource(c.vms[id], pools[id]))
		}
	}
	return out
}

func (c *call) poolResources() []any {
	var out []any
	for _, id := range slices.Sorted(maps.Keys(c.pools)) {
		if c.may(c.who, "/pool/"+string(id), "Pool.Audit") {
			out = append(out, map[string]any{"type": "pool", "id": "/pool/" + string(id), "pool": id})
		}
	}
	return out
}

// vmEntry is a VM's entry in cluster/resources. It is a struct because lists of thousands are read all the time.
type vmEntry struct {
	ID     string           `json:"id"`
	Type   string           `json:"type"`
	VMID   proxmox.VMID     `json:"vmid"`
	Node   proxmox.NodeName `json:"node"`
	Status string           `json:"status"`
	Tags   string           `json:"tags,omitempty"`
	Pool   proxmox.PoolID   `json:"pool,omitempty"`
	Lock   string           `json:"lock,omitempty"`
	*vmFigures
}

// vmFigures are what pvestatd broadcasts; a VM that it has not seen yet has none.
type vmFigures struct {
	Name      string        `json:"name"`
	Template  int           `json:"template"`
	MaxCPU    int           `json:"maxcpu"`
	MaxMem    proxmox.Bytes `json:"maxmem"`
	MaxDisk   proxmox.Bytes `json:"maxdisk"`
	CPU       float64       `json:"cpu"`
	Mem       proxmox.Bytes `json:"mem"`
	Disk      int           `json:"disk"`
	DiskRead  int           `json:"diskread"`
	DiskWrite int           `json:"diskwrite"`
	NetIn     int           `json:"netin"`
	NetOut    int           `json:"netout"`
	Uptime    int64         `json:"uptime"`
	// MemHost is new in 9.x.
	MemHost *int `json:"memhost,omitempty"`
}

// vmResource is the VM's entry: node, pool, tags and lock are of now, the rest as last broadcast.
func (c *call) vmResource(v *vm, pool proxmox.PoolID) vmEntry {
	out := vmEntry{
		ID: "qemu/" + v.id.String(), Type: "qemu", VMID: v.id, Node: v.node, Status: "unknown", Pool: pool, Lock: v.lock(),
		Tags: strings.TrimSpace(v.config["tags"]),
	}
	s, until := c.broadcastOf(v)
	if s == nil {
		return out
	}
	out.Status = s.status
	out.vmFigures = &vmFigures{Name: s.name, Template: pveBool(v.isTemplate()), MaxCPU: s.maxCPU, MaxMem: s.maxMem, MaxDisk: s.maxDisk}
	if c.version == V92 {
		out.MemHost = new(int)
	}
	if s.running {
		out.Uptime, out.CPU, out.Mem = int64(until.Sub(s.started).Seconds()), 0.02, s.maxMem/2
	}
	return out
}

// broadcastOf is what the node that is asked has heard of a VM, and until when; nil if nothing.
func (c *call) broadcastOf(v *vm) (*vmStats, time.Time) {
	n := c.World.node(v.node)
	if n == nil {
		return nil, time.Time{}
	}
	quiet := c.at.heard(n)
	switch {
	case quiet == nil:
		return v.stats, c.clock.Now()
	case c.forgotten(quiet):
		return nil, time.Time{}
	}
	return quiet.stats[v.id], quiet.since
}

// nodeResource is a node's entry in cluster/resources. What it has and uses is shown to those alone who may audit it
// (extract_node_stats in PVE::API2Tools).
func (c *call) nodeResource(n *node) map[string]any {
	out := map[string]any{"type": "node", "id": "node/" + string(n.Name), "node": n.Name, "status": c.statusOf(n), "cgroup-mode": 2}
	if c.version == V92 {
		out["hastate"] = c.statusOf(n)
	}
	maps.Copy(out, c.figuresOf(n))
	return out
}

func (c *call) storageResources() []any {
	var out []any
	for _, s := range c.storages {
		for _, n := range c.nodes {
			if s.onNode(n.Name) && c.canSeeStorage(s.id) {
				out = append(out, c.storageResource(s, n))
			}
		}
	}
	return out
}

func (c *call) storageResource(s *storage, n *node) map[string]any {
	out := map[string]any{
		"type": "storage", "id": "storage/" + string(n.Name) + "/" + string(s.id), "node": n.Name, "storage": s.id, "status": "available",
		"plugintype": s.typ, "content": strings.Join(s.content, ","), "shared": pveBool(s.shared), "disk": s.total - s.free(n.Name), "maxdisk": s.total,
	}
	if c.forgotten(c.at.heard(n)) {
		out["status"] = "unknown"
		delete(out, "disk")
		delete(out, "maxdisk")
	}
	return out
}

// memory is the VM's assigned memory; qemu-server's default is 512 MiB.
func (v *vm) memory() proxmox.Bytes {
	return proxmox.MiB(atoi(firstProperty(v.config["memory"]), 512)).Bytes()
}

func (v *vm) cpus() int { return atoi(v.config["sockets"], 1) * atoi(v.config["cores"], 1) }

// diskSize is the size of the boot disk.
func (v *vm) diskSize() proxmox.Bytes {
	boot := v.config["boot"]
	if order, ok := strings.CutPrefix(boot, "order="); ok {
		for _, name := range strings.Split(order, ";") {
			if d := parseDrive(v.config[name]); d.volume != "" && !d.cdrom() {
				return d.size()
			}
		}
	}
	return 0
}
