package observe

import (
	"fmt"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
)

// unread is why the config of a VM that ran once could not be read, and how long it is left alone.
type unread struct {
	why plan.Reason
	// generation is the machine's: another spec is looked at sooner.
	generation int64
	until      time.Time
}

// unreadPause is how long a config is left alone that could not be read, where the spec says something new.
const unreadPause = time.Minute

// report takes an error for what it is about: the VM runs, as the inventory says, also while its config cannot be compared with the
// spec. One of the credentials, or of a pass that was broken off, stays an error.
func (s *upkeepSight) report(err error) error {
	class := pve.ClassOf(err)
	if err == nil || class == pve.Unauthorized || pve.IsCanceled(err) || !IsOfProxmox(err) {
		return err
	}
	reason, pause := plan.Reason{Code: plan.Unobserved, Message: fmt.Sprintf("%s; it is tried again from time to time", Explain(err).Message)}, recheck
	switch {
	case class == pve.NotFound: // it moved: the inventory will say where to
		reason, pause = plan.Reason{}, inventoryLag
	case s.machine.HasNewSpec():
		pause = unreadPause
	}
	s.Memory.withUpkeep(s.subject.uuid(), func(known *knownUpkeep) {
		known.live, known.unread = nil, unread{why: reason, generation: s.subject.ProxmoxMachine.Generation, until: s.Clock.Now().Add(pause)}
	})
	return nil
}

// pause is how long the config is still left alone.
func (s *upkeepSight) pause(known knownUpkeep) time.Duration {
	if known.unread.generation != s.subject.ProxmoxMachine.Generation {
		return 0
	}
	return known.unread.until.Sub(s.Clock.Now())
}
