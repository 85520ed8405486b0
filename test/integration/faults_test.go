package integration_test

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

const (
	pathClone   = "/nodes/{node}/qemu/{vmid}/clone"
	pathConfig  = "/nodes/{node}/qemu/{vmid}/config"
	pathResize  = "/nodes/{node}/qemu/{vmid}/resize"
	pathStart   = "/nodes/{node}/qemu/{vmid}/status/start"
	pathStop    = "/nodes/{node}/qemu/{vmid}/status/stop"
	pathCurrent = "/nodes/{node}/qemu/{vmid}/status/current"
	pathVM      = "/nodes/{node}/qemu/{vmid}"
	pathUpload  = "/nodes/{node}/storage/{storage}/upload"
	pathContent = "/nodes/{node}/storage/{storage}/content/{volume}"
)

// TestFaultsOnTheWay has each request of a machine's life go wrong once, in each way: the machine runs all the same, with
// one VM, and leaves nothing behind.
func TestFaultsOnTheWay(t *testing.T) {
	t.Parallel()
	requests := []pvesim.Fault{
		{Method: "POST", Path: pathClone},
		{Method: "POST", Path: pathUpload},
		{Method: "PUT", Path: pathConfig},
		{Method: "PUT", Path: pathResize},
		{Method: "POST", Path: pathStart},
		{Method: "POST", Path: pathStop},
		{Method: "DELETE", Path: pathVM},
		{Method: "DELETE", Path: pathContent},
		{Method: "GET", Path: pathConfig},
		{Method: "GET", Path: pathCurrent},
		{Method: "GET", Path: "/cluster/nextid"},
	}
	ways := map[string]pvesim.Fault{
		"refused":       {When: pvesim.Before, Status: 500, Reason: "got timeout"},
		"unreachable":   {When: pvesim.Before, Status: 595, Reason: "Connection refused"},
		"reply dropped": {When: pvesim.DropReply},
		"reply garbled": {When: pvesim.AfterEffect, Status: 502, Reason: "Bad Gateway"},
	}
	for way, fault := range ways {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.provisioned(b.cluster("c1"))
			for _, request := range requests {
				request.Nth, request.When, request.Status, request.Reason = 1, fault.When, fault.Status, fault.Reason
				b.Expect(b.pve.World.AddFault(request)).To(Succeed())
			}
			b.livesOnce(b.machine("c1", "m1"))
			for _, fault := range b.pve.World.Faults() { // Go sends a GET again by itself when a kept connection drops
				b.Expect(fault.Struck).To(Equal(1), "%s %s was struck", fault.Method, fault.Path)
			}
		})
	}
}

// livesOnce takes a machine through its life and checks that it has one VM, of one identity, at all times.
func (b *bench) livesOnce(machine *v1beta1.ProxmoxMachine) {
	b.t.Helper()
	b.running(machine)
	b.Expect(b.pveVMs()).To(HaveLen(1))
	b.Expect(b.vmOf(machine).Status).To(Equal("running"))
	b.hasNode(machine)
	b.says(machine, v1beta1.BootstrapSeedRemovedCondition, metav1.ConditionTrue, "Removed")
	b.Expect(b.pve.World.Check()).To(BeEmpty())
	b.delete(machine)
	b.leavesNothing()
}

// TestManagerRestartsInTheMiddle stops the controllers at each step of a machine's life, and starts new ones, which know
// nothing but what is in Kubernetes and Proxmox VE.
func TestManagerRestartsInTheMiddle(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1")
	restart := func(string) {
		b.stop()
		b.startControllers()
	}
	b.atEachStep(machine, restart)
	b.hasNode(machine)
	restart("")
	b.says(machine, v1beta1.BootstrapSeedRemovedCondition, metav1.ConditionTrue, "Removed")
	b.Expect(b.pveVMs()).To(HaveLen(1))
	b.faults(pvesim.Fault{Method: http.MethodDelete, Path: pathVM, Status: 500, Reason: "got timeout"}) // while we look at it
	b.Expect(b.client.Delete(b.ctx, machine)).To(Succeed())
	b.Eventually(func() string { return b.vmOf(machine).Status }, patience, poll).Should(Equal("stopped"))
	restart("")
	b.pve.World.ClearFaults()
	b.gone(machine)
	b.leavesNothing()
}

func TestVMThatWasDeletedIsNotMadeAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1")
	b.settled(machine)
	b.removeVM(b.vmOf(machine))
	b.says(machine, v1beta1.VirtualMachineReadyCondition, metav1.ConditionFalse, "VirtualMachineGone",
		machine.Spec.Reservation.UUID, "region home", "delete the Machine, or let a MachineHealthCheck replace it")
	b.says(machine, clusterv1.ReadyCondition, metav1.ConditionFalse, clusterv1.NotReadyReason)
	b.Expect(machine.Status.Initialization.Provisioned).To(HaveValue(BeTrue()))

	foreign := b.foreignVM(proxmox.VMID(machine.Spec.Reservation.VMID), "pve1")
	b.change(machine, func() { machine.Labels["look"] = "again" })
	b.Consistently(func(g Gomega) {
		g.Expect(b.pveVMs()).To(HaveLen(1))
		b.get(g, machine)
		g.Expect(condition(machine, clusterv1.ReadyCondition)).To(Equal(metav1.ConditionFalse))
	}, 3*time.Second, poll).Should(Succeed())
	b.delete(machine)
	b.untouched(foreign)
}

