// Package ha plans what Proxmox VE's HA manager is told of a VM: that the VM is an HA resource, with which options, and which
// HA rules it is in. From what is wanted and what is there it gives the next edit, which is one request.
//
// What the VM was before is written down first (Record). So what we made can be taken back, and what somebody else made is
// left, or given back as it was.
package ha

import (
	"maps"
	"slices"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// State is what is configured of a VM for high availability. A digest is empty when it is not known.
type State struct {
	// Resource are the options of the VM as an HA resource; nil while it is none.
	Resource map[string]string
	// ResourceDigest is of all resources of the Proxmox VE cluster.
	ResourceDigest proxmox.Digest
	// Rules are all rules of the Proxmox VE cluster by name; nil when they were not looked at.
	Rules map[string]Rule
	// RulesDigest is of all rules.
	RulesDigest proxmox.Digest
}

// Rule is a rule by its properties: type, resources, nodes, strict, affinity, disable, comment.
type Rule map[string]string

// The types of rules, and the names of options that mean something here.
const (
	nodeAffinity     = "node-affinity"
	resourceAffinity = "resource-affinity"
	stateOption      = "state"
	groupOption      = "group"
	ignored          = "ignored"
)

// Has reports whether the rule is for the resource.
func (r Rule) Has(sid string) bool { return slices.Contains(r.resources(), sid) }

func (r Rule) resources() []string {
	return strings.FieldsFunc(r["resources"], func(c rune) bool { return c == ',' || c == ';' || c == ' ' })
}

// ruleComment says of a rule that we made it.
const ruleComment = "made by CAPVE"

// IsLeftToUs reports whether a rule is ours to delete: we made it, nobody said otherwise in its comment, and it is for no other
// resource than this one.
func (r Rule) IsLeftToUs(id proxmox.VMID) bool {
	return r["comment"] == ruleComment && slices.Equal(r.resources(), []string{SID(id)})
}

func (r Rule) isDisabled() bool { return r["disable"] == "1" }

// SID is how a VM is called as an HA resource.
func SID(id proxmox.VMID) string { return "vm:" + id.String() }

// Clone copies the state, so that a change of the copy leaves it alone.
func (s State) Clone() State {
	s.Resource, s.Rules = maps.Clone(s.Resource), maps.Clone(s.Rules)
	return s
}

// IsIgnored reports whether somebody has taken the VM out of the HA manager's hands.
func (s State) IsIgnored() bool { return s.Resource[stateOption] == ignored }

// Record is what a VM was to the HA manager before we changed that.
type Record struct {
	// Adopted says that it was an HA resource.
	Adopted bool `json:"adopted,omitempty"`
	// Options tells what options were before we set them; an empty value says that the option was not set.
	Options map[string]string `json:"options,omitempty"`
	// Rules are those that we add the VM to.
	Rules []string `json:"rules,omitempty"`
}

// clone copies the record, with a map that can be written to.
func (r *Record) clone() Record {
	if r == nil {
		return Record{Options: map[string]string{}}
	}
	result := Record{Adopted: r.Adopted, Options: maps.Clone(r.Options), Rules: slices.Clone(r.Rules)}
	if result.Options == nil {
		result.Options = map[string]string{}
	}
	return result
}

func (r Record) equal(other Record) bool {
	return r.Adopted == other.Adopted && maps.Equal(r.Options, other.Options) && slices.Equal(r.Rules, other.Rules)
}
