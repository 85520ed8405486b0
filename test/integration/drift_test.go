package integration_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// told are the events of a machine, by reason: how often it was told, and what the first said.
func (b *bench) told(machine *v1beta1.ProxmoxMachine) map[string]telling {
	b.t.Helper()
	var list eventsv1.EventList
	b.Expect(b.client.List(b.ctx, &list, client.InNamespace(b.namespace))).To(Succeed())
	result := map[string]telling{}
	for _, event := range list.Items {
		if event.Regarding.Name != machine.Name || event.Regarding.Kind != "ProxmoxMachine" {
			continue
		}
		entry := result[event.Reason]
		entry.kind, entry.note, entry.times = event.Type, event.Note, entry.times+1
		if event.Series != nil {
			entry.times = int(event.Series.Count)
		}
		result[event.Reason] = entry
	}
	return result
}

type telling struct {
	kind, note string
	times      int
}

// tells waits for an event that is told once, with all the parts.
func (b *bench) tells(machine *v1beta1.ProxmoxMachine, kind, reason string, parts ...string) {
	b.t.Helper()
	b.Eventually(func(g Gomega) {
		told := b.told(machine)
		g.Expect(told).To(HaveKey(reason))
		g.Expect([]any{told[reason].kind, told[reason].times}).To(Equal([]any{kind, 1}), "%v", told)
		for _, part := range parts {
			g.Expect(told[reason].note).To(ContainSubstring(part))
		}
	}, patience, poll).Should(Succeed())
}

// untold checks what no event may say.
func (b *bench) untold(machine *v1beta1.ProxmoxMachine, reasons ...string) {
	b.t.Helper()
	for _, reason := range reasons {
		b.Expect(b.told(machine)).NotTo(HaveKey(reason))
	}
}

// vmPath is the path of a VM where it is now.
func (b *bench) vmPath(machine *v1beta1.ProxmoxMachine) string {
	b.t.Helper()
	vm := b.vmOf(machine)
	return fmt.Sprintf("/nodes/%s/qemu/%d", vm.Node, vm.VMID)
}

// wishes changes what power state a machine is to have.
func (b *bench) wishes(machine *v1beta1.ProxmoxMachine, state v1beta1.PowerState) {
	b.t.Helper()
	b.change(machine, func() { machine.Spec.PowerState = state })
}

// restsWithoutRequests waits until a machine costs no requests of its own, and changes nothing.
func (b *bench) restsWithoutRequests(machine *v1beta1.ProxmoxMachine) {
	b.t.Helper()
	b.Eventually(func(g Gomega) {
		b.get(g, machine)
		before, version := own(b.requests()), machine.ResourceVersion
		b.polled(3)
		g.Expect(own(b.requests())).To(Equal(before))
		b.get(g, machine)
		g.Expect(machine.ResourceVersion).To(Equal(version))
	}, patience, poll).Should(Succeed())
}

func TestEventsTellTheLifeOfAMachineOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1")
	b.settled(machine)
	id := fmt.Sprint(machine.Spec.Reservation.VMID)
	b.tells(machine, "Normal", v1beta1.PlacedEvent, "VM "+id, machine.Spec.Reservation.Node)
	b.tells(machine, "Normal", v1beta1.AddressesAssignedEvent, "10.1.0.11")
	b.tells(machine, "Normal", v1beta1.ClonedEvent, "VM "+id)
	b.tells(machine, "Normal", v1beta1.StartedEvent, "VM "+id)
	b.restsWithoutRequests(machine)
	told := b.told(machine)
	b.Expect(told).To(HaveLen(4), "%v", told)

	b.delete(machine)
	b.tells(machine, "Normal", v1beta1.DeletedEvent)
	b.untold(machine, v1beta1.AdoptedEvent, v1beta1.RefusedEvent, v1beta1.StoppedOutsideEvent, v1beta1.DriftedEvent, v1beta1.MigratedEvent)
}

