package plan_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// most bounds the rounds of a life: some 25 are needed without trouble, and each trouble costs a few.
const most = 200

// live lets a machine live until it comes to an end, or to rest with nothing left that could go wrong.
func (w *world) live() plan.Decision {
	var decision plan.Decision
	for range most {
		decision = plan.MachineStep(w.observe())
		do, acts := decision.(plan.Do)
		if acts {
			_ = w.do(do.Action) // an error says nothing certain; the next round looks again
			w.check()
		}
		w.abandoned = decision.Why().Code == plan.Abandoned
		if w.gone || !acts && isRest(decision) && w.trouble == 0 && w.off == 0 && w.bootstrapped == (w.spec.ProviderID != "") && len(w.jobs) == 0 {
			return decision
		}
		w.pass()
		if _, done := decision.(plan.Done); done && w.bootstrapped {
			w.trouble = 0 // all there was to survive was survived
		}
	}
	w.t.Fatalf("no end after %d rounds: %s", most, told(decision))
	return nil
}

func isRest(decision plan.Decision) bool {
	switch decision.(type) {
	case plan.Done, plan.Stalled:
		return true
	}
	return false
}

func TestAMachineConvergesToOneVMWhateverHappens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.drawSource()
		decision := w.live()
		if _, done := decision.(plan.Done); !done {
			t.Fatalf("ended with %s", told(decision))
		}
		ours := w.ours()
		if len(ours) != 1 || !ours[0].running {
			t.Fatalf("its VMs are %+v", ours)
		}
		if len(w.seeds) > 0 || vmconfig.HasSeed(ours[0].config) {
			t.Fatal("the seed is still there")
		}
		if !w.wallsStand(ours[0]) {
			t.Fatalf("its firewall is %+v", ours[0].firewall)
		}
		if !w.isToldHA() {
			t.Fatalf("the HA manager is told %+v, and %+v is written down", w.told, w.record)
		}
		w.checkFollows(ours[0])
		vm := w.spec.Reservation
		if w.spec.ProviderID != plan.ProviderID(vm.UUID) || w.vms[proxmox.VMID(vm.VMID)] != ours[0] {
			t.Fatalf("providerID %s and VMID %d are not of the VM", w.spec.ProviderID, vm.VMID)
		}
	})
}

func TestADeletedMachineLeavesNothingWhateverHappens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.drawSource()
		for range rapid.IntRange(0, 40).Draw(t, "rounds before the deletion") {
			if do, acts := plan.MachineStep(w.observe()).(plan.Do); acts {
				_ = w.do(do.Action)
			}
			w.pass()
		}
		strangers := len(w.vms) - len(w.ours())
		w.deleting = true
		w.live()
		if !w.gone {
			t.Fatal("the finalizer is still there")
		}
		if w.abandoned && (w.down == 0 || w.hostGone != "pve1") {
			t.Fatal("the VM was given up although nobody declared its host gone")
		}
		for len(w.jobs) > 0 {
			w.pass()
		}
		if ours := w.ours(); len(ours) != 0 && !w.abandoned {
			t.Fatalf("it left %+v", ours)
		}
		if len(w.seeds) > 0 && !w.abandoned || w.claims != 0 {
			t.Fatalf("it left seeds (%v) or claims (%d)", w.seeds, w.claims)
		}
		if left := len(w.vms); left < strangers {
			t.Fatalf("of %d VMs of others %d are left", strangers, left)
		}
	})
}
