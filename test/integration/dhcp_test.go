package integration_test

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// TestAMachineWithDHCP is told its address by the guest agent, which is asked once it had time to boot, and then left alone.
func TestAMachineWithDHCP(t *testing.T) {
	t.Parallel()
	for _, version := range []pvesim.Version{pvesim.V84, pvesim.V92} {
		t.Run(string(version), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, pvesim.WithVersion(version), pvesim.WithGuests(pvesim.Booting(pvesim.BootHooks{Delay: 2 * time.Second})))
			b.provisioned(b.cluster("c1"))
			machine := b.machine("c1", "m1", func(m *v1beta1.ProxmoxMachine) {
				m.Spec.Network.Devices[0].IPv4 = v1beta1.IPv4Addressing{Method: v1beta1.IPv4MethodDHCP}
			})
			b.says(machine, v1beta1.VirtualMachineReadyCondition, metav1.ConditionTrue, plan.Running)
			b.running(machine)
			b.Eventually(func(g Gomega) { // they are patched after the conditions
				b.get(g, machine)
				g.Expect(addressesOf(machine)).To(ConsistOf(HavePrefix("10.20.")))
			}, patience, poll).Should(Succeed())
			asked := b.asked()
			b.Expect(asked).To(BeNumerically(">=", 1))
			b.Expect(asked).To(BeNumerically("<=", 3))
			b.polled(2)
			b.Expect(b.asked()).To(Equal(asked), "a guest that told is left alone")

			b.Expect(b.client.Delete(b.ctx, &clusterv1.Machine{ObjectMeta: b.meta("m1")})).To(Succeed())
			b.delete(machine)
		})
	}
}

// asked counts how often guest agents were asked.
func (b *bench) asked() int {
	b.t.Helper()
	counted := 0
	for _, request := range b.requests() {
		if strings.HasSuffix(request.Path, "/agent/network-get-interfaces") {
			counted++
		}
	}
	return counted
}

// TestAGuestWithoutAnAgent says nothing. The machine is ready all the same when it has its Node.
func TestAGuestWithoutAnAgent(t *testing.T) {
	t.Parallel()
	b := newBench(t, pvesim.WithGuests(pvesim.Booting(pvesim.BootHooks{Delay: time.Second, NoAgent: true})))
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1", func(m *v1beta1.ProxmoxMachine) {
		m.Spec.Network.Devices[0].IPv4 = v1beta1.IPv4Addressing{Method: v1beta1.IPv4MethodDHCP}
	})
	b.says(machine, v1beta1.AddressesReadyCondition, metav1.ConditionFalse, plan.WaitingForAddresses, "guest agent of VM", "options.agent.enabled")
	b.hasNode(machine)
	b.running(machine)
	b.Expect(addressesOf(machine)).To(BeEmpty())
	for _, condition := range machine.Status.Conditions {
		if condition.Type == v1beta1.AddressesReadyCondition {
			b.Expect(strings.Contains(condition.Message, "does not answer")).To(BeTrue(), condition.Message)
		}
	}
}
