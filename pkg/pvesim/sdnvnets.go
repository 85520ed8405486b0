package pvesim

import (
	"fmt"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/sdn"
)

func vnetRoutes(v Version) []Route {
	id := sdnID(v, "vnet")
	news := newParams(v, append(vnetOptions(v), schema.Text("zone").Required(), schema.Choice("type", "vnet")), id)
	out := []Route{
		{Method: "GET", Path: "/cluster/sdn/vnets", handle: vnetKind().list, params: viewParams()},
		{Method: "POST", Path: "/cluster/sdn/vnets", handle: createVNet, permission: on("/sdn/zones/{zone}", "SDN.Allocate"), params: news},
		{Method: "GET", Path: "/cluster/sdn/vnets/{vnet}", handle: onVNet(vnetKind().show, "SDN.Audit", "SDN.Allocate"), params: append(viewParams(), id)},
		{
			Method: "PUT", Path: "/cluster/sdn/vnets/{vnet}", handle: onVNet(updateVNet, "SDN.Allocate"),
			params: changeParams(v, append(vnetOptions(v), schema.Text("zone")), id),
		},
		{Method: "DELETE", Path: "/cluster/sdn/vnets/{vnet}", handle: onVNet(deleteVNet, "SDN.Allocate"), params: append(lockParams(v), id)},
	}
	return append(out, vnetFirewallRoutes(v)...)
}

// onVNet lets a handler run when the vnet is configured and one of the privileges is held on it.
func onVNet(handle func(*call) reply, privileges ...string) func(*call) reply {
	return func(c *call) reply {
		id := c.params["vnet"]
		vnet := c.sdn.config.VNets[id]
		if vnet == nil {
			return fail(vnetKind().missing, id)
		}
		if path := "/sdn/zones/" + vnet["zone"] + "/" + id; !c.mayAny(c.who, path, privileges...) {
			return denied(path, strings.Join(privileges, "|"))
		}
		return handle(c)
	}
}

func createVNet(c *call) reply {
	k, id, section := vnetKind(), c.params["vnet"], vnetKind().options(c)
	return c.lockedSDN("create sdn vnet object failed", func() string {
		if text := k.kind("").Check(section); text != "" {
			return text
		}
		section["type"] = "vnet"
		return k.create(c, id, section, func() string { return c.checkVNet(id) })
	})
}

func (c *call) checkVNet(id string) string {
	vnet := c.sdn.config.VNets[id]
	zone := c.sdn.config.Zones[vnet["zone"]]
	if zone == nil {
		return "cannot lookup undefined type!" + c.diedAt("API2/Network/SDN/Vnets.pm", 232, 326)
	}
	return refusal(c.sdn.config.CheckVNet(id, vnet, zone["type"]))
}

func updateVNet(c *call) reply {
	k, id := vnetKind(), c.params["vnet"]
	return c.lockedSDN("update sdn vnet object failed", func() string {
		return k.update(c, id, func(before sdn.Section) string {
			if after := c.sdn.config.VNets[id]; after["zone"] != before["zone"] && len(c.sdn.config.SubnetsOf(id)) > 0 {
				return sdn.Refusal{Option: "zone", Text: "can't change zone if subnets exist"}.String()
			}
			return c.checkVNet(id)
		})
	})
}

func deleteVNet(c *call) reply {
	id := c.params["vnet"]
	return c.lockedSDN("delete sdn vnet object failed", func() string {
		if len(c.sdn.config.SubnetsOf(id)) > 0 {
			return sdn.Refusal{Option: "vnet", Text: "Can't delete vnet if subnets exists"}.String()
		}
		delete(c.sdn.config.VNets, id)
		return ""
	})
}

func subnetRoutes(v Version) []Route {
	id, vnet, path := schema.Text("subnet").Format("pve-sdn-subnet-id").Required(), sdnID(v, "vnet"), "/cluster/sdn/vnets/{vnet}/subnets"
	member := append(subnetOptions(), schema.Text("vnet").Required())
	changes := changeParams(v, append(subnetOptions(), schema.Text("vnet")), id)
	read, write := []string{"SDN.Audit", "SDN.Allocate"}, []string{"SDN.Allocate"}
	return []Route{
		{Method: "GET", Path: path, handle: onVNet(listSubnets, read...), params: append(viewParams(), vnet)},
		{Method: "POST", Path: path, handle: onVNet(createSubnet, write...), params: newParams(v, append(member, schema.Choice("type", "subnet").Required()), id)},
		{Method: "GET", Path: path + "/{subnet}", handle: onVNet(showSubnet, read...), params: append(viewParams(), vnet, id)},
		{Method: "PUT", Path: path + "/{subnet}", handle: onVNet(updateSubnet, write...), params: changes},
		{Method: "DELETE", Path: path + "/{subnet}", handle: onVNet(deleteSubnet, write...), params: append(lockParams(v), vnet, id)},
	}
}

// subnetEntry is a subnet with what its ID says of it.
func subnetEntry(o sdn.Object, digest any) map[string]any {
	out := subnetKind().entry(o, digest)
	network, zone := sdn.SubnetNetwork(o.ID), o.ID
	zone, _, _ = strings.Cut(zone, "-")
	out["cidr"], out["network"], out["mask"], out["zone"] = network.String(), network.Addr().String(), fmt.Sprint(network.Bits()), zone
	out["dhcp-range"] = sdn.DHCPRanges(o.Options)
	return out
}

func subnetVNet(o sdn.Object) string {
	if o.Options["vnet"] == "" && o.Changes != nil {
		return o.Changes["vnet"]
	}
	return o.Options["vnet"]
}

func listSubnets(c *call) reply {
	objects, digest := subnetKind().view(c)
	out := []map[string]any{}
	for _, o := range objects {
		// A subnet that is new has its vnet among what is pending, where the list does not look.
		if o.Options["vnet"] == c.params["vnet"] {
			out = append(out, subnetEntry(o, digest))
		}
	}
	return ok(out)
}

func showSubnet(c *call) reply {
	objects, digest := subnetKind().view(c)
	for _, o := range objects {
		if o.ID != c.params["subnet"] {
			continue
		}
		if subnetVNet(o) != c.params["vnet"] {
			return invalidParam("vnet", "wrong vnet")
		}
		return ok(subnetEntry(o, digest))
	}
	return fail(subnetKind().missing, c.params["subnet"])
}

func createSubnet(c *call) reply {
	k, section := subnetKind(), subnetKind().options(c)
	return c.lockedSDN("create sdn subnet object failed", func() string {
		id := c.sdn.config.VNets[c.params["vnet"]]["zone"] + "-" + strings.Replace(c.params["subnet"], "/", "-", 1)
		if text := k.kind("").Check(section); text != "" {
			return text
		}
		section["type"] = "subnet"
		return k.create(c, id, section, func() string { return refusal(c.sdn.config.CheckSubnet(id, section)) })
	})
}

func updateSubnet(c *call) reply {
	k, id := subnetKind(), c.params["subnet"]
	return c.lockedSDN("update sdn subnet object failed", func() string {
		return k.update(c, id, func(sdn.Section) string { return refusal(c.sdn.config.CheckSubnet(id, c.sdn.config.Subnets[id])) })
	})
}

// deleteSubnet removes a subnet; one that is not there as well.
func deleteSubnet(c *call) reply {
	return c.lockedSDN("delete sdn subnet object failed", func() string {
		delete(c.sdn.config.Subnets, c.params["subnet"])
		return ""
	})
}
