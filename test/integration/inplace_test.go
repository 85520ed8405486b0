package integration_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/util/conditions"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// follows changes a machine's spec, and waits until its VM is as that says.
func (b *bench) follows(machine *v1beta1.ProxmoxMachine, change func(*v1beta1.ProxmoxMachineSpec)) {
	b.t.Helper()
	b.change(machine, func() { change(&machine.Spec) })
	b.isFollowed(machine)
}

// isFollowed waits until a machine's VM is as the spec of now says.
func (b *bench) isFollowed(machine *v1beta1.ProxmoxMachine) {
	b.t.Helper()
	b.Eventually(func(g Gomega) {
		b.get(g, machine)
		condition := conditions.Get(machine, v1beta1.ConfigurationUpToDateCondition)
		g.Expect(condition).NotTo(BeNil())
		g.Expect([]any{condition.Status, condition.ObservedGeneration}).To(Equal([]any{metav1.ConditionTrue, machine.Generation}), "%s", pretty(machine.Status.Conditions))
	}, patience, poll).Should(Succeed())
}

// onBothVersions runs a test of a machine at rest on both versions of Proxmox VE. Every request fits their schema.
func onBothVersions(t *testing.T, edit func(*v1beta1.ProxmoxMachine), test func(*bench, *v1beta1.ProxmoxMachine)) {
	t.Helper()
	for _, version := range []pvesim.Version{pvesim.V84, pvesim.V92} {
		t.Run(string(version), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, pvesim.WithVersion(version))
			b.provisioned(b.cluster("c1"))
			machine := b.machine("c1", "m1", edit)
			b.settled(machine)
			b.isFollowed(machine)
			test(b, machine)
		})
	}
}

func asIs(*v1beta1.ProxmoxMachine) {}

// values are some values of a VM's config.
func (b *bench) values(machine *v1beta1.ProxmoxMachine, keys ...string) map[string]string {
	b.t.Helper()
	config, values := b.vmOf(machine).Config, map[string]string{}
	for _, key := range keys {
		values[key] = config[key]
	}
	return values
}

// TestARunningVMFollowsItsSpec changes in place what takes effect at once, and counts what that costs.
func TestARunningVMFollowsItsSpec(t *testing.T) {
	t.Parallel()
	onBothVersions(t, func(m *v1beta1.ProxmoxMachine) { m.Spec.Tags = []string{"blue", "team-a"} }, func(b *bench, machine *v1beta1.ProxmoxMachine) {
		sent, own := len(b.requests()), vmconfig.TagPrefix+machine.Spec.Reservation.UUID
		b.follows(machine, func(s *v1beta1.ProxmoxMachineSpec) {
			s.CPU.Units, s.CPU.Limit = 50, ptr.To(resource.MustParse("1500m"))
			s.Tags, s.Description = []string{"green", "team-a"}, "for *team A*"
			s.Options.OnBoot, s.Options.Startup.Order = ptr.To(true), ptr.To[int32](3)
			s.Disks.Boot.Backup = ptr.To(false)
			s.Network.Devices[0].RateLimitKiBps, s.Network.Devices[0].LinkDown = 2048, ptr.To(true)
		})
		b.Expect(writes(b.requests()[sent:])).To(HaveLen(1), "%v", writes(b.requests()[sent:]))
		b.Expect(asked(b.requests()[sent:], "GET /nodes/{node}/qemu/{vmid}/pending")).To(Equal(2), "before and after")
		b.Expect(b.values(machine, "cpuunits", "cpulimit", "onboot", "startup")).To(Equal(map[string]string{"cpuunits": "50", "cpulimit": "1.5", "onboot": "1", "startup": "3"}))
		config := b.vmOf(machine).Config
		b.Expect(strings.Split(config["tags"], ";")).To(And(ContainElements("green", "team-a", own), Not(ContainElement("blue"))))
		b.Expect(config["description"]).To(HaveSuffix("\n\nfor *team A*"))
		b.Expect(config["scsi0"]).To(ContainSubstring("backup=0"))
		b.Expect(config["net0"]).To(And(ContainSubstring("rate=2"), ContainSubstring("link_down=1")))
		b.tells(machine, "Normal", v1beta1.ReconfiguredEvent, "cpulimit, cpuunits, description, net0, onboot, scsi0, startup, tags", "as the spec says")

		b.follows(machine, func(s *v1beta1.ProxmoxMachineSpec) {
			s.Disks.Boot.SizeGiB = 25
			s.Disks.Additional = []v1beta1.AdditionalDisk{{Name: "scsi3", Storage: "local-lvm", SizeGiB: 3}}
			s.Network.Devices = append(s.Network.Devices, v1beta1.NetworkDevice{Name: "net1", Bridge: "vmbr0"})
		})
		config = b.vmOf(machine).Config
		b.Expect(config["scsi0"]).To(And(ContainSubstring("size=25G"), ContainSubstring("backup=0")))
		b.Expect([]string{config["scsi3"], config["net1"]}).To(HaveExactElements(ContainSubstring("size=3G"), ContainSubstring("bridge=vmbr0")))
		b.follows(machine, func(s *v1beta1.ProxmoxMachineSpec) {
			s.Network.Devices, s.Disks.Additional[0].SizeGiB = s.Network.Devices[:1], 4
		})
		b.Expect(b.vmOf(machine).Config).NotTo(HaveKey("net1"))
		b.Expect(b.vmOf(machine).Config["scsi3"]).To(ContainSubstring("size=4G"))
		b.untold(machine, v1beta1.DriftedEvent, v1beta1.RestartRequiredEvent)
		b.restsWithoutRequests(machine)
		b.Expect(powerWrites(b, sent)).To(BeEmpty(), "nothing restarts it")
	})
}

