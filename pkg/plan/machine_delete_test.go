package plan_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/ha"
)

func deleting(m *plan.Machine) { m.Deleting = true }

func TestAMachineEndsInThisOrder(t *testing.T) {
	unclaimed := func(m *plan.Machine) { m.Addresses.Remain = false }
	swept := task("imgdel", plan.TaskSucceeded)
	runSteps(t, []step{
		{"a clone in flight is waited for", machine(reserved, unbound, task("qmclone", plan.TaskRunning), deleting), "wait | Cloning: cloning the template"},
		{"a running VM is stopped", machine(recorded, deleting), "do Stop | Stopping: stopping VM 101 on pve1"},
		{"it is stopped where it is now", machine(recorded, node("pve2"), deleting), "do Stop | Stopping: stopping VM 101 on pve2"},
		{"the stop is waited for", machine(recorded, task("qmstop", plan.TaskRunning), deleting), "wait | Stopping: stopping the VM"},
		{
			"a failed stop is waited out", machine(recorded, failed("qmstop", "got timeout", time.Minute), deleting),
			"wait 1m0s | TaskFailed: stopping the VM failed: got timeout; it is tried again",
		},
		{"a stop that had no effect is tried again", machine(recorded, task("qmstop", plan.TaskSucceeded), deleting), "do Stop | Stopping: stopping VM 101 on pve1"},
		{"a VM that is seen stopped is destroyed", machine(resized, deleting), "do Destroy | Destroying: destroying VM 101 on pve1"},
		{"a VM that was just cloned is destroyed", machine(cloned, deleting), "do Destroy | Destroying: destroying VM 101 on pve1"},
		{"the destruction is waited for", machine(resized, task("qmdestroy", plan.TaskRunning), deleting), "wait | Destroying: destroying the VM"},
		{"a destruction that had no effect is tried again", machine(resized, task("qmdestroy", plan.TaskSucceeded), deleting), "do Destroy | Destroying: destroying VM 101 on pve1"},
		{"the seed goes once the VM is seen gone", machine(recorded, absent, task("qmdestroy", plan.TaskSucceeded), deleting), "do DeleteSeed | RemovingSeed: deleting the seed ISO from local of pve1"},
		{"the deletion of the seed is waited for", machine(recorded, absent, task("imgdel", plan.TaskRunning), deleting), "wait | RemovingSeed: deleting the seed ISO"},
		{"the addresses are released once the seed is gone", machine(recorded, absent, swept, deleting), "do ReleaseAddresses | ReleasingAddresses: releasing the addresses"},
		{"the finalizer goes last", machine(recorded, absent, swept, unclaimed, deleting), "do RemoveFinalizer | Deleted: the VM and all that belonged to it are gone"},
	})
}

func TestDeletionDoesNotWaitForAnotherTryOfTheMaking(t *testing.T) {
	again := func(kind string) change { return failed(kind, "got timeout", time.Minute) }
	waits := func(message string) string {
		return "wait 1m0s | TaskFailed: " + message + " failed: got timeout; it is tried again"
	}
	swept := "do DeleteSeed | RemovingSeed: deleting the seed ISO from local of pve1"
	destroyed := "do Destroy | Destroying: destroying VM 101 on pve1"
	stopped := "do Stop | Stopping: stopping VM 101 on pve1"
	runSteps(t, []step{
		{"the upload", machine(reserved, again("imgcopy"), deleting), swept},
		{"the clone", machine(reserved, again("qmclone"), deleting), swept},
		{"the configuration", machine(cloned, again("qmconfig"), deleting), destroyed},
		{"the growing of the disk", machine(configured, again("resize"), deleting), destroyed},
		{"the start", machine(resized, again("qmstart"), deleting), destroyed},
		{"the start by the HA manager", machine(resized, again("hastart"), deleting), destroyed},
		{"the shutdown", machine(recorded, again("qmshutdown"), deleting), stopped},
		{"but for the stop", machine(recorded, again("qmstop"), deleting), waits("stopping the VM")},
		{"but for the stop by the HA manager", machine(recorded, again("hastop"), deleting), waits("asking the HA manager to stop the VM")},
		{"but for the destruction", machine(resized, again("qmdestroy"), deleting), waits("destroying the VM")},
		{"but for the deletion of the seed", machine(recorded, absent, again("imgdel"), deleting), waits("deleting the seed ISO")},
	})
}

func TestAMachineThatHasNoPlaceLeavesNothingInProxmox(t *testing.T) {
	runSteps(t, []step{
		{"its addresses are released", machine(deleting), "do ReleaseAddresses | ReleasingAddresses: releasing the addresses"},
		{"its finalizer goes", machine(deleting, func(m *plan.Machine) { m.Addresses.Remain = false }), "do RemoveFinalizer | Deleted: the VM and all that belonged to it are gone"},
	})
}

