package network

import (
	"cmp"
	"net/netip"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// inheritMTU is the MTU, in a network device's config, that stands for the bridge's.
const inheritMTU = 1

// standbyMetric is the metric of routes that a DHCP server gives to a device that is not to have the default route: worse than
// what guests give to others.
const standbyMetric = 2048

// NewConfig returns the network config of the guest with the given identity and the addresses that its claims were given.
func NewConfig(uuid proxmox.SMBIOSUUID, spec v1beta1.Network, bound []Address) Config {
	addresses := Static(uuid, spec, bound)
	config := Config{Version: cmp.Or(int(spec.ConfigVersion), 2), Ethernets: map[string]Ethernet{}, VRFs: vrfs(spec)}
	routing := newRouting(spec, addresses)
	for _, device := range Devices(spec) {
		ethernet := newEthernet(uuid, device, spec.DNS)
		for _, address := range addresses {
			if address.Claim.Device == device.Name {
				ethernet.Addresses = append(ethernet.Addresses, address.Prefix.String())
			}
		}
		for _, family := range families() {
			routing.set(&ethernet, device, family)
		}
		table := routing.table(device.Name)
		ethernet.Routes = append(ethernet.Routes, routes(device.Routes, table)...)
		ethernet.RoutingPolicy = rules(device.RoutingPolicy)
		config.Ethernets[ethernet.SetName] = ethernet
	}
	return config
}

func newEthernet(uuid proxmox.SMBIOSUUID, device v1beta1.NetworkDevice, dns v1beta1.DNS) Ethernet {
	ethernet := Ethernet{
		Match:       Match{MACAddress: strings.ToLower(DeviceMAC(uuid, device))},
		SetName:     GuestName(device.Name),
		Optional:    ptr.Deref(device.LinkDown, false),
		DHCP4:       addressingOf(device, IPv4).method == methodDHCP,
		DHCP6:       addressingOf(device, IPv6).method == methodDHCP,
		AcceptRA:    addressingOf(device, IPv6).isAutomatic(),
		Nameservers: nameservers(device.DNS, dns),
	}
	if device.MTU > inheritMTU {
		ethernet.MTU = device.MTU
	}
	return ethernet
}

// GuestName is the name that a device has in the guest: eth0 for net0.
func GuestName(device string) string { return "eth" + strings.TrimPrefix(device, "net") }

func vrfs(spec v1beta1.Network) map[string]VRF {
	if len(spec.VRFs) == 0 {
		return nil
	}
	all := make(map[string]VRF, len(spec.VRFs))
	for _, vrf := range spec.VRFs {
		interfaces := make([]string, len(vrf.Devices))
		for i, device := range vrf.Devices {
			interfaces[i] = GuestName(device)
		}
		all[vrf.Name] = VRF{
			Table: vrf.Table, Interfaces: interfaces,
			Routes: routes(vrf.Routes, vrf.Table), RoutingPolicy: rules(vrf.RoutingPolicy),
		}
	}
	return all
}

// routes are the routes of a spec; those that name no table are in the given one, 0 being the main one.
func routes(spec []v1beta1.Route, table int32) []Route {
	var all []Route
	for _, route := range spec {
		to := route.To
		if network, err := netip.ParsePrefix(to); err == nil {
			to = network.Masked().String()
		}
		made := Route{To: to, Via: route.Via, Metric: route.Metric, Table: cmp.Or(route.Table, table)}
		if made.Via == "" {
			made.Scope = "link"
		}
		all = append(all, made)
	}
	return all
}

func rules(spec []v1beta1.RoutingPolicyRule) []RoutingPolicyRule {
	var all []RoutingPolicyRule
	for _, rule := range spec {
		all = append(all, RoutingPolicyRule{From: rule.From, To: rule.To, Table: rule.Table, Priority: rule.Priority})
	}
	return all
}