// powerWrites are the requests that start, stop or restart VMs.
func powerWrites(b *bench, since int) []string {
	return slices.DeleteFunc(writes(b.requests()[since:]), func(request string) bool { return !strings.Contains(request, "/status/") })
}

// TestWhatNeedsARestartWaitsForIt shows which keys wait, and until when.
func TestWhatNeedsARestartWaitsForIt(t *testing.T) {
	t.Parallel()
	onBothVersions(t, asIs, func(b *bench, machine *v1beta1.ProxmoxMachine) {
		sent := len(b.requests())
		b.change(machine, func() {
			machine.Spec.CPU.Cores, machine.Spec.CPU.Units, machine.Spec.Hardware.Watchdog.Model = 4, 50, "i6300esb"
		})
		b.says(machine, v1beta1.ConfigurationUpToDateCondition, metav1.ConditionFalse, "RestartRequired",
			fmt.Sprintf("VM %d on %s has to be restarted for cores, watchdog to take effect", machine.Spec.Reservation.VMID, machine.Status.Node), "nothing restarts it by itself")
		b.tells(machine, "Normal", v1beta1.RestartRequiredEvent, "cores, watchdog")
		b.restsWithoutRequests(machine)
		b.Expect(writes(b.requests()[sent:])).To(HaveLen(1), "%v", writes(b.requests()[sent:]))
		b.Expect(b.values(machine, "cpuunits", "watchdog", "cores")).To(Equal(map[string]string{"cpuunits": "50", "watchdog": "", "cores": "2"}), "in effect")

		b.ask(http.MethodPost, b.vmPath(machine)+"/status/reboot", url.Values{})
		b.isFollowed(machine)
		b.Expect(b.values(machine, "watchdog", "cores")).To(Equal(map[string]string{"watchdog": "i6300esb", "cores": "4"}))
		b.untold(machine, v1beta1.DriftedEvent)

		b.change(machine, func() { machine.Spec.CPU.Cores = 8 })
		b.says(machine, v1beta1.ConfigurationUpToDateCondition, metav1.ConditionFalse, "RestartRequired", "for cores to")
		b.wishes(machine, v1beta1.PowerStateStopped)
		b.says(machine, v1beta1.VirtualMachineReadyCondition, metav1.ConditionFalse, "PoweredOff")
		b.wishes(machine, v1beta1.PowerStateRunning)
		b.running(machine)
		b.isFollowed(machine)
		b.Expect(b.values(machine, "cores")).To(Equal(map[string]string{"cores": "8"}))
		b.restsWithoutRequests(machine)
	})
}

