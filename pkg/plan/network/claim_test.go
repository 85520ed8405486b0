package network_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/network"
)

func pool(name string) v1beta1.IPPoolReference {
	return v1beta1.IPPoolReference{APIGroup: "ipam.cluster.x-k8s.io", Kind: "InClusterIPPool", Name: name}
}

// device is a network device with an address from each of the named pools; an empty name stands for none.
func device(name, v4, v6 string) v1beta1.NetworkDevice {
	device := v1beta1.NetworkDevice{Name: name, Bridge: "vmbr0", Model: "virtio"}
	if v4 != "" {
		device.IPv4.PoolRef = pool(v4)
	}
	if v6 != "" {
		device.IPv6.PoolRef = pool(v6)
	}
	return device
}

func devices(devices ...v1beta1.NetworkDevice) v1beta1.Network {
	return v1beta1.Network{Devices: devices}
}

func claim(device string, family network.Family, poolName string) network.Claim {
	return network.Claim{Name: fmt.Sprintf("worker-1-%s-%s", device, family), Device: device, Family: family, Pool: pool(poolName)}
}

// further is a claim after the first of a device and family.
func further(device string, family network.Family, number int, poolName string) network.Claim {
	made := claim(device, family, poolName)
	made.Name += fmt.Sprintf("-%d", number)
	return made
}

func with(device v1beta1.NetworkDevice, change func(*v1beta1.NetworkDevice)) v1beta1.NetworkDevice {
	change(&device)
	return device
}

func TestAMachineClaims(t *testing.T) {
	cases := []struct {
		name string
		spec v1beta1.Network
		want []network.Claim
	}{
		{"one address for a device with one pool", devices(device("net0", "four", "")), []network.Claim{claim("net0", network.IPv4, "four")}},
		{
			"IPv4 before IPv6 for a device with both", devices(device("net0", "four", "six")),
			[]network.Claim{claim("net0", network.IPv4, "four"), claim("net0", network.IPv6, "six")},
		},
		{
			"for devices by number, not by name or place", devices(device("net10", "c", ""), device("net2", "b", ""), device("net0", "a", "")),
			[]network.Claim{claim("net0", network.IPv4, "a"), claim("net2", network.IPv4, "b"), claim("net10", network.IPv4, "c")},
		},
		{"nothing without a pool", devices(device("net0", "", "")), nil},
		{
			"from the cluster's pools where it names none", devices(with(device("net0", "", ""), func(d *v1beta1.NetworkDevice) {
				d.IPv4.Method, d.IPv6.Method = v1beta1.IPv4MethodPool, v1beta1.IPv6MethodPool
			})),
			[]network.Claim{claim("net0", network.IPv4, "cluster-ipv4"), claim("net0", network.IPv6, "cluster-ipv6")},
		},
		{
			"one address of each further pool", devices(with(device("net0", "four", "six"), func(d *v1beta1.NetworkDevice) {
				d.IPv4.AdditionalPoolRefs = []v1beta1.IPPoolReference{pool("b"), pool("c")}
				d.IPv6.AdditionalPoolRefs = []v1beta1.IPPoolReference{pool("d")}
			})),
			[]network.Claim{
				claim("net0", network.IPv4, "four"), further("net0", network.IPv4, 1, "b"), further("net0", network.IPv4, 2, "c"),
				claim("net0", network.IPv6, "six"), further("net0", network.IPv6, 1, "d"),
			},
		},
		{
			"a further address beside the cluster's", devices(with(device("net0", "", ""), func(d *v1beta1.NetworkDevice) {
				d.IPv4.AdditionalPoolRefs = []v1beta1.IPPoolReference{pool("b")}
			})),
			[]network.Claim{claim("net0", network.IPv4, "cluster-ipv4"), further("net0", network.IPv4, 1, "b")},
		},
		{
			"nothing that the network gives, or that is made", devices(with(device("net0", "", ""), func(d *v1beta1.NetworkDevice) {
				d.IPv4.Method, d.IPv6.Method, d.IPv6.Prefix = v1beta1.IPv4MethodDHCP, v1beta1.IPv6MethodEUI64, "2001:db8::/64"
			}), with(device("net1", "", ""), func(d *v1beta1.NetworkDevice) { d.IPv6.Method = v1beta1.IPv6MethodSLAAC })), nil,
		},
		{
			"for a device with a strange name, behind all others", devices(device("eth0", "x", ""), device("net31", "y", "")),
			[]network.Claim{claim("net31", network.IPv4, "y"), claim("eth0", network.IPv4, "x")},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, network.Claims("worker-1", "cluster", c.spec)); diff != "" {
				t.Errorf("claims (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDevicesLeavesTheSpecInItsOrder(t *testing.T) {
	spec := devices(device("net10", "b", ""), device("net2", "a", ""))
	network.Devices(spec)
	if diff := cmp.Diff("net10", spec.Devices[0].Name); diff != "" {
		t.Errorf("first device of the spec (-want +got):\n%s", diff)
	}
}

// TestNoTwoClaimsOfANamespaceHaveTheSameName draws machines whose names look like those of claims.
func TestNoTwoClaimsOfANamespaceHaveTheSameName(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`a(-net[01]|-ipv[46]|-[12]){0,4}`), 2, 6, rapid.ID).Draw(t, "machines")
		owners := map[string]string{}
		for _, name := range names {
			spec := v1beta1.Network{}
			for _, deviceName := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"net0", "net1", "net10"}), 1, 3, rapid.ID).Draw(t, "devices") {
				made := device(deviceName, "p", "p")
				made.IPv4.AdditionalPoolRefs = make([]v1beta1.IPPoolReference, rapid.IntRange(0, 3).Draw(t, "further"))
				spec.Devices = append(spec.Devices, made)
			}
			for _, claim := range network.Claims(name, "cluster", spec) {
				if other, taken := owners[claim.Name]; taken {
					t.Fatalf("claim %s is of %s and of %s", claim.Name, other, name)
				}
				owners[claim.Name] = name
			}
		}
	})
}
