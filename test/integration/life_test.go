package integration_test

import (
	"testing"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestMachineLivesAndLeavesNothingBehind(t *testing.T) {
	b := newBench(t)
	cluster := b.cluster("c1")
	b.provisioned(cluster)

	machine := b.machine("c1", "m1")
	b.running(machine)

	b.Expect(b.pveVMs()).To(HaveLen(1))
	vm := b.pveVMs()[0]
	b.Expect(vm.Status).To(Equal("running"))
	b.Expect(machine.Spec.ProviderID).To(Equal("proxmox://" + machine.Spec.Reservation.UUID))
	b.Expect(vm.Config["smbios1"]).To(ContainSubstring(machine.Spec.Reservation.UUID))
	b.Expect(machine.Status.Node).To(Equal(string(vm.Node)))
	b.Expect(machine.Status.FailureDomain).To(Equal(string(vm.Node)))
	b.Expect(machine.Status.Addresses).To(ContainElement(clusterv1.MachineAddress{Type: clusterv1.MachineInternalIP, Address: "10.1.0.11"}))

	b.hasNode(machine)
	b.Eventually(func(g Gomega) {
		b.get(g, machine)
		g.Expect(machine.Status.SeedRemoved).To(HaveValue(BeTrue()))
	}, patience, poll).Should(Succeed())
	b.Expect(b.pve.World.Check()).To(BeEmpty())

	b.Expect(b.client.Delete(b.ctx, machine)).To(Succeed())
	b.gone(machine)
	b.Expect(b.pveVMs()).To(BeEmpty())
	b.Expect(b.pve.World.Check()).To(BeEmpty())
	for _, request := range b.pve.World.Requests() {
		t.Log(request.Method, request.Path, request.Status)
	}
}
