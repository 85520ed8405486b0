package integration_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// clonePeak watches Proxmox VE's task list and keeps the most clones that ran on one node at the same time, and in all.
type clonePeak struct{ onNode, inAll int }

// watch looks at the tasks, again and again, until stopped.
func (p *clonePeak) watch(b *bench) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				p.look(b)
			}
		}
	}()
	return func() { close(done); <-ended }
}

func (p *clonePeak) look(b *bench) {
	all := 0
	for _, node := range []string{"pve1", "pve2", "pve3"} {
		answer, err := b.pve.Client().Get(b.pve.URL + "/api2/json/nodes/" + node + "/tasks?source=active&typefilter=qmclone")
		if err != nil {
			return
		}
		var list struct{ Data []struct{ Status string } }
		if json.NewDecoder(answer.Body).Decode(&list) == nil {
			running := 0
			for _, task := range list.Data {
				if task.Status == "" || task.Status == "RUNNING" {
					running++
				}
			}
			all, p.onNode = all+running, max(p.onNode, running)
		}
		_ = answer.Body.Close()
	}
	p.inAll = max(p.inAll, all)
}

// TestClonesAreBoundedPerHost has 20 machines at once, cloned on three hosts.
func TestClonesAreBoundedPerHost(t *testing.T) {
	t.Parallel()
	b := newBench(t, pvesim.WithModel(pvesim.Model{Nodes: 3, Memory: 64 * 1024, Speed: 1})) // a clone takes 7 s, so that some meet
	b.provisioned(b.cluster("c1"))
	peak := &clonePeak{}
	stop := peak.watch(b)
	b.run20(func(*v1beta1.ProxmoxMachine) {})
	stop()
	b.Expect(peak.onNode).To(BeNumerically("<=", 2))
	b.Expect(peak.inAll).To(BeNumerically(">", 2), "hosts clone at the same time")
	t.Logf("at most %d clones on a host, %d in all", peak.onNode, peak.inAll)
}

// TestClonesAreBoundedPerStorage has 20 machines at once, cloned on three hosts onto one shared storage.
func TestClonesAreBoundedPerStorage(t *testing.T) {
	t.Parallel()
	b := newBench(t, pvesim.WithModel(pvesim.Model{Nodes: 3, Memory: 64 * 1024, Speed: 4}))
	b.provisioned(b.cluster("c1", func(c *v1beta1.ProxmoxCluster) { c.Spec.Regions[0].CloneLimits = v1beta1.CloneLimits{PerStorage: 3} }))
	peak := &clonePeak{}
	stop := peak.watch(b)
	b.run20(func(m *v1beta1.ProxmoxMachine) { m.Spec.Source.Template.Storage = "shared" })
	stop()
	b.Expect(peak.onNode).To(BeNumerically("<=", 2))
	b.Expect(peak.inAll).To(BeNumerically("<=", 3))
	t.Logf("at most %d clones on a host, %d in all", peak.onNode, peak.inAll)
}

// run20 runs 20 machines at once and checks that no VMID was asked for twice, and that nobody polled for a slot.
func (b *bench) run20(edit func(*v1beta1.ProxmoxMachine)) {
	b.t.Helper()
	const machines = 20
	all := make([]*v1beta1.ProxmoxMachine, machines)
	for i := range all {
		all[i] = b.machine("c1", fmt.Sprintf("m%d", i), edit)
	}
	for _, machine := range all {
		b.running(machine)
	}
	b.Expect(b.pveVMs()).To(HaveLen(machines))
	probes, failed := 0, 0
	for _, request := range b.requests() {
		if request.Path == "/cluster/nextid" {
			probes++
		}
		if request.Class != "" && request.Method != http.MethodGet {
			failed++
		}
	}
	b.Expect(probes).To(BeNumerically("<=", machines+2), "one question for each VMID")
	b.Expect(failed).To(BeZero(), "clones did not stand in each other's way")
	perMachine := len(own(b.requests())) / machines
	b.Expect(perMachine).To(BeNumerically("<=", 12))
	b.t.Logf("%d questions for VMIDs, %d requests per machine", probes, perMachine)
	b.Expect(b.pve.World.Check()).To(BeEmpty())
}

