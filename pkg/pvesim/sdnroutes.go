package pvesim

import (
	"slices"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

func sdnRoutes(v Version) []Route {
	allocate := on("/sdn", "SDN.Allocate")
	out := []Route{
		{Method: "GET", Path: "/cluster/sdn", handle: sdnIndex, permission: on("/sdn", "SDN.Audit")},
		{Method: "PUT", Path: "/cluster/sdn", handle: applySDN, permission: allocate, params: lockParams(v, schema.Boolean("release-lock"))},
	}
	out = append(out, zoneRoutes(v)...)
	out = append(out, vnetRoutes(v)...)
	out = append(out, subnetRoutes(v)...)
	out = append(out, controllerRoutes(v)...)
	out = append(out, ipamRoutes(v)...)
	out = append(out, dnsRoutes(v)...)
	out = append(out, sdnNodeRoutes(v)...)
	if v == V84 {
		return out
	}
	token := schema.Text("lock-token")
	return append(out,
		Route{Method: "POST", Path: "/cluster/sdn/lock", handle: lockSDN, permission: allocate, params: []schema.Param{schema.Boolean("allow-pending")}},
		Route{Method: "DELETE", Path: "/cluster/sdn/lock", handle: unlockSDN, permission: allocate, params: []schema.Param{token, schema.Boolean("force")}},
		Route{Method: "POST", Path: "/cluster/sdn/rollback", handle: rollbackSDN, permission: allocate, params: []schema.Param{token, schema.Boolean("release-lock")}},
		Route{Method: "GET", Path: sdnDryRun, handle: dryRunSDN, permission: on("/nodes/{node}", "Sys.Audit"), params: []schema.Param{schema.Text("node").Format("pve-node").Required()}},
		Route{Method: "GET", Path: "/cluster/sdn/fabrics", permission: on("/sdn/fabrics", "SDN.Audit"), handle: func(*call) reply { return ok(named("subdir", "fabric", "node", "all")) }},
		Route{Method: "GET", Path: "/cluster/sdn/fabrics/fabric", handle: noFabrics, params: viewParams()},
		Route{Method: "GET", Path: "/cluster/sdn/fabrics/node", handle: noFabrics, params: viewParams()},
		Route{Method: "GET", Path: "/cluster/sdn/fabrics/all", params: viewParams(), handle: func(*call) reply {
			return ok(map[string]any{"fabrics": []any{}, "nodes": []any{}})
		}},
	)
}

func sdnIndex(c *call) reply {
	names := []string{"vnets", "zones", "controllers", "ipams", "dns"}
	if c.version != V84 {
		names = append(names, "fabrics")
	}
	return ok(named("id", names...))
}

func noFabrics(*call) reply { return ok([]any{}) }

// lockParams adds the token of the lock, which 8.x does not have; the other parameters are for 9.x alone as well.
func lockParams(v Version, others ...schema.Param) []schema.Param {
	if v == V84 {
		return nil
	}
	return append(others, schema.Text("lock-token"))
}

func viewParams() []schema.Param {
	return []schema.Param{schema.Boolean("pending"), schema.Boolean("running")}
}

// changeParams are those of a request that changes an object with the options.
func changeParams(v Version, options []schema.Param, id schema.Param) []schema.Param {
	out := append(slices.Clone(options), id, schema.Text("digest").MaxLength(64), schema.Text("delete").Format("pve-configid-list").MaxLength(4096))
	return append(out, lockParams(v)...)
}

// newParams are those of a request that makes an object of one of the types.
func newParams(v Version, options []schema.Param, id schema.Param, types ...string) []schema.Param {
	out := append(slices.Clone(options), id)
	if len(types) > 0 {
		out = append(out, schema.Choice("type", types...).Format("pve-configid").Required())
	}
	return append(out, lockParams(v)...)
}

func zoneTypes() []string { return []string{"evpn", "faucet", "qinq", "simple", "vlan", "vxlan"} }

func zoneOptions(v Version) []schema.Param {
	vrf, port := schema.Integer("vrf-vxlan"), schema.Integer("vxlan-port").Min(1).Max(65536)
	out := []schema.Param{
		schema.Boolean("advertise-subnets"), schema.Text("bridge"), schema.Boolean("bridge-disable-mac-learning"), schema.Text("controller"),
		schema.Choice("dhcp", "dnsmasq"), schema.Boolean("disable-arp-nd-suppression"), schema.Text("dns"), schema.Text("dnszone").Format("dns-name"),
		schema.Integer("dp-id"), schema.Text("exitnodes").Format("pve-node-list"), schema.Boolean("exitnodes-local-routing"),
		schema.Text("exitnodes-primary").Format("pve-node"), schema.Text("ipam"), schema.Text("mac").Format("mac-addr"), schema.Integer("mtu"),
		schema.Text("nodes").Format("pve-node-list"), schema.Text("peers").Format("ip-list"), schema.Text("reversedns"),
		schema.Text("rt-import").Format("pve-sdn-bgp-rt-list"), schema.Integer("tag").Min(0), schema.Choice("vlan-protocol", "802.1q", "802.1ad"),
	}
	if v != V84 {
		vrf = vrf.Min(1).Max(16777215)
		out = append(out, schema.Text("fabric").Format("pve-sdn-fabric-id"))
	}
	return append(out, vrf, port)
}

func vnetOptions(v Version) []schema.Param {
	tag := schema.Integer("tag")
	if v != V84 {
		tag = tag.Min(1).Max(16777215)
	}
	return []schema.Param{
		schema.Text("alias").Pattern(`(?i:[()-_.\w\d\s]{0,256})`).MaxLength(256), schema.Boolean("isolate-ports"), tag, schema.Boolean("vlanaware"),
	}
}

func subnetOptions() []schema.Param {
	ranges := schema.PropertyString{Params: []schema.Param{schema.Text("start-address").Required(), schema.Text("end-address").Required()}}
	return []schema.Param{
		schema.Text("dhcp-dns-server").Format("ip"), schema.List("dhcp-range").Of(ranges), schema.Text("dnszoneprefix").Format("dns-name"),
		schema.Text("gateway").Format("ip"), schema.Boolean("snat"),
	}
}

func controllerOptions(v Version) []schema.Param {
	asn, isis := schema.Integer("asn").Min(0).Max(4294967296), schema.Text("isis-net").Format("pve-sdn-isis-net")
	out := []schema.Param{
		schema.Boolean("bgp-multipath-as-path-relax"), schema.Boolean("ebgp"), schema.Integer("ebgp-multihop"), schema.Text("isis-domain"),
		schema.Text("isis-ifaces").Format("pve-iface-list"), schema.Text("loopback"), schema.Text("node").Format("pve-node"), schema.Text("peers").Format("ip-list"),
	}
	if v != V84 {
		asn = asn.Max(4294967295)
		isis = isis.Pattern(`[a-fA-F0-9]{2}(\.[a-fA-F0-9]{4}){3,9}\.[a-fA-F0-9]{2}`).MinLength(20).MaxLength(50)
		out = append(out, schema.Text("fabric").Format("pve-sdn-fabric-id"))
	}
	return append(out, asn, isis)
}

func fingerprintParam() schema.Param {
	return schema.Text("fingerprint").Pattern(`([A-Fa-f0-9]{2}:){31}[A-Fa-f0-9]{2}`)
}

// serviceID is a parameter that names a controller, an IPAM or a DNS server.
func serviceID(v Version, name string) schema.Param {
	p := schema.Text(name).Required()
	switch {
	case v == V84:
		return p.Format("pve-sdn-" + name + "-id")
	case name == "controller":
		return p.Pattern(`[a-zA-Z][a-zA-Z0-9_-]*[a-zA-Z0-9]`).MinLength(2).MaxLength(64)
	}
	return p.Pattern(`[a-zA-Z][a-zA-Z0-9]*[a-zA-Z0-9]`).MinLength(2)
}
