package ha

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// Wanted is what a VM is to be to the HA manager. Without a Spec that asks for it, nothing of ours is to be left.
type Wanted struct {
	ID   proxmox.VMID
	Spec v1beta1.HighAvailability
	// Off says that the VM is to be off when it is made a resource. What it is to be later the HA manager is told by those who
	// start and stop it.
	Off bool
	// Comment is what people see of a resource that we make.
	Comment string
	// Record is what was before; nil while nothing there is ours.
	Record *Record
}

// IsAsked reports whether the spec asks for high availability.
func IsAsked(spec v1beta1.HighAvailability) bool { return spec.Enabled != nil && *spec.Enabled }

func (w Wanted) isAsked() bool { return IsAsked(w.Spec) }

func (w Wanted) sid() string { return SID(w.ID) }

// NeedsRules reports whether it matters which rules there are.
func (w Wanted) NeedsRules() bool {
	return w.isAsked() && len(w.Spec.Rules) > 0 || w.Record != nil && len(w.Record.Rules) > 0
}

// NeedsRelease reports whether it matters which release of Proxmox VE it is.
func (w Wanted) NeedsRelease() bool {
	return w.NeedsRules() || w.isAsked() && (w.Spec.Group != "" || w.Spec.Failback != nil)
}

// options are the options that the spec sets.
func (w Wanted) options() map[string]string {
	result := map[string]string{}
	if !w.isAsked() {
		return result
	}
	for name, value := range map[string]*int32{"max_restart": w.Spec.MaxRestart, "max_relocate": w.Spec.MaxRelocate} {
		if value != nil {
			result[name] = strconv.Itoa(int(*value))
		}
	}
	if w.Spec.Group != "" {
		result[groupOption] = w.Spec.Group
	}
	if w.Spec.Failback != nil {
		result["failback"] = "0"
		if *w.Spec.Failback {
			result["failback"] = "1"
		}
	}
	return result
}

// asksFor reports whether the spec has the rule.
func (w Wanted) asksFor(rule string) bool {
	return w.isAsked() && slices.ContainsFunc(w.Spec.Rules, func(r v1beta1.HighAvailabilityRule) bool { return r.Name == rule })
}

// NextRecord returns what has to be written down before anything else is changed, and whether that is more than is written
// down already.
func (w Wanted) NextRecord(present State) (Record, bool) {
	if !w.isAsked() {
		return Record{}, false
	}
	result := w.Record.clone()
	switch {
	case w.Record == nil:
		result.Adopted = present.Resource != nil
	case present.Resource == nil: // what was there before is gone
		result.Adopted, result.Options = false, map[string]string{}
	}
	for name := range w.options() {
		if _, known := result.Options[name]; !known {
			result.Options[name] = present.Resource[name]
		}
	}
	for _, rule := range w.Spec.Rules {
		if !present.Rules[rule.Name].Has(w.sid()) && !slices.Contains(result.Rules, rule.Name) {
			result.Rules = append(result.Rules, rule.Name)
		}
	}
	slices.Sort(result.Rules)
	return result, w.Record == nil || !result.equal(w.Record.clone())
}

// Settled returns what is still to be known once there is nothing more to edit: what was put back is forgotten. It is nil
// when nothing of ours is left.
func (w Wanted) Settled() *Record {
	if !w.isAsked() || w.Record == nil {
		return nil
	}
	result := Record{Adopted: w.Record.Adopted, Options: map[string]string{}}
	for name := range w.options() {
		if value, known := w.Record.Options[name]; known {
			result.Options[name] = value
		}
	}
	for _, rule := range w.Record.Rules {
		if w.asksFor(rule) {
			result.Rules = append(result.Rules, rule)
		}
	}
	return &result
}

// IsSettled reports whether the record is as it is to be in the end.
func (w Wanted) IsSettled() bool {
	settled := w.Settled()
	if settled == nil || w.Record == nil {
		return settled == nil && w.Record == nil
	}
	return settled.equal(w.Record.clone())
}

// Facts are what the Proxmox VE cluster has.
type Facts struct {
	// HasRules says that it is of the release 9 or later, with rules in place of groups.
	HasRules bool
	// Groups are its HA groups, as far as they matter.
	Groups []string
}

// Problems say why the VM cannot be what is asked for, and what to do.
func (w Wanted) Problems(present State, facts Facts) []string {
	if !w.isAsked() {
		return nil
	}
	var problems []string
	note := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	switch {
	case facts.HasRules && w.Spec.Group != "":
		note("highAvailability.group is %s, and this Proxmox VE has HA rules in place of groups: use highAvailability.rules", w.Spec.Group)
	case !facts.HasRules && w.Spec.Group != "" && !slices.Contains(facts.Groups, w.Spec.Group):
		note("there is no HA group %s, which highAvailability.group names: make it in Proxmox VE (Datacenter, HA, Groups), or name another one", w.Spec.Group)
	case !facts.HasRules && len(w.Spec.Rules) > 0:
		note("highAvailability.rules need Proxmox VE 9: on 8 use highAvailability.group")
	case !facts.HasRules && w.Spec.Failback != nil:
		note("highAvailability.failback needs Proxmox VE 9: on 8 it is the group's option nofailback")
	}
	if facts.HasRules {
		for _, rule := range w.Spec.Rules {
			problems = append(problems, ruleProblems(rule, present.Rules[rule.Name])...)
		}
	}
	return problems
}

// ruleProblems say why a VM cannot be added to a rule.
func ruleProblems(wanted v1beta1.HighAvailabilityRule, present Rule) []string {
	made := newRule(wanted, "")
	switch {
	case present == nil && made == nil:
		return []string{fmt.Sprintf("there is no HA rule %s, which highAvailability.rules names: make it in Proxmox VE (Datacenter, HA, Affinity Rules), or say what it is to be by nodeAffinity or resourceAffinity", wanted.Name)}
	case present == nil || made == nil:
		return nil
	case present["type"] != made["type"] || present["affinity"] != made["affinity"]:
		return []string{fmt.Sprintf("the HA rule %s, which highAvailability.rules names, exists and is for %s: give the rule here another name, or delete that one in Proxmox VE",
			wanted.Name, strings.TrimSpace(present["affinity"]+" "+present["type"]))}
	}
	return nil
}

// newRule is the rule that is made for a resource; nil where the spec does not say what it is to be. Proxmox VE takes no rule
// about the affinity of one resource alone but a disabled one.
func newRule(wanted v1beta1.HighAvailabilityRule, sid string) Rule {
	switch {
	case len(wanted.NodeAffinity.Nodes) > 0:
		rule := Rule{"type": nodeAffinity, "resources": sid, "nodes": nodes(wanted.NodeAffinity.Nodes), "comment": ruleComment}
		if strict := wanted.NodeAffinity.Strict; strict != nil && *strict {
			rule["strict"] = "1"
		}
		return rule
	case wanted.ResourceAffinity != "":
		return Rule{"type": resourceAffinity, "resources": sid, "affinity": string(wanted.ResourceAffinity), "disable": "1", "comment": ruleComment}
	}
	return nil
}

func nodes(list []v1beta1.AffinityNode) string {
	texts := make([]string, len(list))
	for i, node := range list {
		texts[i] = node.Name
		if node.Priority != nil && *node.Priority > 0 {
			texts[i] += ":" + strconv.Itoa(int(*node.Priority))
		}
	}
	return strings.Join(texts, ",")
}
