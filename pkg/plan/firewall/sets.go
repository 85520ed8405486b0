package firewall

import (
	"maps"
	"net/netip"
	"slices"
)

// Proxmox VE filters a device by its IP set as soon as there is one, with or without the option ipfilter, and with the
// option also a device that has none, as if it were empty. The link-local address that follows from the MAC address is
// always in it (PVE::Firewall, compile_ipsets), so that it is not put there.

// devices are those that the filters are for, in order.
func (p planner) devices() []string { return slices.Sorted(maps.Keys(p.Filters)) }

// narrowSets takes out of the filters what is not to be in them, and makes the filters of devices that have none yet: an IP
// set gets its name, by which it filters, once all is in it.
func (p planner) narrowSets() Edit {
	for _, device := range p.devices() {
		name := FilterSet(device)
		if _, exists := p.present.Sets[name]; exists {
			if edit := p.purge(name, p.Filters[device]); edit != nil {
				return edit
			}
			continue
		}
		if edit := p.stageSet(device); edit != nil && p.present.Options[ipFilter] != "1" {
			return edit
		}
	}
	return nil
}

// stageSet gathers a device's addresses in an IP set that does nothing yet.
func (p planner) stageSet(device string) Edit {
	if len(p.Filters[device]) == 0 {
		return nil // the option alone blocks a device without addresses
	}
	stage := p.stage(device)
	if edit := p.completeSet(stage, p.Filters[device]); edit != nil {
		return edit
	}
	return RenameSet{From: stage, To: FilterSet(device), Comment: Comment(p.UUID), Digest: p.present.SetsDigest}
}

// completeSet makes an IP set, if there is none, with exactly the addresses in it.
func (p planner) completeSet(name string, addresses []netip.Addr) Edit {
	set, exists := p.present.Sets[name]
	if !exists {
		return CreateSet{Name: name, Comment: Comment(p.UUID)}
	}
	if edit := p.purge(name, addresses); edit != nil {
		return edit
	}
	for _, address := range addresses {
		if !set.holds(address) {
			return AddAddress{Set: name, Address: address}
		}
	}
	return nil
}

// purge makes an IP set ours and takes out of it what is not to be in it. What it excludes goes last: until then it may
// stand against an entry that is wider.
func (p planner) purge(name string, addresses []netip.Addr) Edit {
	set := p.present.Sets[name]
	if !p.isOurSet(name, set) {
		return RenameSet{From: name, To: name, Comment: Comment(p.UUID), Digest: p.present.SetsDigest}
	}
	for _, excludes := range []bool{false, true} {
		for _, entry := range set.Entries {
			if entry.NoMatch == excludes && !slices.ContainsFunc(addresses, entry.is) {
				return RemoveEntry{Set: name, CIDR: entry.CIDR, Digest: set.Digest}
			}
		}
	}
	return nil
}

// fillSets puts into the filters what is missing in them.
func (p planner) fillSets() Edit {
	for _, device := range p.devices() {
		name := FilterSet(device)
		if _, exists := p.present.Sets[name]; !exists && len(p.Filters[device]) == 0 {
			continue
		}
		if edit := p.completeSet(name, p.Filters[device]); edit != nil {
			return edit
		}
	}
	return nil
}

// dropSets deletes the IP sets that are ours and not needed any more.
func (p planner) dropSets() Edit {
	for _, name := range slices.Sorted(maps.Keys(p.present.Sets)) {
		if p.isOurSet(name, p.present.Sets[name]) && !p.isFilter(name) {
			return DeleteSet{Name: name}
		}
	}
	return nil
}

// dropBlocked deletes those of them first whose device is blocked without one, since the option stays on for others.
func (p planner) dropBlocked() Edit {
	goal, ours := p.goal(ipFilter)
	if p.present.Options[ipFilter] != "1" || ours && goal != "1" {
		return nil
	}
	return p.dropSets()
}

// isFilter reports whether an IP set filters a device that is to be filtered.
func (p planner) isFilter(name string) bool {
	return slices.ContainsFunc(p.devices(), func(device string) bool { return FilterSet(device) == name })
}
