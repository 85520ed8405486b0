package network_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/network"
)

// addresses compares netip's types, which hide what they hold.
var addresses = cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})

func TestAnAddressIsAccepted(t *testing.T) {
	cases := []struct {
		name    string
		family  network.Family
		address string
		prefix  int32
		gateway string
		want    string
		via     string
	}{
		{"with a gateway", network.IPv4, "10.0.0.5", 24, "10.0.0.1", "10.0.0.5/24", "10.0.0.1"},
		{"without a gateway", network.IPv4, "10.0.0.5", 24, "", "10.0.0.5/24", "invalid IP"},
		{"at the lower end of a point-to-point network", network.IPv4, "10.0.0.4", 31, "10.0.0.5", "10.0.0.4/31", "10.0.0.5"},
		{"at the upper end of a point-to-point network", network.IPv4, "10.0.0.5", 31, "10.0.0.4", "10.0.0.5/31", "10.0.0.4"},
		{"that is a whole network", network.IPv4, "10.0.0.5", 32, "10.0.0.1", "10.0.0.5/32", "10.0.0.1"},
		{"of IPv6", network.IPv6, "fd00::5", 64, "fe80::1", "fd00::5/64", "fe80::1"},
		{"that is the last of an IPv6 network, which has no broadcast", network.IPv6, "fd00::ff", 120, "", "fd00::ff/120", "invalid IP"},
		{"at the lower end of an IPv6 point-to-point network", network.IPv6, "fd00::4", 127, "fd00::5", "fd00::4/127", "fd00::5"},
		{"that is a whole IPv6 network", network.IPv6, "fd00::5", 128, "", "fd00::5/128", "invalid IP"},
		{"of IPv4 written as IPv6", network.IPv4, "::ffff:10.0.0.5", 24, "::ffff:10.0.0.1", "10.0.0.5/24", "10.0.0.1"},
		{"whose gateway names an interface of the IPAM provider's host", network.IPv6, "fd00::5", 64, "fe80::1%eth0", "fd00::5/64", "fe80::1"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			asked := claim("net0", c.family, "a-pool")
			got, err := network.NewAddress(asked, c.address, c.prefix, c.gateway)
			if err != nil {
				t.Fatalf("refused: %v", err)
			}
			if diff := cmp.Diff([]string{c.want, c.via}, []string{got.Prefix.String(), got.Gateway.String()}); diff != "" {
				t.Errorf("address and gateway (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(asked, got.Claim); diff != "" {
				t.Errorf("claim (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnAddressIsRefused(t *testing.T) {
	const four, six = "IPAddress worker-1-net0-ipv4: ", "IPAddress worker-1-net0-ipv6: "
	cases := []struct {
		name    string
		family  network.Family
		address string
		prefix  int32
		gateway string
		want    string
	}{
		{"that is none", network.IPv4, "ten", 24, "", four + `spec.address "ten": ParseAddr("ten"): unable to parse IP`},
		{"whose prefix is too long", network.IPv4, "10.0.0.5", 33, "", four + "spec.prefix 33 does not fit address 10.0.0.5"},
		{"whose prefix is negative", network.IPv4, "10.0.0.5", -1, "", four + "spec.prefix -1 does not fit address 10.0.0.5"},
		{"whose gateway is none", network.IPv4, "10.0.0.5", 24, "gw", four + `spec.gateway "gw": ParseAddr("gw"): unable to parse IP`},
		{"of IPv6 for IPv4", network.IPv4, "fd00::5", 64, "", four + "fd00::5 is not an ipv4 address: check the family of pool a-pool"},
		{"of IPv4 for IPv6", network.IPv6, "10.0.0.5", 24, "", six + "10.0.0.5 is not an ipv6 address: check the family of pool a-pool"},
		{"whose gateway is of the other family", network.IPv4, "10.0.0.5", 24, "fd00::1", four + "gateway fd00::1 is of another family than 10.0.0.5: check pool a-pool"},
		{"that is the gateway", network.IPv4, "10.0.0.1", 24, "10.0.0.1", four + "10.0.0.1 is the gateway's own address: exclude it from pool a-pool"},
		{"that is the gateway, written otherwise", network.IPv4, "10.0.0.1", 24, "::ffff:10.0.0.1", four + "10.0.0.1 is the gateway's own address: exclude it from pool a-pool"},
		{"that stands for the network", network.IPv4, "10.0.0.0", 24, "", four + "10.0.0.0 stands for the network 10.0.0.0/24: exclude it from pool a-pool"},
		{"that stands for a network of IPv6", network.IPv6, "fd00::", 64, "", six + "fd00:: stands for the network fd00::/64: exclude it from pool a-pool"},
		{"that is the broadcast address", network.IPv4, "10.0.3.255", 22, "", four + "10.0.3.255 is the broadcast address of 10.0.0.0/22: exclude it from pool a-pool"},
		{"that stands for every address", network.IPv4, "0.0.0.0", 8, "", four + "0.0.0.0 cannot be a machine's address: correct pool a-pool"},
		{"that is of a group", network.IPv4, "224.0.0.5", 24, "", four + "224.0.0.5 cannot be a machine's address: correct pool a-pool"},
		{"that is the machine itself", network.IPv6, "::1", 64, "", six + "::1 cannot be a machine's address: correct pool a-pool"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := network.NewAddress(claim("net0", c.family, "a-pool"), c.address, c.prefix, c.gateway)
			if diff := cmp.Diff(c.want, fmt.Sprint(err)); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAnAcceptedAddressIsOneOfAHost draws addresses near the ends of small networks, where mistakes are.
func TestAnAcceptedAddressIsOneOfAHost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bits := rapid.IntRange(20, 32).Draw(t, "prefix")
		base := rapid.Uint32Range(0x0a000000, 0x0affffff).Draw(t, "address")
		mask := ^uint32(0) << (32 - bits)
		first, last := base&mask, base|^mask
		near := rapid.SampledFrom([]uint32{first, first + 1, last - 1, last, base})
		ip, gateway := near.Draw(t, "given"), near.Draw(t, "gateway")
		_, err := network.NewAddress(claim("net0", network.IPv4, "a-pool"), text(ip), int32(bits), text(gateway))
		isEnd := bits < 31 && (ip == first || ip == last)
		if accepted, want := err == nil, ip != gateway && !isEnd; accepted != want {
			t.Fatalf("%s/%d with gateway %s: %v", text(ip), bits, text(gateway), err)
		}
	})
}

func text(ip uint32) string {
	return netip.AddrFrom4([4]byte{byte(ip >> 24), byte(ip >> 16), byte(ip >> 8), byte(ip)}).String()
}

func TestNothingThatAnIPAMProviderSaysBringsThePlannerDown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.StringMatching(`[0-9a-f:.%/]{0,24}`), rapid.String())
		family := rapid.SampledFrom([]network.Family{network.IPv4, network.IPv6, ""}).Draw(t, "family")
		address := text.Draw(t, "address")
		got, err := network.NewAddress(claim("net0", family, "a-pool"), address, rapid.Int32().Draw(t, "prefix"), text.Draw(t, "gateway"))
		switch {
		case err != nil && !strings.HasPrefix(err.Error(), "IPAddress worker-1-net0-"):
			t.Fatalf("the error does not say which address it is about: %v", err)
		case err == nil && !got.Prefix.IsValid():
			t.Fatalf("accepted %q as %v", address, got)
		}
	})
}
