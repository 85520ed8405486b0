package cloudinit_test

import (
	"fmt"
	"net/netip"

	"k8s.io/utils/ptr"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/network"
)

// guest is a machine's network as a user and the IPAM providers describe it. Its name is that of its golden file.
type guest struct {
	name  string
	spec  v1beta1.Network
	bound []network.Address
}

func (g guest) config() network.Config { return network.NewConfig(uuid, g.spec, g.bound) }

// claimed is an address that was given to a device.
func claimed(device, prefix, gateway string) network.Address {
	address := network.Address{Prefix: netip.MustParsePrefix(prefix)}
	address.Claim = network.Claim{Device: device, Family: network.IPv6}
	if address.Prefix.Addr().Is4() {
		address.Claim.Family = network.IPv4
	}
	if gateway != "" {
		address.Gateway = netip.MustParseAddr(gateway)
	}
	return address
}

// device is a network device that the changes make what it is.
func device(name string, changes ...func(*v1beta1.NetworkDevice)) v1beta1.NetworkDevice {
	made := v1beta1.NetworkDevice{Name: name}
	for _, change := range changes {
		change(&made)
	}
	return made
}

func pool4(d *v1beta1.NetworkDevice) { d.IPv4.Method = v1beta1.IPv4MethodPool }
func pool6(d *v1beta1.NetworkDevice) { d.IPv6.Method = v1beta1.IPv6MethodPool }
func dhcp4(d *v1beta1.NetworkDevice) { d.IPv4.Method = v1beta1.IPv4MethodDHCP }
func dhcp6(d *v1beta1.NetworkDevice) { d.IPv6.Method = v1beta1.IPv6MethodDHCP }
func slaac(d *v1beta1.NetworkDevice) { d.IPv6.Method = v1beta1.IPv6MethodSLAAC }
func metric(d *v1beta1.NetworkDevice) {
	d.IPv4.Metric, d.IPv6.Metric = ptr.To[int32](50), ptr.To[int32](60)
}
func isDown(d *v1beta1.NetworkDevice) { d.LinkDown = ptr.To(true) }

func eui64(prefix, gateway string) func(*v1beta1.NetworkDevice) {
	return func(d *v1beta1.NetworkDevice) {
		d.IPv6.Method, d.IPv6.Prefix, d.IPv6.Gateway = v1beta1.IPv6MethodEUI64, prefix, gateway
	}
}

func mtu(bytes int32) func(*v1beta1.NetworkDevice) {
	return func(d *v1beta1.NetworkDevice) { d.MTU = bytes }
}

func resolving(nameservers, search []string) func(*v1beta1.NetworkDevice) {
	return func(d *v1beta1.NetworkDevice) { d.DNS = v1beta1.DNS{Nameservers: nameservers, SearchDomains: search} }
}

func routing(routes ...v1beta1.Route) func(*v1beta1.NetworkDevice) {
	return func(d *v1beta1.NetworkDevice) { d.Routes = routes }
}

func ruling(rules ...v1beta1.RoutingPolicyRule) func(*v1beta1.NetworkDevice) {
	return func(d *v1beta1.NetworkDevice) { d.RoutingPolicy = rules }
}

func devices(devices ...v1beta1.NetworkDevice) v1beta1.Network {
	return v1beta1.Network{
		DNS:     v1beta1.DNS{Nameservers: []string{"10.0.0.2", "fd00::2"}, SearchDomains: []string{"lab.example", "example"}},
		Devices: devices,
	}
}

// guests are one of each shape, those that version 1 has words for in both versions.
func guests() []guest {
	all := append(addressed(), routed()...)
	for _, g := range append(addressed(), routed()...) {
		if sayableInVersion1(g.spec) {
			g.name, g.spec.ConfigVersion = "v1-"+g.name, 1
			all = append(all, g)
		}
	}
	return all
}

