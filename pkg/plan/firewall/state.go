// Package firewall plans a VM's firewall in Proxmox VE: from what is wanted and what is there it gives the next edit, which
// is one request. The edits are in an order in which the VM never accepts a packet that neither the old nor the new firewall
// accepts, also when they stop half-way.
//
// Rules and IP sets carry a comment with the VM's identity; all others are somebody else's and stay as they are. An option
// is ours from when it was set until it was put back.
//
// Proxmox VE filters only devices with the flag `firewall`, which is a part of the VM's config (package vmconfig), and only
// while the firewall of the Proxmox VE cluster is on, which is its administrator's.
package firewall

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// State is a VM's firewall as Proxmox VE's API gives it. A digest is empty when it is not known.
type State struct {
	// Options are the options that are set, by their names in the API. Booleans are 1 and 0.
	Options       map[string]string
	OptionsDigest proxmox.Digest
	// Rules are in the order in which they are looked at.
	Rules       []Rule
	RulesDigest proxmox.Digest
	// Sets are the IP sets by name.
	Sets       map[string]Set
	SetsDigest proxmox.Digest
}

// Rule is a rule by its properties: type, action, enable, iface, comment and so on, without those that only tell where it is.
type Rule map[string]string

// Set is an IP set.
type Set struct {
	Comment string
	// Entries are what is in it; those of a set that is nobody's business here are not read.
	Entries []Entry
	Digest  proxmox.Digest
}

// Entry is an entry of an IP set.
type Entry struct {
	// CIDR is an address, a network or the name of an alias, as Proxmox VE writes it.
	CIDR string
	// NoMatch takes it out of the set.
	NoMatch bool
}

// Clone copies the state, so that a change of the copy leaves it alone.
func (s State) Clone() State {
	s.Options, s.Rules, s.Sets = maps.Clone(s.Options), slices.Clone(s.Rules), maps.Clone(s.Sets)
	if s.Options == nil {
		s.Options = map[string]string{}
	}
	if s.Sets == nil {
		s.Sets = map[string]Set{}
	}
	return s
}

// isOn reports whether the firewall filters at all. Without the option it does not.
func (s State) isOn() bool { return s.Options[enable] == "1" }

// Comment is the comment of the rules and IP sets of the VM with the identity that are ours. Copies of them, which a VM has
// that was cloned from this one, are not ours.
func Comment(uuid proxmox.SMBIOSUUID) string { return vmconfig.IdentityTag(uuid) }

// isEnabled reports whether a rule has an effect.
func (r Rule) isEnabled() bool { return r["enable"] == "1" }

func (r Rule) enabled() Rule {
	result := maps.Clone(r)
	result["enable"] = "1"
	return result
}

func (r Rule) disabled() Rule {
	result := maps.Clone(r)
	result["enable"] = "0"
	return result
}

func equalRules(a, b Rule) bool { return maps.Equal(a, b) }

// is reports whether the entry is an address, however it is written.
func (e Entry) is(address netip.Addr) bool {
	if e.NoMatch {
		return false
	}
	if prefix, err := netip.ParsePrefix(e.CIDR); err == nil {
		return prefix.IsSingleIP() && prefix.Addr() == address
	}
	found, err := netip.ParseAddr(e.CIDR)
	return err == nil && found == address
}

// holds reports whether the set has the address as an entry of its own.
func (s Set) holds(address netip.Addr) bool {
	return slices.ContainsFunc(s.Entries, func(entry Entry) bool { return entry.is(address) })
}
