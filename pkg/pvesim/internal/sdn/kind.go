package sdn

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Kind is what a type of section may and must have.
type Kind struct {
	Required, Optional []string
}

// Check returns why the options cannot make a section of the kind, or "" (PVE::SectionConfig::check_config).
func (k Kind) Check(options Section) string {
	if msg := k.CheckChange(options); msg != "" {
		return msg
	}
	for _, key := range k.Required {
		if _, given := options[key]; !given {
			return fmt.Sprintf("missing value for required option '%s'", key)
		}
	}
	return ""
}

// CheckChange returns why the options cannot be set in a section of the kind, or "".
func (k Kind) CheckChange(options Section) string {
	for _, key := range slices.Sorted(maps.Keys(options)) {
		if key != "type" && !slices.Contains(k.Required, key) && !slices.Contains(k.Optional, key) {
			return fmt.Sprintf("unexpected property '%s'", key)
		}
	}
	return ""
}

func kind(required, optional string) Kind {
	return Kind{Required: strings.Fields(required), Optional: strings.Fields(optional)}
}

// ZoneKind is that of a type of zone.
func ZoneKind(typ string) Kind {
	const common = " nodes mtu dns reversedns dnszone ipam"
	switch typ {
	case "vlan":
		return kind("bridge", "bridge-disable-mac-learning"+common)
	case "qinq":
		return kind("tag bridge", "vlan-protocol bridge-disable-mac-learning"+common)
	case "vxlan":
		return kind("", "peers fabric vxlan-port"+common)
	case "evpn":
		return kind("vrf-vxlan controller", "exitnodes exitnodes-local-routing exitnodes-primary advertise-subnets disable-arp-nd-suppression mac rt-import"+common)
	case "faucet":
		return kind("dp-id controller", common)
	}
	return kind("", "dhcp"+common)
}

// VNetKind is that of vnets.
func VNetKind() Kind { return kind("zone", "tag alias vlanaware isolate-ports") }

// SubnetKind is that of subnets.
func SubnetKind() Kind {
	return kind("vnet", "gateway snat dnszoneprefix dhcp-range dhcp-dns-server")
}

// ControllerKind is that of a type of controller.
func ControllerKind(typ string) Kind {
	switch typ {
	case "bgp":
		return kind("node asn peers", "bgp-multipath-as-path-relax ebgp ebgp-multihop loopback")
	case "isis":
		return kind("node isis-domain isis-ifaces isis-net", "loopback")
	case "faucet":
		return kind("", "")
	}
	return kind("asn", "peers fabric")
}

// IPAMKind is that of a type of IPAM.
func IPAMKind(typ string) Kind {
	switch typ {
	case "netbox":
		return kind("url token", "fingerprint")
	case "phpipam":
		return kind("url token section", "fingerprint")
	}
	return kind("", "")
}

// DNSKind is that of DNS servers.
func DNSKind() Kind { return kind("url key", "ttl reversemaskv6 reversev6mask fingerprint") }
