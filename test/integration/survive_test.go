package integration_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// slowClones makes a clone last for seconds, and all else as fast as ever: there is much in the template to copy.
func slowClones() pvesim.Option {
	return pvesim.WithTemplates(pvesim.TemplateSpec{Name: "ubuntu-2404-k8s", Disk: 1000})
}

// cloning waits until Proxmox VE clones a machine's VM.
func (b *bench) cloning(machine *v1beta1.ProxmoxMachine) {
	b.t.Helper()
	b.says(machine, v1beta1.VirtualMachineReadyCondition, metav1.ConditionFalse, plan.Cloning)
	b.stillClones()
}

// stillClones says so in the log when a computer is too slow for the test to be in time: what follows holds all the same.
func (b *bench) stillClones() {
	b.t.Helper()
	if b.pve.World.RunningTasks() == 0 {
		b.t.Log("the clone was over before the test went on")
	}
}

// backup is what a tool like Velero keeps of a namespace.
type backup []unstructured.Unstructured

// backUp copies the objects of the namespace.
func (b *bench) backUp() backup {
	b.t.Helper()
	var kept backup
	for _, kind := range []schema.GroupVersionKind{
		corev1.SchemeGroupVersion.WithKind("Secret"), clusterv1.GroupVersion.WithKind("Cluster"), clusterv1.GroupVersion.WithKind("Machine"),
		v1beta1.GroupVersion.WithKind("ProxmoxCluster"), v1beta1.GroupVersion.WithKind("ProxmoxMachine"),
		ipamv1.GroupVersion.WithKind("IPAddressClaim"), ipamv1.GroupVersion.WithKind("IPAddress"),
	} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		b.Expect(b.client.List(b.ctx, list, client.InNamespace(b.namespace))).To(Succeed())
		kept = append(kept, list.Items...)
	}
	return kept
}

// lose takes all objects of a backup away without anybody's leave, as the loss of a management cluster does.
func (b *bench) lose(lost backup) {
	b.t.Helper()
	for i := range lost {
		object := lost[i].DeepCopy()
		b.Expect(client.IgnoreNotFound(b.client.Delete(b.ctx, object))).To(Succeed())
		b.Eventually(func() error {
			object := lost[i].DeepCopy()
			if err := b.client.Get(b.ctx, client.ObjectKeyFromObject(object), object); err != nil {
				return client.IgnoreNotFound(err)
			}
			object.SetFinalizers(nil)
			return fmt.Errorf("%s is still there: %w", object.GetName(), b.client.Update(b.ctx, object))
		}, patience, poll).Should(Succeed())
	}
}

// restoring is how a backup is restored.
type restoring struct{ keepsOwners bool }

// restore makes the objects of a backup anew: without status, and with UIDs and versions of their own. Velero leaves their
// owners out; `kubectl create` of what `kubectl get` said keeps them, with UIDs that nobody has.
func (b *bench) restore(kept backup, how restoring) {
	b.t.Helper()
	for i := range kept {
		object := kept[i].DeepCopy()
		if object.GetKind() == "Machine" || object.GetKind() == "Cluster" {
			b.restoreCore(object)
			continue
		}
		unstructured.RemoveNestedField(object.Object, "status")
		object.SetUID("")
		object.SetResourceVersion("")
		object.SetManagedFields(nil)
		object.SetCreationTimestamp(metav1.Time{})
		if !how.keepsOwners {
			object.SetOwnerReferences(nil)
		}
		b.create(object)
	}
}

// restoreCore restores a Cluster or Machine, and gives it the status that Cluster API's core finds again by itself.
func (b *bench) restoreCore(object *unstructured.Unstructured) {
	b.t.Helper()
	status := object.Object["status"]
	unstructured.RemoveNestedField(object.Object, "status")
	object.SetUID("")
	object.SetResourceVersion("")
	object.SetManagedFields(nil)
	object.SetOwnerReferences(nil)
	b.create(object)
	if status != nil {
		object.Object["status"] = status
		b.Expect(b.client.Status().Update(b.ctx, object)).To(Succeed())
	}
}

