package pvesim

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

func nodeRoutes(v Version) []Route {
	kinds := []string{
		"bridge", "bond", "eth", "alias", "vlan", "fabric", "OVSBridge", "OVSBond", "OVSPort", "OVSIntPort", "vnet",
		"any_bridge", "any_local_bridge", "include_sdn",
	}
	if v == V84 {
		kinds = slices.DeleteFunc(kinds, func(k string) bool { return k == "fabric" || k == "include_sdn" })
	}
	audit := on("/nodes/{node}", "Sys.Audit")
	timeframe := schema.Choice("timeframe", "hour", "day", "week", "month", "year", "decade").Required()
	if v == V84 {
		timeframe = timeframe.OneOf("hour", "day", "week", "month", "year")
	}
	return []Route{
		{Method: "GET", Path: "/nodes", handle: listNodes},
		{Method: "GET", Path: "/nodes/{node}", handle: index("name", nodeIndex()...)},
		{Method: "GET", Path: "/nodes/{node}/status", handle: nodeStatus, permission: audit},
		{Method: "GET", Path: "/nodes/{node}/version", handle: version},
		{Method: "GET", Path: "/nodes/{node}/certificates/info", handle: certificates},
		{Method: "GET", Path: "/nodes/{node}/time", handle: nodeTime, permission: audit},
		{Method: "GET", Path: "/nodes/{node}/dns", handle: nodeDNS, permission: audit},
		{Method: "GET", Path: "/nodes/{node}/rrddata", handle: noRRDData, permission: audit, params: []schema.Param{schema.Choice("cf", "AVERAGE", "MAX"), timeframe}},
		{Method: "GET", Path: "/nodes/{node}/network", handle: listNetwork, params: []schema.Param{schema.Choice("type", kinds...)}},
		{
			Method: "GET", Path: "/nodes/{node}/network/{iface}", handle: getInterface, permission: audit,
			params: []schema.Param{schema.Text("iface").Format("pve-iface").MaxLength(20).Required()},
		},
	}
}

func nodeIndex() []string {
	return strings.Fields(`aplinfo apt capabilities ceph certificates config disks dns firewall hardware hosts journal lxc migrateall netstat
		network qemu query-url-metadata replication report rrd rrddata scan services spiceshell startall status stopall storage subscription
		suspendall syslog tasks termproxy time version vncshell vzdump wakeonlan sdn`)
}

func listNodes(c *call) reply {
	out := []map[string]any{}
	for _, n := range c.nodes {
		entry := c.nodeEntry(n)
		entry["ssl_fingerprint"] = n.fingerprint()
		out = append(out, entry)
	}
	return ok(out)
}

