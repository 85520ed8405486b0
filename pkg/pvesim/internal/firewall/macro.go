package firewall

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// macro is a rule or several by a name.
type macro struct {
	name        string
	description string
	// rules are separated by semicolons, each with its protocol, and destination ports or ICMP type, and source ports if it has them.
	rules string
}

// MacroList are the names and descriptions of all macros.
func MacroList() []map[string]string {
	out := []map[string]string{}
	for _, m := range macros() {
		out = append(out, map[string]string{"macro": m.name, "descr": m.description})
	}
	return out
}

// macroNamed finds a macro whatever the case of its name, or returns nil.
func macroNamed(name string) *macro {
	all := macros()
	i := slices.IndexFunc(all, func(m macro) bool { return strings.EqualFold(m.name, name) })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// expandProblems returns what a rule says beside its macro that contradicts it (PVE::Firewall's apply_macro).
func expandProblems(rule Rule, version int) []Problem {
	for _, fields := range macroNamed(rule["macro"]).expand(version) {
		for _, key := range slices.Sorted(maps.Keys(rule)) {
			if has, ok := fields[key]; ok && has != rule[key] {
				return []Problem{{key, fmt.Sprintf("parameter '%s' already define in macro (value = '%s')", key, has)}}
			}
		}
	}
	return nil
}

// expand returns what the rules of the macro say.
func (m *macro) expand(version int) []Rule {
	text := m.rules
	if version == 6 {
		text = strings.ReplaceAll(text, "icmp ", "icmpv6 ")
	}
	var out []Rule
	for _, line := range strings.Split(text, ";") {
		words := strings.Fields(line)
		r := Rule{"proto": words[0]}
		if len(words) > 1 && isICMP(words[0]) {
			r["icmp-type"] = words[1]
		} else if len(words) > 1 {
			r["dport"] = words[1]
		}
		if len(words) > 2 {
			r["sport"] = words[2]
		}
		out = append(out, r)
	}
	return out
}

// macros are those that pve-firewall brings, in the order of their names.
func macros() []macro {
	var out []macro
	for line := range strings.Lines(macroTable) {
		columns := strings.Split(strings.TrimSpace(line), "|")
		out = append(out, macro{columns[0], columns[1], columns[2]})
	}
	return out
}