// TestQueuesForMoreCPUsWait leaves the network device of a VM that runs where it is.
func TestQueuesForMoreCPUsWait(t *testing.T) {
	t.Parallel()
	queues := func(m *v1beta1.ProxmoxMachine) { m.Spec.Network.Devices[0].QueuesPerCPU = ptr.To(true) }
	onBothVersions(t, queues, func(b *bench, machine *v1beta1.ProxmoxMachine) {
		b.Expect(b.vmOf(machine).Config["net0"]).To(ContainSubstring("queues=2"))
		b.change(machine, func() { machine.Spec.CPU.Cores = 4 })
		b.says(machine, v1beta1.ConfigurationUpToDateCondition, metav1.ConditionFalse, "RestartRequired", "for cores to", "network.devices[net0].queuesPerCPU: 4 → 2")
		b.restsWithoutRequests(machine)
		b.Expect(b.vmOf(machine).Config["net0"]).To(ContainSubstring("queues=2"))
		b.wishes(machine, v1beta1.PowerStateStopped)
		b.says(machine, v1beta1.VirtualMachineReadyCondition, metav1.ConditionFalse, "PoweredOff")
		b.wishes(machine, v1beta1.PowerStateRunning)
		b.running(machine)
		b.isFollowed(machine)
		b.Expect(b.vmOf(machine).Config["net0"]).To(ContainSubstring("queues=4"))
	})
}

// TestAVMThatIsOffStartsWithWhatTheSpecSays changes its spec in the meantime.
func TestAVMThatIsOffStartsWithWhatTheSpecSays(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1")
	b.settled(machine)
	b.wishes(machine, v1beta1.PowerStateStopped)
	b.says(machine, v1beta1.VirtualMachineReadyCondition, metav1.ConditionFalse, "PoweredOff")
	b.change(machine, func() { machine.Spec.CPU.Cores, machine.Spec.PowerState = 4, v1beta1.PowerStateRunning })
	b.running(machine)
	b.isFollowed(machine)
	b.Expect(b.values(machine, "cores")).To(Equal(map[string]string{"cores": "4"}))
	b.untold(machine, v1beta1.RestartRequiredEvent)
}

// TestWhatProxmoxVERefusesIsTold has the spec ask for what no token may set, and for what no disk can do.
func TestWhatProxmoxVERefusesIsTold(t *testing.T) {
	t.Parallel()
	noSize := func(m *v1beta1.ProxmoxMachine) { m.Spec.Disks = v1beta1.Disks{} }
	onBothVersions(t, noSize, func(b *bench, machine *v1beta1.ProxmoxMachine) {
		sent := len(b.requests())
		b.change(machine, func() { machine.Spec.RawConfig = v1beta1.RawConfig{"args": "-no-reboot"} })
		b.says(machine, v1beta1.ConfigurationUpToDateCondition, metav1.ConditionFalse, "ChangeRefused",
			"only root can set 'args' config", "leave rawConfig[args] out of the ProxmoxMachineTemplate", "asked again from time to time")
		b.tells(machine, "Warning", "ChangeRefused", "args")
		b.running(machine)
		b.restsWithoutRequests(machine)
		b.Expect(writes(b.requests()[sent:])).To(HaveLen(1), "%v", writes(b.requests()[sent:]))
		b.follows(machine, func(s *v1beta1.ProxmoxMachineSpec) { s.RawConfig = nil })

		b.change(machine, func() { machine.Spec.Disks.Boot.SizeGiB = 1 })
		b.says(machine, v1beta1.ConfigurationUpToDateCondition, metav1.ConditionFalse, "ReplacementRequired", "disks.boot.sizeGiB (scsi0): 1 GiB → ", "Disks do not shrink")
		b.restsWithoutRequests(machine)
		b.follows(machine, func(s *v1beta1.ProxmoxMachineSpec) { s.Disks.Boot.SizeGiB = 30 })
		b.Expect(b.vmOf(machine).Config["scsi0"]).To(ContainSubstring("size=30G"))
	})
}