// TestAFailedCloneOfAHostIsMadeOnAnother has the clones on the first host fail for a reason that is the host's.
func TestAFailedCloneOfAHostIsMadeOnAnother(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]pvesim.Fault{
		"by its task":         {TaskError: "clone failed: unable to create image: lvcreate 'pve/vm-100-disk-0' error: out of space"},
		"by its answer":       {Status: 500, Reason: "storage 'local-lvm' is not online"},
		"three times somehow": {TaskError: "clone failed: something went wrong"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.provisioned(b.cluster("c1"))
			first := b.machine("c1", "first") // the hosts are alike, and the first goes to the first
			b.running(first)
			node := b.vmOf(first).Node
			b.delete(first)
			b.polled(2) // the inventory knows that it is gone
			fault.Method, fault.Path, fault.Node = http.MethodPost, pathClone, node
			b.Expect(b.pve.World.AddFault(fault)).To(Succeed())
			machine := b.machine("c1", "m1")
			sent := len(b.requests())
			b.running(machine)
			b.movedFrom(node, machine, b.requests()[sent:])

			second := b.machine("c1", "m2")
			b.running(second)
			b.Expect(b.vmOf(second).Node).NotTo(Equal(node), "it is passed over while others fit")
			for _, machine := range []*v1beta1.ProxmoxMachine{machine, second} {
				b.hasNode(machine)
				b.says(machine, v1beta1.BootstrapSeedRemovedCondition, metav1.ConditionTrue, "Removed")
				b.delete(machine)
			}
			b.leavesNothing()
			b.Expect(slices.ContainsFunc(b.pve.World.Volumes(), func(v pvesim.Volume) bool { return strings.Contains(string(v.ID), "capve-") })).
				To(BeFalse(), "no seed is left, on no host")
		})
	}
}

// movedFrom checks that a machine's clones began on a node, under one identity, and ended on another under another VMID.
func (b *bench) movedFrom(node proxmox.NodeName, machine *v1beta1.ProxmoxMachine, requests []pve.RequestRecord) {
	b.t.Helper()
	b.Expect(b.vmOf(machine).Node).NotTo(Equal(node))
	clones := slices.DeleteFunc(requests, func(r pve.RequestRecord) bool { return !strings.HasSuffix(r.Path, "/clone") })
	b.Expect(clones[0].Path).To(HavePrefix("/nodes/" + string(node) + "/"))
	b.Expect(clones[0].Params["newid"]).NotTo(Equal(fmt.Sprint(machine.Spec.Reservation.VMID)))
	for _, clone := range clones {
		b.Expect(clone.Params["description"]).To(ContainSubstring(machine.Spec.Reservation.UUID))
	}
}

// TestAFailedCloneIsTriedAgainWhereItIsWhenNoOtherHostFits lets the machine go to one host only.
func TestAFailedCloneIsTriedAgainWhereItIsWhenNoOtherHostFits(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	b.Expect(b.pve.World.AddFault(pvesim.Fault{Method: http.MethodPost, Path: pathClone, Count: 2, TaskError: "clone failed: no space left"})).To(Succeed())
	machine := b.machine("c1", "m1", func(m *v1beta1.ProxmoxMachine) { m.Spec.Placement.AllowedNodes = []string{"pve2"} })
	b.says(machine, v1beta1.VirtualMachineReadyCondition, metav1.ConditionFalse, plan.TaskFailedReason, "no space left")
	b.running(machine)
	b.Expect(b.vmOf(machine).Node).To(BeEquivalentTo("pve2"))
	b.delete(machine)
	b.leavesNothing()
}