func TestMachineIsShutDownAndStartedAsAsked(t *testing.T) {
	t.Parallel()
	for _, version := range []pvesim.Version{pvesim.V84, pvesim.V92} {
		t.Run(string(version), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, pvesim.WithVersion(version))
			b.provisioned(b.cluster("c1"))
			machine := b.machine("c1", "m1")
			b.settled(machine)
			sent := len(b.requests())
			b.wishes(machine, v1beta1.PowerStateStopped)
			b.says(machine, v1beta1.VirtualMachineReadyCondition, metav1.ConditionFalse, "PoweredOff", "spec.powerState", "set it to Running")
			b.says(machine, clusterv1.ReadyCondition, metav1.ConditionFalse, clusterv1.NotReadyReason)
			b.Expect(b.vmOf(machine).Status).To(Equal("stopped"))
			b.Expect(writes(b.requests()[sent:])).To(HaveLen(1), "one request: %v", writes(b.requests()[sent:]))
			b.Expect(writes(b.requests()[sent:])[0]).To(HaveSuffix("/status/shutdown"))
			b.tells(machine, "Normal", v1beta1.PoweredOffEvent)
			b.polled(2)
			b.restsWithoutRequests(machine)

			b.ask(http.MethodPost, b.vmPath(machine)+"/status/start", url.Values{}) // it is shut down again
			b.Eventually(func() int { return len(writes(b.requests()[sent:])) }, patience, poll).Should(Equal(2))
			b.Eventually(func() string { return b.vmOf(machine).Status }, patience, poll).Should(Equal("stopped")) // the condition may be of before
			b.says(machine, v1beta1.VirtualMachineReadyCondition, metav1.ConditionFalse, "PoweredOff")

			b.wishes(machine, v1beta1.PowerStateRunning)
			b.running(machine)
			b.Eventually(func() string { return b.vmOf(machine).Status }, patience, poll).Should(Equal("running"))
			b.untold(machine, v1beta1.StoppedOutsideEvent)

			b.wishes(machine, v1beta1.PowerStateStopped)
			b.says(machine, v1beta1.VirtualMachineReadyCondition, metav1.ConditionFalse, "PoweredOff")
			b.delete(machine)
			b.leavesNothing()
		})
	}
}

func TestGuestThatDoesNotShutDownIsTurnedOff(t *testing.T) {
	t.Parallel()
	b := newBench(t, pvesim.WithGuests(pvesim.Deaf))
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1")
	b.running(machine)
	sent := len(b.requests())
	b.wishes(machine, v1beta1.PowerStateStopped)
	b.says(machine, v1beta1.VirtualMachineReadyCondition, metav1.ConditionFalse, "PoweredOff")
	b.Expect(writes(b.requests()[sent:])).To(HaveLen(1))
}

func TestMachineThatNeverRanIsNotStartedWhileStopped(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1", func(m *v1beta1.ProxmoxMachine) { m.Spec.PowerState = v1beta1.PowerStateStopped })
	b.says(machine, v1beta1.VirtualMachineReadyCondition, metav1.ConditionFalse, "PoweredOff")
	b.Expect(machine.Spec.ProviderID).To(BeEmpty())
	b.Expect(b.vmOf(machine).Status).To(Equal("stopped"))
	b.restsWithoutRequests(machine)
	b.wishes(machine, v1beta1.PowerStateRunning)
	b.livesOnce(machine)
}

