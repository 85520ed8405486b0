package integration_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// waits waits until the deletion of a machine waits for a reason, in words that hold all the parts.
func (b *bench) waits(machine *v1beta1.ProxmoxMachine, reason string, parts ...string) {
	b.t.Helper()
	b.says(machine, clusterv1.DeletingCondition, metav1.ConditionTrue, reason, parts...)
}

// begin starts the deletion of a machine.
func (b *bench) begin(machine *v1beta1.ProxmoxMachine) {
	b.t.Helper()
	b.Expect(b.client.Delete(b.ctx, machine)).To(Succeed())
}

// pathOf is the API path of a machine's VM, or below.
func (b *bench) pathOf(machine *v1beta1.ProxmoxMachine, below string) string {
	b.t.Helper()
	vm := b.vmOf(machine)
	return fmt.Sprintf("/nodes/%s/qemu/%d%s", vm.Node, vm.VMID, below)
}

// at lets a machine's VM go to one node only.
func at(node string) func(*v1beta1.ProxmoxMachine) {
	return func(m *v1beta1.ProxmoxMachine) { m.Spec.Placement.AllowedNodes = []string{node} }
}

// count counts the controllers' requests that end in a text.
func (b *bench) count(suffix string) int {
	b.t.Helper()
	counted := 0
	for _, request := range writes(b.requests()) {
		if strings.HasSuffix(request, suffix) {
			counted++
		}
	}
	return counted
}

func TestDeletionLeavesAProtectedVMRunning(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1")
	b.settled(machine)
	b.ask(http.MethodPut, b.pathOf(machine, "/config"), url.Values{"protection": {"1"}})
	b.begin(machine)
	b.waits(machine, "Protected", fmt.Sprintf("VM %d on %s", b.vmOf(machine).VMID, b.vmOf(machine).Node), "--protection 0")
	b.Expect(b.vmOf(machine).Status).To(Equal("running"))
	b.Expect(b.count("/status/stop")).To(BeZero())
	b.ask(http.MethodPut, b.pathOf(machine, "/config"), url.Values{"protection": {"0"}})
	b.gone(machine)
	b.leavesNothing()
}

func TestDeletionWaitsForALock(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1")
	b.settled(machine)
	b.pve.World.Lock(b.vmOf(machine).VMID, "backup")
	b.begin(machine)
	b.waits(machine, "Locked", "a backup runs", "never unlock it while")
	b.Expect(b.count("/status/stop")).To(BeZero())
	b.pve.World.Unlock(b.vmOf(machine).VMID)
	b.gone(machine)
	b.leavesNothing()
}

// TestDeletionTakesAllThatIsAboutAVM deletes a VM with snapshots, a pool, firewall rules and an HA resource, whose stop is a
// request that takes its time.
func TestDeletionTakesAllThatIsAboutAVM(t *testing.T) {
	t.Parallel()
	b := newBench(t, pvesim.WithSpeed(2))
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1", func(m *v1beta1.ProxmoxMachine) { m.Spec.Pool = "capi" })
	b.running(machine)
	sid := fmt.Sprintf("vm:%d", b.vmOf(machine).VMID)
	b.ask(http.MethodPost, b.pathOf(machine, "/snapshot"), url.Values{"snapname": {"before"}})
	b.ask(http.MethodPost, b.pathOf(machine, "/firewall/rules"), url.Values{"type": {"in"}, "action": {"ACCEPT"}})
	b.ask(http.MethodPost, "/cluster/ha/resources", url.Values{"sid": {sid}, "state": {"started"}})
	b.begin(machine)
	b.waits(machine, "Stopping", "waiting for the HA manager")
	b.gone(machine)
	b.Expect(b.count("/status/stop")).To(Equal(1), "the HA manager is asked once")
	b.leavesNothing()
	b.Expect(b.pve.World.State().HA.Resources).To(BeEmpty())
}

