package network

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// config1 is version 1 of cloud-init's network config.
// https://cloudinit.readthedocs.io/en/latest/reference/network-config-format-v1.html
type config1 struct {
	Version int      `json:"version"`
	Config  []entry1 `json:"config"`
}

// entry1 is a network device or, with type nameserver, what names are resolved with on one.
type entry1 struct {
	Type       string    `json:"type"`
	Name       string    `json:"name,omitempty"`
	MACAddress string    `json:"mac_address,omitempty"`
	MTU        int32     `json:"mtu,omitempty"`
	AcceptRA   *bool     `json:"accept-ra,omitempty"`
	Subnets    []subnet1 `json:"subnets,omitempty"`
	Interface  string    `json:"interface,omitempty"`
	Address    []string  `json:"address,omitempty"`
	Search     []string  `json:"search,omitempty"`
}

// subnet1 is an address, or a way to get some.
type subnet1 struct {
	Type        string   `json:"type"`
	Address     string   `json:"address,omitempty"`
	Gateway     string   `json:"gateway,omitempty"`
	Metric      *int32   `json:"metric,omitempty"`
	Nameservers []string `json:"dns_nameservers,omitempty"`
	Search      []string `json:"dns_search,omitempty"`
	Routes      []route1 `json:"routes,omitempty"`
}

// route1 is a route. Tables, and networks on the link, have no place in it.
type route1 struct {
	Destination string `json:"destination"`
	Gateway     string `json:"gateway"`
	Metric      *int32 `json:"metric,omitempty"`
}

// MarshalJSON writes the config in its version. Version 1 leaves out what it has no words for; the API refuses that.
func (c Config) MarshalJSON() ([]byte, error) {
	if c.Version == 1 {
		return json.Marshal(c.version1())
	}
	type plain Config
	return json.Marshal(plain(c))
}

func (c Config) version1() config1 {
	names := slices.SortedFunc(maps.Keys(c.Ethernets), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) // eth2 before eth10
	})
	config := config1{Version: 1}
	for _, name := range names {
		config.Config = append(config.Config, c.Ethernets[name].version1()...)
	}
	return config
}

func (e Ethernet) version1() []entry1 {
	device := entry1{
		Type: "physical", Name: e.SetName, MACAddress: e.Match.MACAddress, MTU: e.MTU, AcceptRA: &e.AcceptRA, Subnets: e.subnets1(),
	}
	if e.Nameservers == nil {
		return []entry1{device}
	}
	isStatic := func(s subnet1) bool { return s.Address != "" }
	if len(device.Subnets) > 0 {
		at := &device.Subnets[max(0, slices.IndexFunc(device.Subnets, isStatic))]
		at.Nameservers, at.Search = e.Nameservers.Addresses, e.Nameservers.Search
	}
	if slices.ContainsFunc(device.Subnets, isStatic) || len(e.Nameservers.Addresses) == 0 {
		return []entry1{device}
	}
	// For networkd. netplan gets none of it.
	return []entry1{device, {Type: "nameserver", Interface: e.SetName, Address: e.Nameservers.Addresses, Search: e.Nameservers.Search}}
}

// subnets1 are the addresses of a device, with its routes.
func (e Ethernet) subnets1() []subnet1 {
	var subnets []subnet1
	if e.DHCP4 {
		subnet := subnet1{Type: "dhcp4"}
		if e.DHCP4Overrides != nil {
			subnet.Metric = e.DHCP4Overrides.RouteMetric
		}
		subnets = append(subnets, subnet)
	}
	for _, address := range e.Addresses {
		subnet := subnet1{Type: "static", Address: address}
		if strings.Contains(address, ":") {
			subnet.Type = "static6"
		}
		subnets = append(subnets, subnet)
	}
	switch {
	case e.DHCP6:
		subnets = append(subnets, subnet1{Type: "dhcp6"})
	case e.AcceptRA:
		subnets = append(subnets, subnet1{Type: "ipv6_slaac"})
	}
	e.addRoutes1(subnets)
	return subnets
}

// addRoutes1 puts the routes at subnets, since a device has no place for them.
func (e Ethernet) addRoutes1(subnets []subnet1) {
	routes := e.Routes
	if e.Gateway6 != "" {
		routes = append(slices.Clone(routes), Route{To: "::/0", Via: e.Gateway6})
	}
	for _, route := range routes {
		if len(subnets) == 0 {
			return
		}
		subnet := &subnets[placeOf(route, subnets)]
		isDefault := route.To == "::/0" || route.To == "0.0.0.0/0"
		if isDefault && route.Metric == nil && subnet.Gateway == "" && subnet.Address != "" {
			subnet.Gateway = route.Via
			continue
		}
		subnet.Routes = append(subnet.Routes, route1{Destination: route.To, Gateway: route.Via, Metric: route.Metric})
	}
}

// placeOf is where a route is put: at the first static address of its family or, failing that, of the other, where most of
// cloud-init's renderers look for routes.
func placeOf(route Route, subnets []subnet1) int {
	isOfFamily := func(s subnet1) bool {
		return s.Address != "" && strings.Contains(s.Address, ":") == strings.Contains(route.To, ":")
	}
	if at := slices.IndexFunc(subnets, isOfFamily); at >= 0 {
		return at
	}
	return max(0, slices.IndexFunc(subnets, func(s subnet1) bool { return s.Address != "" }))
}