// adopt gives our objects their owners, as Cluster API's core does after a restore.
func (b *bench) adopt(object, owner client.Object, kind string) {
	b.t.Helper()
	b.get(b, owner)
	b.change(object, func() {
		object.SetOwnerReferences([]metav1.OwnerReference{{
			APIVersion: clusterv1.GroupVersion.String(), Kind: kind, Name: owner.GetName(), UID: owner.GetUID(),
		}})
	})
}

// TestRestoreOfABackup loses a whole management cluster and restores it from a backup that is somewhat old: one machine ran, one
// has been deleted since, one was on its way.
func TestRestoreOfABackup(t *testing.T) {
	t.Parallel()
	for name, restored := range map[string]restoring{"without owners": {}, "with owners that are gone": {keepsOwners: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, slowClones())
			cluster := b.cluster("c1")
			b.provisioned(cluster)
			running, deleted := b.machine("c1", "running"), b.machine("c1", "deleted")
			b.settled(running)
			b.settled(deleted)
			young := b.machine("c1", "young")
			b.Eventually(func() string { b.get(b, young); return young.Spec.Reservation.UUID }, patience, poll).ShouldNot(BeEmpty())
			kept := b.backUp()
			b.settled(young)
			b.delete(deleted)
			addresses, identity := running.Status.Addresses, young.Spec.Reservation
			b.stop()
			before, sent := []pvesim.VM{b.vmOf(running), b.vmOf(young)}, len(b.requests())
			b.lose(b.backUp())

			b.restore(kept, restored)
			b.startControllers()
			b.adopt(cluster, &clusterv1.Cluster{ObjectMeta: b.meta("c1")}, "Cluster")
			for _, machine := range []*v1beta1.ProxmoxMachine{running, deleted, young} {
				b.adopt(machine, &clusterv1.Machine{ObjectMeta: b.meta(machine.Name)}, "Machine")
			}
			b.provisioned(cluster)
			b.says(deleted, v1beta1.VirtualMachineReadyCondition, metav1.ConditionFalse, plan.VirtualMachineGone)
			b.running(running)
			b.running(young)
			b.Expect(b.pveVMs()).To(HaveLen(2), "no VM was made")
			b.Expect(b.vmOf(running)).To(Equal(before[0]), "it is as it was")
			b.Expect(running.Status.Addresses).To(Equal(addresses))
			b.Expect(young.Spec.Reservation).To(Equal(identity))
			b.Expect(b.vmOf(young).VMID).To(Equal(before[1].VMID))
			for _, request := range writes(b.requests()[sent:]) {
				b.Expect(request).NotTo(Or(HaveSuffix("/clone"), ContainSubstring("/qemu/%d/", before[0].VMID)))
			}
			b.holdsItsAddress(running)
			b.holdsItsAddress(young)
			b.delete(deleted)
			b.delete(running)
			b.Expect(b.vmOf(young).Status).To(Equal("running"))
			b.Expect(b.pveVMs()).To(HaveLen(1))
			b.Expect(b.pve.World.Check()).To(BeEmpty())
		})
	}
}

// TestARestoredReservationNamesAnotherVMID restores a backup from before the machine moved to the VMID that its VM has.
func TestARestoredReservationNamesAnotherVMID(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	cluster := b.cluster("c1")
	b.provisioned(cluster)
	machine := b.machine("c1", "m1")
	b.settled(machine)
	b.stop()
	vm, kept := b.vmOf(machine), b.backUp()
	b.lose(b.backUp())
	for i := range kept {
		if kept[i].GetKind() == "ProxmoxMachine" {
			unstructured.RemoveNestedField(kept[i].Object, "spec", "providerID")
			b.Expect(unstructured.SetNestedField(kept[i].Object, int64(vm.VMID)+50, "spec", "reservation", "vmID")).To(Succeed())
		}
	}
	b.restore(kept, restoring{})
	b.startControllers()
	b.adopt(cluster, &clusterv1.Cluster{ObjectMeta: b.meta("c1")}, "Cluster")
	b.adopt(machine, &clusterv1.Machine{ObjectMeta: b.meta("m1")}, "Machine")
	b.says(machine, v1beta1.VirtualMachineReadyCondition, metav1.ConditionFalse, plan.Unobserved, "has this machine's identity", "remove VM "+vm.VMID.String())
	b.Expect(b.pveVMs()).To(ConsistOf(vm), "there is no second one")
	b.begin(machine)
	b.waits(machine, plan.Unobserved, "has this machine's identity")
	b.removeVM(vm)
	b.gone(machine)
	b.leavesNothing()
}