// TestDeletionExplainsLinkedClones is about file-based storage: linked clones on LVM-thin do without their base.
func TestDeletionExplainsLinkedClones(t *testing.T) {
	t.Parallel()
	b := newBench(t, pvesim.WithTemplates(pvesim.TemplateSpec{Name: "ubuntu-2404-k8s", Storage: "shared"}))
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1")
	b.settled(machine)
	b.stop()
	path, vm := b.pathOf(machine, ""), b.vmOf(machine)
	b.ask(http.MethodPost, path+"/status/stop", url.Values{})
	b.ask(http.MethodPost, path+"/template", url.Values{})
	b.ask(http.MethodPost, path+"/clone", url.Values{"newid": {"5000"}, "full": {"0"}})
	b.begin(machine)
	b.startControllers()
	b.waits(machine, "TemplateInUse", fmt.Sprintf("base-%d-disk-0", vm.VMID), "linked clones of it")
	b.ask(http.MethodDelete, fmt.Sprintf("/nodes/%s/qemu/5000", vm.Node), url.Values{})
	b.gone(machine)
	b.leavesNothing()
}

func TestDeletionWaitsForAHostThatComesBack(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1", at("pve2"))
	b.running(machine)
	b.pve.World.StopNode("pve2")
	b.begin(machine)
	b.waits(machine, "HostOffline", "is on pve2, which is offline", v1beta1.HostGoneAnnotation+"=pve2")
	b.pve.World.StartNode("pve2")
	b.gone(machine)
	b.leavesNothing()
}

func TestDeletionGoesOnWithoutAHostThatIsDeclaredGone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1", at("pve2"))
	b.running(machine)
	declare := func(node string) {
		b.change(machine, func() { machine.Annotations = map[string]string{v1beta1.HostGoneAnnotation: node} })
	}
	vm := b.vmOf(machine)
	b.pve.World.StopNode("pve2")
	b.begin(machine)
	b.waits(machine, "HostOffline")
	declare("pve3")
	b.waits(machine, "HostOffline", "=pve3 changes nothing")
	b.Consistently(func(g Gomega) { b.get(g, machine) }, time.Second, poll).Should(Succeed())
	declare("pve2")
	b.gone(machine)
	_, there := b.pve.World.VM(vm.VMID)
	b.Expect(there).To(BeTrue())
	claims := &ipamv1.IPAddressClaimList{}
	b.Eventually(func(g Gomega) {
		g.Expect(b.client.List(b.ctx, claims, client.InNamespace(b.namespace))).To(Succeed())
		g.Expect(claims.Items).To(BeEmpty())
		g.Expect(b.eventsOf("Abandoned")).To(ConsistOf(And(
			HavePrefix(corev1.EventTypeWarning), ContainSubstring("VM %d (%s) with its disks", vm.VMID, machine.Spec.Reservation.UUID), ContainSubstring("seed ISO local:iso/capve-"),
		)))
	}, patience, poll).Should(Succeed())
}

// eventsOf are the events of a reason in the bench's namespace, with their types.
func (b *bench) eventsOf(reason string) []string {
	b.t.Helper()
	list := &eventsv1.EventList{}
	b.Expect(b.client.List(b.ctx, list, client.InNamespace(b.namespace))).To(Succeed())
	var told []string
	for _, event := range list.Items {
		if event.Reason == reason {
			told = append(told, event.Type+" "+event.Note)
		}
	}
	return told
}

// TestAnOnlineHostIsNotDeclaredGone annotates a machine whose host is well.
func TestAnOnlineHostIsNotDeclaredGone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1", at("pve2"))
	b.settled(machine)
	b.ask(http.MethodPut, b.pathOf(machine, "/config"), url.Values{"protection": {"1"}})
	b.change(machine, func() { machine.Annotations = map[string]string{v1beta1.HostGoneAnnotation: "pve2"} })
	b.begin(machine)
	b.waits(machine, "Protected", "=pve2 changes nothing")
	b.ask(http.MethodPut, b.pathOf(machine, "/config"), url.Values{"protection": {"0"}})
	b.gone(machine)
	b.leavesNothing()
}

