package firewall

import (
	"maps"
	"slices"
)

// rank orders the values of an option by how much they let pass. What an option is by default differs between versions and
// implementations of the firewall: no value is in between.
func rank(name, value string) int {
	order, found := map[string][]string{
		"macfilter": {"1", "", "0"}, ipFilter: {"1", "", "0"},
		"dhcp": {"0", "", "1"}, "ndp": {"0", "", "1"}, "radv": {"0", "", "1"},
	}[name]
	if !found {
		return 0
	}
	return slices.Index(order, value)
}

// change gives the edit that brings those options to what they are to be that the choice holds for; nil when they are so.
func (p planner) change(choose func(name, is, goal string) bool) Edit {
	edit := SetOptions{Set: map[string]string{}, Digest: p.present.OptionsDigest}
	names := maps.Clone(p.Options)
	if names == nil {
		names = map[string]string{}
	}
	maps.Copy(names, p.Before)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		goal, _ := p.goal(name)
		is, present := p.present.Options[name]
		switch {
		case is == goal && (present || goal == "") || !choose(name, is, goal):
		case goal == "":
			edit.Delete = append(edit.Delete, name)
		default:
			edit.Set[name] = goal
		}
	}
	if len(edit.Set) == 0 && len(edit.Delete) == 0 {
		return nil
	}
	return edit
}

func (p planner) allOptions() Edit {
	return p.change(func(string, string, string) bool { return true })
}

func (p planner) tightenOptions() Edit {
	return p.change(func(name, is, goal string) bool { return rank(name, goal) < rank(name, is) })
}

func (p planner) loosenOptions() Edit {
	return p.change(func(name, is, goal string) bool { return rank(name, goal) > rank(name, is) })
}

func (p planner) setPolicies() Edit {
	return p.change(func(name, _, _ string) bool { return name == policyIn || name == policyOut })
}
