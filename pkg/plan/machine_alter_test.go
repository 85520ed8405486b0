package plan_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
)

func nothing(*v1beta1.ProxmoxMachineSpec)     {}
func fewer(s *v1beta1.ProxmoxMachineSpec)     { s.CPU.Units = 50 }
func larger(s *v1beta1.ProxmoxMachineSpec)    { s.Disks.Boot.SizeGiB = 30 }
func smaller(s *v1beta1.ProxmoxMachineSpec)   { s.Disks.Boot.SizeGiB = 10 }
func repairing(s *v1beta1.ProxmoxMachineSpec) { s.DriftPolicy = v1beta1.DriftPolicyRepair }
func ignoring(s *v1beta1.ProxmoxMachineSpec)  { s.DriftPolicy = v1beta1.DriftPolicyIgnore }
func both(s *v1beta1.ProxmoxMachineSpec)      { fewer(s); larger(s) }
func withDisk(s *v1beta1.ProxmoxMachineSpec) {
	s.Disks.Additional = []v1beta1.AdditionalDisk{{Name: "scsi5", Storage: "local-lvm", SizeGiB: 5}}
}
func meddled(m *plan.Machine)   { m.Upkeep.Live.Config["cores"] = "7" }
func contested(m *plan.Machine) { m.Upkeep.Contested = []string{"cores"} }
func waits(m *plan.Machine)     { m.Upkeep.Live.Waiting = []string{"agent", "cores", "ciuser"} }
func off(m *plan.Machine)       { m.VM.Power = plan.PowerStopped }
func backedUp(m *plan.Machine)  { m.Upkeep.Live.Config["lock"] = "backup" }
func unwritten(m *plan.Machine) { m.Upkeep.Applied = "" }
func unread(m *plan.Machine)    { m.Upkeep.Live = nil }

// perCPU is a device that was made with a queue for each CPU.
func perCPU(m *plan.Machine) {
	m.Spec.Network.Devices[0].QueuesPerCPU = ptr.To(true)
}

// oneQueue is what somebody gave it instead.
func oneQueue(m *plan.Machine) {
	m.Upkeep.Live.Config["net0"] = vmconfig.ParseProperties(m.Upkeep.Live.Config["net0"]).With("queues", "1").String()
}

func refusingAll(m *plan.Machine) {
	if do, is := plan.MachineStep(*m).(plan.Do); is {
		if action, is := do.Action.(plan.Reconfigure); is {
			refusing(action.Text())(m)
		}
	}
}

func refusing(change string) change {
	return func(m *plan.Machine) {
		m.Upkeep.Refusals = append(m.Upkeep.Refusals, plan.Refusal{Change: change, Message: "only root may"})
	}
}

func TestAVMFollowsItsSpec(t *testing.T) {
	const runs = "done | Running: VM 101 runs on pve1"
	writes := "do RecordApplied | Configuring: writing down the spec that the VM's config is brought to"
	runSteps(t, []step{
		{"at rest", machine(afterwards(nothing)), runs},
		{"one whose spec was not written down is as it was made", machine(afterwards(fewer, unwritten)), writes},
		{"what the spec says anew", machine(afterwards(fewer)), "do Reconfigure | Configuring: changing cpuunits of VM 101 as the spec says"},
		{"not before the config is known", machine(afterwards(fewer, unread)), runs},
		{"and then it is written down", machine(afterwards(fewer, func(m *plan.Machine) { m.Upkeep.Live.Config["cpuunits"] = "50" })), writes},
		{"not while it is backed up", machine(afterwards(fewer, backedUp)), "wait 15s | Locked: VM 101 on pve1 is locked (backup); " + plan.LockRemedy("backup", 101)},
		{"a larger disk", machine(afterwards(larger)), "do Resize | Resizing: growing disk scsi0 of VM 101 to 30 GiB"},
		{"but not a smaller one", machine(afterwards(smaller)), runs},
		{"a new disk, in a task", machine(afterwards(withDisk)), "do Reconfigure | Configuring: changing scsi5 of VM 101 as the spec says"},
		{"not what was refused", machine(afterwards(fewer, refusing("cpuunits=50"))), runs},
		{"but another change", machine(afterwards(fewer, refusing("cpuunits=40"))), "do Reconfigure | Configuring: changing cpuunits of VM 101 as the spec says"},
		{"nor what was refused before something else was", machine(afterwards(both, refusing("cpuunits=50"), refusing("scsi0=32212254720"))), runs},
		{"but what was not refused beside it", machine(afterwards(both, refusing("cpuunits=50"))), "do Resize | Resizing: growing disk scsi0 of VM 101 to 30 GiB"},
		{"before it is started again", machine(afterwards(fewer, off)), "do Reconfigure | Configuring: changing cpuunits of VM 101 as the spec says"},
		{"but it starts if that is refused", machine(afterwards(fewer, off, refusing("cpuunits=50"))), "do Start | Starting: starting VM 101 on pve1"},
		{"and before a disk is made, which may fail", machine(afterwards(withDisk, off)), "do Start | Starting: starting VM 101 on pve1"},
		{"what somebody changed stays", machine(afterwards(nothing, meddled)), runs},
		{"and while the spec says something else", machine(afterwards(fewer, meddled)), "do Reconfigure | Configuring: changing cpuunits of VM 101 as the spec says"},
		{"unless that is to be repaired", machine(afterwards(repairing, meddled)), "do Reconfigure | Configuring: changing cores of VM 101 back to what the spec says"},
		{"and not again and again", machine(afterwards(repairing, meddled, contested)), runs},
		{"what a VM that runs cannot take is repaired before it starts", machine(perCPU, afterwards(repairing, oneQueue, off)), "do Reconfigure | Configuring: changing net0 of VM 101 back to what the spec says"},
		{"and not while it runs", machine(perCPU, afterwards(repairing, oneQueue)), runs},
		{"and it starts if that is refused", machine(perCPU, afterwards(repairing, oneQueue, off, refusingAll)), "do Start | Starting: starting VM 101 on pve1"},
	})
	do, _ := plan.MachineStep(machine(afterwards(repairing, meddled))).(plan.Do)
	action, _ := do.Action.(plan.Reconfigure)
	if diff := cmp.Diff([]any{true, "live", "cores=2"}, []any{action.Repairs, string(action.Digest), action.Text()}); diff != "" {
		t.Errorf("repair (-want +got):\n%s", diff)
	}
}

