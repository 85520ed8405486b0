package status_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/network"
	"github.com/capve/cluster-api-provider-proxmox/pkg/status"
)

const uuid = "8d1ab5f6-59f1-4a3e-9a0b-0d6f2a5b7c11"

// told puts conditions in lines, by type: `Ready=False NotReady: why`.
func told(conditions []metav1.Condition) map[string]string {
	lines := map[string]string{}
	for _, condition := range conditions {
		line := string(condition.Status) + " " + condition.Reason
		if condition.Message != "" {
			line += ": " + condition.Message
		}
		lines[condition.Type] = line
	}
	return lines
}

func reserved(m *v1beta1.ProxmoxMachine) {
	m.Spec.Reservation = v1beta1.Reservation{UUID: uuid, Region: "home", Node: "pve1", VMID: 101}
}

func recorded(m *v1beta1.ProxmoxMachine) {
	reserved(m)
	m.Spec.ProviderID = plan.ProviderID(uuid)
}

func leaving(m *v1beta1.ProxmoxMachine) {
	m.DeletionTimestamp = &metav1.Time{Time: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)}
}

func seedRemoved(m *v1beta1.ProxmoxMachine) { m.Status.SeedRemoved = ptr.To(true) }

func proxmoxMachine(changes ...func(*v1beta1.ProxmoxMachine)) *v1beta1.ProxmoxMachine {
	machine := &v1beta1.ProxmoxMachine{ObjectMeta: metav1.ObjectMeta{Name: "worker-1", Namespace: "default", Generation: 3}}
	for _, change := range changes {
		change(machine)
	}
	return machine
}

func bound(addresses ...string) plan.Addresses {
	var result plan.Addresses
	for _, address := range addresses {
		claim, prefix := network.Claim{Device: "net0", Family: network.IPv4}, netip.MustParsePrefix(address)
		if prefix.Addr().Is6() {
			claim.Family = network.IPv6
		}
		result.Bound = append(result.Bound, network.Address{Claim: claim, Prefix: prefix})
	}
	return result
}

// dual is the network of a machine with an address of each family, or of fewer where they are missing.
func dual(families ...network.Family) v1beta1.ProxmoxMachineSpec {
	device := v1beta1.NetworkDevice{Name: "net0"}
	if slices.Contains(families, network.IPv4) {
		device.IPv4.Method = v1beta1.IPv4MethodPool
	}
	if slices.Contains(families, network.IPv6) {
		device.IPv6.Method = v1beta1.IPv6MethodPool
	}
	return v1beta1.ProxmoxMachineSpec{Network: v1beta1.Network{Devices: []v1beta1.NetworkDevice{device}}}
}

func sees(vm plan.VM) plan.Machine {
	return plan.Machine{Name: "worker-1", Spec: dual(network.IPv4), Addresses: bound("10.0.0.5/24"), VM: vm}
}

var (
	runningVM = plan.VM{Presence: plan.PresenceOurs, Node: "pve1", Power: plan.PowerRunning}
	stoppedVM = plan.VM{Presence: plan.PresenceOurs, Node: "pve1", Power: plan.PowerStopped}
	absentVM  = plan.VM{Presence: plan.PresenceAbsent}
	done      = plan.Done{Reason: plan.Reason{Code: plan.Running, Message: "VM 101 runs on pve1"}}
)

func wait(code, message string) plan.Decision {
	return plan.Wait{Reason: plan.Reason{Code: code, Message: message}}
}

const (
	seedStays     = "False WaitingForBootstrapData: the seed ISO with the bootstrap data is removed once the machine has its Node"
	notDeleting   = "False NotDeleting"
	addressesHere = "True Available"
	ready         = "True Ready: * VirtualMachineReady: VM 101 runs on pve1"
	runs          = "True Running: VM 101 runs on pve1"
)

