package observe

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/ha"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
)

// haFresh is how long what was read is good enough to change it, or to believe that it is as it is although the inventory
// shows that the HA manager does not look after the VM. Nothing wrong is seen in it until the process ends, or the spec changes.
const haFresh = time.Minute

// highAvailabilityRecord reads what the HA manager was told of the VM before we changed that. An annotation that somebody
// spoilt says that there is something of ours, made by us.
func highAvailabilityRecord(machine *v1beta1.ProxmoxMachine) *ha.Record {
	text, found := machine.Annotations[v1beta1.HighAvailabilityAnnotation]
	if !found {
		return nil
	}
	record := &ha.Record{}
	if json.Unmarshal([]byte(text), record) != nil {
		return &ha.Record{}
	}
	return record
}

// addHighAvailability adds what the HA manager is told of the VM. A machine that asks for nothing costs nothing. One that does
// costs one request when it is first looked at, and others where it has a group or rules.
func (o *Observer) addHighAvailability(ctx context.Context, cluster *pve.Cluster, subject MachineSubject, machine *plan.Machine) error {
	if machine.IsForsaken() {
		sight := o.haSight(cluster, subject, machine)
		return sight.report(sight.lookAgain(ctx))
	}
	if machine.Deleting || !machine.HasHighAvailability() || machine.VM.Presence != plan.PresenceOurs {
		return nil
	}
	if isMade := machine.Spec.ProviderID != "" || machine.Spec.PowerState == v1beta1.PowerStateStopped && vmconfig.HasSeed(machine.VM.Config); !isMade {
		return nil
	}
	sight := o.haSight(cluster, subject, machine)
	return sight.report(sight.look(ctx))
}

func (o *Observer) haSight(cluster *pve.Cluster, subject MachineSubject, machine *plan.Machine) *haSight {
	return &haSight{machineSight{o, cluster, subject, machine}}
}

// lookAgain looks whether a VM that is deleted is an HA resource, whatever is known of it: the inventory lags behind.
func (s *haSight) lookAgain(ctx context.Context) error {
	state, err := s.readResource(ctx)
	if err == nil {
		s.machine.HighAvailability.Present = state
	}
	return err
}

// report takes an error of the HA manager's API for what it is about: the VM runs, and is kept up, without it. One
// that is of the whole region, or of a pass that was broken off, stays an error.
func (s *haSight) report(err error) error {
	if _, unavailable := Unavailable(err); err == nil || unavailable || pve.IsCanceled(err) || !IsOfProxmox(err) {
		return err
	}
	region := s.machine.Spec.Reservation.Region
	reason := Explain(err)
	reason.Message = fmt.Sprintf("what the HA manager of region %s is told of the VM cannot be read: %s", region, reason.Message)
	if pve.ClassOf(err) == pve.Forbidden {
		reason.Message = fmt.Sprintf(
			"spec.highAvailability needs Sys.Audit and Sys.Console on / of Proxmox VE, and the credentials of region %s lack that: grant it, or leave highAvailability out (%v)",
			region, err)
	}
	s.Memory.withHA(s.subject.uuid(), func(known *knownHA) { *known = s.now(knownHA{trouble: reason}) })
	s.machine.HighAvailability.Present, s.machine.HighAvailability.Trouble = nil, reason
	return nil
}

// haSight looks at what the HA manager is told of one VM.
type haSight struct{ machineSight }

// now dates what is known.
func (s *haSight) now(known knownHA) knownHA {
	known.readAt, known.generation = s.Clock.Now(), s.subject.ProxmoxMachine.Generation
	return known
}

// look reads what is not known, or may not be true any more, and what an edit needs to know.
func (s *haSight) look(ctx context.Context) error {
	for range mostLooks {
		known := s.Memory.ha(s.subject.uuid())
		isOld := s.Clock.Since(known.readAt) > haFresh || known.generation != s.subject.ProxmoxMachine.Generation
		if known.trouble.Code != "" && !isOld {
			s.machine.HighAvailability.Trouble = known.trouble
			return nil
		}
		if known.state == nil || isOld && s.isUnwatched(*known.state) {
			if err := s.read(ctx); err != nil {
				return err
			}
			continue
		}
		s.machine.HighAvailability.Present = known.state
		wanted := s.machine.HighAvailabilityWanted()
		edit, isDue := s.due(wanted, *known.state)
		if !isDue {
			return nil
		}
		if isOld || wanted.NeedsRules() && known.state.Rules == nil || edit != nil && ha.IsBlind(edit) {
			s.Memory.HighAvailabilityChanged(s.subject.uuid())
			continue
		}
		return s.beforeEdits(ctx, *known.state)
	}
	s.machine.HighAvailability.Present = nil // somebody else changes it all the time
	return nil
}

// due reports whether something is to be edited or written down, and gives the edit.
func (s *haSight) due(wanted ha.Wanted, present ha.State) (ha.Edit, bool) {
	edit, more := ha.Next(wanted, present)
	_, unwritten := wanted.NextRecord(present)
	return edit, more || unwritten || wanted.NeedsRules() && present.Rules == nil
}

