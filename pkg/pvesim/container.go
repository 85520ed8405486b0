package pvesim

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

// container is an LXC guest: it takes a VMID, CPUs and memory.
type container struct {
	ContainerSpec
	started time.Time
}

func (ct *container) running() bool { return ct.State == "running" }

func containerRoutes() []Route {
	const path = "/nodes/{node}/lxc"
	audit := on("/vms/{vmid}", "VM.Audit")
	return []Route{
		{Method: "GET", Path: path, handle: listContainers},
		{Method: "GET", Path: path + "/{vmid}", handle: index("subdir", "config", "status", "vncproxy", "termproxy", "vncwebsocket", "spiceproxy", "migrate",
			"clone", "resize", "rrd", "rrddata", "firewall", "snapshot", "pending", "interfaces", "mtunnel", "remote_migrate")},
		{Method: "GET", Path: path + "/{vmid}/config", handle: containerConfig, permission: audit, params: []schema.Param{
			schema.Boolean("current"), schema.Text("snapshot").Format("pve-configid").MaxLength(40),
		}},
		{Method: "GET", Path: path + "/{vmid}/status", handle: index("subdir", "current", "start", "stop", "shutdown", "suspend", "resume", "reboot")},
		{Method: "GET", Path: path + "/{vmid}/status/current", handle: containerStatus, permission: audit},
	}
}

// AddContainer adds an LXC container. It is an error if the VMID is taken or the node missing.
func (w *World) AddContainer(s ContainerSpec) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.addContainer(s)
}

func (w *World) addContainer(s ContainerSpec) error {
	if err := w.canHold(s.VMID, s.Node); err != nil {
		return fmt.Errorf("add container %d: %w", s.VMID, err)
	}
	orDefault(&s.Name, "CT"+s.VMID.String())
	orDefault(&s.Cores, 1)
	orDefault(&s.Memory, 512)
	orDefault(&s.Disk, proxmox.GiB(8).Bytes())
	orDefault(&s.State, "stopped")
	w.containers[s.VMID] = &container{ContainerSpec: s, started: w.clock.Now()}
	w.joinPool(s.Pool, s.VMID)
	return nil
}

// dumpContainers copies the containers.
func (w *World) dumpContainers(s *State) {
	for _, id := range slices.Sorted(maps.Keys(w.containers)) {
		out := w.containers[id].ContainerSpec
		out.Pool = w.poolOf(id)
		s.Containers = append(s.Containers, out)
	}
}

// taken says which guest has the VMID, or "" (PVE::Cluster::check_vmid_unused).
func (w *World) taken(id proxmox.VMID) string {
	if v := w.vms[id]; v != nil {
		return fmt.Sprintf("VM %d already exists on node '%s'", id, v.node)
	}
	if ct := w.containers[id]; ct != nil {
		return fmt.Sprintf("CT %d already exists on node '%s'", id, ct.Node)
	}
	return ""
}

func (r *guestReader) containerEntry(ct *container, pool proxmox.PoolID) guestEntry {
	out := guestEntry{
		ID: "lxc/" + ct.VMID.String(), Type: "lxc", VMID: ct.VMID, Node: ct.Node, Status: "unknown", Pool: pool, Tags: ct.Tags,
		guestFigures: r.containerFigures(ct),
	}
	if out.guestFigures != nil {
		out.Status = ct.State
	}
	return out
}

func (r *guestReader) containerFigures(ct *container) *guestFigures {
	if r.nodes[ct.Node].nothing {
		return nil
	}
	load := r.containerLoad(ct)
	out := &guestFigures{Name: ct.Name, MaxCPU: ct.Cores, MaxMem: ct.Memory.Bytes(), MaxDisk: ct.Disk, Uptime: load.uptime, CPU: load.cpu, Mem: load.mem}
	if ct.running() {
		out.Disk = ct.Disk / 8
	}
	return out
}

func (r *guestReader) containerLoad(ct *container) guestLoad {
	h := r.nodes[ct.Node]
	if h.nothing || !ct.running() {
		return guestLoad{}
	}
	return guestLoad{uptime: secondsUntil(h.until, ct.started), cpu: 0.01, maxCPU: ct.Cores, mem: ct.Memory.Bytes() / 4, maxMem: ct.Memory.Bytes()}
}

// lxcStatus is what vmstatus of pve-container says of the container now.
func (w *World) lxcStatus(ct *container) map[string]any {
	out := map[string]any{
		"vmid": ct.VMID, "name": ct.Name, "type": "lxc", "status": ct.State, "cpus": ct.Cores, "maxmem": ct.Memory.Bytes(), "maxdisk": ct.Disk,
		"maxswap": proxmox.MiB(512).Bytes(), "cpu": 0, "mem": 0, "swap": 0, "disk": 0, "diskread": 0, "diskwrite": 0, "netin": 0, "netout": 0, "uptime": 0,
	}
	if ct.Tags != "" {
		out["tags"] = ct.Tags
	}
	if ct.running() {
		out["cpu"], out["mem"], out["disk"], out["uptime"] = 0.01, ct.Memory.Bytes()/4, ct.Disk/8, int64(w.clock.Since(ct.started).Seconds())
		out["pid"] = 100_000 + uint32(ct.VMID)
	}
	return out
}

func listContainers(c *call) reply {
	out := []map[string]any{}
	for _, id := range slices.Sorted(maps.Keys(c.containers)) {
		if ct := c.containers[id]; ct.Node == c.node.Name && c.canSee(id) {
			out = append(out, c.lxcStatus(ct))
		}
	}
	return ok(out)
}

// container is the one that the path names, or nil with the refusal.
func (c *call) container() (*container, reply) {
	ct := c.containers[c.vmid()]
	if ct == nil || ct.Node != c.node.Name {
		return nil, fail("Configuration file 'nodes/%s/lxc/%d.conf' does not exist", c.node.Name, c.vmid())
	}
	return ct, reply{}
}

func containerConfig(c *call) reply {
	ct, refused := c.container()
	if ct == nil {
		return refused
	}
	if name := c.params["snapshot"]; name != "" {
		return fail("snapshot '%s' does not exist", name)
	}
	out := map[string]any{
		"arch": "amd64", "hostname": ct.Name, "cores": ct.Cores, "memory": int64(ct.Memory), "swap": 512, "ostype": "debian",
		"rootfs": fmt.Sprintf("local-lvm:vm-%d-disk-0,size=%s", ct.VMID, schema.FormatSize(ct.Disk)),
	}
	if ct.Tags != "" {
		out["tags"] = ct.Tags
	}
	sum := sha1.Sum([]byte(strings.TrimSpace(fmt.Sprint(out))))
	out["digest"] = hex.EncodeToString(sum[:])
	return ok(out)
}

func containerStatus(c *call) reply {
	ct, refused := c.container()
	if ct == nil {
		return refused
	}
	out := c.lxcStatus(ct)
	out["ha"] = map[string]any{"managed": 0}
	return ok(out)
}
