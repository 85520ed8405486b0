package firewall

// Next returns the next edit, and false when there is none: the firewall is as wanted.
//
// While the firewall is off, and when it is to be off in the end, everything passes, so that the order says nothing; what
// switches it on comes last, with all options, so that nothing is cut off that will be allowed. While it is on and stays so,
// first comes what lets less pass; then our new rules, before the old ones; then the policies; then the old rules go, the
// last first; then comes what lets more pass. In between, a packet that gets as far as the rules meets our new ones first,
// then the old ones as they were: what becomes of it is what became of it before or what will in the end.
func Next(wanted Wanted, present State) (Edit, bool) {
	p := planner{Wanted: wanted, present: present}
	for _, step := range p.order() {
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

func (p planner) order() []func() Edit {
	on, endsOn := p.present.isOn(), p.endsOn(p.present)
	switch {
	case !endsOn:
		return []func() Edit{p.allOptions, p.orderUnseen, p.fillSets, p.dropSets}
	case !on:
		return []func() Edit{p.orderUnseen, p.fillSets, p.dropSets, p.allOptions}
	}
	return []func() Edit{
		p.narrowSets, p.tightenOptions, p.dropBlocked, p.insertRules, p.setPolicies, p.deleteRules, p.loosenOptions, p.fillSets,
		p.dropSets, p.allOptions,
	}
}
