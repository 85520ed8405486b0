package observe

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/firewall"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
)

// firewallFresh is how long what was read of a firewall is good enough to change it; to see that nothing has to be changed it
// is good until the process ends. Edits of our own are entered into it, and others' are refused by the digests.
const firewallFresh = time.Minute

// firewallBefore reads what the firewall options of a machine were before we set them. An annotation that somebody spoilt
// still says that there is something of ours.
func firewallBefore(machine *v1beta1.ProxmoxMachine) firewall.Before {
	text, found := machine.Annotations[v1beta1.FirewallAnnotation]
	if !found {
		return nil
	}
	before := firewall.Before{}
	if json.Unmarshal([]byte(text), &before) != nil || before == nil {
		return firewall.Before{}
	}
	return before
}

// addFirewall adds what there is of the VM's firewall. A machine that asks for none costs nothing; one that has it costs
// three requests when it is first looked at, one for each IP set of ours, and one before rules are made.
func (o *Observer) addFirewall(ctx context.Context, cluster *pve.Cluster, subject MachineSubject, machine *plan.Machine) error {
	machine.Firewall.MayComeLate = o.Memory.firewallMayComeLate(subject.uuid())
	if machine.Deleting || !machine.HasFirewall() {
		return nil
	}
	sight := &firewallSight{machineSight{o, cluster, subject, machine}}
	switch {
	case machine.VM.Presence == plan.PresenceAbsent && machine.Spec.ProviderID == "":
		return sight.lookForGroups(ctx)
	case machine.VM.Presence != plan.PresenceOurs:
		return nil
	case machine.Spec.ProviderID == "" && (machine.VM.Config.Lock() != "" || !vmconfig.HasSeed(machine.VM.Config)):
		return nil // it is unlocked and configured first
	}
	return sight.look(ctx)
}

// firewallSight looks at one VM's firewall.
type firewallSight struct{ machineSight }

// mostLooks bounds the looks of one pass: at all, and again at what has no digest.
const mostLooks = 4

// look reads the firewall unless it is known to be as it is to be, and what an edit needs to know.
func (s *firewallSight) look(ctx context.Context) error {
	for range mostLooks {
		known := s.Memory.firewall(s.subject.uuid())
		if known.state == nil {
			if err := s.read(ctx); err != nil {
				return err
			}
			continue
		}
		s.machine.Firewall.Present = known.state
		edit, more := firewall.Next(s.machine.FirewallWanted(), *known.state)
		s.Memory.settleLost(s.subject.uuid(), edit)
		if !more {
			return nil
		}
		if s.Clock.Since(known.readAt) > firewallFresh || known.generation != s.subject.ProxmoxMachine.Generation {
			s.Memory.FirewallChanged(s.subject.uuid())
			continue
		}
		part, unread := firewall.Unread(edit)
		if !unread {
			return s.beforeEdits(ctx)
		}
		if err := s.readPart(ctx, known, part); err != nil {
			return err
		}
	}
	s.machine.Firewall.Present = nil // somebody else changes it all the time
	return nil
}

// beforeEdits makes sure that the VM is there and ours, which Proxmox VE does not when its firewall is edited, and looks for
// the security groups.
func (s *firewallSight) beforeEdits(ctx context.Context) error {
	if s.machine.Spec.ProviderID != "" && !s.Memory.firewall(s.subject.uuid()).proven {
		if _, isOurs, err := s.identify(ctx, "its firewall is edited"); err != nil || !isOurs {
			return err
		}
		s.Memory.withFirewall(s.subject.uuid(), func(known *knownFirewall) { known.proven = true })
	}
	return s.lookForGroups(ctx)
}

// lookForGroups looks for the security groups that are asked for.
func (s *firewallSight) lookForGroups(ctx context.Context) error {
	wanted := s.machine.Spec.Firewall.SecurityGroups
	if len(wanted) == 0 {
		return nil
	}
	groups, err := s.Memory.securityGroups.get(ctx, s.pve.Fingerprint(), func() ([]string, error) { return s.pve.SecurityGroups(ctx) })
	if err != nil {
		return err
	}
	var missing []string
	for _, group := range wanted {
		if !slices.Contains(groups, group.Name) {
			missing = append(missing, group.Name)
		}
	}
	slices.Sort(missing)
	s.machine.Firewall.MissingGroups = slices.Compact(missing)
	return nil
}

// read reads the whole firewall, but for the entries of IP sets that are nobody's business here.
func (s *firewallSight) read(ctx context.Context) error {
	known := knownFirewall{state: &firewall.State{}, readAt: s.Clock.Now(), generation: s.subject.ProxmoxMachine.Generation}
	for _, kind := range []firewall.PartKind{firewall.OptionsPart, firewall.RulesPart, firewall.SetsPart} {
		if err := s.readInto(ctx, known.state, firewall.Part{Kind: kind}); err != nil {
			return err
		}
	}
	wanted := s.machine.FirewallWanted()
	for name, set := range known.state.Sets {
		if !wanted.Concerns(name, set) {
			continue
		}
		if err := s.readInto(ctx, known.state, firewall.Part{Kind: firewall.EntriesPart, Set: name}); err != nil {
			return err
		}
	}
	s.Memory.withFirewall(s.subject.uuid(), func(r *knownFirewall) {
		known.lost, known.lostAt, known.unmade = r.lost, r.lostAt, r.unmade
		*r = known
	})
	return nil
}