// TestDeletionFollowsAVMThatTheHAManagerRecovers loses the host of a VM on shared storage, and with it the host that its
// seed was uploaded through.
func TestDeletionFollowsAVMThatTheHAManagerRecovers(t *testing.T) {
	t.Parallel()
	b := newBench(t, pvesim.WithTemplates(pvesim.TemplateSpec{Name: "ubuntu-2404-k8s", Storage: "shared"}))
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1", at("pve2"), func(m *v1beta1.ProxmoxMachine) { m.Spec.Bootstrap.Storage = "shared" })
	b.running(machine)
	b.ask(http.MethodPost, "/cluster/ha/resources", url.Values{"sid": {fmt.Sprintf("vm:%d", b.vmOf(machine).VMID)}, "state": {"started"}})
	b.Eventually(func() proxmox.NodeName { return b.vmOf(machine).Node }, patience, poll).Should(BeEquivalentTo("pve2"))
	b.pve.World.StopNode("pve2")
	b.begin(machine)
	b.gone(machine)
	b.leavesNothing()
	b.Expect(b.eventsOf("Abandoned")).To(BeEmpty())
}

// TestDeletionWithoutTheCredentialsSecret deletes a Secret before its machines, as the deletion of a namespace does.
func TestDeletionWithoutTheCredentialsSecret(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	first, second := b.machine("c1", "m1"), b.machine("c1", "m2")
	b.settled(first)
	b.settled(second)
	b.ask(http.MethodPut, b.pathOf(first, "/config"), url.Values{"protection": {"1"}})
	secret := &corev1.Secret{ObjectMeta: b.meta("c1-credentials")}
	b.Expect(b.client.Delete(b.ctx, secret)).To(Succeed())
	b.begin(first)
	b.waits(first, "Protected", "c1-credentials", "uses the last ones that were in it")
	b.delete(second)

	b.stop()
	b.startControllers()
	b.waits(first, v1beta1.CredentialsNotFoundReason, "c1-credentials", "does not exist", "create it", "remove VM")
	b.create(&corev1.Secret{ObjectMeta: b.meta("c1-credentials"), StringData: map[string]string{
		"tokenID": b.pve.Token.ID, "tokenSecret": string(b.pve.Token.Secret),
	}})
	b.waits(first, "Protected")
	b.ask(http.MethodPut, b.pathOf(first, "/config"), url.Values{"protection": {"0"}})
	b.gone(first)
	b.leavesNothing()
}

// TestDeletionGoesOnWhileNoStatusCanBeWritten has the API server reject all statuses of a machine, from its first on.
func TestDeletionGoesOnWhileNoStatusCanBeWritten(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	allow := b.rejectStatus("false")
	machine := b.machine("c1", "m1")
	b.Eventually(b.pveVMs, patience, poll).Should(ConsistOf(HaveField("Status", "running")))
	b.delete(machine)
	b.leavesNothing()
	allow()
}

// TestADestroyWhoseAnswerWasLostIsNotSentAgain has Proxmox VE lose the first destruction of a VM, and its answer: another one
// could be carried out when the VMID is somebody else's.
func TestADestroyWhoseAnswerWasLostIsNotSentAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1")
	b.settled(machine)
	vm := b.vmOf(machine)
	b.Expect(b.pve.World.AddFault(pvesim.Fault{Method: http.MethodDelete, Path: "/nodes/{node}/qemu/{vmid}", Nth: 1, Status: 596, Reason: "Connection timed out"})).To(Succeed())
	b.begin(machine)
	b.waits(machine, "Destroying", fmt.Sprintf("VM %d of region home", vm.VMID), "for two minutes Proxmox VE may")
	b.polled(2)
	destroyed := func() int { return b.count(fmt.Sprintf("/qemu/%d", vm.VMID)) }
	b.Expect(destroyed()).To(Equal(1))
	b.gone(machine)
	b.leavesNothing()
	b.Expect(destroyed()).To(Equal(2), "when the first cannot be carried out any more")
}
