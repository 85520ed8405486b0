package network

import (
	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
)

// Config is cloud-init's network config. Its fields are those of version 2, which is netplan's format; a Config of version 1
// is written as such.
// https://cloudinit.readthedocs.io/en/latest/reference/network-config-format-v2.html
type Config struct {
	Version   int                 `json:"version"`
	Ethernets map[string]Ethernet `json:"ethernets"`
	VRFs      map[string]VRF      `json:"vrfs,omitempty"`
}

// Ethernet is one device of a Config, found by its MAC address.
type Ethernet struct {
	Match Match `json:"match"`
	// SetName is the name that the device gets in the guest: eth0 for net0. It makes the name known beforehand, for kube-vip
	// say, and lets networkd find the device, which cloud-init looks for there by name as well.
	SetName string `json:"set-name"`
	// Optional has the guest not wait for the device while it boots.
	Optional       bool           `json:"optional,omitempty"`
	MTU            int32          `json:"mtu,omitempty"`
	DHCP4          bool           `json:"dhcp4"`
	DHCP6          bool           `json:"dhcp6"`
	DHCP4Overrides *DHCPOverrides `json:"dhcp4-overrides,omitempty"`
	// AcceptRA has the guest do as IPv6 routers say: make addresses, and route by them. It is said either way, since guests
	// that forward packets, as Nodes do, take another default than others.
	AcceptRA  bool     `json:"accept-ra"`
	Addresses []string `json:"addresses,omitempty"`
	Routes    []Route  `json:"routes,omitempty"`
	// Gateway6 is the default router of IPv6. netplan would rather have a route to ::/0, but cloud-init 22.4 makes ::/64 of
	// that for networkd, ifupdown and NetworkManager; all of them read this.
	Gateway6      string              `json:"gateway6,omitempty"`
	RoutingPolicy []RoutingPolicyRule `json:"routing-policy,omitempty"`
	Nameservers   *Nameservers        `json:"nameservers,omitempty"`
}

// Match says which device of the guest an Ethernet is.
type Match struct {
	// MACAddress is in lower case, as Linux shows it: netplan compares the text.
	MACAddress string `json:"macaddress"`
}

// DHCPOverrides is what a device does with what a DHCP server says.
type DHCPOverrides struct {
	UseRoutes   *bool  `json:"use-routes,omitempty"`
	RouteMetric *int32 `json:"route-metric,omitempty"`
}

// Route is a route of an Ethernet or a VRF.
type Route struct {
	To  string `json:"to"`
	Via string `json:"via,omitempty"`
	// OnLink says that the router is on the link, although no address of the device is in a network with it.
	OnLink bool `json:"on-link,omitempty"`
	// Scope is `link` for a network that is on the link.
	Scope  string `json:"scope,omitempty"`
	Metric *int32 `json:"metric,omitempty"`
	Table  int32  `json:"table,omitempty"`
}

// RoutingPolicyRule says which traffic uses which routing table.
type RoutingPolicyRule struct {
	From     string `json:"from,omitempty"`
	To       string `json:"to,omitempty"`
	Table    int32  `json:"table,omitempty"`
	Priority *int32 `json:"priority,omitempty"`
}

// VRF is a routing domain of the guest.
type VRF struct {
	Table         int32               `json:"table"`
	Interfaces    []string            `json:"interfaces"`
	Routes        []Route             `json:"routes,omitempty"`
	RoutingPolicy []RoutingPolicyRule `json:"routing-policy,omitempty"`
}

// Nameservers is the name resolution of an Ethernet.
type Nameservers struct {
	Addresses []string `json:"addresses,omitempty"`
	Search    []string `json:"search,omitempty"`
}

// nameservers is a device's name resolution. Search domains alone get the name servers of all devices, since cloud-init 22.4
// drops domains without servers.
func nameservers(device, all v1beta1.DNS) *Nameservers {
	if len(device.Nameservers) == 0 && len(device.SearchDomains) == 0 {
		device = all
	}
	if len(device.Nameservers) == 0 {
		device.Nameservers = all.Nameservers
	}
	if len(device.Nameservers) == 0 && len(device.SearchDomains) == 0 {
		return nil
	}
	return &Nameservers{Addresses: device.Nameservers, Search: device.SearchDomains}
}
