package integration_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// small is a world of one host that has room for one machine.
func small() pvesim.Option {
	return pvesim.WithModel(pvesim.Model{Nodes: 1, Memory: 6144, Speed: 100})
}

// waitsForRoom waits until a machine says that it has none, with all the parts, and checks that nothing was made for it.
func (b *bench) waitsForRoom(machine *v1beta1.ProxmoxMachine, parts ...string) {
	b.t.Helper()
	b.says(machine, v1beta1.VirtualMachineReadyCondition, metav1.ConditionFalse, "WaitingForCapacity", parts...)
	b.Expect(machine.Spec.Reservation).To(BeZero())
}

// vmidRangeUsedUp has two machines compete for a range of one VMID.
func vmidRangeUsedUp(t *testing.T) {
	b := newBench(t)
	b.provisioned(b.cluster("c1", func(c *v1beta1.ProxmoxCluster) {
		c.Spec.Regions[0].VMIDRange = v1beta1.VMIDRange{Start: 7000, End: 7000}
	}))
	first := b.machine("c1", "m1")
	b.running(first)
	second := b.machine("c1", "m2")
	b.says(second, v1beta1.VirtualMachineReadyCondition, metav1.ConditionFalse, "VMIDRangeExhausted", "widen spec.regions[].vmIDRange")
	b.delete(first)
	b.running(second)
	b.Expect(second.Spec.Reservation.VMID).To(BeEquivalentTo(7000))
	b.delete(second)
	b.leavesNothing()
}

// fullVMIDRange has the first forty VMIDs of a range taken by others.
func fullVMIDRange(t *testing.T) {
	const start, taken = 7000, 40
	b := newBench(t)
	for id := range taken {
		b.foreignVM(start+proxmox.VMID(id), "pve1")
	}
	b.provisioned(b.cluster("c1", func(c *v1beta1.ProxmoxCluster) {
		c.Spec.Regions[0].VMIDRange = v1beta1.VMIDRange{Start: start, End: start + taken}
	}))
	machine := b.machine("c1", "m1")
	b.running(machine)
	b.Expect(machine.Spec.Reservation.VMID).To(BeEquivalentTo(start + taken))
	asked := 0
	for _, request := range b.requests() {
		if request.Path == "/cluster/nextid" {
			asked++
		}
	}
	b.Expect(asked).To(BeNumerically("<=", 1))
}

// twoManagers has the controllers of two management clusters, which know nothing of one another, work on one Proxmox VE.
func twoManagers(t *testing.T) {
	const each = 3
	one, two := newBench(t), newBench(t)
	two.pve = one.pve
	two.addresses.Store(100)
	managers := []*bench{one, two}
	for _, b := range managers {
		b.provisioned(b.cluster("c1"))
	}
	machines := map[*bench][]*v1beta1.ProxmoxMachine{}
	for i := range each {
		for _, b := range managers {
			machines[b] = append(machines[b], b.machine("c1", fmt.Sprintf("m%d", i)))
		}
	}
	for _, b := range managers {
		for _, machine := range machines[b] {
			b.readyOnceItRuns(machine)
			b.Expect(b.vmOf(machine).VMID).To(BeEquivalentTo(machine.Spec.Reservation.VMID))
		}
		b.neverDestroys()
	}
	one.Expect(one.pveVMs()).To(HaveLen(2 * each))
	for _, machine := range machines[one] {
		one.delete(machine)
	}
	one.Expect(one.pveVMs()).To(HaveLen(each))
	for _, machine := range machines[two] {
		two.Expect(two.vmOf(machine).Status).To(Equal("running"))
	}
}

// neverDestroys checks that no VM was asked to be stopped or destroyed.
func (b *bench) neverDestroys() {
	b.t.Helper()
	for _, write := range writes(b.requests()) {
		b.Expect(strings.HasPrefix(write, "DELETE ") || strings.HasSuffix(write, "/status/stop")).To(BeFalse(), write)
	}
}

func offlineHost(t *testing.T) {
	b := newBench(t)
	b.pve.World.StopNode("pve3")
	b.provisioned(b.cluster("c1"))
	machines := []*v1beta1.ProxmoxMachine{b.machine("c1", "m1"), b.machine("c1", "m2"), b.machine("c1", "m3")}
	for _, machine := range machines {
		b.running(machine)
		b.Expect(machine.Status.Node).To(BeElementOf("pve1", "pve2"))
	}
	only := b.machine("c1", "only", func(m *v1beta1.ProxmoxMachine) { m.Spec.Placement.AllowedNodes = []string{"pve3"} })
	b.waitsForRoom(only, "pve3: offline")
}

