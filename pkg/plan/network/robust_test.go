package network_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/network"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// anySource draws how a family is addressed, with texts that are addresses and texts that are none.
func anySource(t *rapid.T, texts *rapid.Generator[string]) v1beta1.AddressSource {
	return v1beta1.AddressSource{
		Gateway:            texts.Draw(t, "gateway"),
		DefaultRoute:       rapid.SampledFrom([]*bool{nil, ptr.To(true), ptr.To(false)}).Draw(t, "defaultRoute"),
		Metric:             rapid.SampledFrom([]*int32{nil, ptr.To[int32](0), ptr.To[int32](7)}).Draw(t, "metric"),
		AdditionalPoolRefs: make([]v1beta1.IPPoolReference, rapid.IntRange(0, 2).Draw(t, "further pools")),
	}
}

func anyDevice(t *rapid.T, name string) v1beta1.NetworkDevice {
	texts := rapid.SampledFrom([]string{"", "10.0.0.1", "fe80::1", "fd00::/64", "::ffff:10.0.0.1", "x", "10.0.0.0/8", "0.0.0.0/0", "::/0"})
	methods := rapid.SampledFrom([]string{"", "Pool", "DHCP", "SLAAC", "EUI64", "Other"})
	return v1beta1.NetworkDevice{
		Name: name, MACAddress: rapid.SampledFrom([]string{"", "bc:24:11:00:00:01", "x"}).Draw(t, "macAddress"),
		MACPrefix: rapid.SampledFrom([]string{"", "bc", "x", "bc:24:11:00:00:01:02"}).Draw(t, "macPrefix"),
		MTU:       rapid.SampledFrom([]int32{0, 1, 1400}).Draw(t, "mtu"),
		IPv4:      v1beta1.IPv4Addressing{Method: v1beta1.IPv4Method(methods.Draw(t, "IPv4")), AddressSource: anySource(t, texts)},
		IPv6:      v1beta1.IPv6Addressing{Method: v1beta1.IPv6Method(methods.Draw(t, "IPv6")), AddressSource: anySource(t, texts), Prefix: texts.Draw(t, "prefix")},
		DNS:       v1beta1.DNS{Nameservers: []string{texts.Draw(t, "nameserver")}},
		Routes:    []v1beta1.Route{{To: texts.Draw(t, "to"), Via: texts.Draw(t, "via")}},
	}
}

// TestNoSpecBringsThePlannerDown draws specs, also such as the API refuses, and writes what the guest is told in both versions.
func TestNoSpecBringsThePlannerDown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := v1beta1.Network{ConfigVersion: rapid.SampledFrom([]int32{0, 1, 2}).Draw(t, "version")}
		for i := range rapid.IntRange(0, 4).Draw(t, "devices") {
			spec.Devices = append(spec.Devices, anyDevice(t, fmt.Sprintf("net%d", i)))
		}
		spec.VRFs = []v1beta1.VRF{{Name: "blue", Table: 9, Devices: []string{"net1"}}}
		id := proxmox.SMBIOSUUID(rapid.SampledFrom([]string{"", string(uuid)}).Draw(t, "uuid"))
		var given []network.Address
		for i, claim := range network.Claims("worker-1", "cluster", spec) {
			text, bits := fmt.Sprintf("10.0.%d.5", i), int32(24)
			if claim.Family == network.IPv6 {
				text, bits = fmt.Sprintf("fd00:%d::5", i), 64
			}
			address, err := network.NewAddress(claim, text, bits, "")
			if err != nil {
				t.Fatal(err)
			}
			given = append(given, address)
		}
		config := network.NewConfig(id, spec, given)
		if text, err := json.Marshal(config); err != nil || !json.Valid(text) {
			t.Fatalf("%s: %v", text, err)
		}
		for _, address := range given { // each address is on its device
			name := network.GuestName(address.Claim.Device)
			if !slices.Contains(config.Ethernets[name].Addresses, address.Prefix.String()) {
				t.Fatalf("%s is not on %s: %+v", address.Prefix, name, config.Ethernets[name])
			}
		}
		if len(network.Cards("worker-1", id, spec)) != len(spec.Devices) {
			t.Fatal("a device has no MAC address")
		}
		network.PoolProblems(v1beta1.ProxmoxClusterSpec{IPv4: v1beta1.AddressPool{
			Addresses: []string{rapid.StringMatching(`[0-9a-f:./-]{0,20}`).Draw(t, "addresses")}, Prefix: rapid.Int32().Draw(t, "prefix of the pool"),
		}})
	})
}
