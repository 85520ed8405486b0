package observe

import (
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
)

// unanswered is the last request to start, shut down, stop or destroy a VM whose answer was lost.
type unanswered struct {
	at   time.Time
	what plan.Unanswered
}

// Ordered says how the request of an action ended.
func (m *Memory) Ordered(uuid proxmox.SMBIOSUUID, action plan.Action, err error) {
	if pve.ClassOf(err) != pve.Ambiguous {
		return
	}
	what := plan.NothingUnanswered
	switch action.(type) { // partial: the others name what they are for by more than a VMID
	case plan.Start, plan.Shutdown, plan.Stop:
		what = plan.PowerUnanswered
	case plan.Destroy:
		what = plan.DestroyUnanswered
	default:
		return
	}
	m.with(uuid, func(r *recollection) { r.unanswered = unanswered{at: m.clock.Now(), what: what} })
}

// unansweredOf tells what may be carried out yet of what was sent for a VM whose deletion began at a time. Of one that began
// before this process did, the process before it may have sent a request; it waited for all others before it destroyed the VM.
func (m *Memory) unansweredOf(uuid proxmox.SMBIOSUUID, deleted time.Time) (state plan.Unanswered) {
	m.with(uuid, func(r *recollection) {
		switch now := m.clock.Now(); {
		case !r.unanswered.at.IsZero() && now.Sub(r.unanswered.at) < m.late:
			state = r.unanswered.what
		case deleted.Before(m.started) && now.Sub(m.started) < m.late:
			state = plan.DestroyUnanswered
		}
	})
	return state
}
