package firewall

import "slices"

// placed is a rule and where it is among all.
type placed struct {
	Rule
	position int
}

// ruleWork is what there is to do about the rules while they have an effect. Rules that were alike at the end before, and
// will be in the end, are left out of it.
type ruleWork struct {
	// missing are the rules of ours to insert, before the first of rest.
	missing []Rule
	// anchor is the position where they belong.
	anchor int
	// rest are the rules that follow, ours that are to go among them.
	rest []placed
	// idle are the positions of our rules without an effect.
	idle []int
}

func (p planner) work() ruleWork {
	var effective []placed
	var others []Rule
	work := ruleWork{}
	for position, rule := range p.present.Rules {
		switch {
		case !p.isOurRule(rule):
			others = append(others, rule)
			effective = append(effective, placed{rule, position})
		case rule.isEnabled():
			effective = append(effective, placed{rule, position})
		default:
			work.idle = append(work.idle, position)
		}
	}
	ours := p.rules()
	goal := slices.Concat(ours, others)
	alike := commonEnd(effective, goal)
	ours = ours[:min(len(ours), len(goal)-alike)]
	work.rest = effective[:len(effective)-alike]
	done := 0
	for done < len(ours) && done < len(work.rest) && equalRules(ours[done], work.rest[done].Rule) {
		done++
	}
	if done > 0 {
		work.anchor = work.rest[done-1].position + 1
	}
	work.missing, work.rest = ours[done:], work.rest[done:]
	for first := range work.missing {
		if startsWith(work.rest, work.missing[first:]) { // the others are there, behind these
			work.missing = work.missing[:first]
			break
		}
	}
	return work
}

func startsWith(rules []placed, start []Rule) bool {
	return slices.EqualFunc(rules[:min(len(rules), len(start))], start, func(a placed, b Rule) bool { return equalRules(a.Rule, b) })
}

// commonEnd counts the rules at the end that are as they are to be.
func commonEnd(rules []placed, goal []Rule) int {
	alike := 0
	for alike < len(rules) && alike < len(goal) && equalRules(rules[len(rules)-1-alike].Rule, goal[len(goal)-1-alike]) {
		alike++
	}
	return alike
}

// insertRules brings our rules before all others. Proxmox VE puts each new rule first, where it must not have an effect
// before those that belong in front of it. So they are made without one, the last first, and moved to their place; then
// they are enabled, the first first.
func (p planner) insertRules() Edit {
	work := p.work()
	if len(work.missing) == 0 {
		return nil
	}
	run := 0 // counts the rules that wait at their place
	for slices.Contains(work.idle, work.anchor+run) {
		run++
	}
	inTransit := work.anchor > 0 && slices.Contains(work.idle, 0)
	for _, position := range slices.Backward(work.idle) {
		waits := position >= work.anchor && position < work.anchor+run
		if !waits && (position != 0 || !inTransit) {
			return p.deleteRule(position)
		}
	}
	if run > len(work.missing) || !p.waitInOrder(work, run) {
		return p.deleteRule(work.anchor)
	}
	if run == len(work.missing) {
		return EnableRule{Position: work.anchor, Digest: p.present.RulesDigest}
	}
	next := work.missing[len(work.missing)-run-1]
	switch {
	case inTransit && equalRules(p.present.Rules[0], next.disabled()):
		return MoveRule{Position: 0, Before: work.anchor, Digest: p.present.RulesDigest}
	case inTransit:
		return p.deleteRule(0)
	case work.anchor == 0 && run == len(work.missing)-1:
		return InsertRule{next} // the first of all may have its effect at once
	}
	return InsertRule{next.disabled()}
}

// waitInOrder reports whether the rules that wait are the last of the missing ones.
func (p planner) waitInOrder(work ruleWork, run int) bool {
	for i := range run {
		wanted := work.missing[len(work.missing)-run+i]
		if !equalRules(p.present.Rules[work.anchor+i], wanted.disabled()) {
			return false
		}
	}
	return true
}

// deleteRules deletes our rules that are not wanted any more, the last first: so one that is gone never uncovers another
// that had no effect behind it.
func (p planner) deleteRules() Edit {
	work := p.work()
	if len(work.idle) > 0 {
		return p.deleteRule(work.idle[len(work.idle)-1])
	}
	for _, rule := range slices.Backward(work.rest) {
		if p.isOurRule(rule.Rule) {
			return p.deleteRule(rule.position)
		}
	}
	return nil
}

// orderUnseen brings the rules to what they are to be while they have no effect, with as few requests as that takes.
func (p planner) orderUnseen() Edit {
	var all []placed
	var others []Rule
	for position, rule := range p.present.Rules {
		all = append(all, placed{rule, position})
		if !p.isOurRule(rule) {
			others = append(others, rule)
		}
	}
	ours := p.rules()
	goal := slices.Concat(ours, others)
	alike := commonEnd(all, goal)
	for _, rule := range slices.Backward(all[:len(all)-alike]) {
		if p.isOurRule(rule.Rule) {
			return p.deleteRule(rule.position)
		}
	}
	if missing := len(goal) - alike; missing > 0 {
		return InsertRule{goal[missing-1]}
	}
	return nil
}

func (p planner) deleteRule(position int) Edit {
	return DeleteRule{Position: position, Digest: p.present.RulesDigest}
}
