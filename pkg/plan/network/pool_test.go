package network_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/network"
)

func TestTheAddressesOfAClusterAreNobodyElses(t *testing.T) {
	four := func(prefix int32, gateway string, addresses ...string) v1beta1.ProxmoxClusterSpec {
		return v1beta1.ProxmoxClusterSpec{IPv4: v1beta1.AddressPool{Addresses: addresses, Prefix: prefix, Gateway: gateway}}
	}
	six := func(prefix int32, gateway string, addresses ...string) v1beta1.ProxmoxClusterSpec {
		return v1beta1.ProxmoxClusterSpec{IPv6: v1beta1.AddressPool{Addresses: addresses, Prefix: prefix, Gateway: gateway}}
	}
	at := func(host string, spec v1beta1.ProxmoxClusterSpec) v1beta1.ProxmoxClusterSpec {
		spec.ControlPlaneEndpoint.Host = host
		return spec
	}
	claimed := at("10.0.0.50", four(24, "10.0.0.1", "10.0.0.10-10.0.0.99"))
	claimed.ControlPlaneEndpointPoolRef.Name = "c1-ipv4"
	for _, c := range []struct {
		name string
		spec v1beta1.ProxmoxClusterSpec
		want []string
	}{
		{"no pools", v1beta1.ProxmoxClusterSpec{}, nil},
		{"a pool beside gateway and endpoint", at("10.0.0.5", four(24, "10.0.0.1", "10.0.0.10-10.0.0.99", "10.0.0.7", "10.0.0.128/25")), nil},
		{"an endpoint by name", at("api.example.com", four(24, "10.0.0.1", "10.0.0.10-10.0.0.99")), nil},
		{"an endpoint of the other family", at("fd00::50", four(24, "10.0.0.1", "10.0.0.10-10.0.0.99")), nil},
		{"an endpoint that is claimed", claimed, nil},
		{"a gateway on the link", six(64, "fe80::1", "fd00::10-fd00::ff"), nil},
		{"the gateway in a range", four(24, "10.0.0.20", "10.0.0.10-10.0.0.99"), []string{
			"ipv4.addresses 0 10.0.0.10-10.0.0.99: contains the gateway 10.0.0.20, which no machine may have: name ranges before and behind it, such as one up to 10.0.0.19 and one from 10.0.0.21",
		}},
		{"the gateway in a network", six(64, "fd00::1", "fd00::/64"), []string{
			"ipv6.addresses 0 fd00::/64: contains the gateway fd00::1, which no machine may have: name ranges before and behind it, such as one up to fd00:: and one from fd00::2",
		}},
		{"the endpoint as an address", at("10.0.0.7", four(24, "10.0.0.1", "10.0.0.8", "10.0.0.7")), []string{
			"ipv4.addresses 1 10.0.0.7: contains 10.0.0.7, the host of controlPlaneEndpoint, which no machine may have: name ranges before and behind it, such as one up to 10.0.0.6 and one from 10.0.0.8",
		}},
		{"the endpoint at the end of a range, written otherwise", at("FD00:0::99", six(64, "", "fd00::10-fd00::99")), []string{
			"ipv6.addresses 0 fd00::10-fd00::99: contains fd00::99, the host of controlPlaneEndpoint, which no machine may have: name ranges before and behind it, such as one up to fd00::98 and one from fd00::9a",
		}},
		{"the endpoint as the gateway", at("10.0.0.1", four(24, "10.0.0.1", "10.0.0.10")), []string{"ipv4.gateway -1 10.0.0.1: is the host of controlPlaneEndpoint, too: one of them has to have another address"}},
		{"addresses of the other family", four(24, "", "fd00::1", "10.0.0.9"), []string{"ipv4.addresses 0 fd00::1: is not of the family ipv4"}},
		{"a gateway of the other family", six(64, "10.0.0.1", "fd00::9"), []string{"ipv6.gateway -1 10.0.0.1: is not of the family ipv6"}},
		{"a prefix of the other family", four(64, "", "10.0.0.9"), []string{"ipv4.prefix -1 64: is too long for the family ipv4"}},
		{"two networks", four(24, "", "10.0.0.9", "10.0.0.100-10.0.1.9", "10.0.0.0/23"), []string{
			"ipv4.addresses 1 10.0.0.100-10.0.1.9: is not in 10.0.0.0/24, the network of the first address: a pool is of one network",
			"ipv4.addresses 2 10.0.0.0/23: is not in 10.0.0.0/24, the network of the first address: a pool is of one network",
		}},
		{"what is none", four(24, "", "10.0.0.x", "10.0.0.0/33", "10.0.0.9-", "10.0.0.9-fd00::9", "10.0.0.9-10.0.0.8"), []string{
			`ipv4.addresses 0 10.0.0.x: is no address: ParseAddr("10.0.0.x"): unexpected character (at "x")`,
			`ipv4.addresses 1 10.0.0.0/33: is no network: netip.ParsePrefix("10.0.0.0/33"): prefix length out of range`,
			`ipv4.addresses 2 10.0.0.9-: is no range: ParseAddr(""): unable to parse IP`,
			"ipv4.addresses 3 10.0.0.9-fd00::9: is no range: 10.0.0.9 and fd00::9 are of different families",
			"ipv4.addresses 4 10.0.0.9-10.0.0.8: is no range: 10.0.0.9 comes after 10.0.0.8",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, p := range network.PoolProblems(c.spec) {
				got = append(got, fmt.Sprintf("%s %d %s: %s", strings.Join(p.Path, "."), p.Index, p.Value, p.Message))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAGatewayInAPoolIsFound compares with what a loop over the addresses finds.
func TestAGatewayInAPoolIsFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		host := rapid.IntRange(0, 255)
		from, to, gateway := host.Draw(t, "from"), host.Draw(t, "to"), host.Draw(t, "gateway")
		bits := rapid.IntRange(24, 32).Draw(t, "bits")
		text := rapid.SampledFrom([]string{
			fmt.Sprintf("10.0.0.%d-10.0.0.%d", min(from, to), max(from, to)), fmt.Sprintf("10.0.0.%d/%d", from, bits), fmt.Sprintf("10.0.0.%d", from),
		}).Draw(t, "addresses")
		contains := min(from, to) <= gateway && gateway <= max(from, to)
		if strings.Contains(text, "/") {
			contains = netip.MustParsePrefix(text).Contains(netip.AddrFrom4([4]byte{10, 0, 0, byte(gateway)}))
		} else if !strings.Contains(text, "-") {
			contains = from == gateway
		}
		spec := v1beta1.ProxmoxClusterSpec{IPv4: v1beta1.AddressPool{Addresses: []string{text}, Prefix: 24, Gateway: fmt.Sprintf("10.0.0.%d", gateway)}}
		if problems := network.PoolProblems(spec); len(problems) > 0 != contains {
			t.Fatalf("%s with gateway %s: %v", text, spec.IPv4.Gateway, problems)
		}
	})
}
