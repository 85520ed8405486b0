package ha

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// Edit is one change of what the HA manager is told of a VM: one request.
//
//sumtype:decl
type Edit interface {
	// String says what it does.
	String() string
	// Apply is what there is after it. What it changes has a digest that nobody knows.
	Apply(State) State
	isEdit()
}

// AddResource makes the VM an HA resource.
type AddResource struct {
	Options map[string]string
}

// SetOptions changes options of the resource.
type SetOptions struct {
	Set    map[string]string
	Delete []string
	Digest proxmox.Digest
}

// RemoveResource ends that the VM is an HA resource. Proxmox VE takes it out of all rules, too.
type RemoveResource struct{}

// CreateRule makes a rule.
type CreateRule struct {
	Name string
	Rule Rule
}

// ChangeRule changes which resources a rule is for, and whether it is disabled.
type ChangeRule struct {
	Name   string
	Set    map[string]string
	Delete []string
	Digest proxmox.Digest
}

// DeleteRule deletes a rule that is for no other resource: Proxmox VE takes none without any.
type DeleteRule struct {
	Name string
}

func (AddResource) isEdit()    {}
func (SetOptions) isEdit()     {}
func (RemoveResource) isEdit() {}
func (CreateRule) isEdit()     {}
func (ChangeRule) isEdit()     {}
func (DeleteRule) isEdit()     {}

// String says what it does.
func (AddResource) String() string { return "making an HA resource" }

// String says what it does.
func (e SetOptions) String() string {
	names := append(slices.Sorted(maps.Keys(e.Set)), e.Delete...)
	return "setting the HA options " + strings.Join(names, ", ")
}

// String says what it does.
func (RemoveResource) String() string { return "removing the HA resource" }

// String says what it does.
func (e CreateRule) String() string { return fmt.Sprintf("making the HA rule %s", e.Name) }

// String says what it does.
func (e ChangeRule) String() string {
	if e.Set["resources"] == "" {
		return fmt.Sprintf("disabling the HA rule %s, which somebody else made and which is for no other resource", e.Name)
	}
	return fmt.Sprintf("changing the resources of the HA rule %s", e.Name)
}

// String says what it does.
func (e DeleteRule) String() string {
	return fmt.Sprintf("deleting the HA rule %s, which is for no other resource", e.Name)
}

// Apply is what there is after it.
func (e AddResource) Apply(s State) State {
	s = s.Clone()
	s.Resource, s.ResourceDigest = maps.Clone(e.Options), ""
	return s
}

// Apply is what there is after it.
func (e SetOptions) Apply(s State) State {
	s = s.Clone()
	s.Resource, s.ResourceDigest = changed(s.Resource, e.Set, e.Delete), ""
	return s
}

// Apply is what there is after it. What became of the rules is not known.
func (RemoveResource) Apply(State) State { return State{} }

// Apply is what there is after it.
func (e CreateRule) Apply(s State) State {
	s = s.Clone()
	if s.Rules == nil {
		s.Rules = map[string]Rule{}
	}
	s.Rules[e.Name], s.RulesDigest = maps.Clone(e.Rule), ""
	return s
}

// Apply is what there is after it.
func (e ChangeRule) Apply(s State) State {
	s = s.Clone()
	s.Rules[e.Name], s.RulesDigest = changed(s.Rules[e.Name], e.Set, e.Delete), ""
	return s
}

// Apply is what there is after it.
func (e DeleteRule) Apply(s State) State {
	s = s.Clone()
	delete(s.Rules, e.Name)
	s.RulesDigest = ""
	return s
}

func changed(options, set map[string]string, remove []string) map[string]string {
	result := maps.Clone(options)
	if result == nil {
		result = map[string]string{}
	}
	maps.Copy(result, set)
	for _, name := range remove {
		delete(result, name)
	}
	return result
}

// IsBlind reports whether an edit relies on what was read without a digest that would tell that it changed since: it has to be
// read again.
func IsBlind(edit Edit) bool {
	switch edit := edit.(type) {
	case SetOptions:
		return edit.Digest == ""
	case ChangeRule:
		return edit.Digest == ""
	case AddResource, RemoveResource, CreateRule, DeleteRule:
	}
	return false
}
