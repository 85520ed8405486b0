package firewall

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// Edit is one change of a VM's firewall: one request to Proxmox VE.
//
//sumtype:decl
type Edit interface {
	isEdit()
	// Apply gives the firewall after the edit. The digest of what it changed is not known then.
	Apply(State) State
	// String says, to a person, what the edit does.
	String() string
}

// SetOptions sets and deletes options, all at once.
type SetOptions struct {
	Set    map[string]string
	Delete []string
	Digest proxmox.Digest
}

// InsertRule makes a rule. Proxmox VE puts it before all others.
type InsertRule struct{ Rule Rule }

// MoveRule moves the rule at a position before the one at another.
type MoveRule struct {
	Position, Before int
	Digest           proxmox.Digest
}

// EnableRule gives the rule at a position its effect.
type EnableRule struct {
	Position int
	Digest   proxmox.Digest
}

// DeleteRule deletes the rule at a position.
type DeleteRule struct {
	Position int
	Digest   proxmox.Digest
}

// CreateSet makes an empty IP set.
type CreateSet struct{ Name, Comment string }

// RenameSet gives an IP set another name and comment.
type RenameSet struct {
	From, To, Comment string
	Digest            proxmox.Digest
}

// DeleteSet deletes an IP set with all that is in it.
type DeleteSet struct{ Name string }

// AddAddress puts an address into an IP set.
type AddAddress struct {
	Set     string
	Address netip.Addr
}

// RemoveEntry takes an entry out of an IP set.
type RemoveEntry struct {
	Set, CIDR string
	Digest    proxmox.Digest
}

func (SetOptions) isEdit()  {}
func (InsertRule) isEdit()  {}
func (MoveRule) isEdit()    {}
func (EnableRule) isEdit()  {}
func (DeleteRule) isEdit()  {}
func (CreateSet) isEdit()   {}
func (RenameSet) isEdit()   {}
func (DeleteSet) isEdit()   {}
func (AddAddress) isEdit()  {}
func (RemoveEntry) isEdit() {}

// Apply implements Edit.
func (e SetOptions) Apply(state State) State {
	state = state.Clone()
	for _, name := range e.Delete {
		delete(state.Options, name)
	}
	maps.Copy(state.Options, e.Set)
	state.OptionsDigest = ""
	return state
}

// Apply implements Edit.
func (e InsertRule) Apply(state State) State {
	return state.withRules(slices.Insert(slices.Clone(state.Rules), 0, e.Rule))
}

// Apply implements Edit.
func (e MoveRule) Apply(state State) State {
	if e.Position >= len(state.Rules) {
		return state.withRules(state.Rules)
	}
	rules, to := slices.Delete(slices.Clone(state.Rules), e.Position, e.Position+1), e.Before
	if e.Before > e.Position {
		to--
	}
	return state.withRules(slices.Insert(rules, min(to, len(rules)), state.Rules[e.Position]))
}

// Apply implements Edit.
func (e EnableRule) Apply(state State) State {
	rules := slices.Clone(state.Rules)
	if e.Position < len(rules) {
		rules[e.Position] = rules[e.Position].enabled()
	}
	return state.withRules(rules)
}

// Apply implements Edit.
func (e DeleteRule) Apply(state State) State {
	rules := slices.Clone(state.Rules)
	if e.Position < len(rules) {
		rules = slices.Delete(rules, e.Position, e.Position+1)
	}
	return state.withRules(rules)
}

func (s State) withRules(rules []Rule) State {
	s.Rules, s.RulesDigest = rules, ""
	return s
}

// Apply implements Edit.
func (e CreateSet) Apply(state State) State {
	state = state.Clone()
	state.Sets[e.Name] = Set{Comment: e.Comment}
	state.SetsDigest = ""
	return state
}

// Apply implements Edit.
func (e RenameSet) Apply(state State) State {
	state = state.Clone()
	set := state.Sets[e.From]
	delete(state.Sets, e.From)
	set.Comment = e.Comment
	state.Sets[e.To], state.SetsDigest = set, ""
	return state
}

// Apply implements Edit.
func (e DeleteSet) Apply(state State) State {
	state = state.Clone()
	delete(state.Sets, e.Name)
	state.SetsDigest = ""
	return state
}

// Apply implements Edit.
func (e AddAddress) Apply(state State) State {
	return state.withEntries(e.Set, append(slices.Clone(state.Sets[e.Set].Entries), Entry{CIDR: e.Address.String()}))
}

// Apply implements Edit.
func (e RemoveEntry) Apply(state State) State {
	entries := slices.Clone(state.Sets[e.Set].Entries)
	return state.withEntries(e.Set, slices.DeleteFunc(entries, func(entry Entry) bool { return entry.CIDR == e.CIDR }))
}

func (s State) withEntries(name string, entries []Entry) State {
	s = s.Clone()
	s.Sets[name] = Set{Comment: s.Sets[name].Comment, Entries: entries}
	return s
}

// Part is a part of a firewall that Proxmox VE tells by one request.
type Part struct {
	// Set is the IP set whose entries it is; else Kind says which part it is.
	Set  string
	Kind PartKind
}

// PartKind tells the parts apart.
type PartKind int

// The parts of a firewall.
const (
	OptionsPart PartKind = iota
	RulesPart
	SetsPart
	EntriesPart
)

// Unread returns the part that has to be read again before an edit: Proxmox VE takes the part's digest with it, and that is
// not known.
func Unread(edit Edit) (Part, bool) {
	switch edit := edit.(type) {
	case SetOptions:
		return Part{Kind: OptionsPart}, edit.Digest == ""
	case MoveRule:
		return Part{Kind: RulesPart}, edit.Digest == ""
	case EnableRule:
		return Part{Kind: RulesPart}, edit.Digest == ""
	case DeleteRule:
		return Part{Kind: RulesPart}, edit.Digest == ""
	case RenameSet:
		return Part{Kind: SetsPart}, edit.Digest == ""
	case RemoveEntry:
		return Part{Kind: EntriesPart, Set: edit.Set}, edit.Digest == ""
	case InsertRule, CreateSet, DeleteSet, AddAddress: // take none
	}
	return Part{}, false
}

// String implements Edit.
func (e SetOptions) String() string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(e.Set)) {
		texts = append(texts, name+"="+e.Set[name])
	}
	for _, name := range e.Delete {
		texts = append(texts, "no "+name)
	}
	return "setting the firewall options " + strings.Join(texts, ", ")
}

// String implements Edit.
func (e InsertRule) String() string {
	return fmt.Sprintf("making the rule of security group %s", e.Rule["action"])
}

// String implements Edit.
func (e MoveRule) String() string { return fmt.Sprintf("moving firewall rule %d", e.Position) }

// String implements Edit.
func (e EnableRule) String() string { return fmt.Sprintf("enabling firewall rule %d", e.Position) }

// String implements Edit.
func (e DeleteRule) String() string { return fmt.Sprintf("deleting firewall rule %d", e.Position) }

// String implements Edit.
func (e CreateSet) String() string { return "making IP set " + e.Name }

// String implements Edit.
func (e RenameSet) String() string { return fmt.Sprintf("renaming IP set %s to %s", e.From, e.To) }

// String implements Edit.
func (e DeleteSet) String() string { return "deleting IP set " + e.Name }

// String implements Edit.
func (e AddAddress) String() string { return fmt.Sprintf("adding %s to IP set %s", e.Address, e.Set) }

// String implements Edit.
func (e RemoveEntry) String() string { return fmt.Sprintf("taking %s out of IP set %s", e.CIDR, e.Set) }
