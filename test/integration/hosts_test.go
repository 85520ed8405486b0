package integration_test

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// TestThePlaceFollowsAVMOutOfAllZones moves a VM to a node that no zone names, and asks as somebody does who drains a node.
func TestThePlaceFollowsAVMOutOfAllZones(t *testing.T) {
	t.Parallel()
	b := newBench(t, pvesim.WithTemplates(pvesim.TemplateSpec{Name: "ubuntu-2404-k8s", Storage: "shared"}))
	b.provisioned(b.cluster("c1", func(c *v1beta1.ProxmoxCluster) {
		c.Spec.Regions[0].Zones = []v1beta1.Zone{{Name: "rack1", Nodes: []string{"pve1"}}, {Name: "rack2", Nodes: []string{"pve2"}}}
	}))
	machine := b.machine("c1", "m1", at("pve1"), func(m *v1beta1.ProxmoxMachine) { m.Spec.Bootstrap.Storage = "shared" })
	b.settled(machine)
	b.get(b, machine)
	b.Expect(machine.Status.FailureDomain).To(Equal("rack1"))
	b.Expect(machine.Labels).To(And(HaveKeyWithValue("topology.kubernetes.io/region", "home"), HaveKeyWithValue("topology.kubernetes.io/zone", "rack1")))
	b.Expect(b.onHost("pve1")).To(ConsistOf("m1"))
	b.restsWithoutRequests(machine)

	b.ask(http.MethodPost, b.vmPath(machine)+"/migrate", url.Values{"target": {"pve3"}, "online": {"1"}})
	b.tells(machine, "Normal", v1beta1.MigratedEvent, "from pve1 to pve3", "out of failure domain rack1", "pve3 is in no zone of region home")
	b.Eventually(func(g Gomega) {
		b.get(g, machine)
		g.Expect(machine.Status.FailureDomain).To(BeEmpty())
		g.Expect(machine.Labels).NotTo(HaveKey("topology.kubernetes.io/zone"))
		g.Expect(b.onHost("pve3")).To(ConsistOf("m1"))
		g.Expect(b.onHost("pve1")).To(BeEmpty())
	}, patience, poll).Should(Succeed())
	b.restsWithoutRequests(machine)
}

// onHost are the machines that `kubectl get proxmoxmachines -l <host label>=node` lists.
func (b *bench) onHost(node string) []string {
	b.t.Helper()
	list := &v1beta1.ProxmoxMachineList{}
	b.Expect(b.client.List(b.ctx, list, client.InNamespace(b.namespace), client.MatchingLabels{v1beta1.HostLabel: node})).To(Succeed())
	var names []string
	for _, machine := range list.Items {
		names = append(names, machine.Name)
	}
	return names
}

// heldBack keeps requests of a path from being served, and makes a machine that may go to two hosts. It returns once the
// machine came that far.
func (b *bench) heldBack(path, seeds string) *v1beta1.ProxmoxMachine {
	b.t.Helper()
	b.add(b.pve.World.AddFault(pvesim.Fault{Method: http.MethodPost, Path: path, Status: http.StatusInternalServerError, Reason: lockTimeout}))
	machine := b.machine("c1", "m1", func(m *v1beta1.ProxmoxMachine) {
		m.Spec.Placement.AllowedNodes, m.Spec.Bootstrap.Storage = []string{"pve2", "pve3"}, seeds
	})
	b.Eventually(func() bool { return b.pve.World.Faults()[0].Struck > 0 }, patience, poll).Should(BeTrue(), "it was asked for")
	b.get(b, machine)
	return machine
}

// movesFrom waits until a machine was made somewhere else than it was reserved at, under the same identity.
func (b *bench) movesFrom(machine *v1beta1.ProxmoxMachine, before v1beta1.Reservation) {
	b.t.Helper()
	b.Eventually(func(g Gomega) {
		b.get(g, machine)
		g.Expect(machine.Spec.Reservation.Node).NotTo(Equal(before.Node), "%s", pretty(machine.Status))
	}, patience, poll).Should(Succeed())
	b.pve.World.ClearFaults()
	b.running(machine)
	b.Expect(machine.Spec.Reservation.UUID).To(Equal(before.UUID))
	b.Expect(machine.Spec.Reservation.VMID).NotTo(Equal(before.VMID))
	b.Expect(b.onHost(machine.Spec.Reservation.Node)).To(ConsistOf("m1"))
	b.untold(machine, v1beta1.RefusedEvent)
}

