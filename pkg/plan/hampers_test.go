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

// isDown reports whether a host is down: pve1 alone goes.
func (w *world) isDown(node proxmox.NodeName) bool { return w.down > 0 && node == "pve1" }

// abandon gives up the VMs on a host that is down and was declared gone.
func (w *world) abandon() {
	for _, vm := range w.ours() {
		vm.abandoned = w.isDown(vm.node) && w.hostGone == vm.node
	}
}

// left checks that a host which the machine leaves has nothing of it any more, unless it was declared gone.
func (w *world) left(node proxmox.NodeName) {
	if w.isDown(node) && w.hostGone == node {
		delete(w.seeds, node)
		delete(w.landing, node)
		return
	}
	if len(w.ours()) > 0 || w.seeds[w.storedOn(node)] {
		w.t.Fatalf("left %s with a VM or the seed there", node)
	}
}

// storedOn is where a seed is that was uploaded through a node.
func (w *world) storedOn(node proxmox.NodeName) proxmox.NodeName {
	if w.sharedSeed {
		return "all"
	}
	return node
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
	switch action := action.(type) {
	case plan.ClaimAddresses, plan.HoldAddresses, plan.Reserve, plan.Follow, plan.RecordProviderID, plan.RecordFirewall, plan.ReleaseAddresses, plan.RemoveFinalizer:
		return false
	case plan.Clone:
		return w.isDown(action.VM.Node)
	case plan.UploadSeed:
		return w.isDown(action.VM.Node)
	case plan.DeleteSeed:
		return w.isDown(action.VM.Node)
	case plan.WithdrawSeed:
		return w.isDown(action.VM.Node)
	}
	vm := w.vms[proxmox.VMID(w.spec.Reservation.VMID)]
	return vm != nil && w.isDown(vm.node)
}

// seedHost is the host that the seed is reached through, and its state.
func (w *world) seedHost() (proxmox.NodeName, plan.HostState) {
	node := proxmox.NodeName(w.spec.Reservation.Node)
	switch {
	case !w.isDown(node):
		return node, plan.HostUp
	case w.sharedSeed:
		return "pve2", plan.HostUp
	}
	return node, plan.HostOffline
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
	rounds := rapid.IntRange(1, 8)
	switch {
	case w.hostGone == "" && w.happens("a node is declared gone"):
		w.hostGone = rapid.SampledFrom([]proxmox.NodeName{"pve1", "pve2"}).Draw(w.t, "gone")
	case vm == nil && len(w.jobs) == 0 && w.down == 0 && w.happens("the host goes down before it has the VM"):
		w.down = rounds.Draw(w.t, "rounds without the host")
	}
	if vm == nil || vm.foreign || vm.making || len(w.jobs) > 0 {
		return
	}
	w.lock(vm)
	switch {
	case w.down == 0 && !vm.running && w.spec.ProviderID == "" && w.happens("somebody moves the VM"):
		w.move(vm)
	case w.locked == 0 && w.happens("a backup begins"):
		w.locked, vm.config["lock"] = rounds.Draw(w.t, "rounds of the backup"), "backup"
	case w.protected == 0 && w.happens("somebody protects the VM"):
		w.protected, vm.config["protection"] = rounds.Draw(w.t, "rounds of protection"), "1"
	case w.down == 0 && vm.node == "pve1" && w.happens("the host goes down"):
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
