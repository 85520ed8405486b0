package integration_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"

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

// TestACloneWhoseWorkerDiedIsMadeAnewOnceItIsRemoved kills the worker of a clone, which leaves half a VM that only root may
// remove, as the condition says.
func TestACloneWhoseWorkerDiedIsMadeAnewOnceItIsRemoved(t *testing.T) {
	t.Parallel()
	b := newBench(t, pvesim.WithSpeed(1)) // there is time to find the worker
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1")
	b.Eventually(func() string { b.get(b, machine); return machine.Status.TaskID }, patience, poll).Should(ContainSubstring(":qmclone:"))
	b.Eventually(b.pveVMs, patience, poll).Should(HaveLen(1))
	b.pve.World.KillWorker(proxmox.UPID(machine.Status.TaskID))
	id := machine.Spec.Reservation.VMID
	remedy := fmt.Sprintf("`qm unlock %d && qm destroy %d --destroy-unreferenced-disks 1` there as root", id, id)
	b.Eventually(func(g Gomega) {
		b.get(g, machine)
		ready := conditions.Get(machine, v1beta1.VirtualMachineReadyCondition)
		g.Expect(ready).NotTo(BeNil())
		g.Expect(ready.Status).To(Equal(metav1.ConditionFalse))
		g.Expect(ready.Reason).To(BeElementOf("Cloning", "Locked"), "the latter once the clone has its description")
		g.Expect(ready.Message).To(And(MatchRegexp(`lock: clone|locked \(clone\)`), ContainSubstring(remedy)))
	}, patience, poll).Should(Succeed())
	path := fmt.Sprintf("/nodes/%s/qemu/%d", b.pveVMs()[0].Node, id)
	b.pve.World.Unlock(proxmox.VMID(id))
	b.ask(http.MethodDelete, path, url.Values{"destroy-unreferenced-disks": {"1"}})
	b.running(machine)
	b.Expect(b.pveVMs()).To(HaveLen(1))
	b.delete(machine)
	b.leavesNothing()
}

// TestAVMThatIsMigratedBeforeItIsConfiguredGetsItsSeedThere has its seed on local storage.
func TestAVMThatIsMigratedBeforeItIsConfiguredGetsItsSeedThere(t *testing.T) {
	t.Parallel()
	b := newBench(t, pvesim.WithTemplates(pvesim.TemplateSpec{Name: "ubuntu-2404-k8s", Storage: "shared"}))
	b.provisioned(b.cluster("c1"))
	b.add(b.pve.World.AddFault(pvesim.Fault{Method: http.MethodPut, Path: pathConfig, Status: 500, Reason: "not yet"}))
	machine := b.machine("c1", "m1", at("pve1"))
	b.says(machine, v1beta1.VirtualMachineReadyCondition, metav1.ConditionFalse, "Error", "not yet")
	b.ask(http.MethodPost, fmt.Sprintf("/nodes/pve1/qemu/%d/migrate", b.pveVMs()[0].VMID), url.Values{"target": {"pve2"}})
	b.pve.World.ClearFaults()
	b.running(machine)
	b.Expect(machine.Spec.Reservation.Node).To(Equal("pve2"))
	b.Expect(b.seedsOf(machine)).To(Equal([]proxmox.NodeName{"pve2"}))
	b.Expect(b.vmOf(machine).Node).To(BeEquivalentTo("pve2"))
	b.delete(machine)
	b.leavesNothing()
}
