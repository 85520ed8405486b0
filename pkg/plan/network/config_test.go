package network_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/network"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

const uuid = proxmox.SMBIOSUUID("8d1ab5f6-59f1-4a3e-9a0b-0d6f2a5b7c11")

// The MAC addresses of the VM with that identity, as a guest shows them. They are written out here because a guest in the
// field is found by them: they may never change.
const (
	mac0 = "36:de:7d:5e:b3:1d"
	mac1 = "16:31:93:8f:38:df"
)

func bound(t *testing.T, device string, family network.Family, address string, prefix int32, gateway string) network.Address {
	t.Helper()
	got, err := network.NewAddress(claim(device, family, "a-pool"), address, prefix, gateway)
	if err != nil {
		t.Fatalf("address %s/%d: %v", address, prefix, err)
	}
	return got
}

func TestTheGuestIsToldItsNetwork(t *testing.T) {
	four := bound(t, "net0", network.IPv4, "10.0.0.5", 24, "10.0.0.1")
	six := bound(t, "net0", network.IPv6, "fd00::5", 64, "fd00::1")
	storage := bound(t, "net1", network.IPv4, "192.168.7.5", 24, "192.168.7.1")
	storage6 := bound(t, "net1", network.IPv6, "fd07::5", 64, "fd07::1")
	toV4 := network.Route{To: "0.0.0.0/0", Via: "10.0.0.1"}
	dns := v1beta1.DNS{Nameservers: []string{"10.0.0.2", "fd00::2"}, SearchDomains: []string{"lab.example"}}
	cases := []struct {
		name      string
		spec      v1beta1.Network
		addresses []network.Address
		want      map[string]network.Ethernet
	}{
		{
			"one IPv4 address", devices(device("net0", "p", "")),
			[]network.Address{four},
			map[string]network.Ethernet{"eth0": ethernet(mac0, []string{"10.0.0.5/24"}, toV4)},
		},
		{
			"one IPv6 address", devices(device("net0", "", "p")),
			[]network.Address{six},
			map[string]network.Ethernet{"eth0": routing6("fd00::1", ethernet(mac0, []string{"fd00::5/64"}))},
		},
		{
			"an address of each family", devices(device("net0", "p", "p")),
			[]network.Address{four, six},
			map[string]network.Ethernet{"eth0": routing6("fd00::1", ethernet(mac0, []string{"10.0.0.5/24", "fd00::5/64"}, toV4))},
		},
		{
			"several devices, of which the first with a gateway routes", devices(device("net1", "p", ""), device("net0", "p", "")),
			[]network.Address{four, storage},
			map[string]network.Ethernet{"eth0": ethernet(mac0, []string{"10.0.0.5/24"}, toV4), "eth1": ethernet(mac1, []string{"192.168.7.5/24"})},
		},
		{
			"several devices, each routing the family that no earlier one does", devices(device("net0", "p", ""), device("net1", "p", "p")),
			[]network.Address{four, storage, storage6},
			map[string]network.Ethernet{
				"eth0": ethernet(mac0, []string{"10.0.0.5/24"}, toV4),
				"eth1": routing6("fd07::1", ethernet(mac1, []string{"192.168.7.5/24", "fd07::5/64"})),
			},
		},
		{
			"no route where no pool has a gateway", devices(device("net0", "p", "")),
			[]network.Address{bound(t, "net0", network.IPv4, "10.0.0.5", 24, "")},
			map[string]network.Ethernet{"eth0": ethernet(mac0, []string{"10.0.0.5/24"})},
		},
		{
			"its name servers, on every device",
			v1beta1.Network{DNS: dns, Devices: []v1beta1.NetworkDevice{device("net0", "p", ""), device("net1", "p", "")}},
			[]network.Address{four, storage},
			map[string]network.Ethernet{
				"eth0": withDNS(ethernet(mac0, []string{"10.0.0.5/24"}, toV4)),
				"eth1": withDNS(ethernet(mac1, []string{"192.168.7.5/24"})),
			},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			for name, ethernet := range c.want {
				ethernet.SetName = name
				c.want[name] = ethernet
			}
			want := network.Config{Version: 2, Ethernets: c.want}
			if diff := cmp.Diff(want, network.NewConfig(uuid, c.spec, c.addresses), addresses); diff != "" {
				t.Errorf("network config (-want +got):\n%s", diff)
			}
		})
	}
}

func ethernet(mac string, addresses []string, routes ...network.Route) network.Ethernet {
	return network.Ethernet{Match: network.Match{MACAddress: mac}, Addresses: addresses, Routes: routes}
}

func routing6(gateway string, e network.Ethernet) network.Ethernet {
	e.Gateway6 = gateway
	return e
}

func withDNS(e network.Ethernet) network.Ethernet {
	e.Nameservers = &network.Nameservers{Addresses: []string{"10.0.0.2", "fd00::2"}, Search: []string{"lab.example"}}
	return e
}

func TestAGuestWithMoreThanTenDevicesRoutesOverTheLowestNumber(t *testing.T) {
	var spec v1beta1.Network
	var given []network.Address
	for i := 12; i >= 0; i-- {
		name := fmt.Sprintf("net%d", i)
		spec.Devices = append(spec.Devices, device(name, "p", ""))
		if i >= 2 {
			given = append(given, bound(t, name, network.IPv4, fmt.Sprintf("10.0.%d.5", i), 24, fmt.Sprintf("10.0.%d.1", i)))
		}
	}
	config := network.NewConfig(uuid, spec, given)
	if diff := cmp.Diff(13, len(config.Ethernets)); diff != "" {
		t.Errorf("number of devices (-want +got):\n%s", diff)
	}
	for name, got := range config.Ethernets {
		var want []network.Route
		if name == "eth2" {
			want = []network.Route{{To: "0.0.0.0/0", Via: "10.0.2.1"}}
		}
		if diff := cmp.Diff(want, got.Routes); diff != "" {
			t.Errorf("routes of %s (-want +got):\n%s", name, diff)
		}
	}
}
