package pvesim

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// statsInterval is the cycle of pvestatd, which broadcasts what cluster/resources shows of a guest beside its node and tags.
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

// cycle counts the cycles of pvestatd since the world began.
func (w *World) cycle() int64 {
	return int64(w.clock.Since(w.born) / max(1, w.scaled(statsInterval)))
}

// cycleTime is when the present cycle began: what is broadcast of running guests is as of then.
func (w *World) cycleTime() time.Time {
	return w.born.Add(time.Duration(w.cycle()) * w.scaled(statsInterval))
}

// broadcast is one cycle of pvestatd on all nodes.
func (w *World) broadcast() {
	for id := range w.stale {
		if v := w.vms[id]; v != nil {
			v.stats = w.currentStats(v)
		}
	}
	clear(w.stale)
}

func (w *World) currentStats(v *vm) *vmStats {
	return &vmStats{
		name: v.name(), status: v.status(), maxMem: v.memory(), maxDisk: v.diskSize(), maxCPU: w.shownCPUs(v), running: v.running, started: v.started,
		template: v.isTemplate(),
	}
}

// resources is GET /cluster/resources.
func resources(c *call) reply {
	out := entries{}
	wanted := c.params["type"]
	if wanted == "" || wanted == "vm" {
		guests := c.newGuestReader()
		if wanted == "" {
			out.add(guests.poolResources()...)
		}
		out = append(out, guests.entries()...)
	}
	if wanted == "" || wanted == "node" {
		for _, n := range c.nodes {
			out.add(c.nodeResource(n))
		}
	}
	if wanted == "" || wanted == "storage" {
		out.add(c.storageResources()...)
	}
	if wanted == "" || wanted == "sdn" {
		out.add(c.sdnResources(wanted)...)
	}
	return ok(out)
}

// guestsInPools tells the pool of every guest that is in one.
func (w *World) guestsInPools() map[proxmox.VMID]proxmox.PoolID {
	total := 0
	for _, p := range w.pools {
		total += len(p.members)
	}
	out := make(map[proxmox.VMID]proxmox.PoolID, total)
	for _, p := range w.pools {
		for id := range p.members {
			out[id] = p.id
		}
	}
	return out
}

// poolEntry is a pool with what its running guests have and use.
type poolEntry struct {
	ID     string         `json:"id"`
	Type   string         `json:"type"`
	Pool   proxmox.PoolID `json:"pool"`
	Uptime int64          `json:"uptime,omitempty"`
	Mem    proxmox.Bytes  `json:"mem,omitempty"`
	MaxMem proxmox.Bytes  `json:"maxmem,omitempty"`
	CPU    float64        `json:"cpu,omitempty"`
	MaxCPU int            `json:"maxcpu,omitempty"`
}

// take adds a running guest. Its share of the CPUs weighs as much as it has of them.
func (p *poolEntry) take(f guestLoad) {
	p.Uptime = max(p.Uptime, f.uptime)
	p.Mem += f.mem
	p.MaxMem += f.maxMem
	if all := p.MaxCPU + f.maxCPU; all > 0 {
		p.CPU = (p.CPU*float64(p.MaxCPU) + f.cpu*float64(f.maxCPU)) / float64(all)
		p.MaxCPU = all
	}
}

func (r *guestReader) poolResources() []any {
	pools := map[proxmox.PoolID]*poolEntry{}
	var out []any
	for _, id := range slices.Sorted(maps.Keys(r.World.pools)) {
		if r.mayAuditPool(id) {
			pools[id] = &poolEntry{ID: "/pool/" + string(id), Type: "pool", Pool: id}
			out = append(out, pools[id])
		}
	}
	for _, id := range r.guestIDs() {
		if p := pools[r.pools[id]]; p != nil {
			if load := r.load(id); load.uptime > 0 {
				p.take(load)
			}
		}
	}
	return out
}

// nodeResource is a node's entry in cluster/resources. The HA manager of 8.4 does not know the hosts before it has been at work.
func (c *call) nodeResource(n *node) map[string]any {
	out := c.nodeEntry(n)
	if c.version == V84 {
		out["cgroup-mode"] = 2
	}
	if c.version != V84 || c.ha.master != "" || len(c.ha.resources) > 0 {
		out["hastate"] = "online"
		if !c.at.sees(n) {
			out["hastate"] = "unknown"
		}
	}
	return out
}

func (c *call) storageResources() []any {
	var out []any
	for _, s := range c.storages {
		if s.disabled || !c.mayAny(c.who, "/storage/"+string(s.id), "Datastore.Audit") {
			continue
		}
		for _, n := range c.nodes {
			if s.onNode(n.Name) {
				out = append(out, c.storageResource(s, n))
			}
		}
	}
	return out
}

func (c *call) storageResource(s *storage, n *node) map[string]any {
	out := map[string]any{
		"type": "storage", "id": "storage/" + string(n.Name) + "/" + string(s.id), "node": n.Name, "storage": s.id, "status": "unknown",
		"plugintype": s.typ, "content": strings.Join(s.content, ","), "shared": pveBool(s.shared),
	}
	if !c.forgotten(c.at.heard(n)) {
		out["status"], out["disk"], out["maxdisk"] = "available", s.total-s.free(n.Name), s.total
	}
	return out
}

// sdnResources are the zones on every node. 9.x has them under another type, for which there is no filter.
func (c *call) sdnResources(wanted string) []any {
	var out []any
	if c.version != V84 && wanted == "sdn" {
		return out
	}
	for _, n := range c.nodes {
		status := map[string]string{localZone: "ok"}
		if !n.NoIfupdown2 {
			for _, zone := range c.zonesOn(n) {
				status[zone] = c.zoneStatus(n)
			}
		}
		for _, zone := range slices.Sorted(maps.Keys(status)) {
			if c.may(c.who, "/sdn/zones/"+zone, "SDN.Audit") {
				out = append(out, c.zoneResource(n, zone, status[zone]))
			}
		}
	}
	return out
}

func (c *call) zoneResource(n *node, zone, status string) map[string]any {
	if c.version == V84 {
		return map[string]any{"type": "sdn", "id": "sdn/" + string(n.Name) + "/" + zone, "sdn": zone, "node": n.Name, "status": status}
	}
	return map[string]any{
		"type": "network", "id": "network/" + string(n.Name) + "/zone/" + zone, "network": zone, "network-type": "zone", "node": n.Name, "status": status,
	}
}
