package pvesim

import (
	"maps"
	"slices"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

func clusterRoutes() []Route {
	return []Route{
		{Method: "GET", Path: "/version", handle: version},
		{Method: "GET", Path: "/cluster/status", handle: clusterStatus, permission: on("/", "Sys.Audit")},
		{Method: "GET", Path: "/cluster/options", handle: clusterOptions},
		{Method: "GET", Path: "/cluster/nextid", handle: nextID, params: []schema.Param{schema.VMID("vmid")}},
		{Method: "GET", Path: "/cluster/tasks", handle: clusterTasks},
		{Method: "GET", Path: "/cluster/resources", handle: resources, params: []schema.Param{schema.Choice("type", "vm", "storage", "node", "sdn")}},
	}
}

func version(c *call) reply {
	return ok(map[string]string{"version": c.version.full(), "release": string(c.version), "repoid": "pvesim"})
}

func clusterStatus(c *call) reply {
	list := []map[string]any{}
	for _, n := range c.nodes {
		list = append(list, map[string]any{
			"type": "node", "id": "node/" + string(n.Name), "name": n.Name, "nodeid": n.id, "online": pveBool(c.at.sees(n)),
			"ip": n.Address, "local": pveBool(n == c.at), "level": "",
		})
	}
	head := map[string]any{
		"type": "cluster", "id": "cluster", "name": c.name, "nodes": len(c.nodes), "quorate": pveBool(c.quorate(c.at)),
		"version": max(1, len(c.nodes)),
	}
	return ok(append([]map[string]any{head}, list...))
}

func clusterOptions(c *call) reply {
	tags := map[string]bool{}
	for _, v := range c.vms {
		for _, tag := range schema.SplitList(v.config["tags"]) {
			tags[tag] = true
		}
	}
	return ok(map[string]any{"mac_prefix": "BC:24:11", "description": "", "allowed-tags": slices.Sorted(maps.Keys(tags))})
}

// nextID returns the lowest free VMID. It reserves nothing.
func nextID(c *call) reply {
	if id := toVMID(c.params["vmid"]); id != 0 {
		if c.vms[id] != nil {
			return invalidParam("vmid", "VM %d already exists", id)
		}
		return ok(id.String())
	}
	id := proxmox.MinVMID
	for c.vms[id] != nil {
		id++
	}
	return ok(id.String())
}

func nodeRoutes(v Version) []Route {
	kinds := []string{
		"bridge", "bond", "eth", "alias", "vlan", "fabric", "OVSBridge", "OVSBond", "OVSPort", "OVSIntPort", "vnet",
		"any_bridge", "any_local_bridge", "include_sdn",
	}
	if v == V84 {
		kinds = slices.DeleteFunc(kinds, func(k string) bool { return k == "fabric" || k == "include_sdn" })
	}
	return []Route{
		{Method: "GET", Path: "/nodes", handle: listNodes},
		{Method: "GET", Path: "/nodes/{node}/status", handle: nodeStatus, permission: on("/nodes/{node}", "Sys.Audit")},
		{Method: "GET", Path: "/nodes/{node}/version", handle: version},
		{Method: "GET", Path: "/nodes/{node}/network", handle: listNetwork, params: []schema.Param{schema.Choice("type", kinds...)}},
	}
}

func listNodes(c *call) reply {
	out := []map[string]any{}
	for _, n := range c.nodes {
		entry := map[string]any{"type": "node", "id": "node/" + string(n.Name), "node": n.Name, "status": c.statusOf(n), "ssl_fingerprint": n.fingerprint()}
		maps.Copy(entry, c.figuresOf(n))
		out = append(out, entry)
	}
	return ok(out)
}

// statusOf is how the node that is asked sees a node: unknown are those whose pvestatd is silent.
func (c *call) statusOf(n *node) string {
	switch {
	case !c.at.sees(n):
		return "offline"
	case c.forgotten(c.at.heard(n)):
		return "unknown"
	}
	return "online"
}

// figuresOf are the load figures of a node for those who may audit it. Of an offline node only its size is known, and that not for
// long (extract_node_stats in PVE::API2Tools).
func (c *call) figuresOf(n *node) map[string]any {
	if c.forgotten(c.at.heard(n)) || !c.may(c.who, "/nodes/"+string(n.Name), "Sys.Audit") {
		return nil
	}
	out := c.nodeUsage(n).entry()
	if !c.at.sees(n) {
		maps.DeleteFunc(out, func(key string, _ any) bool {
			return !slices.Contains([]string{"maxcpu", "maxmem", "maxdisk", "level"}, key)
		})
	}
	return out
}

// fingerprint is a stable stand-in for the SHA-256 fingerprint of the node's certificate.
func (n *node) fingerprint() string {
	sum := checksum("sha256", []byte(n.Name))
	out := ""
	for i := 0; i < len(sum); i += 2 {
		out += ":" + string(sum[i]-sum[i]&0x20*pveByte(sum[i] >= 'a')) + string(sum[i+1]-sum[i+1]&0x20*pveByte(sum[i+1] >= 'a'))
	}
	return out[1:]
}

func pveByte(b bool) byte { return byte(pveBool(b)) }

// usage is the load of a node.
type usage struct {
	cpus                         int
	cpu                          float64
	memory, used, disk, diskUsed proxmox.Bytes
	uptime                       int64
}

// nodeUsage are the load figures of a node: the host's own share and what its running VMs have.
func (w *World) nodeUsage(n *node) usage {
	used, cpu := proxmox.MiB(2048).Bytes(), 0.01+n.Load
	for _, v := range w.vms {
		if v.node == n.Name && v.running {
			used += v.memory()
			cpu += 0.02 * float64(v.cpus()) / float64(n.CPUs)
		}
	}
	return usage{
		cpus: n.CPUs, cpu: min(cpu, 1), memory: n.Memory.Bytes(), used: min(used, n.Memory.Bytes()), disk: proxmox.GiB(94).Bytes(),
		diskUsed: proxmox.GiB(8).Bytes(), uptime: int64(w.clock.Since(n.booted).Seconds()),
	}
}

func (u usage) entry() map[string]any {
	return map[string]any{
		"maxcpu": u.cpus, "cpu": u.cpu, "maxmem": u.memory, "mem": u.used, "maxdisk": u.disk, "disk": u.diskUsed, "uptime": u.uptime, "level": "",
	}
}

func nodeStatus(c *call) reply {
	n := c.node
	u := c.nodeUsage(n)
	return ok(map[string]any{
		"uptime": u.uptime, "cpu": u.cpu, "wait": 0, "idle": 0, "loadavg": []string{"0.20", "0.15", "0.10"},
		"pveversion": "pve-manager/" + c.version.full() + "/pvesim", "kversion": "Linux 6.8.12-pve #1 SMP PREEMPT_DYNAMIC",
		"memory": map[string]any{"total": u.memory, "used": u.used, "free": u.memory - u.used, "available": u.memory - u.used},
		"swap":   map[string]any{"total": 0, "used": 0, "free": 0},
		"rootfs": map[string]any{"total": u.disk, "used": u.diskUsed, "free": u.disk - u.diskUsed, "avail": u.disk - u.diskUsed},
		"ksm":    map[string]any{"shared": 0}, "boot-info": map[string]any{"mode": "efi", "secureboot": 0},
		"current-kernel": map[string]any{"sysname": "Linux", "release": "6.8.12-pve", "version": "#1 SMP PREEMPT_DYNAMIC", "machine": "x86_64"},
		"cpuinfo": map[string]any{
			"model": "AMD EPYC 9124 16-Core Processor", "vendor": "AuthenticAMD", "sockets": n.Sockets, "cores": n.CPUs / n.Sockets / n.Threads,
			"cpus": n.CPUs, "mhz": "3000.000", "hvm": "1", "user_hz": 100, "family": "25", "flags": "fpu vme de pse tsc msr svm aes avx2",
		},
	})
}

func listNetwork(c *call) reply {
	out := []map[string]any{}
	wanted := c.params["type"]
	if wanted == "" || wanted == "eth" {
		out = append(out, map[string]any{"iface": "eno1", "type": "eth", "active": 1, "method": "manual", "method6": "manual", "families": []string{"inet"}, "priority": 3})
	}
	if wanted != "" && wanted != "bridge" && wanted != "any_bridge" && wanted != "any_local_bridge" {
		return ok(out)
	}
	for i, b := range c.node.Bridges {
		if !c.mayAny(c.who, "/sdn/zones/localnetwork/"+string(b), "SDN.Audit", "SDN.Use") {
			continue
		}
		entry := map[string]any{
			"iface": b, "type": "bridge", "active": 1, "autostart": 1, "method": "manual", "method6": "manual", "families": []string{"inet"},
			"bridge_fd": "0", "bridge_stp": "off", "bridge_ports": "", "priority": 4 + i,
		}
		if i == 0 {
			maps.Copy(entry, map[string]any{"method": "static", "address": c.node.Address, "netmask": "24", "cidr": c.node.Address + "/24", "bridge_ports": "eno1"})
		}
		out = append(out, entry)
	}
	return ok(out)
}

func poolRoutes() []Route {
	id := schema.Text("poolid").Format("pve-poolid")
	member := []schema.Param{schema.Text("comment"), schema.Text("vms"), schema.Text("storage"), schema.Boolean("delete"), schema.Boolean("allow-move")}
	allocate := on("/pool/{poolid}", "Pool.Allocate")
	return []Route{
		{Method: "GET", Path: "/pools", handle: listPools, params: []schema.Param{id, schema.Choice("type", "qemu", "lxc", "storage").Requires("poolid")}},
		{
			Method: "GET", Path: "/pools/{poolid}", handle: getPool, permission: on("/pool/{poolid}", "Pool.Audit"),
			params: []schema.Param{schema.Choice("type", "qemu", "lxc", "storage")},
		},
		{Method: "POST", Path: "/pools", handle: createPool, permission: allocate, params: []schema.Param{id.Required(), schema.Text("comment")}},
		{Method: "PUT", Path: "/pools", handle: updatePool, permission: allocate, params: append(member, id.Required())},
		{Method: "PUT", Path: "/pools/{poolid}", handle: updatePool, permission: allocate, params: member},
		{Method: "DELETE", Path: "/pools", handle: deletePool, permission: allocate, params: []schema.Param{id.Required()}},
		{Method: "DELETE", Path: "/pools/{poolid}", handle: deletePool, permission: allocate},
	}
}

func (p *pool) entry() map[string]any {
	out := map[string]any{"poolid": p.id}
	if p.comment != "" {
		out["comment"] = p.comment
	}
	return out
}

func listPools(c *call) reply {
	if c.has("poolid") {
		r := getPool(c)
		if !r.failed() {
			r.data = []any{r.data}
		}
		return r
	}
	out := []map[string]any{}
	for _, id := range slices.Sorted(maps.Keys(c.pools)) {
		if c.may(c.who, "/pool/"+string(id), "Pool.Audit") {
			out = append(out, c.pools[id].entry())
		}
	}
	return ok(out)
}

func getPool(c *call) reply {
	p := c.pools[proxmox.PoolID(c.params["poolid"])]
	if p == nil {
		return fail("pool '%s' does not exist", c.params["poolid"])
	}
	members := []any{}
	for _, id := range slices.Sorted(maps.Keys(p.members)) {
		if v := c.vms[id]; v != nil && c.params["type"] != "storage" && c.canSee(id) {
			members = append(members, c.vmResource(v, ""))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(p.storages)) {
		if s := c.storageByID(id); s != nil && c.params["type"] != "qemu" {
			members = append(members, c.storageResource(s, c.at))
		}
	}
	out := p.entry()
	out["members"] = members
	return ok(out)
}

func createPool(c *call) reply {
	id := proxmox.PoolID(c.params["poolid"])
	if c.pools[id] != nil {
		return fail("create pool failed: pool '%s' already exists", id)
	}
	c.pools[id] = &pool{id: id, comment: c.params["comment"], members: map[proxmox.VMID]bool{}, storages: map[proxmox.StorageID]bool{}}
	return ok(nil)
}

func updatePool(c *call) reply {
	p := c.pools[proxmox.PoolID(c.params["poolid"])]
	if p == nil {
		return fail("update pools failed: pool '%s' does not exist", c.params["poolid"])
	}
	if c.has("comment") {
		p.comment = c.params["comment"]
	}
	for _, s := range schema.SplitList(c.params["vms"]) {
		if msg := c.changeMember(p, toVMID(s)); msg != "" {
			return fail("update pools failed: %s", msg)
		}
	}
	for _, s := range schema.SplitList(c.params["storage"]) {
		p.storages[proxmox.StorageID(s)] = !c.flag("delete")
		if c.flag("delete") {
			delete(p.storages, proxmox.StorageID(s))
		}
	}
	return ok(nil)
}

func (c *call) changeMember(p *pool, id proxmox.VMID) string {
	if c.flag("delete") {
		if !p.members[id] {
			return "VM " + id.String() + " is not a pool member"
		}
		delete(p.members, id)
		return ""
	}
	if other := c.poolOf(id); other == p.id || (other != "" && !c.flag("allow-move")) {
		return "VM " + id.String() + " is already a pool member"
	} else if other != "" {
		delete(c.pools[other].members, id)
	}
	p.members[id] = true
	return ""
}

func deletePool(c *call) reply {
	id := proxmox.PoolID(c.params["poolid"])
	p := c.pools[id]
	switch {
	case p == nil:
		return fail("delete pool failed: pool '%s' does not exist", id)
	case len(p.members) > 0:
		return fail("delete pool failed: pool '%s' is not empty (contains VM %d)", id, slices.Min(slices.Collect(maps.Keys(p.members))))
	case len(p.storages) > 0:
		return fail("delete pool failed: pool '%s' is not empty (contains storage '%s')", id, slices.Min(slices.Collect(maps.Keys(p.storages))))
	}
	delete(c.pools, id)
	return ok(nil)
}
