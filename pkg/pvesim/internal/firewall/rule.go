package firewall

import (
	"fmt"
	"slices"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

// Rule is one rule by its properties: type, action, enable, proto and so on. Those that are not set are missing.
type Rule map[string]string

// properties are what a request may say of a rule.
func properties() []string {
	return []string{
		"action", "comment", "dest", "digest", "dport", "enable", "icmp-type", "iface", "log", "macro", "pos", "proto", "source", "sport", "type",
	}
}

// Apply takes the properties of a rule out of the parameters of a request. An empty value or - takes the property away.
func (r Rule) Apply(params map[string]string) {
	for _, name := range properties() {
		value, given := params[name]
		switch {
		case !given:
		case value == "" || value == "-":
			delete(r, name)
		default:
			r[name] = value
		}
	}
}

// Delete takes the listed properties away. It returns why it cannot, or "".
func (r Rule) Delete(list string) string {
	for _, name := range schema.SplitList(list) {
		if !slices.Contains(properties(), name) {
			return fmt.Sprintf("no such property ('%s')", name)
		}
		if name == "type" || name == "action" {
			return fmt.Sprintf("unable to delete required property '%s'", name)
		}
		delete(r, name)
	}
	return ""
}

// Stored is the rule as it is read back from the file that it was written to.
func (r Rule) Stored() Rule {
	out := Rule{"type": r["type"], "action": r["action"], "enable": "1"}
	if r["enable"] == "0" {
		out["enable"] = "0"
	}
	kept := []string{"iface", "log"}
	if r["type"] == "group" {
		// A macro is written around the action, where nobody looks for it when it is a group's name.
		if r["macro"] != "" {
			out["action"] = r["macro"] + "(" + r["action"] + ")"
		}
	} else {
		kept = append(kept, "macro", "source", "dest", "proto", "dport", "sport", "icmp-type", "ipversion")
	}
	for _, name := range kept {
		if r[name] != "" {
			out[name] = r[name]
		}
	}
	if comment := Comment(r["comment"]); comment != "" {
		out["comment"] = comment
	}
	return out
}

// Comment is what is left of a comment in a file of lines: its first line without spaces at the ends.
func Comment(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return strings.TrimSpace(line)
}

// Move takes the rule at one position to another one, counted before it is taken away. Positions beyond the end mean the end.
func Move(rules []Rule, from, to int) []Rule {
	out := make([]Rule, 0, len(rules))
	for i, r := range rules {
		if i == from {
			continue
		}
		if i == to {
			out = append(out, rules[from])
		}
		out = append(out, r)
	}
	if to >= len(rules) {
		out = append(out, rules[from])
	}
	return out
}