func TestASpecThatChangedWhileTheVMStartedIsCarriedOut(t *testing.T) {
	for name, c := range map[string]struct {
		say  func(*v1beta1.ProxmoxMachineSpec)
		want string
	}{
		"it did not":    {nothing, "done | Running: VM 101 runs on pve1"},
		"a value":       {fewer, "do Reconfigure | Configuring: changing cpuunits of VM 101 as the spec says"},
		"a larger disk": {larger, "do Resize | Resizing: growing disk scsi0 of VM 101 to 30 GiB"},
		"a new disk":    {withDisk, "do Reconfigure | Configuring: changing scsi5 of VM 101 as the spec says"},
	} {
		t.Run(name, func(t *testing.T) {
			m := machine(running)
			c.say(&m.Spec)
			do, _ := plan.MachineStep(m).(plan.Do)
			action, _ := do.Action.(plan.RecordProviderID)
			m = machine(afterwards(c.say, func(m *plan.Machine) { m.Upkeep.Applied = action.Applied }))
			if diff := cmp.Diff(c.want, told(plan.MachineStep(m))); diff != "" {
				t.Errorf("after %+v (-want +got):\n%s", action, diff)
			}
		})
	}
}

// TestWhatASpecListsNoMoreGoes also where it was taken out before the VM ran, or before that was known.
func TestWhatASpecListsNoMoreGoes(t *testing.T) {
	listing := func(m *plan.Machine) {
		m.Spec.Tags, m.Spec.Description = []string{"old"}, "old"
		m.Spec.Hardware.SerialPorts = []string{"serial0"}
	}
	listsNoMore := func(m *plan.Machine) {
		m.Spec.Tags, m.Spec.Description, m.Spec.Hardware.SerialPorts = nil, "", nil
	}
	made := func(state change, changes ...change) plan.Machine {
		m := machine(listing, state)
		m.Upkeep.Applied = vmconfig.WriteApplied(m.Spec)
		for _, change := range append(changes, listsNoMore) {
			change(&m)
		}
		return m
	}
	gone := func(t *testing.T, vm, change any) {
		t.Helper()
		config, _ := vm.(vmconfig.Config)
		after, _ := change.(vmconfig.Change)
		got := after.Apply(config)
		if strings.Contains(got["tags"], "old") || strings.Contains(got["description"], "old") || got["serial0"] != "" {
			t.Errorf("it is left in %v", got)
		}
	}
	t.Run("before it starts", func(t *testing.T) {
		m := made(resized)
		do, _ := plan.MachineStep(m).(plan.Do)
		action, is := do.Action.(plan.Configure)
		if !is {
			t.Fatalf("the step is %s", told(do))
		}
		gone(t, m.VM.Config, action.Change)
		m.VM.Config = action.Change.Apply(m.VM.Config)
		if diff := cmp.Diff("do RecordApplied | Configuring: writing down the spec that the VM's config is brought to", told(plan.MachineStep(m))); diff != "" {
			t.Errorf("and then (-want +got):\n%s", diff)
		}
		m.Upkeep.Applied = vmconfig.WriteApplied(m.Spec)
		if do, _ := plan.MachineStep(m).(plan.Do); do.Reason.Code != plan.Starting {
			t.Errorf("and then %s", told(do))
		}
	})
	t.Run("while it starts", func(t *testing.T) {
		m := made(running)
		do, _ := plan.MachineStep(m).(plan.Do)
		action, is := do.Action.(plan.RecordProviderID)
		if !is || action.Applied != m.Upkeep.Applied {
			t.Fatalf("the step is %s, and writes %+v", told(do), action)
		}
		m.Spec.ProviderID, m.SeedRemoved = action.ProviderID, true
		m.Upkeep.Live = &plan.Live{Config: m.VM.Config}
		next, _ := plan.MachineStep(m).(plan.Do)
		change, is := next.Action.(plan.Reconfigure)
		if !is {
			t.Fatalf("the next step is %s", told(next))
		}
		gone(t, m.VM.Config, change.Change)
	})
}

