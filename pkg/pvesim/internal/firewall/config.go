package firewall

import (
	"maps"
	"slices"
	"strings"
)

// Config is one firewall file: of the cluster, a host, a guest or a vnet. The zero Config is an empty one.
type Config struct {
	Options map[string]string
	// Rules in their order; the position of a rule is its index.
	Rules []Rule
	// IPSets and Groups by their name, Aliases by their name in lower case. Only the cluster has groups.
	IPSets  map[string]*IPSet
	Aliases map[string]Alias
	Groups  map[string]*Group
}

// IPSet is a named set of networks.
type IPSet struct {
	Comment string
	// Entries in the order of their networks.
	Entries []Entry
}

// Entry is one network of an IP set.
type Entry struct {
	// CIDR is an address, a network or the name of an alias.
	CIDR    string
	Comment string
	NoMatch bool
}

// Alias is a name for an address or a network.
type Alias struct {
	// Name as it was given.
	Name    string
	CIDR    string
	Comment string
}

// Group is a security group.
type Group struct {
	Comment string
	Rules   []Rule
}

// Clone copies a configuration.
func (c *Config) Clone() *Config {
	out := &Config{Options: maps.Clone(c.Options), Rules: cloneRules(c.Rules), Aliases: maps.Clone(c.Aliases)}
	for name, s := range c.IPSets {
		out.AddIPSet(name, &IPSet{Comment: s.Comment, Entries: slices.Clone(s.Entries)})
	}
	for name, g := range c.Groups {
		out.AddGroup(name, &Group{Comment: g.Comment, Rules: cloneRules(g.Rules)})
	}
	return out
}

func cloneRules(rules []Rule) []Rule {
	out := make([]Rule, len(rules))
	for i, r := range rules {
		out[i] = maps.Clone(r)
	}
	return out
}

// SetOption sets an option.
func (c *Config) SetOption(name, value string) {
	if c.Options == nil {
		c.Options = map[string]string{}
	}
	c.Options[name] = value
}

// AddIPSet adds or replaces an IP set. Names of sets are kept in lower case.
func (c *Config) AddIPSet(name string, s *IPSet) {
	if c.IPSets == nil {
		c.IPSets = map[string]*IPSet{}
	}
	c.IPSets[strings.ToLower(name)] = s
}

// AddAlias adds or replaces an alias.
func (c *Config) AddAlias(a Alias) {
	if c.Aliases == nil {
		c.Aliases = map[string]Alias{}
	}
	c.Aliases[strings.ToLower(a.Name)] = a
}

// AddGroup adds or replaces a security group. Names of groups are kept in lower case.
func (c *Config) AddGroup(name string, g *Group) {
	if c.Groups == nil {
		c.Groups = map[string]*Group{}
	}
	c.Groups[strings.ToLower(name)] = g
}

// RenameGroup lets the rules of a group that was renamed name it anew.
func (c *Config) RenameGroup(from, to string) {
	for _, r := range c.Rules {
		if r["type"] == "group" && r["action"] == from {
			r["action"] = to
		}
	}
}

// Add adds a network to the set, in the order of networks.
func (s *IPSet) Add(e Entry) {
	s.Entries = append(s.Entries, e)
	slices.SortFunc(s.Entries, func(a, b Entry) int { return strings.Compare(a.CIDR, b.CIDR) })
}

// Find returns the entry of a network, or nil.
func (s *IPSet) Find(cidr string) *Entry {
	for i := range s.Entries {
		if s.Entries[i].CIDR == cidr {
			return &s.Entries[i]
		}
	}
	return nil
}

// Remove removes the entry of a network, if there is one.
func (s *IPSet) Remove(cidr string) {
	s.Entries = slices.DeleteFunc(s.Entries, func(e Entry) bool { return e.CIDR == cidr })
}
