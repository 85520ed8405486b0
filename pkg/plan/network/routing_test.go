package network_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/network"
)

// defaults counts the default routes that a guest is told to have, by family; those of devices in VRFs apart.
func defaults(config network.Config) map[string]int {
	count := map[string]int{}
	for _, e := range config.Ethernets {
		if e.Gateway6 != "" {
			count["::/0"]++
		}
		for _, route := range e.Routes {
			if strings.HasSuffix(route.To, "/0") {
				count[route.To]++
			}
		}
	}
	return count
}

// TestAGuestHasOneDefaultRouteOfAFamily unless its devices say that they have one.
func TestAGuestHasOneDefaultRouteOfAFamily(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var spec v1beta1.Network
		var given []network.Address
		wanted, first := 0, false
		for i := range rapid.IntRange(1, 5).Draw(t, "devices") {
			made := device(fmt.Sprintf("net%d", i), "p", "")
			made.IPv4.DefaultRoute = rapid.SampledFrom([]*bool{nil, ptr.To(true), ptr.To(false)}).Draw(t, "defaultRoute")
			gateway := rapid.SampledFrom([]string{"", fmt.Sprintf("10.0.%d.1", i)}).Draw(t, "gateway")
			address, err := network.NewAddress(claim(made.Name, network.IPv4, "p"), fmt.Sprintf("10.0.%d.5", i), 24, gateway)
			if err != nil {
				t.Fatal(err)
			}
			spec.Devices, given = append(spec.Devices, made), append(given, address)
			if gateway != "" && ptr.Deref(made.IPv4.DefaultRoute, false) {
				wanted++
			}
			first = first || gateway != "" && made.IPv4.DefaultRoute == nil
		}
		if wanted == 0 && first {
			wanted = 1
		}
		if got := defaults(network.NewConfig(uuid, spec, given))["0.0.0.0/0"]; got != wanted {
			t.Fatalf("%d default routes, not %d", got, wanted)
		}
	})
}

func TestAGatewayOutsideTheNetworkIsOnTheLink(t *testing.T) {
	cases := []struct {
		prefix, gateway string
		want            network.Ethernet
	}{
		{"10.0.0.5/24", "10.0.0.1", network.Ethernet{Routes: []network.Route{{To: "0.0.0.0/0", Via: "10.0.0.1"}}}},
		{"10.0.0.5/32", "10.0.0.1", network.Ethernet{Routes: []network.Route{{To: "0.0.0.0/0", Via: "10.0.0.1", OnLink: true}}}},
		{"10.0.0.5/24", "169.254.1.1", network.Ethernet{Routes: []network.Route{{To: "0.0.0.0/0", Via: "169.254.1.1", OnLink: true}}}},
		{"fd00::5/64", "fd00::1", network.Ethernet{Gateway6: "fd00::1"}},
		{"fd00::5/128", "fe80::1", network.Ethernet{Gateway6: "fe80::1"}},
		{"fd00::5/128", "fd00::1", network.Ethernet{Routes: []network.Route{{To: "::/0", Via: "fd00::1", OnLink: true}}}},
	}
	for _, c := range cases {
		t.Run(c.prefix+" "+c.gateway, func(t *testing.T) {
			family, spec := network.IPv4, devices(device("net0", "p", ""))
			if strings.Contains(c.prefix, ":") {
				family, spec = network.IPv6, devices(device("net0", "", "p"))
			}
			address, length, _ := strings.Cut(c.prefix, "/")
			var bits int32
			if _, err := fmt.Sscan(length, &bits); err != nil {
				t.Fatal(err)
			}
			got := network.NewConfig(uuid, spec, []network.Address{bound(t, "net0", family, address, bits, c.gateway)}).Ethernets["eth0"]
			if diff := cmp.Diff(c.want, network.Ethernet{Routes: got.Routes, Gateway6: got.Gateway6}); diff != "" {
				t.Errorf("routes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestARouteToAnAddressInANetworkIsOneToTheNetwork(t *testing.T) {
	spec := devices(with(device("net0", "", ""), func(d *v1beta1.NetworkDevice) {
		d.Routes = []v1beta1.Route{{To: "10.1.2.3/16", Via: "10.0.0.1"}, {To: "fd00::1/64"}}
	}))
	want := []network.Route{{To: "10.1.0.0/16", Via: "10.0.0.1"}, {To: "fd00::/64", Scope: "link"}}
	if diff := cmp.Diff(want, network.NewConfig(uuid, spec, nil).Ethernets["eth0"].Routes); diff != "" {
		t.Errorf("routes (-want +got):\n%s", diff)
	}
}