// declareGone says of a host, or of a region, that it is gone for good.
func (b *bench) declareGone(machine *v1beta1.ProxmoxMachine, annotation, name string) {
	b.t.Helper()
	b.change(machine, func() { machine.Annotations = map[string]string{annotation: name} })
}

func TestAMachineLeavesAHostThatGoesDownBeforeItsVMIsMade(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ path, seeds string }{
		"before it has the seed":              {pathUpload, "local"},
		"while its seed is on shared storage": {pathClone, "shared"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.provisioned(b.cluster("c1"))
			machine := b.heldBack(c.path, c.seeds)
			before := machine.Spec.Reservation
			b.pve.World.StopNode(proxmox.NodeName(before.Node))
			b.movesFrom(machine, before)
			b.pve.World.StartNode(proxmox.NodeName(before.Node))
			b.delete(machine)
			b.leavesNothing()
		})
	}
}

// TestASeedOnAHostThatIsDownHoldsTheMachine has the seed, with bootstrap data on it, on local storage.
func TestASeedOnAHostThatIsDownHoldsTheMachine(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	machine := b.heldBack(pathClone, "local")
	before := machine.Spec.Reservation
	b.pve.World.StopNode(proxmox.NodeName(before.Node))
	b.says(machine, v1beta1.VirtualMachineReadyCondition, metav1.ConditionFalse, "HostOffline", "seed ISO local:iso/capve-", v1beta1.HostGoneAnnotation+"="+before.Node)
	b.declareGone(machine, v1beta1.HostGoneAnnotation, before.Node)
	b.movesFrom(machine, before)
	b.tells(machine, "Warning", "Abandoned", "on "+before.Node+" of region home", "seed ISO local:iso/capve-")
	b.delete(machine)
}

func TestAMachineLeavesAHostThatLostTheTemplate(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	machine := b.heldBack(pathClone, "local")
	before := machine.Spec.Reservation
	b.ask(http.MethodDelete, fmt.Sprintf("/nodes/%s/qemu/%d", before.SourceNode, before.SourceVMID), url.Values{})
	b.movesFrom(machine, before)
	b.delete(machine)
	b.leavesNothing()
}

// TestACloneWhoseHostDied has the host go down in the middle of a clone. What it made of the VM stays there.
func TestACloneWhoseHostDied(t *testing.T) {
	t.Parallel()
	begun := func(t *testing.T) (*bench, *v1beta1.ProxmoxMachine, v1beta1.Reservation) {
		t.Parallel()
		b := newBench(t, pvesim.WithSpeed(1))
		b.provisioned(b.cluster("c1"))
		machine := b.machine("c1", "m1", func(m *v1beta1.ProxmoxMachine) { m.Spec.Placement.AllowedNodes = []string{"pve2", "pve3"} })
		b.Eventually(func() []pvesim.VM { return b.pveVMs() }, patience, poll).ShouldNot(BeEmpty())
		b.get(b, machine)
		b.pve.World.StopNode(proxmox.NodeName(machine.Spec.Reservation.Node))
		return b, machine, machine.Spec.Reservation
	}
	t.Run("its machine goes to another host", func(t *testing.T) {
		b, machine, before := begun(t)
		b.says(machine, v1beta1.VirtualMachineReadyCondition, metav1.ConditionFalse, "HostOffline", fmt.Sprintf("VM %d is on %s, which is offline", before.VMID, before.Node), v1beta1.HostGoneAnnotation+"="+before.Node)
		b.declareGone(machine, v1beta1.HostGoneAnnotation, before.Node)
		b.movesFrom(machine, before)
		b.tells(machine, "Warning", "Abandoned", fmt.Sprintf("VM %d", before.VMID), "seed ISO")
	})
	t.Run("its machine is deleted", func(t *testing.T) {
		b, machine, before := begun(t)
		b.begin(machine)
		b.waits(machine, "HostOffline", "is on "+before.Node+", which is offline", v1beta1.HostGoneAnnotation+"="+before.Node)
		b.declareGone(machine, v1beta1.HostGoneAnnotation, before.Node)
		b.gone(machine)
		b.Eventually(func() []string { return b.eventsOf("Abandoned") }, patience, poll).Should(ConsistOf(ContainSubstring("VM %d", before.VMID)))
	})
}

