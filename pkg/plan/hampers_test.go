package plan_test

import (
	"time"

	"pgregory.net/rapid"

	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// hampers is what keeps a VM from being worked on: locks, protection, the HA manager's pace, and a host that is down.
type hampers struct {
	// ha says that the HA manager looks after the VM: starts and stops are requests.
	ha bool
	// asked is what the HA manager will do once haRounds are over.
	asked    func()
	haRounds int
	// age counts the rounds since the last task was started.
	age int
	// locked, protected and down count the rounds until that is over.
	locked, protected, down int
	// sharedSeed says that the seed is on shared storage, which other hosts reach, too.
	sharedSeed bool
	// hostGone is the annotation.
	hostGone proxmox.NodeName
	// abandoned says that the machine was deleted without what is on its host.
	abandoned bool
}

// hostState is the state of the one host that there is.
func (w *world) hostState() plan.HostState {
	if w.down > 0 {
		return plan.HostOffline
	}
	return plan.HostUp
}

// askHA starts a job that has no effect but that the HA manager will do something. It may not be pestered.
func (w *world) askHA(kind string, do func()) *job {
	if w.task.Type == kind && w.task.State == plan.TaskSucceeded && time.Duration(w.age)*5*time.Second < time.Minute {
		w.t.Fatalf("%s again after %d rounds", kind, w.age)
	}
	return &job{kind: kind, apply: func() error {
		w.asked, w.haRounds = do, rapid.IntRange(0, 4).Draw(w.t, "rounds of the HA manager")
		return nil
	}}
}

// cannot reports whether a request ends at a host that is down.
func (w *world) cannot(action plan.Action) bool {
	switch action.(type) {
	case plan.ClaimAddresses, plan.HoldAddresses, plan.Reserve, plan.RecordProviderID, plan.RecordFirewall, plan.ReleaseAddresses, plan.RemoveFinalizer:
		return false
	case plan.DeleteSeed:
		return w.down > 0 && !w.sharedSeed
	}
	return w.down > 0
}

// seedHost is the state of the host that the seed is reached through.
func (w *world) seedHost() plan.HostState {
	if w.sharedSeed {
		return plan.HostUp
	}
	return w.hostState()
}

// hamper lets a round go by for all that stands in the way, and puts something new in it at times.
func (w *world) hamper(vm *guest) {
	w.age++
	if w.asked != nil && w.down == 0 {
		if w.haRounds--; w.haRounds < 0 {
			w.asked()
			w.asked = nil
		}
	}
	w.down = max(w.down-1, 0)
	if vm == nil || vm.foreign || vm.making || len(w.jobs) > 0 {
		return
	}
	w.lock(vm)
	rounds := rapid.IntRange(1, 8)
	switch {
	case w.deleting && w.hostGone == "" && w.happens("a node is declared gone"):
		w.hostGone = rapid.SampledFrom([]proxmox.NodeName{"pve1", "pve2"}).Draw(w.t, "gone")
	case w.locked == 0 && w.happens("a backup begins"):
		w.locked, vm.config["lock"] = rounds.Draw(w.t, "rounds of the backup"), "backup"
	case w.protected == 0 && w.happens("somebody protects the VM"):
		w.protected, vm.config["protection"] = rounds.Draw(w.t, "rounds of protection"), "1"
	case w.down == 0 && w.happens("the host goes down"):
		w.down, vm.running, w.asked = rounds.Draw(w.t, "rounds without the host"), false, nil
	}
}

// lock lets a round go by for a lock and for protection.
func (w *world) lock(vm *guest) {
	if w.locked = max(w.locked-1, 0); w.locked == 0 {
		delete(vm.config, "lock")
	}
	if w.protected = max(w.protected-1, 0); w.protected == 0 {
		delete(vm.config, "protection")
	}
}
