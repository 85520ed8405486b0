package plan_test

import (
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/ha"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// haTold is what the HA manager is told, and what is written down of what it was told before.
type haTold struct {
	record *ha.Record
	told   ha.State
	// unmet is for how many more rounds the VM cannot be what is asked.
	unmet int
}

// drawHA draws whether high availability is asked for.
func (w *world) drawHA() {
	w.ha = rapid.Bool().Draw(w.t, "the HA manager looks after the VM")
	if w.ha {
		w.told.Resource = map[string]string{"state": "started"}
	}
	if rapid.Bool().Draw(w.t, "high availability is asked for") {
		w.spec.HighAvailability = v1beta1.HighAvailability{
			Enabled: ptr.To(true), MaxRestart: ptr.To[int32](3), Rules: []v1beta1.HighAvailabilityRule{{Name: "apart", ResourceAffinity: "negative"}},
		}
		w.unmet = rapid.IntRange(0, 5).Draw(w.t, "rounds without the HA rule")
	}
}

// seeHA adds what is observed of it: it is looked at once the VM ran.
func (w *world) seeHA(m *plan.Machine) {
	m.HighAvailability.Record = w.record
	if !m.HasHighAvailability() || m.VM.Presence != plan.PresenceOurs || w.spec.ProviderID == "" {
		return
	}
	if w.unmet > 0 {
		w.unmet--
		m.HighAvailability.Problems = []string{"there is no HA rule apart"}
	}
	w.told.ResourceDigest, w.told.RulesDigest = "r", "d"
	present := w.told.Clone()
	m.HighAvailability.Present = &present
}

func (w *world) editHA(action plan.EditHA) error {
	if vm := w.vms[action.VM.ID]; vm == nil || !vm.config.BelongsTo(action.VM.UUID) { // a lock is no matter
		w.t.Fatalf("VM %d is told the HA manager, which is %+v", action.VM.ID, vm)
	}
	if _, adds := action.Edit.(ha.AddResource); adds && w.told.Resource != nil {
		return errRefused
	}
	w.told = action.Edit.Apply(w.told)
	w.ha = w.told.Resource != nil
	return nil
}

// isToldHA reports whether the HA manager is told what is asked, and that was written down.
func (w *world) isToldHA() bool {
	wanted := ha.Wanted{ID: proxmox.VMID(w.spec.Reservation.VMID), Spec: w.spec.HighAvailability, Record: w.record}
	_, more := ha.Next(wanted, w.told)
	return !more && wanted.IsSettled() && ha.IsAsked(w.spec.HighAvailability) == (w.record != nil)
}