func (s *firewallSight) readPart(ctx context.Context, known knownFirewall, part firewall.Part) error {
	state := known.state.Clone()
	if err := s.readInto(ctx, &state, part); err != nil {
		return err
	}
	s.Memory.withFirewall(s.subject.uuid(), func(r *knownFirewall) { r.state = &state })
	return nil
}

func (s *firewallSight) readInto(ctx context.Context, state *firewall.State, part firewall.Part) error {
	switch part.Kind {
	case firewall.OptionsPart:
		options, err := s.pve.FirewallOptions(ctx, s.ref())
		state.Options, state.OptionsDigest = options.Values, options.Digest
		return err
	case firewall.RulesPart:
		rules, err := s.pve.FirewallRules(ctx, s.ref())
		state.Rules, state.RulesDigest = nil, rules.Digest
		for _, rule := range rules.Rules {
			state.Rules = append(state.Rules, rule)
		}
		return err
	case firewall.SetsPart:
		sets, err := s.pve.IPSets(ctx, s.ref())
		before := state.Sets
		state.Sets, state.SetsDigest = map[string]firewall.Set{}, sets.Digest
		for name, comment := range sets.Comments {
			set := before[name]
			set.Comment = comment
			state.Sets[name] = set
		}
		return err
	case firewall.EntriesPart:
		entries, err := s.pve.IPSetEntries(ctx, s.ref(), part.Set)
		set := firewall.Set{Comment: state.Sets[part.Set].Comment, Digest: entries.Digest}
		for _, entry := range entries.Entries {
			set.Entries = append(set.Entries, firewall.Entry(entry))
		}
		state.Sets[part.Set] = set
		return err
	}
	return fmt.Errorf("no such part of a firewall: %d", part.Kind)
}

// knownFirewall is what is remembered of a VM's firewall.
type knownFirewall struct {
	// state is nil when nothing is known.
	state  *firewall.State
	readAt time.Time
	// generation is the machine's for which it was read: another spec may speak of other IP sets.
	generation int64
	// proven says that the VM was seen to be ours since then.
	proven bool
	// edited says that the last thing that was done to the VM was an edit of its firewall, which leaves its config as it was.
	edited bool
	// lost is the edit whose answer was lost, while it was not seen to be made.
	lost   string
	lostAt time.Time
	// unmade says that it was seen not to be made at first.
	unmade bool
}

// forgotten keeps of it only what is known of an edit whose answer was lost.
func (k knownFirewall) forgotten() knownFirewall {
	return knownFirewall{lost: k.lost, lostAt: k.lostAt, unmade: k.unmade}
}

func (m *Memory) withFirewall(uuid proxmox.SMBIOSUUID, do func(*knownFirewall)) {
	m.with(uuid, func(r *recollection) { do(&r.firewall) })
}

func (m *Memory) firewall(uuid proxmox.SMBIOSUUID) (known knownFirewall) {
	m.withFirewall(uuid, func(r *knownFirewall) { known = *r })
	return known
}

// FirewallEdited says how the request for an edit ended, and enters one that was made into what is known of the firewall.
func (m *Memory) FirewallEdited(uuid proxmox.SMBIOSUUID, edit firewall.Edit, err error) {
	m.withFirewall(uuid, func(r *knownFirewall) {
		switch {
		case err == nil && r.state != nil:
			after := edit.Apply(*r.state)
			r.state, r.edited = &after, true
		case pve.ClassOf(err) == pve.Ambiguous:
			*r = knownFirewall{lost: edit.String(), lostAt: m.clock.Now()}
		default:
			*r = r.forgotten()
		}
	})
}

// settleLost concludes from the edit that is due next whether the one whose answer was lost was made. If that is due again it
// was not, and may be made twice.
func (m *Memory) settleLost(uuid proxmox.SMBIOSUUID, next firewall.Edit) {
	m.withFirewall(uuid, func(r *knownFirewall) {
		switch {
		case r.lost != "" && next != nil && next.String() == r.lost:
			r.unmade = true
		case !r.unmade:
			r.lost = ""
		}
	})
}

// firewallMayComeLate reports whether an edit whose answer was lost may still be made.
func (m *Memory) firewallMayComeLate(uuid proxmox.SMBIOSUUID) bool {
	known := m.firewall(uuid)
	return known.lost != "" && m.clock.Since(known.lostAt) < m.late
}

// FirewallChanged forgets the VM's firewall.
func (m *Memory) FirewallChanged(uuid proxmox.SMBIOSUUID) {
	m.withFirewall(uuid, func(r *knownFirewall) { *r = r.forgotten() })
}
