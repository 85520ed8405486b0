package network_test

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/network"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

func TestAMACAddressFollowsFromIdentityAndDevice(t *testing.T) {
	if diff := cmp.Diff([]string{mac0, mac1}, []string{lower(t, "net0"), lower(t, "net1")}); diff != "" {
		t.Errorf("MAC addresses (-want +got):\n%s", diff)
	}
}

func lower(t *testing.T, device string) string {
	t.Helper()
	mac, err := net.ParseMAC(network.MAC(uuid, device))
	if err != nil {
		t.Fatal(err)
	}
	return mac.String()
}

func TestEveryMACAddressIsUnicastAndLocallyAdministered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id, device := rapid.String().Draw(t, "uuid"), rapid.StringMatching(`net[0-9]{1,2}`).Draw(t, "device")
		text := network.MAC(proxmox.SMBIOSUUID(id), device)
		mac, err := net.ParseMAC(text)
		switch {
		case err != nil || len(mac) != 6:
			t.Fatalf("%q is no MAC address: %v", text, err)
		case mac[0]&0x03 != 0x02:
			t.Fatalf("%s is not a locally administered unicast address", text)
		case text != network.MAC(proxmox.SMBIOSUUID(id), device):
			t.Fatal("the same device got another address")
		}
	})
}

func TestADeviceHasTheMACAddressThatIsAskedFor(t *testing.T) {
	cases := []struct {
		name            string
		address, prefix string
		want            string
	}{
		{"as it is", "bc:24:11:0a:0b:0c", "", "BC:24:11:0A:0B:0C"},
		{"from the identity", "", "", strings.ToUpper(mac0)},
		{"with a prefix of three bytes", "", "bc:24:11", "BC:24:11:5E:B3:1D"},
		{"with a prefix of one byte", "", "02", "02:DE:7D:5E:B3:1D"},
		{"with a prefix of five bytes", "", "BC:24:11:00:00", "BC:24:11:00:00:1D"},
		{"with a prefix of multicast addresses, which the API refuses", "", "01:00:5e", "00:00:5E:5E:B3:1D"},
		{"with a prefix that is none, which the API refuses", "", "xy", strings.ToUpper(mac0)},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := network.DeviceMAC(uuid, v1beta1.NetworkDevice{Name: "net0", MACAddress: c.address, MACPrefix: c.prefix})
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("MAC address (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAMACAddressStartsWithItsPrefixAndIsUnicast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		prefix := rapid.StringMatching(`[0-9A-Fa-f][02468ACEace](:[0-9A-Fa-f]{2}){0,4}`).Draw(t, "prefix")
		id := proxmox.SMBIOSUUID(rapid.String().Draw(t, "uuid"))
		got := network.DeviceMAC(id, v1beta1.NetworkDevice{Name: "net0", MACPrefix: prefix})
		mac, err := net.ParseMAC(got)
		if err != nil || len(mac) != 6 || mac[0]&1 != 0 || !strings.HasPrefix(got, strings.ToUpper(prefix)) {
			t.Fatalf("%s for prefix %s: %v", got, prefix, err)
		}
	})
}

func TestTheSameMACAddressTwiceIsFound(t *testing.T) {
	card := func(machine, device, mac string) network.Card {
		return network.Card{Machine: machine, Device: device, MAC: mac}
	}
	cases := []struct {
		name          string
		cards, others []network.Card
		want          []network.Card
	}{
		{"not among different ones", []network.Card{card("a", "net0", "1"), card("a", "net1", "2")}, []network.Card{card("b", "net0", "3")}, nil},
		{"within the machine", []network.Card{card("a", "net0", "1"), card("a", "net1", "1")}, nil, []network.Card{card("a", "net1", "1"), card("a", "net0", "1")}},
		{
			"with another machine",
			[]network.Card{card("a", "net0", "1"), card("a", "net1", "2")},
			[]network.Card{card("b", "net5", "2")},
			[]network.Card{card("a", "net1", "2"), card("b", "net5", "2")},
		},
		{"not among the others alone", []network.Card{card("a", "net0", "1")}, []network.Card{card("b", "net0", "2"), card("c", "net0", "2")}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var got []network.Card
			if mine, other, found := network.SameMAC(c.cards, c.others); found {
				got = []network.Card{mine, other}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("cards (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCardsAreTheDevicesByNumber(t *testing.T) {
	spec := devices(device("net10", "", ""), device("net1", "", ""), v1beta1.NetworkDevice{Name: "net0", MACAddress: "bc:24:11:00:00:01"})
	got := network.Cards("worker-1", uuid, spec)
	want := []network.Card{
		{Machine: "worker-1", Device: "net0", MAC: "BC:24:11:00:00:01"},
		{Machine: "worker-1", Device: "net1", MAC: strings.ToUpper(mac1)},
		{Machine: "worker-1", Device: "net10", MAC: network.MAC(uuid, "net10")},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("cards (-want +got):\n%s", diff)
	}
	if network.HasChosenMAC(devices(device("net0", "", ""))) || !network.HasChosenMAC(spec) || !network.HasChosenMAC(devices(v1beta1.NetworkDevice{MACPrefix: "02"})) {
		t.Error("HasChosenMAC does not tell devices with a MAC address of their own from others")
	}
}

// TestEUI64IsAsInTheRFCs takes the example of RFC 4291, appendix A, and one that Linux shows.
func TestEUI64IsAsInTheRFCs(t *testing.T) {
	cases := []struct {
		prefix, mac, want string
	}{
		{"2001:db8:1:2::/64", "34:56:78:9A:BC:DE", "2001:db8:1:2:3656:78ff:fe9a:bcde"},
		{"fe80::/64", "bc:24:11:00:00:01", "fe80::be24:11ff:fe00:1"},
		{"fd00::5/64", "02:00:00:00:00:00", "fd00::ff:fe00:0"},
		{"fd00::/48", "02:00:00:00:00:00", ""},
		{"10.0.0.0/8", "02:00:00:00:00:00", ""},
		{"fd00::/64", "02:00", ""},
		{"fd00::/64", "none", ""},
	}
	for _, c := range cases {
		got, ok := network.EUI64(netip.MustParsePrefix(c.prefix), c.mac)
		if text := got.String(); ok != (c.want != "") || ok && text != c.want {
			t.Errorf("EUI64(%s, %s) is %s, %t; want %q", c.prefix, c.mac, text, ok, c.want)
		}
	}
}