// isUnwatched reports whether the inventory shows that the HA manager does not look after a VM that should be its.
func (s *haSight) isUnwatched(present ha.State) bool {
	vm := s.machine.VM
	return present.Resource != nil && !present.IsIgnored() && vm.Listing != nil && vm.Listing.Running && vm.HAState == "" || present.IsIgnored()
}

// beforeEdits makes sure that the VM is ours, which Proxmox VE does not when a VMID is made an HA resource, and looks for what
// the resource is to refer to.
func (s *haSight) beforeEdits(ctx context.Context, present ha.State) error {
	if s.machine.VM.Config == nil {
		config, isOurs, err := s.identify(ctx, "it is made an HA resource")
		if err != nil || !isOurs {
			return err
		}
		s.machine.VM.Config, s.machine.VM.Digest = (&vmSight{Observer: s.Observer, subject: s.subject}).keep(config)
	}
	wanted := s.machine.HighAvailabilityWanted()
	if !wanted.NeedsRelease() {
		return nil
	}
	facts, err := s.facts(ctx)
	if err == nil {
		s.machine.HighAvailability.Problems = wanted.Problems(present, facts)
	}
	return err
}

// read reads the VM's HA resource, and the rules where they matter.
func (s *haSight) read(ctx context.Context) error {
	state, err := s.readResource(ctx)
	if err != nil {
		return err
	}
	if s.machine.HighAvailabilityWanted().NeedsRules() {
		if err := s.readRules(ctx, state); err != nil {
			return err
		}
	}
	s.Memory.withHA(s.subject.uuid(), func(known *knownHA) { *known = s.now(knownHA{state: state}) })
	return nil
}

// readResource reads whether the VM is an HA resource, and with which options.
func (s *haSight) readResource(ctx context.Context) (*ha.State, error) {
	resource, err := s.pve.HAResource(ctx, s.ref().ID)
	if pve.ClassOf(err) == pve.Missing {
		return &ha.State{}, nil
	}
	return &ha.State{Resource: resource.Options, ResourceDigest: resource.Digest}, err
}

// readRules reads the rules, where there is such a thing.
func (s *haSight) readRules(ctx context.Context, state *ha.State) error {
	state.Rules = map[string]ha.Rule{}
	if facts, err := s.facts(ctx); err != nil || !facts.HasRules {
		return err
	}
	rules, err := s.pve.HARules(ctx)
	for name, rule := range rules.Rules {
		state.Rules[name] = ha.Rule(rule)
	}
	state.RulesDigest = rules.Digest
	return err
}

// facts asks for the release, which tells whether there are rules or groups, and for the groups.
func (s *haSight) facts(ctx context.Context) (ha.Facts, error) {
	release, err := s.release(ctx, s.pve)
	if err != nil {
		return ha.Facts{}, err
	}
	if release.AtLeast(9, 0) {
		return ha.Facts{HasRules: true}, nil
	}
	groups, err := s.haGroups(ctx, s.pve)
	return ha.Facts{Groups: groups}, err
}

// release is the release of a region's Proxmox VE.
func (o *Observer) release(ctx context.Context, cluster *pve.Cluster) (pve.Version, error) {
	return o.Memory.releases.get(ctx, cluster.Fingerprint(), func() (pve.Version, error) { return cluster.Version(ctx) })
}

// haGroups lists the HA groups.
func (o *Observer) haGroups(ctx context.Context, cluster *pve.Cluster) ([]string, error) {
	return o.Memory.haGroups.get(ctx, cluster.Fingerprint(), func() ([]string, error) { return cluster.HAGroups(ctx) })
}

// knownHA is what is remembered of what the HA manager is told of a VM.
type knownHA struct {
	// state is nil when nothing is known.
	state *ha.State
	// trouble says why it could not be read.
	trouble plan.Reason
	readAt  time.Time
	// generation is the machine's for which it was read: another spec may need to know more.
	generation int64
}

func (m *Memory) withHA(uuid proxmox.SMBIOSUUID, do func(*knownHA)) {
	m.with(uuid, func(r *recollection) { do(&r.ha) })
}

func (m *Memory) ha(uuid proxmox.SMBIOSUUID) (known knownHA) {
	m.withHA(uuid, func(r *knownHA) { known = *r })
	return known
}

// HighAvailabilityEdited says how the request for an edit ended, and enters one that was made into what is known.
func (m *Memory) HighAvailabilityEdited(uuid proxmox.SMBIOSUUID, edit ha.Edit, err error) {
	m.withHA(uuid, func(r *knownHA) {
		if err != nil || r.state == nil {
			*r = knownHA{}
			return
		}
		after := edit.Apply(*r.state)
		r.state = &after
	})
}

// HighAvailabilityChanged forgets what the HA manager is told of the VM.
func (m *Memory) HighAvailabilityChanged(uuid proxmox.SMBIOSUUID) {
	m.withHA(uuid, func(r *knownHA) { *r = knownHA{} })
}