// holdsItsAddress waits until the claim of a machine's address is the machine's, and nobody else's.
func (b *bench) holdsItsAddress(machine *v1beta1.ProxmoxMachine) {
	b.t.Helper()
	claim := &ipamv1.IPAddressClaim{ObjectMeta: b.meta(machine.Name + "-net0-ipv4")}
	b.Eventually(func(g Gomega) {
		b.get(g, claim)
		g.Expect(claim.OwnerReferences).To(Equal([]metav1.OwnerReference{{
			APIVersion: v1beta1.GroupVersion.String(), Kind: "ProxmoxMachine", Name: machine.Name, UID: machine.UID,
			Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
		}}))
		g.Expect(claim.Finalizers).To(ContainElement(v1beta1.AddressClaimFinalizer))
	}, patience, poll).Should(Succeed())
}

// TestAMoveLeavesTheVMAlone deletes a machine and its Cluster as `clusterctl move` does on the side that it moved from, with our
// finalizer back in between.
func TestAMoveLeavesTheVMAlone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1")
	b.settled(machine)
	before, sent := b.vmOf(machine), len(b.requests())
	b.change(machine, func() {
		machine.Annotations = map[string]string{"clusterctl.cluster.x-k8s.io/delete-for-move": ""}
	})
	b.Expect(b.client.Delete(b.ctx, &clusterv1.Cluster{ObjectMeta: b.meta("c1")})).To(Succeed())
	b.begin(machine)
	b.gone(machine)
	b.polled(2)
	b.Expect(writes(b.requests()[sent:])).To(BeEmpty())
	b.Expect(b.vmOf(machine)).To(Equal(before))
}

// TestManagerRestartsAtEachStepOfADeletion stops the controllers at each step of a machine's end.
func TestManagerRestartsAtEachStepOfADeletion(t *testing.T) {
	t.Parallel()
	b := newBench(t, pvesim.WithSpeed(4)) // so that each step can be seen
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1")
	b.running(machine)
	b.begin(machine)
	steps := map[string]bool{}
	b.Eventually(func(g Gomega) {
		err := b.client.Get(b.ctx, client.ObjectKeyFromObject(machine), machine)
		if condition := conditions.Get(machine, clusterv1.DeletingCondition); err == nil && condition != nil && !steps[condition.Reason] {
			steps[condition.Reason] = true
			b.stop()
			b.startControllers()
		}
		g.Expect(client.IgnoreNotFound(err)).NotTo(HaveOccurred())
		g.Expect(err).To(HaveOccurred(), "still there: %s", pretty(machine.Status))
	}, 3*patience, poll/5).Should(Succeed())
	b.leavesNothing()
	b.Expect(steps).To(And(HaveKey(plan.Stopping), HaveKey(plan.Destroying)))
	t.Logf("restarted at %v", slices.Sorted(maps.Keys(steps)))
}

