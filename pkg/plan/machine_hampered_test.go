package plan_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

func haState(state string) change { return func(m *plan.Machine) { m.VM.HAState = state } }

func age(age time.Duration) change { return func(m *plan.Machine) { m.Task.Age = age } }

func protectedVM(m *plan.Machine) { m.VM.Config["protection"] = "1" }

// lost is a machine whose VM is on a host that is down.
func lost(state plan.HostState) change {
	return func(m *plan.Machine) {
		m.VM = plan.VM{Presence: plan.PresenceUnknown, Why: whyUnknown, Node: "pve1", Host: state}
		m.SeedNode, m.SeedHost = "pve1", state
	}
}

func declaredGone(node proxmox.NodeName) change {
	return func(m *plan.Machine) { m.HostGone = node }
}

func released(m *plan.Machine) { m.Addresses.Remain = false }

func TestAProtectedVMIsLeftAlone(t *testing.T) {
	want := "wait 15s | Protected: VM 101 on pve1 is protected (protection: 1) and is neither stopped nor destroyed: " +
		"when it may go, run `qm set 101 --protection 0` there, or switch off Options, Protection"
	asked := func(m *plan.Machine) { m.Spec.Options.Protection = ptr.To(true) }
	runSteps(t, []step{
		{"unless the machine asked for it", machine(recorded, protectedVM, asked, deleting), "do Configure | Protected: ending the protection of VM 101 on pve1, which options.protection asked for"},
		{"until it is no longer locked", machine(resized, protectedVM, asked, locked("backup"), deleting), "wait 15s | Locked: VM 101 on pve1 is locked (backup): a backup runs, and the deletion goes on when it has ended; never unlock it while the task vzdump runs; if that was broken off, run `qm unlock 101` there as root"},
		{"while it runs", machine(recorded, protectedVM, deleting), want},
		{"when it is stopped", machine(resized, protectedVM, deleting), want},
		{"while it is backed up", machine(resized, protectedVM, locked("backup"), deleting), want},
	})
}

func TestALockedVMIsWaitedFor(t *testing.T) {
	half := "if no task there makes it any more, run `qm unlock 101 && qm destroy 101 --destroy-unreferenced-disks 1` there as root: " +
		"it takes all disks that are named after VM 101, on all storages, also the half-made one, which is in no config"
	works := map[string]string{
		"backup":          "a backup runs, and the deletion goes on when it has ended; never unlock it while the task vzdump runs; if that was broken off, run `qm unlock 101` there as root",
		"clone":           "it is being made, and is deleted after that; " + half,
		"create":          "it is being made or restored, and is deleted after that; " + half,
		"migrate":         "it is moving to another node, and is deleted there; if no task there works on it any more, run `qm unlock 101` there as root",
		"rollback":        "it is being rolled back to a snapshot, and is deleted after that; if no task there works on it any more, run `qm unlock 101` there as root",
		"snapshot":        "a snapshot is being taken, and it is deleted after that, with its snapshots; if no task there works on it any more, run `qm unlock 101` there as root",
		"snapshot-delete": "a snapshot is being deleted, and it is deleted after that, with its snapshots; if no task there works on it any more, run `qm unlock 101` there as root",
		"suspending":      "it is being suspended to disk, and is deleted after that; if no task there works on it any more, run `qm unlock 101` there as root",
		"new":             "the deletion goes on when the lock is gone; if no task there works on it any more, run `qm unlock 101` there as root",
	}
	for lock, work := range works {
		runSteps(t, []step{{lock, machine(recorded, locked(lock), deleting), fmt.Sprintf("wait 15s | Locked: VM 101 on pve1 is locked (%s): %s", lock, work)}})
	}
	runSteps(t, []step{{"a VM that was suspended to disk is destroyed", machine(resized, locked("suspended"), deleting), "do Destroy | Destroying: destroying VM 101 on pve1"}})
}