// TestAFullStorageIsLeft has a storage that takes the disks of a VM on one host alone.
func TestAFullStorageIsLeft(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.add(b.pve.World.AddStorage(pvesim.StorageSpec{ID: "tiny", Type: "lvmthin", Content: []string{"images"}, Nodes: []proxmox.NodeName{"pve1", "pve2"}, Total: 3 << 30}))
	b.provisioned(b.cluster("c1"))
	onTiny := func(m *v1beta1.ProxmoxMachine) {
		m.Spec.Source.Template.Storage, m.Spec.Disks = "tiny", v1beta1.Disks{}
	}
	machines := []*v1beta1.ProxmoxMachine{b.machine("c1", "m1", onTiny), b.machine("c1", "m2", onTiny)}
	for _, machine := range machines {
		b.running(machine)
	}
	third := b.machine("c1", "m3", onTiny)
	b.Eventually(func() []string { return b.events(third) }, patience, poll).Should(
		And(ContainElement(ContainSubstring("base-9001-")), ContainElement(ContainSubstring("base-9002-"))), "it failed on both hosts")
	b.delete(third)
	for _, machine := range machines {
		b.delete(machine)
	}
	b.leavesNothing()
}

// TestWarningsOfATaskAreAnEvent has a clone end with warnings.
func TestWarningsOfATaskAreAnEvent(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	b.Expect(b.pve.World.AddFault(pvesim.Fault{Method: http.MethodPost, Path: pathClone, Nth: 1, When: pvesim.AfterEffect, TaskError: "WARNINGS: 2"})).To(Succeed())
	machine := b.machine("c1", "m1")
	b.running(machine)
	b.Eventually(func() []string { return b.events(machine) }, patience, poll).Should(
		ContainElement(And(ContainSubstring("TaskWarnings"), ContainSubstring("warnings (2)"), ContainSubstring("pvenode task log 'UPID:"))))
}

// events are the reasons and notes of an object's events.
func (b *bench) events(object client.Object) []string {
	b.t.Helper()
	var list eventsv1.EventList
	b.Expect(b.client.List(b.ctx, &list, client.InNamespace(b.namespace))).To(Succeed())
	var notes []string
	for _, event := range list.Items {
		if event.Regarding.Name == object.GetName() {
			notes = append(notes, event.Reason+": "+event.Note)
		}
	}
	return notes
}

// TestVMIDRangeOfTheMachineGoesFirst sets one at each of the three places.
func TestVMIDRangeOfTheMachineGoesFirst(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.provisioned(b.cluster("c1", func(c *v1beta1.ProxmoxCluster) { c.Spec.VMIDRange = v1beta1.VMIDRange{Start: 5000, End: 5001} }))
	ranged := func(m *v1beta1.ProxmoxMachine) { m.Spec.VMIDRange = v1beta1.VMIDRange{Start: 7000, End: 7000} }
	first, second, third := b.machine("c1", "m1", ranged), b.machine("c1", "m2"), b.machine("c1", "m3", ranged)
	b.Eventually(func(g Gomega) {
		b.get(g, first)
		b.get(g, second)
		b.get(g, third)
		ids := []int32{first.Spec.Reservation.VMID, third.Spec.Reservation.VMID}
		slices.Sort(ids)
		g.Expect(ids).To(Equal([]int32{0, 7000}))
		g.Expect(second.Spec.Reservation.VMID).To(Equal(int32(5000)))
	}, patience, poll).Should(Succeed())
	waiting := first
	if first.Spec.Reservation.VMID != 0 {
		waiting = third
	}
	b.says(waiting, v1beta1.VirtualMachineReadyCondition, metav1.ConditionFalse, plan.VMIDRangeExhausted, "from 7000 to 7000", "vmIDRange of the ProxmoxMachineTemplate")
	b.Eventually(func() error { // a status may be written at the same time
		b.get(b, first)
		first.Spec.VMIDRange.End = 7009
		return b.client.Update(b.ctx, first)
	}, patience, poll).Should(MatchError(ContainSubstring("spec.vmIDRange: Forbidden: a VM cannot change it")))
}
