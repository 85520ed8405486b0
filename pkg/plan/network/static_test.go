package network_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/network"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// eui64 is a device with an address made of a prefix.
func eui64(name, prefix, gateway string) v1beta1.NetworkDevice {
	made := device(name, "", "")
	made.IPv6 = v1beta1.IPv6Addressing{Method: v1beta1.IPv6MethodEUI64, Prefix: prefix, AddressSource: v1beta1.AddressSource{Gateway: gateway}}
	return made
}

func TestTheStaticAddresses(t *testing.T) {
	four := bound(t, "net0", network.IPv4, "10.0.0.5", 24, "10.0.0.1")
	six := bound(t, "net0", network.IPv6, "fd00::5", 64, "fd00::1")
	more := bound(t, "net0", network.IPv4, "10.1.0.5", 24, "10.1.0.1")
	storage := bound(t, "net2", network.IPv4, "10.2.0.5", 24, "")
	gateway := func(text string) func(*v1beta1.NetworkDevice) {
		return func(d *v1beta1.NetworkDevice) { d.IPv4.Gateway = text }
	}
	cases := []struct {
		name string
		uuid proxmox.SMBIOSUUID
		spec v1beta1.Network
		have []network.Address
		want []string
	}{
		{
			"by device and family, whatever order they came in", uuid, devices(device("net2", "p", ""), device("net0", "p", "p")),
			[]network.Address{storage, six, four, more},
			[]string{"10.0.0.5/24 10.0.0.1", "10.1.0.5/24 10.1.0.1", "fd00::5/64 fd00::1", "10.2.0.5/24 invalid IP"},
		},
		{
			"with another gateway than the pool's, for the first", uuid, devices(with(device("net0", "p", ""), gateway("10.0.0.254"))),
			[]network.Address{four, more},
			[]string{"10.0.0.5/24 10.0.0.254", "10.1.0.5/24 10.1.0.1"},
		},
		{
			"with a made one", uuid, devices(device("net0", "p", ""), eui64("net1", "2001:db8::/64", "fe80::1")),
			[]network.Address{four},
			[]string{"10.0.0.5/24 10.0.0.1", "2001:db8::1431:93ff:fe8f:38df/64 fe80::1"},
		},
		{"without one that is made of what is not known yet", "", devices(eui64("net1", "2001:db8::/64", "")), nil, nil},
		{
			"with one that is made of a MAC address that is given", "", devices(with(eui64("net1", "2001:db8::/64", ""), func(d *v1beta1.NetworkDevice) { d.MACAddress = "bc:24:11:00:00:01" })),
			nil,
			[]string{"2001:db8::be24:11ff:fe00:1/64 invalid IP"},
		},
		{"none of devices that are gone", uuid, devices(device("net1", "p", "")), []network.Address{four}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, address := range network.Static(c.uuid, c.spec, c.have) {
				got = append(got, address.Prefix.String()+" "+address.Gateway.String())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("addresses with gateways (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStaticLeavesWhatWasGivenAsItWas(t *testing.T) {
	given := []network.Address{bound(t, "net0", network.IPv4, "10.0.0.5", 24, "10.0.0.1")}
	network.Static(uuid, devices(with(device("net0", "p", ""), func(d *v1beta1.NetworkDevice) { d.IPv4.Gateway = "10.0.0.254" })), given)
	if diff := cmp.Diff("10.0.0.1", given[0].Gateway.String()); diff != "" {
		t.Errorf("gateway (-want +got):\n%s", diff)
	}
}

func TestDynamicAddressesAreThoseOfDHCPAndSLAAC(t *testing.T) {
	for want, specs := range map[bool][]v1beta1.Network{
		false: {devices(device("net0", "p", "p")), devices(device("net0", "", "")), devices(eui64("net0", "fd00::/64", ""))},
		true: {
			devices(with(device("net0", "", ""), func(d *v1beta1.NetworkDevice) { d.IPv4.Method = v1beta1.IPv4MethodDHCP })),
			devices(device("net0", "p", ""), with(device("net1", "", ""), func(d *v1beta1.NetworkDevice) { d.IPv6.Method = v1beta1.IPv6MethodSLAAC })),
		},
	} {
		for _, spec := range specs {
			if got := network.HasDynamic(spec); got != want {
				t.Errorf("HasDynamic is %t of %+v", got, spec)
			}
		}
	}
}
