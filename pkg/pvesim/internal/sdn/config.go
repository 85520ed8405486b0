package sdn

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

// Section is one object with its options; its type is the option "type".
type Section map[string]string

// Sections are the objects of one kind by their IDs.
type Sections map[string]Section

// Config is a configuration of the network. Only the first four can be pending: IPAMs and DNS servers count at once.
type Config struct {
	Zones, VNets, Subnets, Controllers Sections
	IPAMs, DNS                         Sections
}

// Empty is a configuration with Proxmox VE's own IPAM alone.
func Empty() Config {
	return Config{
		Zones: Sections{}, VNets: Sections{}, Subnets: Sections{}, Controllers: Sections{},
		IPAMs: Sections{"pve": {"type": "pve"}}, DNS: Sections{},
	}
}

// Clone copies sections.
func (s Sections) Clone() Sections {
	out := Sections{}
	for id, section := range s {
		out[id] = maps.Clone(section)
	}
	return out
}

// Commit is the part of the configuration that is put in force, copied.
func (c Config) Commit() Config {
	return Config{Zones: c.Zones.Clone(), VNets: c.VNets.Clone(), Subnets: c.Subnets.Clone(), Controllers: c.Controllers.Clone()}
}

// Rollback takes back what is pending.
func (c *Config) Rollback(running Config) {
	restored := running.Commit()
	c.Zones, c.VNets, c.Subnets, c.Controllers = restored.Zones, restored.VNets, restored.Subnets, restored.Controllers
}

// HasPending tells whether anything is not in force yet.
func (c Config) HasPending(running Config) bool {
	for _, pair := range [][2]Sections{
		{running.Zones, c.Zones}, {running.VNets, c.VNets}, {running.Subnets, c.Subnets}, {running.Controllers, c.Controllers},
	} {
		for _, o := range Pending(pair[0], pair[1]) {
			if o.Changes != nil {
				return true
			}
		}
	}
	return false
}

// Object is a section as a list of pending changes shows it.
type Object struct {
	ID string
	// Options in force.
	Options Section
	// Changes that are pending, "deleted" for options that will go; nil if there are none.
	Changes Section
	// State is new, changed, deleted or empty.
	State string
}

// Pending compares what is in force with what is configured (PVE::Network::SDN::pending_config).
func Pending(running, configured Sections) []Object {
	ids := map[string]bool{}
	for id := range running {
		ids[id] = true
	}
	for id := range configured {
		ids[id] = true
	}
	var out []Object
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		out = append(out, compare(id, running[id], configured[id]))
	}
	return out
}

func compare(id string, running, configured Section) Object {
	o := Object{ID: id, Options: maps.Clone(running)}
	if o.Options == nil {
		o.Options = Section{}
	}
	changes := Section{}
	for key := range running {
		if _, kept := configured[key]; !kept && configured != nil {
			changes[key], o.State = "deleted", "changed"
		}
	}
	for key, value := range configured {
		was, had := running[key]
		switch {
		case key == "type":
			o.Options[key] = value
		case !had || was != value:
			changes[key], o.State = value, "changed"
		}
	}
	switch {
	case configured == nil:
		o.State = "deleted"
	case running == nil:
		o.State = "new"
	}
	if o.State != "" {
		o.Changes = changes
	}
	return o
}

// Digest is that of the file that the sections are written to (PVE::SectionConfig). Required options come first in a section.
func (s Sections) Digest(kind func(typ string) Kind) string {
	text := ""
	for _, id := range slices.Sorted(maps.Keys(s)) {
		text += fmt.Sprintf("%s: %s\n", s[id]["type"], id)
		keys, required := slices.Sorted(maps.Keys(s[id])), kind(s[id]["type"]).Required
		slices.SortStableFunc(keys, func(a, b string) int { return rank(a, required) - rank(b, required) })
		for _, key := range keys {
			if key != "type" {
				text += fmt.Sprintf("\t%s %s\n", key, s[id][key])
			}
		}
		text += "\n"
	}
	sum := sha1.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

func rank(key string, required []string) int {
	if slices.Contains(required, key) {
		return 0
	}
	return 1
}

// Update changes a section: options are set, then the listed ones deleted. It returns why it cannot, or "".
func (s Section) Update(set Section, list string, k Kind) string {
	for _, key := range schema.SplitList(list) {
		_, also := set[key]
		switch {
		case also:
			return fmt.Sprintf("cannot set and delete property '%s' at the same time!", key)
		case slices.Contains(k.Required, key):
			return fmt.Sprintf("unable to delete required option '%s'", key)
		case !slices.Contains(k.Optional, key):
			return fmt.Sprintf("no such option '%s'", key)
		}
		delete(s, key)
	}
	maps.Copy(s, set)
	return ""
}

// NodeList is a list of nodes as sections hold it: sorted, each node once.
func NodeList(list string) string {
	names := schema.SplitList(list)
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ",")
}

// OnNode tells whether a section is for the node: sections without nodes are for all.
func (s Section) OnNode(name string) bool {
	return s["nodes"] == "" || slices.Contains(schema.SplitList(s["nodes"]), name)
}
