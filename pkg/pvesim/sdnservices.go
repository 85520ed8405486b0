package pvesim

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/sdn"
)

// service are the endpoints of controllers, IPAMs and DNS servers, which are all alike.
type service struct {
	sdnKind
	types []string
	// deleteError is what stands before an error of a delete.
	deleteError string
}

func (s service) routes(v Version, news, changes, views []schema.Param) []Route {
	path, id := "/cluster/sdn/"+s.plural, serviceID(v, s.name)
	one, rights := path+"/{"+s.name+"}", "/sdn/"+s.plural
	all, own := on(rights, "SDN.Allocate"), on(rights+"/{"+s.name+"}", "SDN.Allocate")
	return []Route{
		{Method: "GET", Path: path, handle: s.list, params: append(slices.Clone(views), schema.Choice("type", s.types...))},
		{Method: "POST", Path: path, handle: s.create, permission: all, params: newParams(v, news, id, s.types...)},
		{Method: "GET", Path: one, handle: s.show, permission: own, params: append(slices.Clone(views), id)},
		{Method: "PUT", Path: one, handle: s.update, permission: all, params: changeParams(v, changes, id)},
		{Method: "DELETE", Path: one, handle: s.remove, permission: all, params: append(lockParams(v), id)},
	}
}

func (s service) create(c *call) reply {
	section := s.options(c)
	if text := s.kind(c.params["type"]).Check(section); text != "" {
		return fail("%s", text)
	}
	section["type"] = c.params["type"]
	return c.lockedSDN("create sdn "+s.name+" object failed", func() string {
		return s.sdnKind.create(c, c.params[s.name], section, func() string { return "" })
	})
}

func (s service) update(c *call) reply {
	return c.lockedSDN("update sdn "+s.name+" object failed", func() string {
		return s.sdnKind.update(c, c.params[s.name], func(sdn.Section) string { return "" })
	})
}

func (s service) remove(c *call) reply {
	id := c.params[s.name]
	return c.lockedSDN(s.deleteError, func() string {
		if s.sections(&c.sdn.config)[id] == nil {
			return fmt.Sprintf(s.missing, id)
		}
		delete(s.sections(&c.sdn.config), id)
		return ""
	})
}

func controllerRoutes(v Version) []Route {
	s := service{controllerKind(), []string{"bgp", "evpn", "faucet", "isis"}, "delete sdn controller object failed"}
	return s.routes(v, controllerOptions(v), controllerOptions(v), viewParams())
}

func ipamRoutes(v Version) []Route {
	s := service{ipamKind(), []string{"netbox", "phpipam", "pve"}, "delete sdn zone object failed"}
	options := []schema.Param{fingerprintParam(), schema.Integer("section"), schema.Text("token"), schema.Text("url")}
	out := append(s.routes(v, options, options, nil), Route{
		Method: "GET", Path: "/cluster/sdn/ipams/{ipam}/status", handle: ipamStatus, params: []schema.Param{serviceID(v, "ipam")},
	})
	ip := []schema.Param{sdnID(v, "vnet"), sdnID(v, "zone"), schema.Text("ip").Format("ip").Required(), schema.Text("mac").Format("mac-addr")}
	allocate, path := on("/sdn/zones/{zone}/{vnet}", "SDN.Allocate"), "/cluster/sdn/vnets/{vnet}/ips"
	return append(out,
		Route{Method: "POST", Path: path, handle: addIP, permission: allocate, params: ip},
		Route{Method: "PUT", Path: path, handle: changeIP, permission: allocate, params: append(slices.Clone(ip), schema.VMID("vmid"))},
		Route{Method: "DELETE", Path: path, handle: deleteIP, permission: allocate, params: ip},
	)
}

func dnsRoutes(v Version) []Route {
	s := service{dnsKind(), []string{"powerdns"}, "delete sdn dns object failed"}
	changes := []schema.Param{fingerprintParam(), schema.Text("key"), schema.Integer("reversemaskv6"), schema.Integer("ttl"), schema.Text("url")}
	news := []schema.Param{
		fingerprintParam(), schema.Text("key").Required(), schema.Integer("reversemaskv6"), schema.Integer("reversev6mask"), schema.Integer("ttl"),
		schema.Text("url").Required(),
	}
	return s.routes(v, news, changes, nil)
}

