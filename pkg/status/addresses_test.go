package status_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/network"
	"github.com/capve/cluster-api-provider-proxmox/pkg/status"
)

// TestTheAddressesOfAMachine with a static address on net1 and, of the first device, what the network gives or its MAC makes.
func TestTheAddressesOfAMachine(t *testing.T) {
	static := v1beta1.NetworkDevice{Name: "net1", IPv4: v1beta1.IPv4Addressing{Method: v1beta1.IPv4MethodPool}}
	dhcp := v1beta1.NetworkDevice{Name: "net0", IPv4: v1beta1.IPv4Addressing{Method: v1beta1.IPv4MethodDHCP}}
	eui64 := v1beta1.NetworkDevice{Name: "net0", IPv6: v1beta1.IPv6Addressing{Method: v1beta1.IPv6MethodEUI64, Prefix: "2001:db8::/64"}}
	given := func(device, address string) []network.Address {
		made := bound(address).Bound
		made[0].Claim.Device = device
		return made
	}
	here := given("net1", "10.1.0.5/24")
	const waits, ready = "False WaitingForAddresses: the guest agent is silent", "True Available"
	cases := []struct {
		name      string
		device    v1beta1.NetworkDevice
		addresses plan.Addresses
		uuid      string
		hasNode   bool
		before    []string
		want      []string
		condition string
	}{
		{"the static one before the guest tells", dhcp, plan.Addresses{Bound: here, Unreported: "the guest agent is silent"}, uuid, false, nil, []string{"10.1.0.5"}, waits},
		{"those that the guest tells, in the order of the devices", dhcp, plan.Addresses{Bound: here, Reported: given("net0", "10.0.0.9/24")}, uuid, false, []string{"10.1.0.5"}, []string{"10.0.0.9", "10.1.0.5"}, ready},
		{"other ones that the guest tells later", dhcp, plan.Addresses{Bound: here, Reported: given("net0", "10.0.0.10/24")}, uuid, true, []string{"10.0.0.9", "10.1.0.5"}, []string{"10.0.0.10", "10.1.0.5"}, ready},
		{"those that it told, while it is not asked", dhcp, plan.Addresses{Bound: here}, uuid, false, []string{"10.0.0.9", "10.1.0.5"}, []string{"10.0.0.9", "10.1.0.5"}, ready},
		{"no more for a guest that has its Node and is silent", dhcp, plan.Addresses{Bound: here, Unreported: "the guest agent is silent"}, uuid, true, nil, []string{"10.1.0.5"}, ready + ": the guest agent is silent"},
		{"none before the MAC address is known", eui64, plan.Addresses{Bound: here}, "", false, nil, nil, ready},
		{"the one that the MAC address makes", eui64, plan.Addresses{Bound: here}, uuid, false, nil, []string{"2001:db8::34de:7dff:fe5e:b31d", "10.1.0.5"}, ready},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			machine := proxmoxMachine()
			for _, address := range c.before {
				machine.Status.Addresses = append(machine.Status.Addresses, clusterv1.MachineAddress{Type: clusterv1.MachineInternalIP, Address: address})
			}
			observed := plan.Machine{Name: "worker-1", Addresses: c.addresses, Bootstrapped: c.hasNode}
			observed.Spec.Reservation.UUID = c.uuid
			observed.Spec.Network.Devices = []v1beta1.NetworkDevice{c.device, static}
			if err := status.Machine(machine, status.MachinePass{Observed: observed, Decision: done}); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, address := range machine.Status.Addresses {
				if address.Type == clusterv1.MachineInternalIP {
					got = append(got, address.Address)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("addresses (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.condition, told(machine.Status.Conditions)[v1beta1.AddressesReadyCondition]); diff != "" {
				t.Errorf("condition (-want +got):\n%s", diff)
			}
		})
	}
}