// nodeEntry is a node in lists. What it has and uses is shown to those alone who may audit it (extract_node_stats in
// PVE::API2Tools).
func (c *call) nodeEntry(n *node) map[string]any {
	out := map[string]any{"type": "node", "id": "node/" + string(n.Name), "node": n.Name, "status": c.statusOf(n)}
	if c.forgotten(c.at.heard(n)) {
		return out
	}
	out["level"] = ""
	if c.may(c.who, "/nodes/"+string(n.Name), "Sys.Audit") {
		maps.Copy(out, c.figuresOf(n))
	}
	return out
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

// figuresOf are the load figures of a node. Of an offline one only its size is known, and that not for long.
func (c *call) figuresOf(n *node) map[string]any {
	if n.loadCycle != c.cycle()+1 {
		n.load, n.loadCycle = c.nodeUsage(n), c.cycle()+1
	}
	u := n.load
	out := map[string]any{"maxcpu": u.cpus, "maxmem": u.memory, "maxdisk": u.disk}
	if c.at.sees(n) {
		maps.Copy(out, map[string]any{"cpu": u.cpu, "mem": u.used, "disk": u.diskUsed, "uptime": u.uptime})
	}
	return out
}

// fingerprint is a stable stand-in for the SHA-256 fingerprint of the node's certificate.
func (n *node) fingerprint() string { return fingerprint([]byte(n.Name)) }

// certificates lists the cluster's root CA and the certificate of a node (PVE::API2::Certificates).
func certificates(c *call) reply {
	root := fmt.Appendf(nil, "%s %d", c.name, c.seed)
	if c.ca != nil {
		root = c.ca.pem
	}
	issuer := "/CN=Proxmox Virtual Environment/O=PVE Cluster Manager CA"
	return ok([]map[string]any{
		{"filename": "pve-root-ca.pem", "fingerprint": fingerprint(root), "subject": issuer, "issuer": issuer},
		{"filename": "pve-ssl.pem", "fingerprint": c.node.fingerprint(), "subject": "/CN=" + string(c.node.Name), "issuer": issuer},
	})
}

// fingerprint is the SHA-256 of something, as openssl prints it.
func fingerprint(of []byte) string {
	sum := strings.ToUpper(checksum("sha256", of))
	var pairs []string
	for i := 0; i < len(sum); i += 2 {
		pairs = append(pairs, sum[i:i+2])
	}
	return strings.Join(pairs, ":")
}

// usage is the load of a node.
type usage struct {
	cpus                         int
	cpu                          float64
	memory, used, disk, diskUsed proxmox.Bytes
	uptime                       int64
}

// nodeUsage are the load figures of a node: the host's own share and what its running guests have.
func (w *World) nodeUsage(n *node) usage {
	used, cpu := proxmox.MiB(2048).Bytes(), 0.01+n.Load
	for _, v := range w.vms {
		if v.node == n.Name && v.running {
			used += v.memory()
			cpu += 0.02 * float64(v.cpus()) / float64(n.CPUs)
		}
	}
	for _, ct := range w.containers {
		if ct.Node == n.Name && ct.running() {
			used += ct.Memory.Bytes()
			cpu += 0.01 * float64(ct.Cores) / float64(n.CPUs)
		}
	}
	return usage{
		cpus: n.CPUs, cpu: min(cpu, 1), memory: n.Memory.Bytes(), used: min(used, n.Memory.Bytes()), disk: proxmox.GiB(94).Bytes(),
		diskUsed: proxmox.GiB(8).Bytes(), uptime: int64(w.clock.Since(n.booted).Seconds()),
	}
}

func nodeStatus(c *call) reply {
	n := c.node
	u := c.nodeUsage(n)
	memory := map[string]any{"total": u.memory, "used": u.used, "free": u.memory - u.used}
	cpu := map[string]any{
		"model": "AMD EPYC 9124 16-Core Processor", "sockets": n.Sockets, "cores": n.CPUs / n.Threads, "cpus": n.CPUs, "mhz": "3000.000", "hvm": "1",
		"user_hz": 100, "flags": "fpu vme de pse tsc msr svm aes avx2",
	}
	if c.version != V84 {
		memory["available"], cpu["vendor"], cpu["family"] = u.memory-u.used, "AuthenticAMD", "25"
	}
	return ok(map[string]any{
		"uptime": u.uptime, "cpu": u.cpu, "wait": 0, "idle": 0, "loadavg": []string{"0.20", "0.15", "0.10"},
		"pveversion": "pve-manager/" + c.version.full() + "/pvesim", "kversion": "Linux 6.8.12-pve #1 SMP PREEMPT_DYNAMIC",
		"memory": memory, "swap": map[string]any{"total": 0, "used": 0, "free": 0},
		"rootfs": map[string]any{"total": u.disk, "used": u.diskUsed, "free": u.disk - u.diskUsed, "avail": u.disk - u.diskUsed},
		"ksm":    map[string]any{"shared": 0}, "boot-info": map[string]any{"mode": "legacy-bios"}, "cpuinfo": cpu,
		"current-kernel": map[string]any{"sysname": "Linux", "release": "6.8.12-pve", "version": "#1 SMP PREEMPT_DYNAMIC", "machine": "x86_64"},
	})
}

func nodeTime(c *call) reply {
	now := c.clock.Now().Unix()
	return ok(map[string]any{"timezone": "Etc/UTC", "time": now, "localtime": now})
}

func nodeDNS(*call) reply { return ok(map[string]string{"dns1": "127.0.0.1"}) }

// noRRDData answers for graphs: nothing is recorded of the past.
func noRRDData(*call) reply { return ok([]any{}) }

// interfaces are the network interfaces of a node as its /etc/network/interfaces has them.
func (n *node) interfaces() []map[string]any {
	out := []map[string]any{{
		"iface": "eth0", "type": "eth", "active": 1, "method": "manual", "method6": "manual", "families": []string{"inet"}, "priority": 3,
	}}
	for i, b := range n.Bridges {
		entry := map[string]any{
			"iface": b, "type": "bridge", "active": 1, "autostart": 1, "method": "manual", "method6": "manual", "families": []string{"inet"},
			"bridge_fd": "0", "bridge_stp": "off", "bridge_ports": "", "priority": 4 + i,
		}
		if i == 0 {
			maps.Copy(entry, map[string]any{"method": "static", "address": n.Address, "netmask": "24", "cidr": n.Address + "/24", "bridge_ports": "eth0"})
		}
		for key, value := range n.BridgeOptions[b] {
			entry[key] = value
		}
		out = append(out, entry)
	}
	return out
}

// ConfigureBridge writes a bridge, with further options, into a host's network configuration, and makes it. Unknown hosts are
// ignored.
func (w *World) ConfigureBridge(name proxmox.NodeName, bridge proxmox.BridgeName, options map[string]string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.node(name)
	if n == nil {
		return
	}
	if !slices.Contains(n.Bridges, bridge) {
		n.Bridges = append(slices.Clone(n.Bridges), bridge) // the spec's may be another's, too
	}
	if n.BridgeOptions == nil {
		n.BridgeOptions = map[proxmox.BridgeName]map[string]string{}
	}
	n.BridgeOptions[bridge] = maps.Clone(options)
}

// RemoveBridge takes a bridge out of a host's network configuration, and away.
func (w *World) RemoveBridge(name proxmox.NodeName, bridge proxmox.BridgeName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := w.node(name); n != nil {
		n.Bridges = slices.DeleteFunc(slices.Clone(n.Bridges), func(b proxmox.BridgeName) bool { return b == bridge })
		delete(n.BridgeOptions, bridge)
	}
}

func cloneBridgeOptions(options map[proxmox.BridgeName]map[string]string) map[proxmox.BridgeName]map[string]string {
	if options == nil {
		return nil
	}
	out := map[proxmox.BridgeName]map[string]string{}
	for bridge, values := range options {
		out[bridge] = maps.Clone(values)
	}
	return out
}

func listNetwork(c *call) reply {
	out := []map[string]any{}
	wanted := c.params["type"]
	for _, entry := range c.node.interfaces() {
		if wantedInterface(wanted, entry["type"]) && c.seesInterface(entry) {
			out = append(out, entry)
		}
	}
	if wanted == "vnet" || wanted == "any_bridge" || wanted == "include_sdn" {
		out = append(out, c.vnetInterfaces(c.node)...)
	}
	return ok(out)
}

func wantedInterface(wanted string, typ any) bool {
	switch wanted {
	case "", "include_sdn":
		return true
	case "any_bridge", "any_local_bridge":
		return typ == "bridge"
	}
	return typ == wanted
}

// seesInterface tells whether the caller may see an interface: bridges are part of the SDN.
func (c *call) seesInterface(entry map[string]any) bool {
	bridge, is := entry["iface"].(proxmox.BridgeName)
	return !is || c.mayAny(c.who, "/sdn/zones/localnetwork/"+string(bridge), "SDN.Audit", "SDN.Use")
}

func getInterface(c *call) reply {
	for _, entry := range c.node.interfaces() {
		if name, bridge := entry["iface"].(proxmox.BridgeName); string(name) == c.params["iface"] || (!bridge && entry["iface"] == c.params["iface"]) {
			delete(entry, "iface")
			return ok(entry)
		}
	}
	return invalidParam("iface", "interface does not exist")
}
