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
	out := []map[string]any{}
	wanted := c.params["type"]
	if wanted == "" {
		out = append(out, c.poolResources()...)
	}
	if wanted == "" || wanted == "vm" {
		for _, id := range slices.Sorted(maps.Keys(c.vms)) {
			if c.canSee(id) {
				out = append(out, c.vmResource(c.vms[id]))
			}
		}
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

func (c *call) poolResources() []map[string]any {
	var out []map[string]any
	for _, id := range slices.Sorted(maps.Keys(c.pools)) {
		if c.who.may("/pool/"+string(id), "Pool.Audit") {
			out = append(out, map[string]any{"type": "pool", "id": "/pool/" + string(id), "pool": id})
		}
	}
	return out
}

// vmResource is a VM's entry in cluster/resources: node, pool, tags and lock are of now, the rest as last broadcast.
func (w *World) vmResource(v *vm) map[string]any {
	out := map[string]any{"type": "qemu", "id": "qemu/" + v.id.String(), "vmid": v.id, "node": v.node, "status": "unknown"}
	if tags := v.config["tags"]; strings.TrimSpace(tags) != "" {
		out["tags"] = tags
	}
	if pool := w.poolOf(v.id); pool != "" {
		out["pool"] = pool
	}
	if v.lock() != "" {
		out["lock"] = v.lock()
	}
	s := v.stats
	if n := w.node(v.node); s == nil || n == nil || !n.online {
		return out
	}
	maps.Copy(out, map[string]any{
		"name": s.name, "status": s.status, "template": pveBool(v.isTemplate()), "maxcpu": s.maxCPU, "maxmem": s.maxMem, "maxdisk": s.maxDisk,
		"cpu": 0, "mem": 0, "disk": 0, "diskread": 0, "diskwrite": 0, "netin": 0, "netout": 0, "uptime": 0,
	})
	if w.version == V92 {
		out["memhost"] = 0
	}
	if s.running {
		maps.Copy(out, map[string]any{"uptime": int64(w.clock.Since(s.started).Seconds()), "cpu": 0.02, "mem": s.maxMem / 2})
	}
	return out
}

func (w *World) nodeResource(n *node) map[string]any {
	out := map[string]any{"type": "node", "id": "node/" + string(n.name), "node": n.name, "status": n.status()}
	if w.version == V92 {
		out["hastate"] = n.status()
	}
	if n.online {
		maps.Copy(out, w.nodeUsage(n))
		out["cgroup-mode"] = 2
	}
	return out
}

func (c *call) storageResources() []map[string]any {
	var out []map[string]any
	for _, s := range c.storages {
		for _, n := range c.nodes {
			if s.onNode(n.name) && c.canSeeStorage(s.id) {
				out = append(out, s.resource(n))
			}
		}
	}
	return out
}

func (s *storage) resource(n *node) map[string]any {
	out := map[string]any{
		"type": "storage", "id": "storage/" + string(n.name) + "/" + string(s.id), "node": n.name, "storage": s.id, "status": "available",
		"plugintype": s.typ, "content": strings.Join(s.content, ","), "shared": pveBool(s.shared), "disk": s.total - s.free(n.name), "maxdisk": s.total,
	}
	if !n.online {
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
