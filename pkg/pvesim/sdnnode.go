package pvesim

import (
	"maps"
	"slices"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

func sdnNodeRoutes(v Version) []Route {
	id, audit := []schema.Param{sdnID(v, "zone")}, on("/sdn/zones/{zone}", "SDN.Audit")
	zone := []string{"content"}
	if v != V84 {
		zone = append(zone, "bridges", "ip-vrf")
	}
	return []Route{
		{Method: "GET", Path: "/nodes/{node}/sdn/zones", handle: listNodeZones},
		{Method: "GET", Path: "/nodes/{node}/sdn/zones/{zone}", permission: audit, params: id, handle: func(*call) reply { return ok(named("subdir", zone...)) }},
		{Method: "GET", Path: "/nodes/{node}/sdn/zones/{zone}/content", permission: audit, params: id, handle: listZoneContent},
	}
}

// noStatus is the error of a host that cannot tell how its bridges are, because ifquery of ifupdown2 is missing. Before the network
// is put in force for the first time nobody asks.
func (c *call) noStatus(n *node) (refused reply, is bool) {
	if !n.NoIfupdown2 || c.sdn.version == 0 {
		return reply{}, false
	}
	return fail(`malformed JSON string, neither tag, array, object, number, string or atom, at character offset 0 (before "(end of string)")%s`,
		c.diedAt("Network/SDN/Zones.pm", 210, 200)), true
}

func listNodeZones(c *call) reply {
	if r, is := c.noStatus(c.node); is {
		return r
	}
	out := []map[string]any{}
	for _, id := range c.zonesOn(c.node) {
		if c.mayAny(c.who, "/sdn/zones/"+id, "SDN.Audit") {
			out = append(out, map[string]any{"zone": id, "status": c.zoneStatus(c.node)})
		}
	}
	return ok(out)
}

// zonesOn are the zones in force on a host.
func (w *World) zonesOn(n *node) []string {
	var out []string
	for _, id := range slices.Sorted(maps.Keys(w.sdn.running.Zones)) {
		if w.sdn.running.Zones[id].OnNode(string(n.Name)) {
			out = append(out, id)
		}
	}
	return out
}

// zoneStatus tells whether the host has made the bridges that are in force.
func (w *World) zoneStatus(n *node) string {
	if w.sdn.applied[n.Name] < w.sdn.version {
		return "pending"
	}
	return "available"
}

func listZoneContent(c *call) reply {
	if r, is := c.noStatus(c.node); is {
		return r
	}
	out := []map[string]any{}
	zone := c.params["zone"]
	if !slices.Contains(c.zonesOn(c.node), zone) {
		return ok(out)
	}
	for _, id := range slices.Sorted(maps.Keys(c.sdn.running.VNets)) {
		if c.sdn.running.VNets[id]["zone"] != zone {
			continue
		}
		entry := map[string]any{"vnet": id, "status": c.zoneStatus(c.node), "statusmsg": nil}
		switch applied := c.sdn.applied[c.node.Name]; {
		case applied == 0:
			entry["statusmsg"] = "local sdn network configuration is not yet generated, please reload"
		case applied < c.sdn.version:
			entry["statusmsg"] = "local sdn network configuration is too old, please reload"
		}
		out = append(out, entry)
	}
	return ok(out)
}

// vnetInterfaces are the vnets in force on a host, as its list of networks shows them, whether their bridges are made or not.
func (c *call) vnetInterfaces(n *node) []map[string]any {
	out := []map[string]any{}
	for _, id := range slices.Sorted(maps.Keys(c.sdn.running.VNets)) {
		vnet := c.sdn.running.VNets[id]
		zone := c.sdn.running.Zones[vnet["zone"]]
		if zone == nil || !zone.OnNode(string(n.Name)) || !c.mayAny(c.who, "/sdn/zones/"+vnet["zone"]+"/"+id, "SDN.Audit", "SDN.Use") {
			continue
		}
		entry := map[string]any{
			"iface": id, "type": "vnet", "active": "1", "ipam": pveBool(zone["ipam"] != ""), "vlanaware": pveBool(vnet["vlanaware"] == "1"), "comments": nil,
		}
		if vnet["alias"] != "" {
			entry["comments"] = vnet["alias"]
		}
		out = append(out, entry)
	}
	return out
}