// TestLeaderChangesInTheMiddleOfClones has two managers, of which one leads and dies without giving its lead up.
func TestLeaderChangesInTheMiddleOfClones(t *testing.T) {
	t.Parallel()
	b := newBench(t, slowClones())
	b.stop()
	elected := func(options *ctrl.Options) {
		options.LeaderElection, options.LeaderElectionID, options.LeaderElectionNamespace = true, "capve", b.namespace
		// Shorter than the manager's own, and long enough for a leader on a busy machine to keep its lead.
		options.LeaseDuration, options.RenewDeadline, options.RetryPeriod = ptr.To(8*time.Second), ptr.To(6*time.Second), ptr.To(time.Second)
	}
	first := b.startManager(elected)
	cluster := b.cluster("c1")
	b.provisioned(cluster) // it leads
	second := b.startManager(elected)
	machines := []*v1beta1.ProxmoxMachine{b.machine("c1", "m1"), b.machine("c1", "m2"), b.machine("c1", "m3")}
	for _, machine := range machines {
		b.says(machine, v1beta1.VirtualMachineReadyCondition, metav1.ConditionFalse, plan.Cloning)
	}
	first.stop()
	b.stillClones()
	reserved := map[string]v1beta1.Reservation{}
	for _, machine := range machines {
		b.get(b, machine)
		reserved[machine.Name] = machine.Spec.Reservation
	}

	for _, machine := range machines {
		b.running(machine)
		b.Expect(machine.Spec.Reservation).To(Equal(reserved[machine.Name]))
	}
	b.Expect(b.pveVMs()).To(HaveLen(len(machines)))
	b.Expect(b.count("/clone")).To(Equal(len(machines)), "no VM was cloned twice")
	for _, machine := range machines {
		b.delete(machine)
	}
	b.leavesNothing()
	second.stop()
	b.Expect(second.err).NotTo(HaveOccurred())
}

// TestCredentialsAreRotatedInTheMiddleOfAClone changes the Secret, and removes the old token in Proxmox VE, while a clone runs.
func TestCredentialsAreRotatedInTheMiddleOfAClone(t *testing.T) {
	t.Parallel()
	for name, removedFirst := range map[string]string{"the Secret first": "", "the token first": "yes"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, slowClones())
			old := b.pve.World.AddToken(pvesim.TokenSpec{User: "root@pam", Name: "old", Unseparated: true})
			cluster := b.cluster("c1")
			b.credentials(map[string]string{"tokenID": old.ID, "tokenSecret": string(old.Secret)})
			b.provisioned(cluster)
			rested, machine := b.machine("c1", "rested"), (*v1beta1.ProxmoxMachine)(nil)
			b.settled(rested)
			machine = b.machine("c1", "m1")
			b.cloning(machine)
			removed := false
			remove := func() {
				b.ask(http.MethodDelete, "/access/users/root@pam/token/old", url.Values{})
				removed = true
			}
			if removedFirst != "" {
				remove()
				b.says(cluster, v1beta1.ProxmoxAvailableCondition, metav1.ConditionFalse, v1beta1.CredentialsRefusedReason, "credentials Secret")
			}
			b.credentials(b.token())
			if !removed {
				remove()
			}
			b.running(machine)
			b.running(rested)
			b.says(cluster, v1beta1.ProxmoxAvailableCondition, metav1.ConditionTrue, v1beta1.AvailableReason)
			b.Expect(b.pveVMs()).To(HaveLen(2))
			b.Expect(b.count("/clone")).To(Equal(2))
			b.delete(machine)
			b.delete(rested)
			b.leavesNothing()
		})
	}
}