// removeVM stops and destroys a VM behind our back.
func (b *bench) removeVM(vm pvesim.VM) {
	b.t.Helper()
	path := fmt.Sprintf("/nodes/%s/qemu/%d", vm.Node, vm.VMID)
	b.ask(http.MethodPost, path+"/status/stop", url.Values{})
	b.ask(http.MethodDelete, path, url.Values{"purge": {"1"}})
	_, there := b.pve.World.VM(vm.VMID)
	b.Expect(there).To(BeFalse())
}

// foreignVM adds a VM that is somebody else's.
func (b *bench) foreignVM(id proxmox.VMID, node proxmox.NodeName) pvesim.VM {
	b.t.Helper()
	b.Expect(b.pve.World.AddVM(pvesim.VMSpec{VMID: id, Node: node, State: "running", Config: map[string]string{
		"name": "database", "description": "capve keeps off", "memory": "1024", "scsi0": fmt.Sprintf("local-lvm:vm-%d-disk-0,size=8G", id),
	}})).To(Succeed())
	vm, _ := b.pve.World.VM(id)
	return vm
}

// holdClones has Proxmox VE refuse all clones, for no reason that speaks of the VMID or the host, until losesVMID.
func (b *bench) holdClones() {
	b.t.Helper()
	b.faults(pvesim.Fault{Method: http.MethodPost, Path: pathClone, Status: 500, Reason: lockTimeout})
}

// lockTimeout is an answer after which it is certain that nothing was done.
const lockTimeout = "can't lock file '/var/lock/qemu-server/lock-9000.conf' - got timeout"

// losesVMID has another guest take a machine's VMID between its reservation and its clone, which holdClones holds, and lets
// the clones go.
func (b *bench) losesVMID(machine *v1beta1.ProxmoxMachine) (v1beta1.Reservation, pvesim.VM) {
	b.t.Helper()
	return b.losesVMIDAt("/clone", machine)
}

// losesVMIDAt is losesVMID for what else makes a VM.
func (b *bench) losesVMIDAt(path string, machine *v1beta1.ProxmoxMachine) (v1beta1.Reservation, pvesim.VM) {
	b.t.Helper()
	b.sent(http.MethodPost, path)
	b.get(b, machine)
	reserved := machine.Spec.Reservation
	foreign := b.foreignVM(proxmox.VMID(reserved.VMID), proxmox.NodeName(reserved.Node))
	b.pve.World.ClearFaults()
	return reserved, foreign
}

func (b *bench) untouched(vm pvesim.VM) {
	b.t.Helper()
	now, there := b.pve.World.VM(vm.VMID)
	b.Expect(there).To(BeTrue(), "the foreign VM is gone")
	b.Expect(now).To(Equal(vm))
}

// TestVMIDThatAnotherTookFirst adds a foreign VM between the reservation of its VMID and the clone.
func TestVMIDThatAnotherTookFirst(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	b.holdClones()
	machine := b.machine("c1", "m1")
	reserved, foreign := b.losesVMID(machine)
	b.running(machine)
	b.tells(machine, "Warning", v1beta1.RefusedEvent, fmt.Sprintf("VM %d ", reserved.VMID), "left alone")
	b.Expect(machine.Spec.Reservation.VMID).NotTo(Equal(reserved.VMID))
	b.Expect(machine.Spec.Reservation.UUID).To(Equal(reserved.UUID))
	b.Expect(b.vmOf(machine).VMID).To(BeEquivalentTo(machine.Spec.Reservation.VMID))
	b.untouched(foreign)
	b.delete(machine)
	b.untouched(foreign)
	b.Expect(b.pveVMs()).To(HaveLen(1))
	b.Expect(b.pve.World.Check()).To(BeEmpty())
}