// TestRepairChangesBackWithRestraint has somebody change the VM again and again.
func TestRepairChangesBackWithRestraint(t *testing.T) {
	t.Parallel()
	repairs := func(m *v1beta1.ProxmoxMachine) { m.Spec.DriftPolicy, m.Spec.CPU.Units = v1beta1.DriftPolicyRepair, 70 }
	onBothVersions(t, repairs, func(b *bench, machine *v1beta1.ProxmoxMachine) {
		path, sent := b.vmPath(machine)+"/config", len(b.requests())
		b.ask(http.MethodPut, path, url.Values{"name": {"pet"}, "cpuunits": {"9"}, "cores": {"4"}, "onboot": {"1"}, "net5": {"virtio,bridge=vmbr0"}})
		b.tells(machine, "Warning", v1beta1.RepairedEvent, "cores, cpuunits, name is changed back")
		b.Expect(b.values(machine, "name", "cpuunits", "cores", "onboot")).To(Equal(map[string]string{"name": "m1", "cpuunits": "70", "cores": "2", "onboot": "1"}))
		b.says(machine, v1beta1.ConfigurationUpToDateCondition, metav1.ConditionFalse, "Drifted", "network.devices[net5]: none → virtio=")
		b.Expect(b.vmOf(machine).Config).To(HaveKey("net5"), "what the spec does not set stays")
		b.Expect(writes(b.requests()[sent:])).To(HaveLen(1), "%v", writes(b.requests()[sent:]))
		b.ask(http.MethodPut, path, url.Values{"delete": {"net5"}})
		b.polled(3)

		b.ask(http.MethodPut, path, url.Values{"name": {"pet"}})
		b.says(machine, v1beta1.ConfigurationUpToDateCondition, metav1.ConditionFalse, "RepairContested",
			"vmName (name): m1 → pet", "name is left alone for a while", "set spec.driftPolicy to Report")
		b.tells(machine, "Warning", v1beta1.RepairContestedEvent, "name is left alone")
		b.restsWithoutRequests(machine)
		b.Expect(b.vmOf(machine).Config["name"]).To(Equal("pet"))
		b.Expect(writes(b.requests()[sent:])).To(HaveLen(1), "%v", writes(b.requests()[sent:]))
	})
}

// TestWhatIsIgnoredIsNotTold changes a VM of a machine that does not want to know.
func TestWhatIsIgnoredIsNotTold(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1", func(m *v1beta1.ProxmoxMachine) { m.Spec.DriftPolicy = v1beta1.DriftPolicyIgnore })
	b.settled(machine)
	sent := len(own(b.requests()))
	b.ask(http.MethodPut, b.vmPath(machine)+"/config", url.Values{"name": {"pet"}, "cpuunits": {"9"}})
	b.polled(4)
	b.restsWithoutRequests(machine)
	b.Expect(own(b.requests())[sent:]).To(BeEmpty())
	b.isFollowed(machine)
	b.follows(machine, func(s *v1beta1.ProxmoxMachineSpec) { s.CPU.Limit = ptr.To(resource.MustParse("1")) })
	b.Expect(b.values(machine, "name", "cpuunits", "cpulimit")).To(Equal(map[string]string{"name": "pet", "cpuunits": "9", "cpulimit": "1"}))
	b.untold(machine, v1beta1.DriftedEvent, v1beta1.RepairedEvent)
}

// TestAManagerThatStartsAnewKnowsWhatWaits restarts the controllers while keys wait and somebody has changed the VM.
func TestAManagerThatStartsAnewKnowsWhatWaits(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1")
	b.settled(machine)
	b.change(machine, func() { machine.Spec.CPU.Cores = 4 })
	b.says(machine, v1beta1.ConfigurationUpToDateCondition, metav1.ConditionFalse, "RestartRequired", "cores")
	b.stop()
	b.wipeStatus(machine)
	b.ask(http.MethodPut, b.vmPath(machine)+"/config", url.Values{"memory": {"2048"}})
	b.change(machine, func() { machine.Spec.CPU.Units = 50 })
	b.startControllers()
	b.says(machine, v1beta1.ConfigurationUpToDateCondition, metav1.ConditionFalse, "RestartRequired", "memory.sizeMiB: 4096 → 2048", "has to be restarted for cores, memory")
	b.Expect(b.values(machine, "cpuunits", "memory")).To(Equal(map[string]string{"cpuunits": "50", "memory": "4096"}))
	b.restsWithoutRequests(machine)
}