// TestHAManagedMachineIsAskedForOnce has the HA manager serve the requests, some time after it took them.
func TestHAManagedMachineIsAskedForOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, pvesim.WithTemplates(pvesim.TemplateSpec{Name: "ubuntu-2404-k8s", Storage: "shared"}))
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1", func(m *v1beta1.ProxmoxMachine) { m.Spec.Bootstrap.Storage = "shared" })
	b.settled(machine)
	b.ask(http.MethodPost, "/cluster/ha/resources", url.Values{"sid": {fmt.Sprintf("vm:%d", b.vmOf(machine).VMID)}, "state": {"started"}})
	sent := len(b.requests())
	b.wishes(machine, v1beta1.PowerStateStopped)
	b.says(machine, v1beta1.VirtualMachineReadyCondition, metav1.ConditionFalse, "PoweredOff")
	b.Expect(writes(b.requests()[sent:])).To(HaveLen(1), "%v", writes(b.requests()[sent:]))
	b.wishes(machine, v1beta1.PowerStateRunning)
	b.running(machine)
	b.Expect(writes(b.requests()[sent:])).To(HaveLen(2), "%v", writes(b.requests()[sent:]))
}

func TestVMThatMovesIsTold(t *testing.T) {
	t.Parallel()
	b := newBench(t, pvesim.WithTemplates(pvesim.TemplateSpec{Name: "ubuntu-2404-k8s", Storage: "shared"}))
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1", func(m *v1beta1.ProxmoxMachine) { m.Spec.Bootstrap.Storage = "shared" })
	b.settled(machine)
	sent, from := len(own(b.requests())), string(b.vmOf(machine).Node)
	b.ask(http.MethodPost, b.vmPath(machine)+"/migrate", url.Values{"target": {"pve3"}, "online": {"1"}})
	b.tells(machine, "Normal", v1beta1.MigratedEvent, "from "+from+" to pve3")
	b.get(b, machine)
	b.Expect([]string{machine.Status.Node, machine.Status.FailureDomain}).To(Equal([]string{"pve3", "pve3"}))
	b.restsWithoutRequests(machine)
	b.Expect(len(own(b.requests()))-sent).To(BeNumerically("<=", 2), "%v", own(b.requests())[sent:])
}

func TestVMThatIsStoppedOutsideIsTold(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1")
	b.settled(machine)
	b.ask(http.MethodPost, b.vmPath(machine)+"/status/stop", url.Values{})
	b.tells(machine, "Warning", v1beta1.StoppedOutsideEvent, "is started again", "spec.powerState")
	b.running(machine)
	b.restsWithoutRequests(machine)
}

func TestVMThatIsRemovedIsTold(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1")
	b.settled(machine)
	b.removeVM(b.vmOf(machine))
	b.tells(machine, "Warning", v1beta1.VirtualMachineGoneEvent, "MachineHealthCheck")
	b.change(machine, func() { machine.Labels["look"] = "again" })
	b.restsWithoutRequests(machine)
	b.tells(machine, "Warning", v1beta1.VirtualMachineGoneEvent)
}

func TestVMThatSomebodyChangedIsToldAndLeftAlone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1")
	b.settled(machine)
	b.says(machine, v1beta1.ConfigurationUpToDateCondition, metav1.ConditionTrue, "UpToDate")
	path, tags := b.vmPath(machine)+"/config", b.vmOf(machine).Config["tags"]
	sent := len(b.requests())
	b.ask(http.MethodPut, path, url.Values{"cores": {"1"}, "memory": {"2048"}})
	b.ask(http.MethodPost, strings.TrimSuffix(path, "/config")+"/status/reboot", url.Values{})
	b.says(machine, v1beta1.ConfigurationUpToDateCondition, metav1.ConditionFalse, "Drifted",
		"cpu.cores: 2 → 1", "memory.sizeMiB: 4096 → 2048", "Change it back", "roll the machine")
	b.tells(machine, "Warning", v1beta1.DriftedEvent, "cpu.cores: 2 → 1")
	b.running(machine)
	b.restsWithoutRequests(machine)

	b.ask(http.MethodPut, path, url.Values{"name": {"pet"}, "delete": {"tags"}})
	b.says(machine, v1beta1.ConfigurationUpToDateCondition, metav1.ConditionFalse, "Drifted", "vmName (name): m1 → pet", "tags: capve-"+machine.Spec.Reservation.UUID+" → none")
	b.Expect(condition(machine, clusterv1.ReadyCondition)).To(Equal(metav1.ConditionTrue))
	b.restsWithoutRequests(machine)
	b.Expect(writes(b.requests()[sent:])).To(BeEmpty(), "nothing is changed back")
	b.Expect(b.vmOf(machine).Config["name"]).To(Equal("pet"))

	b.ask(http.MethodPut, path, url.Values{"name": {"m1"}, "tags": {tags}, "cores": {"2"}, "memory": {"4096"}})
	b.ask(http.MethodPost, strings.TrimSuffix(path, "/config")+"/status/reboot", url.Values{})
	b.says(machine, v1beta1.ConfigurationUpToDateCondition, metav1.ConditionTrue, "UpToDate")
}

