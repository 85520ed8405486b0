package observe

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"sigs.k8s.io/cluster-api/util/conditions"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
)

// recheck is how long a config is believed that is not as asked, or that somebody wants to be kept as asked. Otherwise it is
// read when the inventory shows that something became of the VM, and when the spec says something new.
const recheck = 10 * time.Minute

// The inventory does not show all that somebody may change. Where that is to be told, the config is read once in each round, at a
// time of the VM's own, so that not all are read at once; the first time not before it was left alone for half a round.
const (
	round     = time.Hour
	firstRest = round / 2
)

// nextRound is when the config is read the next time only to see whether it was changed.
func nextRound(uuid proxmox.SMBIOSUUID, last time.Time) time.Time {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(uuid)) // it never fails
	own := time.Duration(hash.Sum32()%uint32(round/time.Second)) * time.Second
	earliest := last.Add(firstRest)
	next := earliest.Truncate(round).Add(own)
	if next.Before(earliest) {
		next = next.Add(round)
	}
	return next
}

// addUpkeep adds the config of a VM that ran once, where there may be something to do or to tell about it. A VM at rest costs
// nothing.
func (o *Observer) addUpkeep(ctx context.Context, cluster *pve.Cluster, subject MachineSubject, machine *plan.Machine) error {
	if machine.Deleting || machine.Spec.ProviderID == "" || machine.VM.Presence != plan.PresenceOurs || machine.VM.Power == plan.PowerUnknown {
		return nil
	}
	sight := &upkeepSight{machineSight: machineSight{o, cluster, subject, machine}}
	sight.entry, sight.listed = cluster.Inventory.Snapshot().VM(sight.ref().ID)
	known := o.Memory.upkeep(subject.uuid())
	if sight.hasToRead(known) {
		if err := sight.report(sight.read(ctx)); err != nil {
			return err
		}
	} else if sight.listed && known.seen == nil && sight.isSettled() {
		o.Memory.withUpkeep(subject.uuid(), func(k *knownUpkeep) { k.seen, k.readAt = &sight.entry, o.Clock.Now() })
	}
	sight.tell()
	return nil
}

// upkeepSight looks at the config of one VM.
type upkeepSight struct {
	machineSight
	entry  pve.VM
	listed bool
}

// isSettled reports whether the inventory shows the VM as it runs, and not as it was made from.
func (s *upkeepSight) isSettled() bool {
	listing := s.machine.VM.Listing
	return listing != nil && listing.Running && s.machine.VM.Power == plan.PowerRunning
}

// hasToRead reports whether the config may be other than it is to be, or than it was read.
func (s *upkeepSight) hasToRead(known knownUpkeep) bool {
	isWrong, policy := s.isWrong(), s.machine.Spec.DriftPolicy
	isKept := policy == v1beta1.DriftPolicyRepair
	switch {
	case s.machine.VM.Listing != nil && s.machine.VM.Listing.Template:
		return false // that is all there is to say of it
	case s.pause(known) > 0:
		return false
	case known.live == nil && (isKept || isWrong || s.machine.HasNewSpec() || s.differs()):
		return true
	case known.live != nil && (isKept || isWrong) && s.Clock.Since(known.readAt) >= recheck:
		return true
	case s.isDue(known):
		return true
	case known.seen == nil || !s.listed || !isOther(*known.seen, s.entry):
		return false
	case s.entry.Status != pve.StatusRunning && !isKept && !isWrong:
		return false // it is looked at when it runs again
	}
	return known.live != nil || policy != v1beta1.DriftPolicyIgnore
}

// isDue reports whether the config is to be read because it was not for long.
func (s *upkeepSight) isDue(known knownUpkeep) bool {
	due, isRead := s.due(known)
	return isRead && !s.Clock.Now().Before(due)
}

// due is when the config is read although nothing shows that it was changed. It is not where nobody wants to know.
func (s *upkeepSight) due(known knownUpkeep) (time.Time, bool) {
	if s.machine.Spec.DriftPolicy == v1beta1.DriftPolicyIgnore || known.readAt.IsZero() {
		return time.Time{}, false
	}
	return nextRound(s.subject.uuid(), known.readAt), true
}

// isWrong reports whether the config was last seen not to be as asked.
func (s *upkeepSight) isWrong() bool {
	return conditions.IsFalse(s.subject.ProxmoxMachine, v1beta1.ConfigurationUpToDateCondition)
}

// differs reports whether the inventory shows that the VM was changed, and anybody wants to know.
func (s *upkeepSight) differs() bool {
	differences, _ := plan.Drift(*s.machine)
	return len(differences) > 0 && s.machine.Spec.DriftPolicy != v1beta1.DriftPolicyIgnore
}

// isOther reports whether something became of a VM: what the inventory shows of it was changed, or it was started anew.
func isOther(before, now pve.VM) bool {
	return before.Node != now.Node || before.Name != now.Name || !slices.Equal(before.Tags, now.Tags) || before.Template != now.Template ||
		before.MaxCPU != now.MaxCPU || before.MaxMemory != now.MaxMemory || before.MaxDisk != now.MaxDisk ||
		before.Status != now.Status || before.RestartedBy(now)
}