// sayableInVersion1 is what the API demands of version 1.
func sayableInVersion1(spec v1beta1.Network) bool {
	for _, d := range spec.Devices {
		for _, route := range d.Routes {
			if route.Table != 0 || route.Via == "" {
				return false
			}
		}
		if len(d.RoutingPolicy) > 0 || d.IPv4.Method == v1beta1.IPv4MethodDHCP && (d.IPv4.DefaultRoute != nil || d.IPv4.Metric != nil) {
			return false
		}
	}
	return len(spec.VRFs) == 0
}

// addressed are the ways to get addresses.
func addressed() []guest {
	four, six := claimed("net0", "10.0.0.5/24", "10.0.0.1"), claimed("net0", "fd00::5/64", "fd00::1")
	without := func(spec v1beta1.Network) v1beta1.Network { spec.DNS = v1beta1.DNS{}; return spec }
	given := func(addresses ...network.Address) []network.Address { return addresses }
	return []guest{
		{"static-v4", without(devices(device("net0", pool4))), given(four)},
		{"static-v4-dns", devices(device("net0", pool4)), given(four)},
		{"static-v4-no-gateway", without(devices(device("net0", pool4))), given(claimed("net0", "10.0.0.5/24", ""))},
		{"static-v6", devices(device("net0", pool6)), given(six)},
		{"dual-stack", devices(device("net0", pool4, pool6)), given(four, claimed("net0", "fd00::5/64", "fe80::1"))},
		{"two-devices", devices(device("net0", pool4), device("net1", pool4, pool6)), given(four,
			claimed("net1", "192.168.7.5/24", "192.168.7.1"), claimed("net1", "fd07::5/64", "fd07::1"))},
		{"further-addresses", devices(device("net0", pool4, pool6)), given(four, claimed("net0", "10.1.0.5/16", "10.1.0.1"), six, claimed("net0", "fd01::5/64", ""))},
		{"dhcp-v4", without(devices(device("net0", dhcp4))), nil},
		{"dhcp-v6", devices(device("net0", dhcp6)), nil},
		{"dhcp-both", devices(device("net0", dhcp4, dhcp6)), nil},
		{"slaac", without(devices(device("net0", slaac))), nil},
		{"slaac-dns", devices(device("net0", slaac)), nil},
		{"static-v4-slaac", devices(device("net0", pool4, slaac)), given(four)},
		{"dhcp-v4-slaac", devices(device("net0", dhcp4, slaac)), nil},
		{"eui64", devices(device("net0", eui64("2001:db8:1:2::/64", "fe80::1"))), nil},
		{"static-v4-eui64", devices(device("net0", pool4, eui64("2001:db8:1:2::/64", ""))), given(four)},
		{"none", devices(device("net0", pool4), device("net1"), device("net2", isDown)), given(four)},
		{"many-devices", many(13), manyAddresses(13)},
		{
			"mtu", devices(device("net0", pool4, mtu(9000)), device("net1", pool4, mtu(1)), device("net2", mtu(1400), dhcp4)),
			given(four, claimed("net1", "10.1.0.5/24", "")),
		},
		{
			"device-dns", devices(device("net0", pool4), device("net1", pool6, resolving([]string{"fd07::53"}, []string{"storage.example"})),
				device("net2", dhcp4, resolving([]string{"10.2.0.53"}, nil)), device("net3", pool4, resolving(nil, []string{"only.example"}))),
			given(four, claimed("net1", "fd07::5/64", ""), claimed("net3", "10.3.0.5/24", "")),
		},
	}
}

func many(count int) v1beta1.Network {
	spec := devices()
	for i := range count {
		spec.Devices = append(spec.Devices, device(fmt.Sprintf("net%d", i), pool4, pool6))
	}
	return spec
}

func manyAddresses(count int) []network.Address {
	var all []network.Address
	for i := range count {
		name := fmt.Sprintf("net%d", i)
		all = append(all, claimed(name, fmt.Sprintf("10.0.%d.5/24", i), fmt.Sprintf("10.0.%d.1", i)), claimed(name, fmt.Sprintf("fd00:%x::5/64", i), ""))
	}
	return all
}