func TestDeletionAsksTheHAManagerOnce(t *testing.T) {
	stops := "wait 15s | Stopping: VM 101 on pve1 is managed by HA: waiting for the HA manager"
	gaveUp := "wait 15s | HighAvailabilityFailed: the HA manager gave up on VM 101 on pve1 (state error) and neither starts nor stops it: " +
		"look into its log there, then run `ha-manager set vm:101 --state disabled`"
	asked := task("hastop", plan.TaskSucceeded)
	runSteps(t, []step{
		{"to stop the VM", machine(recorded, haState("started"), deleting), "do Stop | Stopping: stopping VM 101 on pve1"},
		{"and is waited for", machine(recorded, haState("started"), asked, deleting), stops},
		{"also when nobody knows who asked", machine(recorded, haState("request_stop"), deleting), stops},
		{"and again when nothing came of it", machine(recorded, haState("started"), asked, age(2*time.Minute), deleting), "do Stop | Stopping: stopping VM 101 on pve1"},
		{"the VM is destroyed when it is seen stopped", machine(resized, haState("started"), asked, deleting), "do Destroy | Destroying: destroying VM 101 on pve1"},
		{"but not when it gave up on the VM", machine(recorded, haState("error"), deleting), gaveUp},
		{"a stopped VM that it gave up on is destroyed", machine(resized, haState("error"), deleting), "do Destroy | Destroying: destroying VM 101 on pve1"},
		{"to start the VM", machine(resized, haState("stopped")), "do Start | Starting: starting VM 101 on pve1"},
		{
			"and is waited for with that too", machine(resized, haState("stopped"), task("hastart", plan.TaskSucceeded)),
			"wait 15s | Starting: VM 101 on pve1 is managed by HA: waiting for the HA manager",
		},
		{"but starts nothing that it gave up on", machine(resized, haState("error")), gaveUp},
		{
			"a VM that runs and that it gave up on is told of", machine(ejected, haState("error"), func(m *plan.Machine) { m.SeedRemoved = true }),
			"done | HighAvailabilityFailed: VM 101 runs on pve1, but the HA manager gave up on it (state error) and does not recover it should the node fail: " +
				"look into its log there, then run `ha-manager remove vm:101` and add it again, which does not stop it",
		},
	})
}

func TestATemplateWithLinkedClonesIsExplained(t *testing.T) {
	text := "base volume 'local-lvm:base-101-disk-0' is still in use by linked cloned"
	runSteps(t, []step{
		{
			"while the failure is fresh", machine(resized, failed("qmdestroy", text, time.Minute), deleting),
			"wait 1m0s | TemplateInUse: VM 101 on pve1 was made a template, and VMs are linked clones of it: " + text +
				"; destroy those VMs, or move their disks to another storage; it is tried again",
		},
		{"and tried again", machine(resized, failed("qmdestroy", text, 0), deleting), "do Destroy | Destroying: destroying VM 101 on pve1"},
	})
}

func TestAHostThatIsDownIsWaitedFor(t *testing.T) {
	annotate := "bring it back or, once it is gone for good, run `kubectl annotate proxmoxmachine worker-1 infrastructure.cluster.x-k8s.io/host-gone=pve1`"
	wait := "wait 15s | HostOffline: VM 101 is on pve1, which is offline: " + annotate
	ignored := "; the annotation infrastructure.cluster.x-k8s.io/host-gone=pve2 changes nothing: it counts only while the node that is waited for, pve1, is the one it names and is seen to be down"
	seedLost := func(m *plan.Machine) { m.SeedHost = plan.HostOffline }
	runSteps(t, []step{
		{"with a way out", machine(recorded, lost(plan.HostOffline), deleting), wait},
		{"whatever task ran there", machine(recorded, lost(plan.HostOffline), task("qmstop", plan.TaskRunning), deleting), wait},
		{
			"when it was removed", machine(recorded, lost(plan.HostRemoved), deleting),
			"wait 15s | HostOffline: VM 101 is on pve1, which is no longer a node of region home: " + annotate,
		},
		{
			"or for the HA manager", machine(recorded, lost(plan.HostOffline), haState("fence"), deleting),
			wait + "; if the HA manager (state fence) starts it on another node, it is deleted there",
		},
		{"when another one was declared gone", machine(recorded, lost(plan.HostOffline), declaredGone("pve2"), deleting), wait + ignored},
		{
			"also for the seed on one that was removed", machine(recorded, absent, func(m *plan.Machine) { m.SeedHost = plan.HostRemoved }, deleting),
			"wait 15s | HostOffline: the seed ISO " + string(seedVolume) + " of VM 101 is on pve1, which is no longer a node of region home: " + annotate,
		},
		{"for the seed", machine(recorded, absent, seedLost, deleting), "wait 15s | HostOffline: the seed ISO " + string(seedVolume) + " of VM 101 is on pve1, which is offline: " + annotate},
	})
}

