package ha

import (
	"maps"
	"slices"
	"strings"
)

// Next returns the next edit, and false when there is none: all is as wanted. A resource comes before the rules that it is in;
// rules are left before others are joined, since some exclude each other.
func Next(wanted Wanted, present State) (Edit, bool) {
	p := planner{Wanted: wanted, present: present}
	steps := []func() Edit{p.leaveRules, p.setOptions}
	switch {
	case p.isAsked():
		steps = []func() Edit{p.addResource, p.leaveRules, p.setOptions, p.joinRules}
	case p.Record == nil:
		return nil, false
	case !p.Record.Adopted:
		steps = []func() Edit{p.removeResource}
	}
	for _, step := range steps {
		if edit := step(); edit != nil {
			return edit, true
		}
	}
	return nil, false
}

type planner struct {
	Wanted
	present State
}

func (p planner) addResource() Edit {
	if p.present.Resource != nil {
		return nil
	}
	options := p.options()
	options[stateOption] = "started"
	if p.Off {
		options[stateOption] = "stopped"
	}
	if p.Comment != "" {
		options["comment"] = p.Comment
	}
	return AddResource{Options: options}
}

func (p planner) removeResource() Edit {
	if p.present.Resource == nil {
		return nil
	}
	return RemoveResource{}
}

// setOptions brings the options to what is asked, and those that are not asked for any more to what they were.
func (p planner) setOptions() Edit {
	if p.present.Resource == nil {
		return nil
	}
	goals := map[string]string{}
	if p.Record != nil {
		maps.Copy(goals, p.Record.Options)
	}
	maps.Copy(goals, p.options())
	edit := SetOptions{Set: map[string]string{}, Digest: p.present.ResourceDigest}
	for _, name := range slices.Sorted(maps.Keys(goals)) {
		switch is, found := p.present.Resource[name]; {
		case goals[name] == "" && found:
			edit.Delete = append(edit.Delete, name)
		case goals[name] != is && (found || goals[name] != usual(name)):
			edit.Set[name] = goals[name]
		}
	}
	if len(edit.Set) == 0 && len(edit.Delete) == 0 {
		return nil
	}
	return edit
}

// usual is what an option is where it is not set (PVE::HA::Resources).
func usual(option string) string {
	switch option {
	case "max_restart", "max_relocate", "failback":
		return "1"
	}
	return ""
}

// leaveRules takes the VM out of the rules that we added it to and that are not asked for any more.
func (p planner) leaveRules() Edit {
	if p.Record == nil {
		return nil
	}
	for _, name := range p.Record.Rules {
		if rule := p.present.Rules[name]; !p.asksFor(name) && rule.Has(p.sid()) {
			if edit := p.leave(name, rule); edit != nil {
				return edit
			}
		}
	}
	return nil
}

// leave takes the VM out of a rule. Proxmox VE takes no rule without resources, nor, unless it is disabled, one about the
// affinity of one resource alone.
func (p planner) leave(name string, rule Rule) Edit {
	others := slices.DeleteFunc(rule.resources(), func(sid string) bool { return sid == p.sid() })
	switch {
	case rule.IsLeftToUs(p.ID):
		return DeleteRule{Name: name}
	case len(others) == 0 && rule.isDisabled():
		return nil
	case len(others) == 0: // somebody else made it, and Proxmox VE keeps no rule for nothing
		return ChangeRule{Name: name, Set: map[string]string{"type": rule["type"], "disable": "1"}, Digest: p.present.RulesDigest}
	}
	edit := ChangeRule{Name: name, Set: map[string]string{"type": rule["type"], "resources": strings.Join(others, ",")}, Digest: p.present.RulesDigest}
	if rule["type"] == resourceAffinity && len(others) == 1 {
		edit.Set["disable"] = "1"
	}
	return edit
}

func (p planner) joinRules() Edit {
	for _, wanted := range p.Spec.Rules {
		rule, found := p.present.Rules[wanted.Name]
		switch made := newRule(wanted, p.sid()); {
		case !found && made != nil:
			return CreateRule{Name: wanted.Name, Rule: made}
		case found && !rule.Has(p.sid()):
			return p.join(wanted.Name, rule)
		}
	}
	return nil
}

// join adds the VM to a rule. One about the affinity of resources that had less than two was disabled for that.
func (p planner) join(name string, rule Rule) Edit {
	resources := append(rule.resources(), p.sid())
	edit := ChangeRule{Name: name, Set: map[string]string{"type": rule["type"], "resources": strings.Join(resources, ",")}, Digest: p.present.RulesDigest}
	if rule["type"] == resourceAffinity && rule.isDisabled() && len(resources) == 2 {
		edit.Delete = []string{"disable"}
	}
	return edit
}
