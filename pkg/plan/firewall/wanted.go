package firewall

import (
	"net/netip"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// The names of options and IP sets that mean something here.
const (
	enable       = "enable"
	ipFilter     = "ipfilter"
	policyIn     = "policy_in"
	policyOut    = "policy_out"
	filterPrefix = "ipfilter-"
	// stagePrefix starts the names of IP sets that are still being filled.
	stagePrefix = "capve-"
)

// Wanted is what a VM's firewall is to be. The zero Wanted, with an identity, is that nothing of ours is left.
type Wanted struct {
	UUID proxmox.SMBIOSUUID
	// Options are the options that are asked for.
	Options map[string]string
	// Groups are the security groups that come before all other rules.
	Groups []v1beta1.SecurityGroup
	// Filters are the addresses that each device may use; nil when that is not asked for.
	Filters map[string][]netip.Addr
	// Before tells what the options were before we set them.
	Before Before
}

// Before tells what options were before we set them; an empty value says that the option was not set.
type Before map[string]string

// NewWanted returns what a spec asks for. The addresses, by device, count where they are to be kept to.
func NewWanted(uuid proxmox.SMBIOSUUID, spec v1beta1.Firewall, addresses map[string][]netip.Addr, before Before) Wanted {
	wanted := Wanted{UUID: uuid, Options: options(spec), Groups: spec.SecurityGroups, Before: before}
	if wanted.Options[ipFilter] == "1" {
		wanted.Filters = addresses
	}
	return wanted
}

// IsEmpty reports whether nothing is asked for.
func (w Wanted) IsEmpty() bool { return len(w.Options) == 0 && len(w.Groups) == 0 && w.Filters == nil }

// options are the options that a spec sets.
func options(spec v1beta1.Firewall) map[string]string {
	result := map[string]string{}
	for name, value := range map[string]*bool{
		enable: spec.Enabled, ipFilter: spec.IPFilter, "macfilter": spec.MACFilter, "dhcp": spec.DHCP, "ndp": spec.NDP,
		"radv": spec.RouterAdvertisement,
	} {
		switch {
		case value == nil:
		case *value:
			result[name] = "1"
		default:
			result[name] = "0"
		}
	}
	for name, value := range map[string]string{
		policyIn: string(spec.PolicyIn), policyOut: string(spec.PolicyOut),
		"log_level_in": string(spec.LogLevelIn), "log_level_out": string(spec.LogLevelOut),
	} {
		if value != "" {
			result[name] = value
		}
	}
	return result
}

// Record returns what has to be known of the options before any is set: what was known, and what those are now that are set
// for the first time. It says whether that is more than was known.
func (w Wanted) Record(present State) (Before, bool) {
	result := Before{}
	for name, value := range w.Before {
		result[name] = value
	}
	for name := range w.Options {
		if _, known := result[name]; !known {
			result[name] = present.Options[name]
		}
	}
	return result, w.Before == nil && !w.IsEmpty() || len(result) > len(w.Before)
}

// Settled returns what is still to be known of the options once there is nothing more to edit: those that were put back are
// forgotten. It is nil when nothing of ours is left.
func (w Wanted) Settled() Before {
	if w.IsEmpty() {
		return nil
	}
	result := Before{}
	for name := range w.Options {
		if value, known := w.Before[name]; known {
			result[name] = value
		}
	}
	return result
}

// goal is the value that an option is to have, empty for none, and whether it is ours at all.
func (w Wanted) goal(name string) (value string, ours bool) {
	if value, ours = w.Options[name]; ours {
		return value, true
	}
	value, ours = w.Before[name]
	return value, ours
}

// endsOn reports whether the firewall will filter in the end.
func (w Wanted) endsOn(present State) bool {
	if value, ours := w.goal(enable); ours {
		return value == "1"
	}
	return present.isOn()
}

// rules are our rules, as Proxmox VE gives them.
func (w Wanted) rules() []Rule {
	rules := make([]Rule, len(w.Groups))
	for i, group := range w.Groups {
		rules[i] = Rule{"type": "group", "action": group.Name, "enable": "1", "comment": Comment(w.UUID)}
		if group.Device != "" {
			rules[i]["iface"] = group.Device
		}
	}
	return rules
}

// isOurRule reports whether we made a rule, as far as one can tell.
func (w Wanted) isOurRule(rule Rule) bool {
	return rule["type"] == "group" && rule["comment"] == Comment(w.UUID)
}

// isOurSet reports whether we made an IP set, as far as one can tell.
func (w Wanted) isOurSet(name string, set Set) bool {
	return set.Comment == Comment(w.UUID) || strings.HasPrefix(name, stagePrefix) && strings.HasSuffix(name, string(w.UUID))
}

// FilterSet is the name of the IP set with the addresses that a device may use.
func FilterSet(device string) string { return filterPrefix + device }

// Concerns reports whether what is in an IP set matters to the edits.
func (w Wanted) Concerns(name string, set Set) bool {
	_, filters := w.Filters[strings.TrimPrefix(name, filterPrefix)]
	return w.isOurSet(name, set) || filters && strings.HasPrefix(name, filterPrefix)
}

// stage is the name of the IP set that a device's addresses are gathered in before they count.
func (w Wanted) stage(device string) string { return stagePrefix + device + "-" + string(w.UUID) }
