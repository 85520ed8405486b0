package integration_test

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
)

// plugged is a network device with more than its name and bridge.
func plugged(name string, more map[string]any) map[string]any {
	device := map[string]any{"name": name, "bridge": "vmbr0"}
	for key, value := range more {
		device[key] = value
	}
	return device
}

// anything is short for what unstructured objects are made of.
type anything = map[string]any

// networked is a machine with the network.
func (d *desk) networked(network anything) client.Object {
	machine := &v1beta1.ProxmoxMachine{ObjectMeta: d.meta("machine"), Spec: wholeSpec()}
	return document(d.t, d.scheme, machine, set("spec.network", network))
}

func devicesOf(devices ...any) anything { return anything{"devices": devices} }

func (n anythingWith) and(key string, value any) anything {
	n.anything[key] = value
	return n.anything
}

// anythingWith is a map that gets another key.
type anythingWith struct{ anything }

// net0 is a network with one device.
func net0(more anything) anything { return devicesOf(plugged("net0", more)) }

func route(to, via string, more ...any) anything {
	made := anything{"to": to}
	if via != "" {
		made["via"] = via
	}
	for i := 0; i+1 < len(more); i += 2 {
		made[more[i].(string)] = more[i+1] //nolint:forcetypeassert // keys, in pairs with values
	}
	return made
}

func vrf(name string, table int64, devices ...any) anything {
	return anything{"name": name, "table": table, "devices": devices}
}

func TestNetworksThatAreAccepted(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	pool := anything{"poolRef": anything{"name": "pool"}, "additionalPoolRefs": []any{anything{"name": "pool"}, anything{"name": "other", "kind": "GlobalInClusterIPPool"}}}
	for name, network := range map[string]anything{
		"the cluster's pools":            net0(anything{"ipv4": anything{}, "ipv6": anything{}}),
		"further pools":                  net0(anything{"ipv4": pool, "ipv6": pool}),
		"DHCP":                           net0(anything{"ipv4": anything{"method": "DHCP", "defaultRoute": false}, "ipv6": anything{"method": "DHCP"}}),
		"SLAAC":                          net0(anything{"ipv6": anything{"method": "SLAAC"}}),
		"EUI64":                          net0(anything{"ipv6": anything{"method": "EUI64", "prefix": "2001:db8:1:2::/64", "gateway": "fe80::1", "metric": int64(5)}}),
		"no addresses":                   net0(anything{"linkDown": true}),
		"a gateway, a metric, its route": net0(anything{"ipv4": anything{"gateway": "10.0.0.1", "metric": int64(0), "defaultRoute": true}}),
		"MAC addresses":                  devicesOf(plugged("net0", anything{"macAddress": "bc:24:11:00:00:01"}), plugged("net1", anything{"macPrefix": "BC:24:11"})),
		"the bridge's MTU":               net0(anything{"mtu": int64(1), "ipv6": anything{}}),
		"version 1": anythingWith{net0(anything{"ipv4": anything{"method": "DHCP"}, "routes": []any{route("10.1.0.0/16", "10.0.0.2", "metric", int64(5))}})}.
			and("configVersion", int64(1)),
		"routes, policies and VRFs": anythingWith{devicesOf(
			plugged("net0", anything{
				"ipv4":   anything{},
				"routes": []any{route("0.0.0.0/0", "10.0.0.2", "table", int64(100)), route("fd00::/48", "")},
				"routingPolicy": []any{
					anything{"from": "10.0.0.0/24", "table": int64(100), "priority": int64(0)}, anything{"to": "fd00::/8", "from": "fd01::/64", "table": int64(100)},
				},
			}),
			plugged("net1", anything{"dns": anything{"searchDomains": []any{"example.com"}}}), plugged("net2", nil))}.and("vrfs", []any{
			anything{
				"name": "blue", "table": int64(10), "devices": []any{"net1"}, "routes": []any{route("10.2.0.0/16", "10.1.0.1", "table", int64(10))},
				"routingPolicy": []any{anything{"from": "10.3.0.0/16", "table": int64(10)}},
			},
			vrf("red", 11, "net2"),
		}),
	} {
		t.Run(name, func(t *testing.T) {
			if err := d.client.Create(t.Context(), d.networked(network), client.DryRunAll); err != nil {
				t.Errorf("refused: %v", err)
			}
		})
	}
}

