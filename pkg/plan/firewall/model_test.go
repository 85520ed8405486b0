package firewall_test

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/firewall"
)

// packet is what a firewall decides about.
type packet struct {
	out    bool
	device string
	// kind is what the options speak of: dhcp, ndp, a router's advertisement, or anything else.
	kind string
	// source is where a packet from the VM says that it comes from; spoofed says that its MAC address is another's.
	source  string
	spoofed bool
	// port is what the rules look at.
	port int
}

const ports = 3

var (
	deviceNames = []string{"net0", "net1"}
	sources     = []string{"10.0.0.5", "10.0.0.6", "fd00::5", "fe80::1"}
)

// linkLocal is the source that every filter lets pass.
const linkLocal = "fe80::1"

func packets() []packet {
	var all []packet
	for _, device := range deviceNames {
		for _, kind := range []string{"dhcp", "ndp", "ra", ""} {
			for port := range ports {
				all = append(all, packet{device: device, kind: kind, port: port})
				for _, source := range sources {
					for _, spoofed := range []bool{false, true} {
						all = append(all, packet{out: true, device: device, kind: kind, source: source, spoofed: spoofed, port: port})
					}
				}
			}
		}
	}
	return all
}

// model evaluates a firewall as PVE::Firewall builds it (generate_tap_rules_direction, ruleset_create_vm_chain).
type model struct {
	// verdicts tells what a group, or somebody else's rule, does about a port: accept, deny, or nothing.
	verdicts map[string][ports]string
	// byDefault is what dhcp and ndp are when they are not set.
	byDefault string
}

func (m model) accepts(state firewall.State, p packet) bool {
	option := func(name, unset string) bool {
		if value := state.Options[name]; value != "" {
			return value == "1"
		}
		return unset == "1"
	}
	switch {
	case !option("enable", "0"):
		return true
	case p.kind == "dhcp" && option("dhcp", m.byDefault):
		return true
	case p.out && p.spoofed && option("macfilter", "1"):
		return false
	case p.out && p.kind == "ra" && !option("radv", "0"):
		return false
	case p.out && filters(state, p.device) && !inFilter(state, p):
		return false
	case p.kind == "ndp" && option("ndp", m.byDefault):
		return true
	}
	return m.byRules(state, p)
}

func filters(state firewall.State, device string) bool {
	_, exists := state.Sets[firewall.FilterSet(device)]
	return exists || state.Options["ipfilter"] == "1"
}

// inFilter looks for the narrowest entry that has the source.
func inFilter(state firewall.State, p packet) bool {
	source := netip.MustParseAddr(p.source)
	narrowest, match := -1, false
	for _, entry := range state.Sets[firewall.FilterSet(p.device)].Entries {
		prefix, err := netip.ParsePrefix(entry.CIDR)
		if err != nil {
			prefix = netip.PrefixFrom(netip.MustParseAddr(entry.CIDR), netip.MustParseAddr(entry.CIDR).BitLen())
		}
		if prefix.Contains(source) && prefix.Bits() > narrowest {
			narrowest, match = prefix.Bits(), !entry.NoMatch
		}
	}
	return match || p.source == linkLocal
}

func (m model) byRules(state firewall.State, p packet) bool {
	for _, rule := range state.Rules {
		if rule["enable"] != "1" || rule["iface"] != "" && rule["iface"] != p.device {
			continue
		}
		if rule["type"] == "out" && !p.out || rule["type"] == "in" && p.out {
			continue
		}
		switch m.verdicts[rule["action"]][p.port] {
		case "accept":
			return true
		case "deny":
			return false
		}
	}
	if p.out {
		return state.Options["policy_out"] == "ACCEPT" || state.Options["policy_out"] == ""
	}
	return state.Options["policy_in"] == "ACCEPT"
}

// reach returns the packets that a firewall accepts.
func (m model) reach(state firewall.State) map[packet]bool {
	accepted := map[packet]bool{}
	for _, p := range packets() {
		accepted[p] = m.accepts(state, p)
	}
	return accepted
}

// foreign returns what is not ours of a firewall, as text.
func foreign(wanted firewall.Wanted, state firewall.State) string {
	var kept []string
	for _, rule := range state.Rules {
		if rule["type"] != "group" || rule["comment"] != firewall.Comment(wanted.UUID) {
			kept = append(kept, fmt.Sprint(rule))
		}
	}
	rules := len(kept)
	for name, value := range state.Options {
		_, asked := wanted.Options[name]
		if _, set := wanted.Before[name]; !asked && !set {
			kept = append(kept, name+"="+value)
		}
	}
	for name, set := range state.Sets {
		if !wanted.Concerns(name, set) {
			kept = append(kept, fmt.Sprint(name, set))
		}
	}
	slices.Sort(kept[rules:])
	return fmt.Sprint(kept)
}