func TestAHostThatIsDeclaredGoneIsNotWaitedFor(t *testing.T) {
	gone := declaredGone("pve1")
	byOther := func(m *plan.Machine) { m.SeedNode, m.SeedHost = "pve2", plan.HostUp }
	left := "do RemoveFinalizer | Abandoned: the machine is deleted without what is on pve1 of region home, which was declared gone: should that node come back, remove VM 101 (" +
		string(uuid) + ") with its disks"
	seedLost := func(m *plan.Machine) { m.SeedNode, m.SeedHost = "pve1", plan.HostOffline }
	runSteps(t, []step{
		{"the addresses are released", machine(recorded, lost(plan.HostOffline), gone, deleting), "do ReleaseAddresses | ReleasingAddresses: releasing the addresses"},
		{"what is left is told", machine(recorded, lost(plan.HostOffline), gone, released, deleting), left + " and the seed ISO " + string(seedVolume) + " there before anything else"},
		{"a node that was removed can be declared gone", machine(recorded, lost(plan.HostRemoved), gone, released, deleting), left + " and the seed ISO " + string(seedVolume) + " there before anything else"},
		{"a seed on shared storage goes through another node", machine(recorded, lost(plan.HostOffline), byOther, gone, deleting), "do DeleteSeed | RemovingSeed: deleting the seed ISO from local of pve2"},
		{"which is waited for", machine(recorded, lost(plan.HostOffline), byOther, gone, task("imgdel", plan.TaskRunning), deleting), "wait | RemovingSeed: deleting the seed ISO"},
		{
			"and tried again later when it failed", machine(recorded, lost(plan.HostOffline), byOther, gone, failed("imgdel", "got timeout", time.Minute), deleting),
			"wait 1m0s | TaskFailed: deleting the seed ISO failed: got timeout; it is tried again",
		},
		{"and then it is not left", machine(recorded, lost(plan.HostOffline), byOther, gone, released, task("imgdel", plan.TaskSucceeded), deleting), left + " there before anything else"},
		{
			"the seed alone can be left", machine(recorded, absent, seedLost, gone, released, deleting),
			strings.Split(left, "VM 101")[0] + "the seed ISO " + string(seedVolume) + " there before anything else",
		},
		{
			"a VM on a node that is up is deleted", machine(recorded, node("pve2"), gone, deleting),
			"do Stop | Stopping: stopping VM 101 on pve2; the annotation infrastructure.cluster.x-k8s.io/host-gone=pve1 changes nothing: " +
				"it counts only while the node that is waited for, pve2, is the one it names and is seen to be down",
		},
	})
}

// unreachable is a machine whose region does not answer.
func unreachable(m *plan.Machine) {
	unbound(m)
	m.RegionDown = true
}

func regionGone(region proxmox.RegionName) change {
	return func(m *plan.Machine) { m.RegionGone = region }
}

func TestARegionThatIsDeclaredGoneIsNotWaitedFor(t *testing.T) {
	wait := "wait 15s | Unobserved: region home does not answer; once region home is gone for good, run `kubectl annotate proxmoxmachine worker-1 infrastructure.cluster.x-k8s.io/region-gone=home`"
	ignored := func(region string) string {
		return "; the annotation infrastructure.cluster.x-k8s.io/region-gone=" + region + " changes nothing: it counts only while the region of the machine, home, is the one it names and cannot be asked"
	}
	gone := regionGone("home")
	left := "do RemoveFinalizer | Abandoned: the machine is deleted without what is in region home, which was declared gone: should it come back, remove VM 101 (" + string(uuid) + ") with its disks"
	cleared := func(m *plan.Machine) { m.SeedRemoved = true }
	runSteps(t, []step{
		{"one that does not answer is", machine(recorded, unreachable, deleting), wait},
		{"also when another one is gone", machine(recorded, unreachable, regionGone("away"), deleting), wait + ignored("away")},
		{"the addresses are released", machine(recorded, unreachable, gone, deleting), "do ReleaseAddresses | ReleasingAddresses: releasing the addresses"},
		{"what is left is told", machine(recorded, unreachable, gone, released, deleting), left + " and the seed ISO " + string(seedVolume) + " there before anything else"},
		{"a seed that is gone is not left", machine(recorded, unreachable, gone, released, cleared, deleting), left + " there before anything else"},
		{"a VM of which nobody knows if it was made is told of, too", machine(reserved, unreachable, gone, released, cleared, deleting), left + " there before anything else"},
		{"one that answers is asked", machine(recorded, gone, deleting), "do Stop | Stopping: stopping VM 101 on pve1" + ignored("home")},
		{"a machine that lives waits for it", machine(recorded, unreachable, gone), "wait 15s | Unobserved: region home does not answer"},
	})
}

func TestRemarksAreAddedToWhatIsWaitedFor(t *testing.T) {
	remarked := func(m *plan.Machine) { m.Remarks = []string{"the Secret is missing"} }
	runSteps(t, []step{
		{"to waits", machine(recorded, unbound, remarked, deleting), "wait 15s | Unobserved: region home does not answer; the Secret is missing"},
		{"not to the end", machine(recorded, absent, task("imgdel", plan.TaskSucceeded), released, remarked, deleting), "do RemoveFinalizer | Deleted: the VM and all that belonged to it are gone"},
	})
}