func TestDeletionWaits(t *testing.T) {
	runSteps(t, []step{
		{"while it is not known what is at the VMID", machine(recorded, unbound, deleting), "wait 15s | Unobserved: region home does not answer"},
		{"while it is not known whether the VM runs", machine(recorded, power(plan.PowerUnknown), deleting), "wait 15s | Unobserved: the state of VM 101 on pve1 is not known: is the node up?"},
	})
}

// TestDeletionDoesNotWaitForAnHAManagerThatGaveUp: what we had it look after is ours to take back.
func TestDeletionDoesNotWaitForAnHAManagerThatGaveUp(t *testing.T) {
	told := func(record *ha.Record, present *ha.State) change {
		return func(m *plan.Machine) {
			m.VM.HAState = "error"
			m.HighAvailability.Record, m.HighAvailability.Present = record, present
		}
	}
	ours, theirs, resource := &ha.Record{}, &ha.Record{Adopted: true}, &ha.State{Resource: map[string]string{"state": "started"}}
	const (
		removed = "do EditHA | ConfiguringHighAvailability: removing the HA resource of VM 101 on pve1, which the HA manager gave up on (state error), so that it can be stopped"
		waits   = "wait 15s | HighAvailabilityFailed: the HA manager gave up on VM 101 on pve1 (state error) and neither starts nor stops it: look into its log there, then run `ha-manager set vm:101 --state disabled`"
	)
	runSteps(t, []step{
		{"a resource that we made is removed", machine(recorded, told(ours, resource), deleting), removed},
		{"before the VM is destroyed", machine(resized, told(ours, resource), deleting), removed},
		{"the VM is then stopped, while the inventory lags", machine(recorded, told(ours, &ha.State{}), deleting), "do Stop | Stopping: stopping VM 101 on pve1"},
		{"a resource of others is theirs to mend", machine(recorded, told(theirs, resource), deleting), waits},
		{"as is one that nothing is known of", machine(recorded, told(ours, nil), deleting), waits},
		{"a lock is waited for first", machine(recorded, told(ours, resource), locked("migrate"), deleting), "wait 15s | Locked: VM 101 on pve1 is locked (migrate): it is moving to another node, and is deleted there; if no task there works on it any more, run `qm unlock 101` there as root"},
		{"a VM that is not ours is left alone", machine(recorded, told(ours, resource), foreign, deleting), "do DeleteSeed | RemovingSeed: deleting the seed ISO from local of pve1"},
	})
}

func TestDeletionLeavesAForeignVMAlone(t *testing.T) {
	runSteps(t, []step{
		{"and deletes the seed", machine(recorded, foreign, deleting), "do DeleteSeed | RemovingSeed: deleting the seed ISO from local of pve1"},
		{"and ends", machine(recorded, foreign, task("imgdel", plan.TaskSucceeded), deleting), "do ReleaseAddresses | ReleasingAddresses: releasing the addresses"},
	})
}

// TestNoVMIsTouchedThatIsNotKnownToBeOurs puts machines of every stage before a VM that is foreign, absent or not known.
func TestNoVMIsTouchedThatIsNotKnownToBeOurs(t *testing.T) {
	stages := []change{reserved, cloned, configured, resized, running, recorded, bootstrapped, ejected}
	kinds := []string{"", "imgcopy", "qmclone", "resize", "qmstart", "qmstop", "qmdestroy", "imgdel"}
	rapid.Check(t, func(t *rapid.T) {
		m := machine(rapid.SampledFrom(stages).Draw(t, "stage"))
		m.Task.Type = rapid.SampledFrom(kinds).Draw(t, "task")
		m.Task.State = rapid.SampledFrom([]plan.TaskState{plan.TaskNone, plan.TaskRunning, plan.TaskSucceeded, plan.TaskFailed}).Draw(t, "state")
		m.Deleting, m.SeedRemoved = rapid.Bool().Draw(t, "deleting"), rapid.Bool().Draw(t, "seed removed")
		m.VM.Presence = rapid.SampledFrom([]plan.Presence{plan.PresenceUnknown, plan.PresenceForeign, plan.PresenceAbsent}).Draw(t, "presence")
		do, acts := plan.MachineStep(m).(plan.Do)
		if !acts {
			return
		}
		switch action := do.Action.(type) {
		case plan.Configure, plan.Resize, plan.Start, plan.EjectSeed, plan.Stop, plan.Destroy:
			t.Fatalf("%T while the presence is %d", action, m.VM.Presence)
		case plan.Clone, plan.UploadSeed:
			if m.VM.Presence != plan.PresenceAbsent || m.Deleting || m.Spec.ProviderID != "" {
				t.Fatalf("%T for %+v", action, m)
			}
		case plan.DeleteSeed:
			if m.VM.Presence == plan.PresenceUnknown || !m.Deleting && m.Spec.ProviderID == "" {
				t.Fatalf("%T for %+v", action, m)
			}
		}
	})
}
