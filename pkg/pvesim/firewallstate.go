package pvesim

import (
	"maps"
	"slices"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/firewall"
)

// loadFirewalls enters the firewall files of a state.
func (w *World) loadFirewalls(s State) {
	w.firewalls.cluster = s.Firewall.config()
	for _, n := range s.Nodes {
		if !n.Firewall.isZero() {
			w.firewalls.hosts[n.Name] = n.Firewall.config()
		}
	}
	for id, f := range s.StrayFirewalls {
		w.firewalls.guests[id] = f.config()
	}
}

// dumpFirewalls adds the firewall files to a state that has its nodes and VMs already.
func (w *World) dumpFirewalls(s *State) {
	s.Firewall = firewallSpec(w.firewalls.cluster)
	for i := range s.Nodes {
		s.Nodes[i].Firewall = firewallSpec(w.firewalls.hosts[s.Nodes[i].Name])
	}
	for i := range s.VMs {
		s.VMs[i].Firewall = firewallSpec(w.firewalls.guests[s.VMs[i].VMID])
	}
	for id, f := range w.firewalls.guests {
		if w.vms[id] != nil {
			continue
		}
		if s.StrayFirewalls == nil {
			s.StrayFirewalls = map[proxmox.VMID]FirewallSpec{}
		}
		s.StrayFirewalls[id] = firewallSpec(f)
	}
}

func (s FirewallSpec) isZero() bool {
	return len(s.Options)+len(s.Rules)+len(s.IPSets)+len(s.Aliases)+len(s.Groups) == 0
}

func (s FirewallSpec) config() *firewall.Config {
	out := &firewall.Config{Options: maps.Clone(s.Options), Rules: ruleSpecs(s.Rules)}
	for _, set := range s.IPSets {
		c := &firewall.IPSet{Comment: set.Comment}
		for _, e := range set.Entries {
			c.Add(firewall.Entry(e))
		}
		out.AddIPSet(set.Name, c)
	}
	for _, a := range s.Aliases {
		out.AddAlias(firewall.Alias(a))
	}
	for _, g := range s.Groups {
		out.AddGroup(g.Name, &firewall.Group{Comment: g.Comment, Rules: ruleSpecs(g.Rules)})
	}
	return out
}

func ruleSpecs(specs []map[string]string) []firewall.Rule {
	var out []firewall.Rule
	for _, r := range specs {
		out = append(out, maps.Clone(r))
	}
	return out
}

func specRules(rules []firewall.Rule) []map[string]string {
	var out []map[string]string
	for _, r := range rules {
		out = append(out, maps.Clone(r))
	}
	return out
}

func firewallSpec(c *firewall.Config) FirewallSpec {
	if c == nil {
		return FirewallSpec{}
	}
	out := FirewallSpec{Rules: specRules(c.Rules)}
	if len(c.Options) > 0 {
		out.Options = maps.Clone(c.Options)
	}
	for _, name := range slices.Sorted(maps.Keys(c.IPSets)) {
		set := IPSetSpec{Name: name, Comment: c.IPSets[name].Comment}
		for _, e := range c.IPSets[name].Entries {
			set.Entries = append(set.Entries, IPSetEntrySpec(e))
		}
		out.IPSets = append(out.IPSets, set)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Aliases)) {
		out.Aliases = append(out.Aliases, AliasSpec(c.Aliases[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(c.Groups)) {
		out.Groups = append(out.Groups, GroupSpec{Name: name, Comment: c.Groups[name].Comment, Rules: specRules(c.Groups[name].Rules)})
	}
	return out
}