// TestEndpointIsLost gives a region three endpoints, and loses the one that is used: at rest, in the middle of a clone, and once
// the first is back.
func TestEndpointIsLost(t *testing.T) {
	t.Parallel()
	b := newBench(t, slowClones())
	urls := map[proxmox.NodeName]string{}
	var endpoints []string
	for _, node := range []proxmox.NodeName{"pve1", "pve2", "pve3"} {
		server, err := pvesim.ServeNode(b.pve.World, node, "")
		b.Expect(err).NotTo(HaveOccurred())
		t.Cleanup(server.Close)
		urls[node], endpoints = server.URL, append(endpoints, server.URL)
	}
	b.provisioned(b.cluster("c1", func(c *v1beta1.ProxmoxCluster) { c.Spec.Regions[0].Endpoints = endpoints }))
	uses := func(node proxmox.NodeName) {
		t.Helper()
		from := len(b.requests())
		b.Eventually(func(g Gomega) {
			answered := slices.DeleteFunc(b.requests()[from:], func(r pve.RequestRecord) bool { return r.Status != http.StatusOK })
			g.Expect(answered).NotTo(BeEmpty())
			g.Expect("https://" + answered[len(answered)-1].Endpoint).To(Equal(urls[node]))
		}, patience, poll).Should(Succeed())
	}
	rested := b.machine("c1", "rested", at("pve3"))
	b.settled(rested)
	uses("pve1")
	b.pve.World.StopDaemon("pve1", pvesim.PVEProxy)
	uses("pve2")
	b.get(b, rested)
	b.Expect(condition(rested, clusterv1.ReadyCondition)).To(Equal(metav1.ConditionTrue))

	machine := b.machine("c1", "m1", at("pve3"))
	b.cloning(machine)
	b.pve.World.StopDaemon("pve2", pvesim.PVEProxy)
	uses("pve3")
	b.running(machine)
	b.Expect(b.pveVMs()).To(HaveLen(2))
	b.Expect(b.count("/clone")).To(Equal(2), "no VM was cloned twice")

	b.pve.World.StartDaemon("pve1", pvesim.PVEProxy)
	b.pve.World.StopDaemon("pve3", pvesim.PVEProxy)
	uses("pve1")
	b.pve.World.StartDaemon("pve3", pvesim.PVEProxy)
	for _, machine := range []*v1beta1.ProxmoxMachine{rested, machine} {
		b.running(machine)
		b.delete(machine)
	}
	b.leavesNothing()
}

// TestNoQuorum cuts the host that is asked off from the others, while a machine runs, one is to be made and one is to go.
func TestNoQuorum(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	running, leaving := b.machine("c1", "running", at("pve1")), b.machine("c1", "leaving", at("pve1"))
	b.settled(running)
	b.settled(leaving)
	before := b.vmOf(running)
	b.pve.World.CutLink("pve1")
	b.begin(leaving)
	waiting := b.machine("c1", "waiting", at("pve1"))
	const remedy = "the Proxmox VE cluster has no quorum and takes no changes; bring its nodes back"
	b.says(waiting, v1beta1.VirtualMachineReadyCondition, metav1.ConditionFalse, v1beta1.UnreachableReason, remedy)
	b.waits(leaving, plan.TaskFailedReason, remedy)
	b.get(b, running)
	b.Expect(condition(running, clusterv1.ReadyCondition)).To(Equal(metav1.ConditionTrue), "%s", pretty(running.Status))
	b.vmOf(leaving)

	b.pve.World.MendLink("pve1")
	b.running(waiting)
	b.running(running)
	b.gone(leaving)
	b.Expect(b.vmOf(running)).To(Equal(before))
	b.Expect(b.pveVMs()).To(HaveLen(2))
	b.Expect(b.pve.World.Check()).To(BeEmpty())
}

// TestHostIsDown loses the host of a machine, and gets it back.
func TestHostIsDown(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	machine, other := b.machine("c1", "m1", at("pve2")), b.machine("c1", "m2", at("pve3"))
	b.settled(machine)
	b.settled(other)
	sent := len(b.requests())
	b.pve.World.StopNode("pve2")
	b.says(machine, v1beta1.VirtualMachineReadyCondition, metav1.ConditionUnknown, plan.Unobserved, "node pve2 of region home is offline")
	b.says(machine, clusterv1.ReadyCondition, metav1.ConditionUnknown, clusterv1.ReadyUnknownReason)
	b.Consistently(func(g Gomega) {
		b.get(g, machine)
		g.Expect(machine.DeletionTimestamp).To(BeNil())
		g.Expect(condition(machine, clusterv1.ReadyCondition)).To(Equal(metav1.ConditionUnknown))
	}, 3*time.Second, poll).Should(Succeed())
	b.Expect(writes(b.requests()[sent:])).To(BeEmpty())
	b.get(b, other)
	b.Expect(condition(other, clusterv1.ReadyCondition)).To(Equal(metav1.ConditionTrue))

	b.pve.World.StartNode("pve2")
	b.running(machine)
	b.Expect(b.vmOf(machine).Status).To(Equal("running"))
	b.Expect(b.pveVMs()).To(HaveLen(2))
}
