package integration_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
)

// addressesOf are the IP addresses in a machine's status.
func addressesOf(machine *v1beta1.ProxmoxMachine) []string {
	var list []string
	for _, address := range machine.Status.Addresses {
		if address.Type == clusterv1.MachineInternalIP {
			list = append(list, address.Address)
		}
	}
	return list
}

// TestAMachineWithManyAddresses has two devices with addresses from pools, and one that its MAC address makes.
func TestAMachineWithManyAddresses(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	pool := v1beta1.IPPoolReference{Name: "pool"}
	machine := b.machine("c1", "m1", func(m *v1beta1.ProxmoxMachine) {
		m.Spec.Network.Devices[0].IPv4.AdditionalPoolRefs = []v1beta1.IPPoolReference{pool, pool}
		m.Spec.Network.Devices[0].MACAddress = "bc:24:11:00:00:01"
		m.Spec.Network.Devices[0].IPv6 = v1beta1.IPv6Addressing{Method: v1beta1.IPv6MethodEUI64, Prefix: "2001:db8:1:2::/64"}
		m.Spec.Network.Devices = append(m.Spec.Network.Devices, v1beta1.NetworkDevice{
			Name: "net1", Bridge: "vmbr0", MACPrefix: "BC:24:12", IPv4: v1beta1.IPv4Addressing{AddressSource: v1beta1.AddressSource{PoolRef: pool}},
		})
	})
	b.running(machine)
	var claims []string
	for _, name := range []string{"m1-net0-ipv4", "m1-net0-ipv4-1", "m1-net0-ipv4-2", "m1-net1-ipv4"} {
		address := &ipamv1.IPAddress{ObjectMeta: b.meta(name)}
		b.get(b, address)
		claims = append(claims, address.Spec.Address)
	}
	b.Eventually(func(g Gomega) {
		b.get(g, machine)
		g.Expect(addressesOf(machine)).To(Equal([]string{claims[0], claims[1], claims[2], "2001:db8:1:2:be24:11ff:fe00:1", claims[3]}))
	}, patience, poll).Should(Succeed())
	config := b.vmOf(machine).Config
	b.Expect(config["net0"]).To(ContainSubstring("BC:24:11:00:00:01"))
	b.Expect(config["net1"]).To(ContainSubstring("BC:24:12:"))

	b.Expect(b.client.Delete(b.ctx, &clusterv1.Machine{ObjectMeta: b.meta("m1")})).To(Succeed())
	b.delete(machine)
	b.leavesNothing()
}

// TestAMACAddressIsUsedOnce has two machines with the same one. The younger is made when the older is gone.
func TestAMACAddressIsUsedOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	same := func(m *v1beta1.ProxmoxMachine) { m.Spec.Network.Devices[0].MACAddress = "bc:24:11:00:00:02" }
	first := b.machine("c1", "m1", same)
	b.running(first)
	second := b.machine("c1", "m2", same)
	b.says(second, v1beta1.VirtualMachineReadyCondition, metav1.ConditionFalse, plan.DuplicateMACAddress, "BC:24:11:00:00:02", b.namespace+"/m1")
	b.Expect(b.client.Delete(b.ctx, &clusterv1.Machine{ObjectMeta: b.meta("m1")})).To(Succeed())
	b.delete(first)
	b.change(second, func() { second.Annotations = map[string]string{"look": "again"} })
	b.running(second)
	b.Expect(strings.ToUpper(b.vmOf(second).Config["net0"])).To(ContainSubstring("BC:24:11:00:00:02"))
}