// otherClusters has machines of two clusters compete for a host that takes one.
func otherClusters(t *testing.T) {
	b := newBench(t, small())
	b.provisioned(b.cluster("c1"))
	b.provisioned(b.cluster("c2"))
	first := b.machine("c1", "m1")
	b.running(first)
	second := b.machine("c2", "m2")
	b.waitsForRoom(second, "pve1: 2048 MiB of memory free of 4096 asked")
	b.Expect(b.pveVMs()).To(HaveLen(1))
}

func tagsStay(t *testing.T) {
	b := newBench(t, pvesim.WithTemplates(pvesim.TemplateSpec{Name: "node", Tags: []string{"a-tag", "m-tag", "z-tag"}}))
	b.provisioned(b.cluster("c1"))
	tags := []string{"z-tag", "a-tag", "m-tag"}
	machine := b.machine("c1", "m1", func(m *v1beta1.ProxmoxMachine) {
		m.Spec.Source.Template = v1beta1.TemplateSource{Tags: append([]string{}, tags...)}
	})
	b.running(machine)
	b.Expect(machine.Spec.Source.Template.Tags).To(Equal(tags))
}

// onlyAllowedHosts asks for a host that is full, while another has room.
func onlyAllowedHosts(t *testing.T) {
	b := newBench(t, pvesim.WithModel(pvesim.Model{Nodes: 2, Memory: 6144, Speed: 100}))
	b.occupy("pve1", "running")
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1", func(m *v1beta1.ProxmoxMachine) { m.Spec.Placement.AllowedNodes = []string{"pve1"} })
	b.waitsForRoom(machine, "pve1: 2048 MiB of memory free of 4096 asked", "pve2: not in placement.allowedNodes")
	b.Consistently(b.pveVMs, 2*time.Second, poll).Should(HaveLen(1))
	b.change(machine, func() { machine.Labels["look"] = "again" })
	b.waitsForRoom(machine)
	b.delete(machine)
}

// occupy puts a VM of 4 GiB on a host.
func (b *bench) occupy(node proxmox.NodeName, state string) {
	b.t.Helper()
	b.add(b.pve.World.AddVM(pvesim.VMSpec{VMID: 500, Node: node, State: state, Config: map[string]string{
		"name": "database", "memory": "4096", "scsi0": "local-lvm:vm-500-disk-0,size=8G",
	}}))
}

func stoppedCounts(t *testing.T) {
	b := newBench(t, small())
	b.occupy("pve1", "stopped")
	b.provisioned(b.cluster("c1"))
	b.waitsForRoom(b.machine("c1", "m1"), "pve1: 2048 MiB of memory free of 4096 asked")
}

func containerCounts(t *testing.T) {
	b := newBench(t, small())
	b.add(b.pve.World.AddContainer(pvesim.ContainerSpec{VMID: 500, Node: "pve1", Name: "proxy", Memory: 4096, State: "running"}))
	b.provisioned(b.cluster("c1"))
	b.waitsForRoom(b.machine("c1", "m1"), "pve1: 2048 MiB of memory free of 4096 asked")
}

// midCloneCounts reads the inventory while a clone is under way.
func midCloneCounts(t *testing.T) {
	b := newBench(t, pvesim.WithModel(pvesim.Model{Nodes: 1, Memory: 6144, Speed: 0.25})) // a clone takes half a minute
	b.provisioned(b.cluster("c1"))
	b.machine("c1", "m1")
	b.sent(http.MethodPost, "/clone")
	b.polled(1)
	b.Expect(b.pve.World.RunningTasks()).NotTo(BeZero(), "the clone is under way")
	b.waitsForRoom(b.machine("c1", "m2"), "pve1: 2048 MiB of memory free of 4096 asked")
	b.Expect(b.pve.World.AwaitTasks(t.Context())).To(Succeed())
}

// sharedTemplate has one copy of the template, on one host and shared storage.
func sharedTemplate(t *testing.T) {
	b := newBench(t, pvesim.WithTemplates(pvesim.TemplateSpec{Name: "ubuntu-2404-k8s", Storage: "shared"}))
	b.provisioned(b.cluster("c1"))
	nodes := map[string]bool{}
	machines := []*v1beta1.ProxmoxMachine{b.machine("c1", "m1"), b.machine("c1", "m2"), b.machine("c1", "m3")}
	for _, machine := range machines {
		b.running(machine)
		nodes[machine.Status.Node] = true
	}
	b.Expect(nodes).To(HaveLen(3))
}