// TestDeletionGoesOnWithoutARegionThatIsDeclaredGone turns a whole Proxmox VE cluster off for good.
func TestDeletionGoesOnWithoutARegionThatIsDeclaredGone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	cluster := b.cluster("c1")
	b.provisioned(cluster)
	machine := b.machine("c1", "m1")
	b.running(machine)
	vm := b.vmOf(machine)
	for _, node := range []proxmox.NodeName{"pve1", "pve2", "pve3"} {
		b.pve.World.StopNode(node)
	}
	b.begin(machine)
	b.waits(machine, v1beta1.UnreachableReason, v1beta1.RegionGoneAnnotation+"=home")
	b.declareGone(machine, v1beta1.RegionGoneAnnotation, "away")
	b.waits(machine, v1beta1.UnreachableReason, "=away changes nothing")
	b.declareGone(machine, v1beta1.RegionGoneAnnotation, "home")
	b.gone(machine)
	claims := &ipamv1.IPAddressClaimList{}
	b.Eventually(func(g Gomega) {
		g.Expect(b.client.List(b.ctx, claims, client.InNamespace(b.namespace))).To(Succeed())
		g.Expect(claims.Items).To(BeEmpty())
		g.Expect(b.eventsOf("Abandoned")).To(ConsistOf(And(
			ContainSubstring("in region home"), ContainSubstring("VM %d (%s) with its disks", vm.VMID, machine.Spec.Reservation.UUID), ContainSubstring("seed ISO local:iso/capve-"),
		)))
	}, patience, poll).Should(Succeed())
	b.delete(cluster)
}

// TestAVMThatTheHAManagerGaveUpOn is one that it could not stop. Its machine says what to do while it runs, and when it is
// deleted.
func TestAVMThatTheHAManagerGaveUpOn(t *testing.T) {
	t.Parallel()
	b := newBench(t, pvesim.WithTemplates(pvesim.TemplateSpec{Name: "ubuntu-2404-k8s", Storage: "shared"}))
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1", func(m *v1beta1.ProxmoxMachine) { m.Spec.Bootstrap.Storage = "shared" })
	b.settled(machine)
	id := b.vmOf(machine).VMID
	haState := func() string { vm, _ := b.pve.World.VM(id); return vm.HAState }
	b.ask(http.MethodPost, "/cluster/ha/resources", url.Values{"sid": {fmt.Sprintf("vm:%d", id)}, "state": {"started"}})
	b.Eventually(haState, patience, poll).Should(Equal("started"))
	release := b.pve.World.HoldLock(id)
	b.ask(http.MethodPost, b.vmPath(machine)+"/status/stop", url.Values{})
	b.Eventually(haState, patience, poll).Should(Equal("error"))
	release()

	remedy := fmt.Sprintf("`ha-manager remove vm:%d`", id)
	b.says(machine, v1beta1.VirtualMachineReadyCondition, metav1.ConditionTrue, "HighAvailabilityFailed", "runs on", "gave up", remedy)
	b.tells(machine, "Warning", "HighAvailabilityFailed", remedy)
	b.restsWithoutRequests(machine)
	b.running(machine)

	b.begin(machine)
	b.waits(machine, "HighAvailabilityFailed", "neither starts nor stops it", fmt.Sprintf("`ha-manager set vm:%d --state disabled`", id))
	b.Expect(b.vmOf(machine).Status).To(Equal("running"))
	b.ask(http.MethodPut, fmt.Sprintf("/cluster/ha/resources/vm:%d", id), url.Values{"state": {"disabled"}})
	b.gone(machine)
	b.leavesNothing()
	b.Expect(b.pve.World.State().HA.Resources).To(BeEmpty())
}

func TestABackupDoesNotDisturbAMachine(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1")
	b.settled(machine)
	id, sent := b.vmOf(machine).VMID, len(own(b.requests()))
	b.pve.World.Lock(id, "backup")
	b.polled(3)
	b.running(machine)
	b.Expect(len(own(b.requests()))-sent).To(BeNumerically("<=", 3), "%v", own(b.requests())[sent:])
	b.untold(machine, "Locked")

	b.wishes(machine, v1beta1.PowerStateStopped)
	b.tells(machine, "Warning", "Locked", "(backup)")
	b.Expect(b.count("/status/shutdown")).To(BeZero())
	b.Expect(b.vmOf(machine).Status).To(Equal("running"))
	b.pve.World.Unlock(id)
	b.says(machine, v1beta1.VirtualMachineReadyCondition, metav1.ConditionFalse, "PoweredOff")
}
