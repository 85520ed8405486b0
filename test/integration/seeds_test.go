package integration_test

import (
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// seedsOf are the nodes whose storage has a machine's seed; the empty node for shared storage.
func (b *bench) seedsOf(machine *v1beta1.ProxmoxMachine) []proxmox.NodeName {
	var nodes []proxmox.NodeName
	for _, volume := range b.pve.World.Volumes() {
		if machine.Spec.Reservation.UUID != "" && strings.Contains(string(volume.ID), "iso/capve-"+machine.Spec.Reservation.UUID) {
			nodes = append(nodes, volume.Node)
		}
	}
	return nodes
}

// TestASeedThatLandsLateIsDeletedWithItsMachine loses the answer to an upload, which Proxmox VE carries out while the machine
// is on its way out.
func TestASeedThatLandsLateIsDeletedWithItsMachine(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	b.add(b.pve.World.AddFault(pvesim.Fault{Method: http.MethodPost, Path: pathUpload, Nth: 1, Status: 596}))
	machine := b.machine("c1", "m1")
	b.says(machine, v1beta1.VirtualMachineReadyCondition, metav1.ConditionFalse, "UploadingSeed", "was lost", "it is looked for there")
	b.begin(machine)
	b.waits(machine, "RemovingSeed", "once no upload whose answer was lost can put it back")
	b.add(b.pve.World.AddVolume(pvesim.VolumeSpec{
		ID: proxmox.VolumeID("local:iso/capve-" + machine.Spec.Reservation.UUID + ".iso"), Node: proxmox.NodeName(machine.Spec.Reservation.Node), Size: 4096,
	}))
	b.Expect(b.seedsOf(machine)).To(HaveLen(1))
	b.gone(machine)
	b.Expect(b.seedsOf(machine)).To(BeEmpty())
	b.Expect(b.count("/upload")).To(Equal(1), "it is not sent again while it may land")
	b.leavesNothing()
}

// TestTheSeedOfAVMThatIsGoneIsDeleted has somebody remove a VM before its machine has its Node.
func TestTheSeedOfAVMThatIsGoneIsDeleted(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1")
	b.running(machine)
	b.Expect(b.seedsOf(machine)).To(HaveLen(1))
	b.removeVM(b.vmOf(machine))
	b.says(machine, v1beta1.VirtualMachineReadyCondition, metav1.ConditionFalse, "VirtualMachineGone", "delete the Machine")
	b.says(machine, v1beta1.BootstrapSeedRemovedCondition, metav1.ConditionTrue, "Removed")
	b.Expect(b.seedsOf(machine)).To(BeEmpty())
	b.delete(machine)
	b.Expect(b.count("/content/local:iso/capve-" + machine.Spec.Reservation.UUID + ".iso")).To(Equal(1))
	b.leavesNothing()
}
