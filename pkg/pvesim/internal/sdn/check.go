package sdn

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Refusal is why an option is refused.
type Refusal struct {
	Option, Text string
}

// String is the refusal as pve-network words it when it happens under its lock.
func (r Refusal) String() string {
	return fmt.Sprintf("400 Parameter verification failed.\n%s: %s", r.Option, r.Text)
}

// CheckZone looks at what a zone refers to. It returns nil if all is well.
func (c Config) CheckZone(zone Section) *Refusal {
	for _, option := range []string{"dns", "reversedns"} {
		if name := zone[option]; name != "" && c.DNS[name] == nil {
			return &Refusal{option, name + " don't exist"}
		}
	}
	if zone["dnszone"] != "" && zone["dns"] == "" {
		return &Refusal{"dnszone", "missing dns server"}
	}
	if name := zone["ipam"]; name != "" && c.IPAMs[name] == nil {
		return &Refusal{"ipam", name + " not existing"}
	}
	return nil
}

// CheckVNet looks at the tag of a vnet, which depends on the type of its zone (vnet_update_hook of the zone plugins).
func (c Config) CheckVNet(id string, vnet Section, zoneType string) *Refusal {
	tag := vnet["tag"]
	name, limit := "vlan", 4096
	if zoneType == "vxlan" || zoneType == "evpn" {
		name, limit = "vxlan", 16777216
	}
	if zoneType == "simple" {
		if tag != "" {
			return &Refusal{"tag", "vlan tag is not allowed on simple zone"}
		}
		return c.checkAware(id, vnet)
	}
	if tag == "" {
		return &Refusal{"tag", "missing " + name + " tag"}
	}
	if n, err := strconv.Atoi(tag); err != nil || n > limit {
		return &Refusal{"tag", fmt.Sprintf("%s tag max value is %d", name, limit)}
	}
	for _, other := range slices.Sorted(maps.Keys(c.VNets)) {
		if other != id && c.VNets[other]["zone"] == vnet["zone"] && c.VNets[other]["tag"] == tag {
			return &Refusal{"tag", fmt.Sprintf("tag %s already exist in vnet %s", tag, other)}
		}
	}
	return c.checkAware(id, vnet)
}

func (c Config) checkAware(id string, vnet Section) *Refusal {
	if vnet["vlanaware"] == "1" && len(c.SubnetsOf(id)) > 0 {
		return &Refusal{"vlanaware", "vlanaware vnet is not compatible with subnets"}
	}
	return nil
}

// SubnetsOf are the IDs of the subnets of a vnet.
func (c Config) SubnetsOf(vnet string) []string {
	var out []string
	for _, id := range slices.Sorted(maps.Keys(c.Subnets)) {
		if c.Subnets[id]["vnet"] == vnet {
			out = append(out, id)
		}
	}
	return out
}

// SubnetNetwork is the network in the ID of a subnet, zone-network-length.
func SubnetNetwork(id string) netip.Prefix {
	_, rest, _ := strings.Cut(id, "-")
	i := strings.LastIndex(rest, "-")
	p, err := netip.ParsePrefix(rest[:max(0, i)] + "/" + rest[i+1:])
	if err != nil {
		return netip.Prefix{}
	}
	return p
}

// CheckSubnet looks at the addresses of a subnet (PVE::Network::SDN::SubnetPlugin).
func (c Config) CheckSubnet(id string, subnet Section) *Refusal {
	network, vnet := SubnetNetwork(id), c.VNets[subnet["vnet"]]
	switch {
	case vnet == nil:
		return &Refusal{"vnet", subnet["vnet"] + " don't exist"}
	case vnet["vlanaware"] == "1":
		return &Refusal{"vnet", "you can't add a subnet on a vlanaware vnet"}
	}
	gateway, err := netip.ParseAddr(subnet["gateway"])
	if pointToPoint := network.Addr().Is4() && network.Bits() == 32; err == nil && !pointToPoint && !network.Contains(gateway) {
		return &Refusal{"gateway", fmt.Sprintf("%s is not in subnet %s", gateway, network)}
	}
	for _, r := range DHCPRanges(subnet) {
		if text := rangeProblem(r, network); text != "" {
			return &Refusal{"dhcp-range", text}
		}
	}
	return nil
}

// DHCPRanges are the ranges of a subnet by their parts.
func DHCPRanges(subnet Section) []map[string]string {
	out := []map[string]string{}
	if subnet["dhcp-range"] == "" {
		return out
	}
	for _, text := range strings.Split(subnet["dhcp-range"], "\x00") {
		r := map[string]string{}
		for _, part := range strings.Split(text, ",") {
			key, value, _ := strings.Cut(part, "=")
			r[key] = value
		}
		out = append(out, r)
	}
	return out
}

func rangeProblem(r map[string]string, network netip.Prefix) string {
	var ends [2]netip.Addr
	for i, key := range []string{"start-address", "end-address"} {
		a, err := netip.ParseAddr(r[key])
		if err != nil {
			return fmt.Sprintf("%s is not a valid IP %s", key, r[key])
		}
		ends[i] = a
	}
	if ends[1].Less(ends[0]) {
		return fmt.Sprintf("start-address %s must be smaller than end-address %s", ends[0], ends[1])
	}
	for i, key := range []string{"start-address", "end-address"} {
		if !network.Contains(ends[i]) {
			return fmt.Sprintf("%s %s is not in subnet %s", key, ends[i], network)
		}
	}
	return ""
}

// UserOfZone is a vnet that is in the zone, or "".
func (c Config) UserOfZone(zone string) string {
	for _, id := range slices.Sorted(maps.Keys(c.VNets)) {
		if c.VNets[id]["zone"] == zone {
			return id
		}
	}
	return ""
}