func TestVMThatBecameATemplateIsTold(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1")
	b.settled(machine)
	b.wishes(machine, v1beta1.PowerStateStopped)
	b.says(machine, v1beta1.VirtualMachineReadyCondition, metav1.ConditionFalse, "PoweredOff")
	b.ask(http.MethodPost, b.vmPath(machine)+"/template", url.Values{})
	b.says(machine, v1beta1.ConfigurationUpToDateCondition, metav1.ConditionFalse, "Drifted", "template: no → yes")
	b.wishes(machine, v1beta1.PowerStateRunning)
	b.says(machine, v1beta1.VirtualMachineReadyCondition, metav1.ConditionFalse, "Drifted", "cannot be started", "delete the Machine")
	b.tells(machine, "Warning", v1beta1.DriftedEvent)
	b.restsWithoutRequests(machine)
}

func TestVMIsAdoptedWhenTheStatusIsLost(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1")
	b.settled(machine)
	b.stop()
	b.wipeStatus(machine)
	b.startControllers()
	b.tells(machine, "Normal", v1beta1.AdoptedEvent, machine.Status.Node)
	b.running(machine)
	b.tells(machine, "Normal", v1beta1.StartedEvent)
}

// TestVMOfAnotherIsNotTakenForAMachines has another VM get the VMID of one that was removed.
func TestVMOfAnotherIsNotTakenForAMachines(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1")
	b.running(machine)
	mine := b.vmOf(machine)
	b.stop()
	b.removeVM(mine)
	squatter := b.foreignVM(mine.VMID, mine.Node)
	b.startControllers()
	b.says(machine, v1beta1.VirtualMachineReadyCondition, metav1.ConditionFalse, "VirtualMachineGone")
	b.delete(machine)
	b.untouched(squatter)
}

// TestColumnsOfMachines asks the API server for the table that kubectl prints.
func TestColumnsOfMachines(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1")
	b.running(machine)
	table := b.table("proxmoxmachines")
	var names []string
	for _, column := range table.ColumnDefinitions {
		if column.Priority == 0 {
			names = append(names, column.Name)
		}
	}
	b.Expect(names).To(Equal([]string{"Name", "Cluster", "Host", "VMID", "State", "Address", "Ready", "Age"}))
	b.Expect(table.Rows).To(HaveLen(1))
	at := func(name string) string {
		i := slices.IndexFunc(table.ColumnDefinitions, func(c metav1.TableColumnDefinition) bool { return c.Name == name })
		return fmt.Sprint(table.Rows[0].Cells[i])
	}
	b.Expect([]string{at("Name"), at("Cluster"), at("Host"), at("VMID"), at("State"), at("Address"), at("Ready")}).To(Equal(
		[]string{"m1", "c1", machine.Status.Node, fmt.Sprint(machine.Status.VMID), "Running", "10.1.0.11", "True"}))
	b.wishes(machine, v1beta1.PowerStateStopped)
	b.Eventually(func() bool { b.get(b, machine); return conditions.IsFalse(machine, clusterv1.ReadyCondition) }, patience, poll).Should(BeTrue())
}