func TestNetworksThatAreRefused(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	whole := func(network anything) []edit { return one("spec.network", network) }
	v1 := func(network anything) []edit { return whole(anythingWith{network}.and("configVersion", int64(1))) }
	ipv4 := func(fields anything) []edit { return whole(net0(anything{"ipv4": fields})) }
	ipv6 := func(fields anything) []edit { return whole(net0(anything{"ipv6": fields})) }
	vrfs := func(vrfs ...any) []edit {
		return whole(anythingWith{devicesOf(plugged("net0", nil), plugged("net1", nil))}.and("vrfs", vrfs))
	}
	routed := func(route anything) []edit { return whole(net0(anything{"routes": []any{route}})) }
	ruled := func(rule anything) []edit { return whole(net0(anything{"routingPolicy": []any{rule}})) }
	rows := []refusal{
		{"a pool for DHCP", ipv4(anything{"method": "DHCP", "poolRef": anything{"name": "pool"}}), "poolRef, additionalPoolRefs and gateway are for method Pool"},
		{"a gateway for DHCP", ipv4(anything{"method": "DHCP", "gateway": "10.0.0.1"}), "poolRef, additionalPoolRefs and gateway are for method Pool"},
		{"SLAAC for IPv4", ipv4(anything{"method": "SLAAC"}), `Unsupported value: "SLAAC"`},
		{"a gateway of IPv6 for IPv4", ipv4(anything{"gateway": "fe80::1"}), "gateway is an IPv4 address"},
		{"a gateway of IPv4 for IPv6", ipv6(anything{"gateway": "10.0.0.1"}), "gateway is an IPv6 address"},
		{"a gateway by name", ipv4(anything{"gateway": "router"}), "gateway is an IP address"},
		{"a negative metric", ipv4(anything{"metric": int64(-1)}), "metric in body should be greater than or equal to 0"},
		{"no further pools", ipv4(anything{"additionalPoolRefs": []any{}}), "additionalPoolRefs in body should have at least 1 items"},
		{"a pool for SLAAC", ipv6(anything{"method": "SLAAC", "poolRef": anything{"name": "pool"}}), "poolRef and additionalPoolRefs are for method Pool"},
		{"a gateway for SLAAC", ipv6(anything{"method": "SLAAC", "gateway": "fe80::1"}), "gateway is for the methods Pool and EUI64"},
		{"a metric for SLAAC", ipv6(anything{"method": "SLAAC", "metric": int64(5)}), "defaultRoute and metric are for the methods Pool and EUI64"},
		{"no default route for DHCP of IPv6", ipv6(anything{"method": "DHCP", "defaultRoute": false}), "defaultRoute and metric are for the methods Pool and EUI64"},
		{"EUI64 without a prefix", ipv6(anything{"method": "EUI64"}), "prefix and method EUI64 belong together"},
		{"a prefix for SLAAC", ipv6(anything{"method": "SLAAC", "prefix": "2001:db8::/64"}), "prefix and method EUI64 belong together"},
		{"EUI64 of 48 bits", ipv6(anything{"method": "EUI64", "prefix": "2001:db8::/48"}), "prefix is an IPv6 network of 64 bits"},
		{"EUI64 with a host", ipv6(anything{"method": "EUI64", "prefix": "2001:db8::1/64"}), "prefix is an IPv6 network of 64 bits"},
		{"EUI64 of IPv4", ipv6(anything{"method": "EUI64", "prefix": "10.0.0.0/24"}), "prefix is an IPv6 network of 64 bits"},
		{"a MAC address of a group", whole(net0(anything{"macAddress": "01:00:5e:00:00:01"})), "macAddress in body should match"},
		{"a MAC address of zeros", whole(net0(anything{"macAddress": "00:00:00:00:00:00"})), "is no device's address"},
		{"a MAC prefix of groups", whole(net0(anything{"macPrefix": "bd"})), "macPrefix in body should match"},
		{"a MAC prefix of six bytes", whole(net0(anything{"macPrefix": "bc:24:11:00:00:01"})), "may not be more than 14"},
		{"a MAC address and a prefix", whole(net0(anything{"macAddress": "bc:24:11:00:00:01", "macPrefix": "bc"})), "give either macAddress or macPrefix"},
		{
			"a MAC address twice",
			whole(devicesOf(plugged("net0", anything{"macAddress": "bc:24:11:00:00:0a"}), plugged("net1", anything{"macAddress": "BC:24:11:00:00:0A"}))),
			"two devices have the same macAddress",
		},
		{"an MTU of 100", whole(net0(anything{"mtu": int64(100)})), "mtu is 1, for the bridge's, or at least 576"},
		{"an MTU too small for IPv6", whole(net0(anything{"mtu": int64(1000), "ipv6": anything{}})), "IPv6 needs an mtu of at least 1280"},
		{"an MTU for another model", whole(net0(anything{"mtu": int64(9000), "model": "e1000"})), "queues, queuesPerCPU and mtu are for the model virtio"},
		{"a route to a name", routed(route("default", "10.0.0.1")), "to is a network"},
		{"a route to an address", routed(route("10.0.0.1", "10.0.0.1")), "to is a network"},
		{"a route via a name", routed(route("10.1.0.0/16", "router")), "via is an IP address"},
		{"a route over another family", routed(route("10.1.0.0/16", "fe80::1")), "to and via are of the same family"},
		{"a route in table 0", routed(route("10.1.0.0/16", "10.0.0.1", "table", int64(0))), "table in body should be greater than or equal to 1"},
		{"a rule for nothing", ruled(anything{"table": int64(5)}), "a rule of the routing policy needs from, to or both"},
		{"a rule from a name", ruled(anything{"from": "home", "table": int64(5)}), "from is a network, such as 10.1.0.0/16"},
		{"a rule to an address", ruled(anything{"to": "10.0.0.1", "table": int64(5)}), "to is a network, such as 10.1.0.0/16"},
		{"a rule without a table", ruled(anything{"from": "10.0.0.0/8"}), "table: Required value"},
		{"a rule of two families", ruled(anything{"from": "10.0.0.0/8", "to": "fd00::/8", "table": int64(5)}), "from and to are of the same family"},
		{"a VRF of unknown devices", vrfs(vrf("blue", 10, "net5")), "the devices of a VRF are devices of the VM"},
		{"a device in two VRFs", vrfs(vrf("blue", 10, "net0"), vrf("red", 11, "net0")), "each is in one VRF at most"},
		{"two VRFs with a table", vrfs(vrf("blue", 10, "net0"), vrf("red", 10, "net1")), "each VRF needs a routing table of its own"},
		{"a VRF named like a device", vrfs(vrf("eth0", 10, "net1")), "the guest has a device of that name already"},
		{"a VRF with a slash", vrfs(vrf("a/b", 10, "net1")), "name in body should match"},
		{
			"a route of a VRF in another table", vrfs(anything{"name": "blue", "table": int64(10), "devices": []any{"net0"}, "routes": []any{route("10.0.0.0/8", "10.1.0.1", "table", int64(9))}}),
			"the routes of a VRF are in its table",
		},
		{
			"a rule of a VRF for another table", vrfs(anything{"name": "blue", "table": int64(10), "devices": []any{"net0"}, "routingPolicy": []any{anything{"from": "10.0.0.0/8", "table": int64(9)}}}),
			"the routing policy of a VRF uses its table",
		},
		{"version 3", whole(anythingWith{net0(nil)}.and("configVersion", int64(3))), "configVersion: Unsupported value: 3"},
		{"VRFs in version 1", v1(anythingWith{net0(nil)}.and("vrfs", []any{vrf("blue", 10, "net0")})), "configVersion 1 has no VRFs"},
		{"policies in version 1", v1(net0(anything{"routingPolicy": []any{anything{"from": "10.0.0.0/8", "table": int64(5)}}})), "configVersion 1 has no routing policies"},
		{"tables in version 1", v1(net0(anything{"routes": []any{route("10.1.0.0/16", "10.0.0.1", "table", int64(5))}})), "with configVersion 1 a route needs via and has no table"},
		{"routes on the link in version 1", v1(net0(anything{"routes": []any{route("10.1.0.0/16", "")}})), "with configVersion 1 a route needs via and has no table"},
		{"a metric for DHCP in version 1", v1(net0(anything{"ipv4": anything{"method": "DHCP", "metric": int64(5)}})), "configVersion 1 cannot say defaultRoute or metric for method DHCP"},
	}
	d.refuses(func() client.Object {
		return &v1beta1.ProxmoxMachine{ObjectMeta: d.meta("machine"), Spec: wholeSpec()}
	}, rows)
}