func TestTheStateOfTheConfigurationIsTold(t *testing.T) {
	const (
		changed = "VM 101 on pve1 was changed outside of Cluster API (wanted → is): cpu.cores: 2 → 7. Change it back in Proxmox VE or have that done by spec.driftPolicy Repair, have the spec say what it is, or roll the machine"
		another = "VM 101 on pve1 cannot be changed to what the spec says (wanted → is): disks.boot.sizeGiB (scsi0): 10 GiB → 20G. Disks do not shrink, and what was made once stays: have the spec say what it is, or change the ProxmoxMachineTemplate and roll the machine"
		restart = "VM 101 on pve1 has to be restarted for cores to take effect: shut it down and start it, by spec.powerState or in Proxmox VE, or reboot it there, when it suits. A reboot from inside the guest does not do, and nothing restarts it by itself"
	)
	cases := []struct {
		name    string
		machine plan.Machine
		want    string
	}{
		{"it is as asked", machine(afterwards(nothing)), "true"},
		{"it is not changed yet", machine(afterwards(fewer)), "Configuring: changing cpuunits of VM 101 as the spec says"},
		{"nor looked at", machine(afterwards(fewer, unread)), "Configuring: VM 101 is to be changed as the spec says"},
		{"it cannot be", machine(afterwards(fewer, refusing("cpuunits=50"))), "ChangeRefused: Proxmox VE refuses to change VM 101 on pve1: only root may. It is asked again from time to time"},
		{"all of it", machine(afterwards(both, refusing("cpuunits=50"), refusing("scsi0=32212254720"), func(m *plan.Machine) { m.Upkeep.Refusals[1].Message = "no space" })), "ChangeRefused: Proxmox VE refuses to change VM 101 on pve1: only root may; no space. It is asked again from time to time"},
		{"disks do not shrink", machine(afterwards(smaller)), "ReplacementRequired: " + another},
		{"somebody changed it", machine(afterwards(nothing, meddled)), "Drifted: " + changed},
		{"which does not matter", machine(afterwards(ignoring, meddled)), "true"},
		{"and changes it again and again", machine(afterwards(repairing, meddled, contested)), "RepairContested: VM 101 on pve1 was changed back to the spec, and somebody changed it again (wanted → is): cpu.cores: 2 → 7. cores is left alone for a while, each time for longer: agree on it with who changes it, have the spec say what it is, or set spec.driftPolicy to Report"},
		{"keys wait", machine(afterwards(nothing, waits)), "RestartRequired: " + restart},
		{"queues for more CPUs wait", machine(perCPU, afterwards(func(s *v1beta1.ProxmoxMachineSpec) { s.CPU.Cores = 4 }, func(m *plan.Machine) { m.Upkeep.Live.Config["cores"] = "4" })), "RestartRequired: VM 101 on pve1 has to be shut down and started for this to be changed (wanted → is): network.devices[net0].queuesPerCPU: 4 → 2. While it runs it would lose the device. Set spec.powerState to Stopped and back, or shut it down in Proxmox VE, when it suits; a reboot does not do"},
		{"both", machine(afterwards(nothing, waits, meddled)), "RestartRequired: " + restart + ". " + changed},
		{"and what needs another VM", machine(afterwards(smaller, meddled)), "ReplacementRequired: " + another + ". " + changed},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			why, upToDate, known := c.machine.ConfigurationState()
			got := why.Code + ": " + why.Message
			if upToDate {
				got = "true"
			}
			if diff := cmp.Diff(c.want, got); diff != "" || !known {
				t.Errorf("known %t, state (-want +got):\n%s", known, diff)
			}
		})
	}
	if applied, known := vmconfig.ReadApplied("{"); known {
		t.Errorf("%v was read from nonsense", applied)
	}
}