// read reads the config. One that is locked is not remembered: nothing would show that the lock is gone.
func (s *upkeepSight) read(ctx context.Context) error {
	config, err := s.pve.PendingVMConfig(ctx, s.ref())
	if err != nil {
		return fmt.Errorf("read the config of VM %d to compare it with the spec: %w", s.ref().ID, err)
	}
	if !s.isOurs(config.Values) {
		return nil
	}
	live := &plan.Live{Config: config.Values, Waiting: config.Waiting, Digest: config.Digest}
	s.Memory.withUpkeep(s.subject.uuid(), func(known *knownUpkeep) {
		known.live, known.readAt, known.seen, known.unread = live, s.Clock.Now(), nil, unread{}
		if s.listed {
			known.seen = &s.entry
		}
	})
	return nil
}

// tell puts what is known into the snapshot.
func (s *upkeepSight) tell() {
	known, upkeep := s.Memory.upkeep(s.subject.uuid()), &s.machine.Upkeep
	upkeep.Live = known.live
	s.tellPauses(known)
	if pause := s.pause(known); pause > 0 {
		upkeep.Trouble = known.unread.why
		s.again(pause)
		return
	}
	if due, isRead := s.due(known); isRead {
		s.again(max(due.Sub(s.Clock.Now()), time.Second))
	}
	if known.live == nil {
		return
	}
	if known.live.Config.Lock() != "" {
		s.Memory.withUpkeep(s.subject.uuid(), func(known *knownUpkeep) { known.live = nil })
	}
	if s.machine.Spec.DriftPolicy == v1beta1.DriftPolicyRepair || s.isWrong() {
		s.again(max(recheck-s.Clock.Since(known.readAt), time.Second))
	}
}

// again has the machine looked at after a wait, unless it is sooner.
func (s *upkeepSight) again(wait time.Duration) {
	if upkeep := &s.machine.Upkeep; wait > 0 && (upkeep.LookAgain == 0 || wait < upkeep.LookAgain) {
		upkeep.LookAgain = wait
	}
}

// tellPauses tells what is left alone for a while.
func (s *upkeepSight) tellPauses(known knownUpkeep) {
	upkeep := &s.machine.Upkeep
	for _, change := range slices.Sorted(maps.Keys(known.refusals)) {
		if left := known.refusals[change].until.Sub(s.Clock.Now()); left > 0 {
			upkeep.Refusals = append(upkeep.Refusals, plan.Refusal{Change: change, Message: known.refusals[change].message})
			s.again(left)
		}
	}
	for key, repair := range known.repairs {
		if left := repair.pause() - s.Clock.Since(repair.last); left > 0 {
			upkeep.Contested = append(upkeep.Contested, key)
			s.again(left)
		}
	}
	slices.Sort(upkeep.Contested)
}

// knownUpkeep is what is remembered of the config of a VM that ran once.
type knownUpkeep struct {
	// live is nil when it is not known.
	live *plan.Live
	// readAt is when it was read, or the VM was first looked at.
	readAt time.Time
	// seen is what the inventory said of the VM then, or when it was first looked at.
	seen *pve.VM
	// unread is why it could not be read.
	unread unread
	// refusals are the changes that were refused lately, by their texts: while one pauses, another may be refused.
	refusals map[string]refusal
	// repairs are the keys that were changed back lately.
	repairs map[string]repair
}

// refusal is a change that Proxmox VE did not make.
type refusal struct {
	message string
	// times counts it, until is when it may be asked for again.
	times int
	until time.Time
}

// repair is what is known of a key that was changed back.
type repair struct {
	times int
	last  time.Time
}

// The pauses before what was changed back, or refused, is changed again: they double from the first to the last.
const (
	firstRepairPause = time.Minute
	lastRepairPause  = time.Hour
	mostDoublings    = 6
)

func (r repair) pause() time.Duration {
	return min(firstRepairPause<<min(r.times-1, mostDoublings), lastRepairPause)
}

func (m *Memory) withUpkeep(uuid proxmox.SMBIOSUUID, do func(*knownUpkeep)) {
	m.with(uuid, func(r *recollection) { do(&r.upkeep) })
}

func (m *Memory) upkeep(uuid proxmox.SMBIOSUUID) (known knownUpkeep) {
	m.withUpkeep(uuid, func(k *knownUpkeep) { known = *k })
	return known
}

// ChangeRefused says that Proxmox VE did not make a change, and why. One that was not asked for again for long is forgotten.
func (m *Memory) ChangeRefused(uuid proxmox.SMBIOSUUID, change string, err error) {
	m.withUpkeep(uuid, func(known *knownUpkeep) {
		refusals := map[string]refusal{}
		for text, before := range known.refusals {
			if m.clock.Since(before.until) < lastRepairPause {
				refusals[text] = before
			}
		}
		again := refusal{times: refusals[change].times + 1, message: Explain(err).Message}
		again.until = m.clock.Now().Add(repair{times: again.times}.pause())
		refusals[change], known.refusals = again, refusals
	})
}

// Repaired says that keys were changed back. The pauses begin anew for one that then stays as it is for long.
func (m *Memory) Repaired(uuid proxmox.SMBIOSUUID, keys []string) {
	m.withUpkeep(uuid, func(known *knownUpkeep) {
		repairs := map[string]repair{}
		for key, before := range known.repairs {
			if m.clock.Since(before.last) < 2*lastRepairPause {
				repairs[key] = before
			}
		}
		for _, key := range keys {
			repairs[key] = repair{times: repairs[key].times + 1, last: m.clock.Now()}
		}
		known.repairs = repairs
	})
}