// TestVMWithTheMachinesNameAndNoMarkerIsWaitedFor takes the marker out of a clone's notes before the clone is configured.
func TestVMWithTheMachinesNameAndNoMarkerIsWaitedFor(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	b.Expect(b.pve.World.AddFault(pvesim.Fault{Method: "PUT", Path: "/nodes/{node}/qemu/{vmid}/config", Status: 500, Reason: "not yet"})).To(Succeed())
	machine := b.machine("c1", "m1")
	b.says(machine, v1beta1.VirtualMachineReadyCondition, metav1.ConditionFalse, "Error", "not yet")
	vm := b.pveVMs()[0]
	b.pve.World.ClearFaults()
	b.stop()
	path := fmt.Sprintf("/nodes/%s/qemu/%d/config", vm.Node, vm.VMID)
	b.ask(http.MethodPut, path, url.Values{"description": {"mine"}})
	b.ask(http.MethodPut, path, url.Values{"smbios1": {"uuid=966d3531-69bb-4cf7-889f-f8f652492abb"}, "delete": {"tags"}})
	b.startControllers()
	b.says(machine, v1beta1.VirtualMachineReadyCondition, metav1.ConditionFalse, "Unmarked", "CAPVE-UUID: "+machine.Spec.Reservation.UUID)
	b.Expect(b.pveVMs()).To(HaveLen(1), "no second VM")
	b.ask(http.MethodPut, path, url.Values{"description": {"mine\nCAPVE-UUID: " + machine.Spec.Reservation.UUID}})
	b.running(machine)
	b.Expect(b.pveVMs()).To(HaveLen(1))
}

// TestForeignVMAtTheVMIDSurvivesDeletion has our VM replaced by another while the machine is on its way out.
func TestForeignVMAtTheVMIDSurvivesDeletion(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1")
	b.running(machine)
	b.stop()
	vm := b.vmOf(machine)
	b.removeVM(vm)
	foreign := b.foreignVM(vm.VMID, vm.Node)
	b.Expect(b.client.Delete(b.ctx, machine)).To(Succeed())
	b.startControllers()
	b.gone(machine)
	b.untouched(foreign)
	b.Expect(b.pve.World.Check()).To(BeEmpty(), "the seed went with the machine")
}

func TestVMThatIsMigratedIsFoundAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t, pvesim.WithTemplates(pvesim.TemplateSpec{Name: "ubuntu-2404-k8s", Storage: "shared"}))
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1", func(m *v1beta1.ProxmoxMachine) { m.Spec.Bootstrap.Storage = "shared" })
	b.settled(machine)
	home := b.vmOf(machine)
	target := proxmox.NodeName("pve3")
	b.Expect(home.Node).NotTo(Equal(target))
	b.ask(http.MethodPost, fmt.Sprintf("/nodes/%s/qemu/%d/migrate", home.Node, home.VMID), url.Values{"target": {string(target)}, "online": {"1"}})
	b.Eventually(func(g Gomega) {
		b.get(g, machine)
		g.Expect(machine.Status.Node).To(BeEquivalentTo(target))
		g.Expect(machine.Status.FailureDomain).To(BeEquivalentTo(target))
	}, patience, poll).Should(Succeed())
	b.Expect(condition(machine, clusterv1.ReadyCondition)).To(Equal(metav1.ConditionTrue))
	b.Expect(machine.Spec.Reservation.Node).To(BeEquivalentTo(home.Node), "the reservation tells where it was made")

	// On its way out the VM moves once more, faster than the inventory.
	b.stop()
	b.ask(http.MethodPost, fmt.Sprintf("/nodes/%s/qemu/%d/migrate", target, home.VMID), url.Values{"target": {"pve2"}, "online": {"1"}})
	b.Expect(b.client.Delete(b.ctx, machine)).To(Succeed())
	b.startControllers()
	b.gone(machine)
	b.leavesNothing()
}

func TestVMThatWasStoppedIsStartedAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1")
	b.settled(machine)
	b.pve.World.Kill(b.vmOf(machine).VMID)
	b.Eventually(func() string { return b.vmOf(machine).Status }, patience, poll).Should(Equal("running"))
	b.running(machine)
}

// TestManyMachinesAtOnce has 20 machines compete for hosts that take 21 of them.
func TestManyMachinesAtOnce(t *testing.T) {
	t.Parallel()
	const machines, memory = 20, 28 * 1024
	b := newBench(t, pvesim.WithModel(pvesim.Model{Nodes: 3, Memory: memory, Speed: 100}))
	b.provisioned(b.cluster("c1"))
	all := make([]*v1beta1.ProxmoxMachine, machines)
	for i := range all {
		all[i] = b.machine("c1", fmt.Sprintf("m%d", i))
	}
	ids, perNode := map[int32]bool{}, map[string]int{}
	for _, machine := range all {
		b.running(machine)
		ids[machine.Spec.Reservation.VMID] = true
		perNode[machine.Status.Node]++
		b.Expect(b.vmOf(machine).VMID).To(BeEquivalentTo(machine.Spec.Reservation.VMID))
	}
	b.Expect(ids).To(HaveLen(machines))
	b.Expect(perNode).To(HaveLen(3))
	for node, number := range perNode {
		b.Expect(number).To(BeNumerically("~", machines/3, 1), node)
		b.Expect(number*4096).To(BeNumerically("<=", memory), node)
	}
	b.Expect(b.pveVMs()).To(HaveLen(machines))
	for _, machine := range all {
		b.Expect(b.client.Delete(b.ctx, machine)).To(Succeed())
	}
	for _, machine := range all {
		b.gone(machine)
	}
	b.leavesNothing()
}