// sdnAddress is an address that the IPAM of Proxmox VE has given out.
type sdnAddress struct {
	zone, vnet, subnet string
	ip                 netip.Addr
	mac                string
	vmid               proxmox.VMID
}

// subnetFor finds the subnet in force that an address of the vnet is in, or "".
func (s *sdnState) subnetFor(vnet string, ip netip.Addr) string {
	for _, id := range s.running.SubnetsOf(vnet) {
		if sdn.SubnetNetwork(id).Contains(ip) {
			return id
		}
	}
	return ""
}

func ipParam(c *call) netip.Addr {
	ip, err := netip.ParseAddr(c.params["ip"])
	if err != nil {
		return netip.Addr{}
	}
	return ip
}

// giveOut notes an address. Zones without an IPAM keep none. It returns why it cannot, or "".
func (c *call) giveOut(a sdnAddress) string {
	a.subnet = c.sdn.subnetFor(a.vnet, a.ip)
	zone := c.sdn.running.VNets[a.vnet]["zone"]
	switch {
	case a.subnet == "":
		return fmt.Sprintf("can't find any subnet for ip %s", a.ip)
	case c.sdn.running.Zones[zone]["ipam"] == "":
		return ""
	case slices.ContainsFunc(c.sdn.addresses, func(other sdnAddress) bool { return other.zone == zone && other.ip == a.ip }):
		return fmt.Sprintf("IP '%s' already exist", a.ip)
	}
	a.zone = zone
	c.sdn.addresses = append(c.sdn.addresses, a)
	return ""
}

func (c *call) address() sdnAddress {
	return sdnAddress{vnet: c.params["vnet"], ip: ipParam(c), mac: strings.ToUpper(c.params["mac"]), vmid: c.vmid()}
}

func addIP(c *call) reply {
	if text := c.giveOut(c.address()); text != "" {
		return fail("%s", text)
	}
	return ok(nil)
}

// changeIP gives a MAC address another address of the same version of IP.
func changeIP(c *call) reply {
	a, before := c.address(), slices.Clone(c.sdn.addresses)
	c.sdn.addresses = slices.DeleteFunc(c.sdn.addresses, func(other sdnAddress) bool {
		return other.vnet == a.vnet && other.mac == a.mac && other.ip.Is4() == a.ip.Is4()
	})
	if text := c.giveOut(a); text != "" {
		c.sdn.addresses = before
		return fail("%s", text)
	}
	return ok(nil)
}

func deleteIP(c *call) reply {
	ip, vnet := ipParam(c), c.params["vnet"]
	c.sdn.addresses = slices.DeleteFunc(c.sdn.addresses, func(a sdnAddress) bool { return a.vnet == vnet && a.ip == ip })
	return ok(nil)
}

// ipamStatus lists the addresses of zones with DHCP.
func ipamStatus(c *call) reply {
	if c.params["ipam"] != "pve" {
		return fail("Currently only PVE IPAM is supported!%s", c.diedAt("API2/Network/SDN/Ipams.pm", 262, 300))
	}
	out := []map[string]any{}
	for _, a := range c.sdn.addresses {
		zone := c.sdn.running.Zones[a.zone]
		if zone["ipam"] != "pve" || zone["dhcp"] == "" || !c.mayAny(c.who, "/sdn/zones/"+a.zone+"/"+a.vnet, "SDN.Audit", "SDN.Allocate") {
			continue
		}
		entry := map[string]any{"zone": a.zone, "vnet": a.vnet, "ip": a.ip.String(), "subnet": sdn.SubnetNetwork(a.subnet).String()}
		if a.mac != "" {
			entry["mac"] = a.mac
		}
		if a.vmid != 0 {
			entry["vmid"] = a.vmid
		}
		out = append(out, entry)
	}
	return ok(out)
}