func TestTheConditionsOfAMachine(t *testing.T) {
	cases := []struct {
		name    string
		machine *v1beta1.ProxmoxMachine
		pass    status.MachinePass
		// the conditions in the order Ready, AddressesReady, VirtualMachineReady, BootstrapSeedRemoved, Deleting
		want [5]string
	}{
		{
			"while it waits for its cluster", proxmoxMachine(),
			status.MachinePass{Observed: plan.Machine{Addresses: plan.Addresses{Absent: make([]network.Claim, 1)}}, Decision: wait(plan.WaitingForCluster, "no cluster yet")},
			[5]string{
				"False NotReady: * AddressesReady: the addresses are not claimed yet\n* VirtualMachineReady: no cluster yet",
				"False WaitingForAddresses: the addresses are not claimed yet", "False WaitingForClusterInfrastructure: no cluster yet", seedStays, notDeleting,
			},
		},
		{
			"while its pool has no address", proxmoxMachine(),
			status.MachinePass{Observed: plan.Machine{Addresses: plan.Addresses{Pending: "pool is empty"}}, Decision: wait(plan.WaitingForAddresses, "pool is empty")},
			[5]string{
				"False NotReady: * AddressesReady: pool is empty\n* VirtualMachineReady: pool is empty",
				"False WaitingForAddresses: pool is empty", "False WaitingForAddresses: pool is empty", seedStays, notDeleting,
			},
		},
		{
			"while its pool is known to be used up", proxmoxMachine(),
			status.MachinePass{
				Observed: plan.Machine{Addresses: plan.Addresses{Pending: "no free address", Exhausted: true}}, Decision: wait(plan.PoolExhausted, "no free address"),
			},
			[5]string{
				"False NotReady: * AddressesReady: no free address\n* VirtualMachineReady: no free address",
				"False PoolExhausted: no free address", "False PoolExhausted: no free address", seedStays, notDeleting,
			},
		},
		{
			"when its address is of no use", proxmoxMachine(),
			status.MachinePass{
				Observed: plan.Machine{Addresses: plan.Addresses{Invalid: "10.0.0.0 stands for the network"}},
				Decision: plan.Stalled{Reason: plan.Reason{Code: plan.InvalidAddress, Message: "10.0.0.0 stands for the network"}},
			},
			[5]string{
				"False NotReady: * AddressesReady: 10.0.0.0 stands for the network\n* VirtualMachineReady: 10.0.0.0 stands for the network",
				"False InvalidAddress: 10.0.0.0 stands for the network", "False InvalidAddress: 10.0.0.0 stands for the network", seedStays, notDeleting,
			},
		},
		{
			"while no host has room", proxmoxMachine(),
			status.MachinePass{Observed: sees(plan.VM{}), Decision: wait(plan.WaitingForCapacity, "1 host refused: pve1: offline")},
			[5]string{
				"False NotReady: * VirtualMachineReady: 1 host refused: pve1: offline",
				addressesHere, "False WaitingForCapacity: 1 host refused: pve1: offline", seedStays, notDeleting,
			},
		},
		{
			"while it is cloned", proxmoxMachine(reserved),
			status.MachinePass{Observed: sees(plan.VM{}), Decision: wait(plan.Cloning, "cloning the template")},
			[5]string{"False NotReady: * VirtualMachineReady: cloning the template", addressesHere, "False Cloning: cloning the template", seedStays, notDeleting},
		},
		{
			"when it runs", proxmoxMachine(recorded),
			status.MachinePass{Observed: sees(runningVM), Decision: done},
			[5]string{ready, addressesHere, runs, seedStays, notDeleting},
		},
		{
			"when its seed is gone", proxmoxMachine(recorded, seedRemoved),
			status.MachinePass{Observed: sees(runningVM), Decision: done},
			[5]string{ready, addressesHere, runs, "True Removed", notDeleting},
		},
		{
			"when it runs, whatever else there is to do", proxmoxMachine(recorded),
			status.MachinePass{Observed: sees(runningVM), Decision: wait(plan.RemovingSeed, "deleting the seed ISO")},
			[5]string{ready, addressesHere, runs, seedStays, notDeleting},
		},
		{
			"when it once ran and is stopped", proxmoxMachine(recorded),
			status.MachinePass{Observed: sees(stoppedVM), Decision: wait(plan.Starting, "starting VM 101 on pve1")},
			[5]string{"False NotReady: * VirtualMachineReady: starting VM 101 on pve1", addressesHere, "False Starting: starting VM 101 on pve1", seedStays, notDeleting},
		},
		{
			"when it once ran and cannot be seen now", proxmoxMachine(recorded),
			status.MachinePass{Observed: sees(plan.VM{}), Decision: wait(plan.Unobserved, "region home does not answer")},
			[5]string{"Unknown ReadyUnknown: * VirtualMachineReady: region home does not answer", addressesHere, "Unknown Unobserved: region home does not answer", seedStays, notDeleting},
		},
		{
			"when it never ran and cannot be seen now", proxmoxMachine(reserved),
			status.MachinePass{Observed: sees(plan.VM{}), Decision: wait(plan.Unobserved, "region home does not answer")},
			[5]string{"False NotReady: * VirtualMachineReady: region home does not answer", addressesHere, "False Unobserved: region home does not answer", seedStays, notDeleting},
		},
		{
			"when somebody removed its VM", proxmoxMachine(recorded),
			status.MachinePass{Observed: sees(absentVM), Decision: plan.Stalled{Reason: plan.Reason{Code: plan.VirtualMachineGone, Message: "VM 101 is gone"}}},
			[5]string{"False NotReady: * VirtualMachineReady: VM 101 is gone", addressesHere, "False VirtualMachineGone: VM 101 is gone", seedStays, notDeleting},
		},
		{
			"when an action failed", proxmoxMachine(reserved),
			status.MachinePass{Observed: sees(stoppedVM), Decision: done, Failure: plan.Reason{Code: "Forbidden", Message: "VM.Config.CPU is missing"}},
			[5]string{"False NotReady: * VirtualMachineReady: VM.Config.CPU is missing", addressesHere, "False Forbidden: VM.Config.CPU is missing", seedStays, notDeleting},
		},
		{
			"when it once ran and the pass failed before it looked", proxmoxMachine(recorded),
			status.MachinePass{Failure: plan.Reason{Code: plan.Unobserved, Message: "the API server is busy"}},
			[5]string{
				"Unknown ReadyUnknown: * AddressesReady: the API server is busy\n* VirtualMachineReady: the API server is busy",
				"Unknown Unobserved: the API server is busy", "Unknown Unobserved: the API server is busy", seedStays, notDeleting,
			},
		},
		{
			"while it is deleted", proxmoxMachine(recorded, leaving),
			status.MachinePass{Observed: sees(runningVM), Decision: wait(plan.Stopping, "stopping VM 101 on pve1")},
			[5]string{
				"False NotReady: * VirtualMachineReady: stopping VM 101 on pve1\n* Deleting: stopping VM 101 on pve1",
				addressesHere, "False Stopping: stopping VM 101 on pve1", seedStays, "True Stopping: stopping VM 101 on pve1",
			},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if err := status.Machine(c.machine, c.pass); err != nil {
				t.Fatal(err)
			}
			want := map[string]string{}
			for i, conditionType := range status.MachineConditions()[:len(c.want)] { // what is not compared has no condition
				want[conditionType] = c.want[i]
			}
			if diff := cmp.Diff(want, told(c.machine.Status.Conditions)); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheStatusOfAMachineBesideItsConditions(t *testing.T) {
	provisioned := v1beta1.ProxmoxMachineInitializationStatus{Provisioned: ptr.To(true)}
	before := func(s v1beta1.ProxmoxMachineStatus) func(*v1beta1.ProxmoxMachine) {
		return func(m *v1beta1.ProxmoxMachine) { m.Status = s }
	}
	moved := plan.VM{Presence: plan.PresenceOurs, Node: "pve2", Power: plan.PowerRunning}
	removed := plan.Machine{VM: runningVM, Bootstrapped: true, Task: plan.Task{Type: "imgdel", State: plan.TaskSucceeded}}
	name := clusterv1.MachineAddress{Type: clusterv1.MachineHostName, Address: "worker-1"}
	four := clusterv1.MachineAddress{Type: clusterv1.MachineInternalIP, Address: "10.0.0.5"}
	six := clusterv1.MachineAddress{Type: clusterv1.MachineInternalIP, Address: "fd00::5"}
	half := bound("10.0.0.5/24")
	half.Pending = "the pool for fd00::5 is slow"
	cases := []struct {
		name    string
		machine *v1beta1.ProxmoxMachine
		pass    status.MachinePass
		want    v1beta1.ProxmoxMachineStatus
	}{
		{"nothing is known without a place", proxmoxMachine(), status.MachinePass{}, v1beta1.ProxmoxMachineStatus{}},
		{"the place is the reserved one at first", proxmoxMachine(reserved), status.MachinePass{}, v1beta1.ProxmoxMachineStatus{VMID: 101, Node: "pve1"}},
		{
			"the place is where the VM is seen", proxmoxMachine(recorded),
			status.MachinePass{Observed: plan.Machine{VM: moved}, ProxmoxCluster: racks()},
			v1beta1.ProxmoxMachineStatus{VMID: 101, Node: "pve2", FailureDomain: "rack2", Initialization: provisioned},
		},
		{
			"a VM that is in no zone is in no failure domain", proxmoxMachine(recorded, before(v1beta1.ProxmoxMachineStatus{Node: "pve2", FailureDomain: "rack2"})),
			status.MachinePass{Observed: plan.Machine{VM: plan.VM{Presence: plan.PresenceOurs, Node: "pve3", Power: plan.PowerRunning}}, ProxmoxCluster: racks()},
			v1beta1.ProxmoxMachineStatus{VMID: 101, Node: "pve3", Initialization: provisioned},
		},
		{
			"a VM that is not made yet is where it is to be made", proxmoxMachine(reserved, before(v1beta1.ProxmoxMachineStatus{Node: "pve2", FailureDomain: "rack2"})),
			status.MachinePass{Observed: plan.Machine{VM: absentVM}, ProxmoxCluster: racks()},
			v1beta1.ProxmoxMachineStatus{VMID: 101, Node: "pve1", FailureDomain: "rack1"},
		},
		{
			"the zone is not told of a region that the cluster does not have any more", proxmoxMachine(recorded, before(v1beta1.ProxmoxMachineStatus{Node: "pve2", FailureDomain: "rack2"})),
			status.MachinePass{Observed: plan.Machine{VM: moved}, ProxmoxCluster: &v1beta1.ProxmoxCluster{}},
			v1beta1.ProxmoxMachineStatus{VMID: 101, Node: "pve2", FailureDomain: "rack2", Initialization: provisioned},
		},
		{
			"the place is the last one while the VM is not seen", proxmoxMachine(recorded, before(v1beta1.ProxmoxMachineStatus{Node: "pve2", FailureDomain: "rack2"})),
			status.MachinePass{},
			v1beta1.ProxmoxMachineStatus{VMID: 101, Node: "pve2", FailureDomain: "rack2", Initialization: provisioned},
		},
		{
			"the node of a foreign VM is not the machine's", proxmoxMachine(reserved),
			status.MachinePass{Observed: plan.Machine{VM: plan.VM{Presence: plan.PresenceForeign, Node: "pve3"}}},
			v1beta1.ProxmoxMachineStatus{VMID: 101, Node: "pve1"},
		},
		{
			"it stays provisioned once it was, whatever becomes of the VM", proxmoxMachine(recorded, before(v1beta1.ProxmoxMachineStatus{Node: "pve1", Initialization: provisioned})),
			status.MachinePass{Observed: plan.Machine{VM: absentVM}},
			v1beta1.ProxmoxMachineStatus{VMID: 101, Node: "pve1", Initialization: provisioned},
		},
		{
			"a VM that runs is not provisioned before its providerID is written", proxmoxMachine(reserved),
			status.MachinePass{Observed: plan.Machine{VM: runningVM}},
			v1beta1.ProxmoxMachineStatus{VMID: 101, Node: "pve1"},
		},
		{
			"the name and all addresses are told", proxmoxMachine(),
			status.MachinePass{Observed: plan.Machine{Spec: dual(network.IPv4, network.IPv6), Addresses: bound("10.0.0.5/24", "fd00::5/64")}},
			v1beta1.ProxmoxMachineStatus{Addresses: []clusterv1.MachineAddress{name, four, six}},
		},
		{"no address is told while one is missing", proxmoxMachine(), status.MachinePass{Observed: plan.Machine{Addresses: half}}, v1beta1.ProxmoxMachineStatus{}},
		{
			"addresses stay told while they cannot be seen", proxmoxMachine(before(v1beta1.ProxmoxMachineStatus{Addresses: []clusterv1.MachineAddress{name, four}})),
			status.MachinePass{},
			v1beta1.ProxmoxMachineStatus{Addresses: []clusterv1.MachineAddress{name, four}},
		},
		{
			"the seed is gone when the task that deletes it succeeded", proxmoxMachine(recorded),
			status.MachinePass{Observed: removed},
			v1beta1.ProxmoxMachineStatus{VMID: 101, Node: "pve1", SeedRemoved: ptr.To(true), Initialization: provisioned},
		},
		{
			"a machine that is not made yet gets another", proxmoxMachine(reserved),
			status.MachinePass{Observed: removed},
			v1beta1.ProxmoxMachineStatus{VMID: 101, Node: "pve1"},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if err := status.Machine(c.machine, c.pass); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, c.machine.Status, cmpopts.IgnoreFields(v1beta1.ProxmoxMachineStatus{}, "Conditions")); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheSamePassGivesTheSameStatus(t *testing.T) {
	machine, pass := proxmoxMachine(recorded), status.MachinePass{Observed: sees(runningVM), Decision: done}
	if err := status.Machine(machine, pass); err != nil {
		t.Fatal(err)
	}
	first := machine.DeepCopy()
	if err := status.Machine(machine, pass); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, machine); diff != "" {
		t.Errorf("machine (-first +second):\n%s", diff)
	}
}

// TestAMessageIsNoLongerThanKubernetesTakes has a machine whose hosts have more to say than a condition can hold.
func TestAMessageIsNoLongerThanKubernetesTakes(t *testing.T) {
	for _, long := range []string{strings.Repeat("x", 40_000), "x" + strings.Repeat("é", 20_000)} {
		machine := proxmoxMachine()
		if err := status.Machine(machine, status.MachinePass{Observed: sees(plan.VM{}), Decision: wait(plan.WaitingForCapacity, long)}); err != nil {
			t.Fatal(err)
		}
		for _, condition := range machine.Status.Conditions {
			if len(condition.Message) > 16<<10 || !utf8.ValidString(condition.Message) {
				t.Errorf("%s has a message of %d bytes", condition.Type, len(condition.Message))
			}
		}
		if message := conditions.GetMessage(machine, v1beta1.VirtualMachineReadyCondition); !strings.HasSuffix(message, "…") || len(message) < 4000 {
			t.Errorf("what is left of the message does not show that it is cut: %d bytes", len(message))
		}
	}
}
