package integration_test

import (
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// TestOldInventoryIsNotBelieved has the inventory of a region fail while a machine's VM may be replaced by another.
func TestOldInventoryIsNotBelieved(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1")
	b.settled(machine)
	b.Expect(b.pve.World.AddFault(pvesim.Fault{Path: "/cluster/resources", Status: 596, Reason: "Connection timed out"})).To(Succeed())
	vm := b.vmOf(machine)
	b.removeVM(vm)
	foreign := b.foreignVM(vm.VMID, vm.Node)
	b.Eventually(func() bool {
		b.change(machine, func() { machine.Labels["look"] += "x" })
		b.get(b, machine)
		return condition(machine, v1beta1.VirtualMachineReadyCondition) != metav1.ConditionTrue
	}, patience, 20*poll).Should(BeTrue())
	b.pve.World.ClearFaults()
	b.says(machine, v1beta1.VirtualMachineReadyCondition, metav1.ConditionFalse, "VirtualMachineGone")
	b.untouched(foreign)
}

// TestAnErrorIsNoProofThatTheSeedIsGone has a name server fail while the seed of a VM that is gone is deleted.
func TestAnErrorIsNoProofThatTheSeedIsGone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1")
	b.running(machine)
	b.stop()
	b.removeVM(b.vmOf(machine))
	for _, fault := range []pvesim.Fault{{Method: http.MethodGet, Path: pathConfig}, {Method: http.MethodDelete, Path: pathContent}} {
		fault.Status, fault.Reason = 500, "hostname lookup 'pve1' failed - failed to get address info for: pve1: Name or service not known"
		b.Expect(b.pve.World.AddFault(fault)).To(Succeed())
	}
	b.startControllers()
	b.begin(machine)
	b.waits(machine, "Missing", "hostname lookup 'pve1' failed")
	b.pve.World.ClearFaults()
	b.gone(machine)
	b.leavesNothing()
}