// routed are the ways to route.
func routed() []guest {
	four, six := claimed("net0", "10.0.0.5/24", "10.0.0.1"), claimed("net0", "fd00::5/64", "fd00::1")
	four1, six1 := claimed("net1", "10.1.0.5/24", "10.1.0.1"), claimed("net1", "fd01::5/64", "fd01::1")
	given := func(addresses ...network.Address) []network.Address { return addresses }
	defaultRoute := func(is bool) func(*v1beta1.NetworkDevice) {
		return func(d *v1beta1.NetworkDevice) { d.IPv4.DefaultRoute = ptr.To(is) }
	}
	toBoth := routing(v1beta1.Route{To: "10.8.0.0/16", Via: "10.0.0.2", Metric: ptr.To[int32](70)}, v1beta1.Route{To: "fd08::/48", Via: "fd00::3"})
	return []guest{
		{"gateway-override", devices(device("net0", pool4, pool6, func(d *v1beta1.NetworkDevice) { d.IPv4.Gateway, d.IPv6.Gateway = "10.0.0.254", "fe80::fe" })), given(four, six)},
		{"gateway-metrics", devices(device("net0", pool4, pool6, metric)), given(four, six)},
		{"gateway-far", devices(device("net0", pool4, pool6)), given(claimed("net0", "192.0.2.5/32", "10.0.0.1"), claimed("net0", "2001:db8::5/128", "fd00::1"))},
		{"default-route-second", devices(device("net0", pool4), device("net1", pool4, defaultRoute(true))), given(four, four1)},
		{"default-route-both", devices(device("net0", pool4, defaultRoute(true)), device("net1", pool4, defaultRoute(true), metric)), given(four, four1)},
		{"default-route-none", devices(device("net0", pool4, defaultRoute(false))), given(four)},
		{"dhcp-second", devices(device("net0", pool4), device("net1", dhcp4)), given(four)},
		{"dhcp-first", devices(device("net0", dhcp4, dhcp6), device("net1", pool4, pool6)), given(four1, six1)},
		{"dhcp-metric", devices(device("net0", dhcp4, metric), device("net1", dhcp4, defaultRoute(false))), nil},
		{"routes", devices(device("net0", pool4, pool6, toBoth)), given(four, six)},
		{"routes-dhcp", devices(device("net0", dhcp4, dhcp6, toBoth)), nil},
		{"routes-on-link", devices(device("net0", pool4, routing(v1beta1.Route{To: "10.9.0.0/16"}, v1beta1.Route{To: "fd09::/64"}))), given(four)},
		{
			"tables-and-policies", devices(device("net0", pool4), device("net1", pool4,
				routing(v1beta1.Route{To: "0.0.0.0/0", Via: "10.1.0.1", Table: 100}, v1beta1.Route{To: "10.1.0.0/24", Table: 100}),
				ruling(v1beta1.RoutingPolicyRule{From: "10.1.0.0/24", Table: 100, Priority: ptr.To[int32](5)}, v1beta1.RoutingPolicyRule{To: "10.7.0.0/16", Table: 100}))),
			given(four, four1),
		},
		{"vrfs", vrfs(), given(four, six, four1, six1)},
	}
}

func vrfs() v1beta1.Network {
	spec := devices(device("net0", pool4, pool6), device("net1", pool4, pool6, routing(v1beta1.Route{To: "10.8.0.0/16", Via: "10.1.0.2"})), device("net2", dhcp4))
	spec.VRFs = []v1beta1.VRF{
		{
			Name: "blue", Table: 10, Devices: []string{"net1"},
			Routes:        []v1beta1.Route{{To: "10.9.0.0/16", Via: "10.1.0.9"}},
			RoutingPolicy: []v1beta1.RoutingPolicyRule{{From: "10.1.0.0/24", Table: 10}},
		},
		{Name: "red", Table: 11, Devices: []string{"net2"}},
	}
	return spec
}