// lastTemplate has the templates removed after they were used.
func lastTemplate(t *testing.T) {
	b := newBench(t, pvesim.WithTemplates(pvesim.TemplateSpec{Name: "ubuntu-2404-k8s", Storage: "shared", FirstVMID: 9001}))
	b.provisioned(b.cluster("c1"))
	first := b.machine("c1", "m1")
	b.running(first)
	b.ask(http.MethodDelete, "/nodes/pve1/qemu/9001", nil)
	b.polled(2)
	second := b.machine("c1", "m2")
	b.waitsForRoom(second, `no template that has the name "ubuntu-2404-k8s"`)
	_, err := b.pve.World.AddTemplate(pvesim.TemplateSpec{Name: "ubuntu-2404-k8s", FirstVMID: 9100})
	b.Expect(err).NotTo(HaveOccurred())
	b.running(second)
}

// twoStorages has a template with a disk on each of two storages.
func twoStorages(t *testing.T) {
	b := newBench(t, pvesim.WithModel(pvesim.Model{Nodes: 1, Speed: 100, Templates: []pvesim.TemplateSpec{}}))
	b.add(b.pve.World.AddVM(pvesim.VMSpec{VMID: 9001, Node: "pve1", Config: map[string]string{
		"name": "ubuntu-2404-k8s", "template": "1", "memory": "2048", "cores": "2", "scsihw": "virtio-scsi-pci", "boot": "order=scsi0",
		"scsi0": "local-lvm:base-9001-disk-0,size=10G", "scsi1": "shared:9001/base-9001-disk-0.raw,size=4G",
	}}))
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1")
	b.readyOnceItRuns(machine)
	b.Expect(b.vmOf(machine).Config["scsi0"]).To(HavePrefix("local-lvm:"))
	b.Expect(b.vmOf(machine).Config["scsi1"]).To(HavePrefix("shared:"))
	b.livesOnce(machine)
}

// failedMachineFreesItsPlace deletes a machine that never had a VM, while another waits for its place.
func failedMachineFreesItsPlace(t *testing.T) {
	b := newBench(t, small())
	b.provisioned(b.cluster("c1"))
	b.faults(pvesim.Fault{Method: http.MethodPost, Path: pathClone, TaskError: "clone failed: storage error"})
	first := b.machine("c1", "m1")
	b.says(first, v1beta1.VirtualMachineReadyCondition, metav1.ConditionFalse, "TaskFailed", "storage error")
	second := b.machine("c1", "m2")
	b.waitsForRoom(second, "pve1: 2048 MiB of memory free of 4096 asked")
	b.delete(first)
	b.pve.World.ClearFaults()
	b.running(second)
	b.delete(second)
	b.leavesNothing()
}

// refusedParameter has the clone refused, twice, for something else than its VMID.
func refusedParameter(t *testing.T) {
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	b.faults(pvesim.Fault{
		Method: http.MethodPost, Path: pathClone, Nth: 1, Count: 2, Status: 400, Reason: "Parameter verification failed.",
		Errors: map[string]string{"pool": "invalid format"},
	})
	machine := b.machine("c1", "m1")
	b.Eventually(func() int32 { b.get(b, machine); return machine.Spec.Reservation.VMID }, patience, poll).ShouldNot(BeZero())
	reserved := machine.Spec.Reservation
	b.running(machine)
	b.Expect(machine.Spec.Reservation).To(Equal(reserved))
}

// providerIDs has VMs of one VMID in two regions.
func providerIDs(t *testing.T) {
	b := newBench(t)
	b.pve.World.StopNode("pve2")
	east := pvesim.Run(t, pvesim.WithSeed(2))
	addEast := b.eastern(east)
	b.provisioned(b.cluster("c1", func(c *v1beta1.ProxmoxCluster) {
		addEast(c)
		c.Spec.Regions[0].VMIDRange = c.Spec.Regions[1].VMIDRange
	}))
	// pve1 is in no zone of region east, and pve2 of region home is stopped.
	home := b.machine("c1", "m1", func(m *v1beta1.ProxmoxMachine) { m.Spec.Placement.AllowedNodes = []string{"pve1"} })
	b.running(home)
	away := b.machine("c1", "m2", func(m *v1beta1.ProxmoxMachine) { m.Spec.Placement.AllowedNodes = []string{"pve2"} })
	b.running(away)
	b.Expect(home.Spec.Reservation.Region).NotTo(Equal(away.Spec.Reservation.Region))
	b.Expect(home.Spec.Reservation.VMID).To(Equal(away.Spec.Reservation.VMID))
	end := func(id string) string { return id[strings.LastIndex(id, "/")+1:] }
	b.Expect(end(home.Spec.ProviderID)).NotTo(Equal(end(away.Spec.ProviderID)))
}
