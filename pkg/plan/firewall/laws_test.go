package firewall_test

import (
	"fmt"
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/firewall"
)

const uuid = "8d1ab5f6-59f1-4a3e-9a0b-2c9b6a7d3e10"

// mostEdits bounds the way from any firewall to any other.
const mostEdits = 120

func pick[T any](t *rapid.T, label string, from ...T) T {
	return rapid.SampledFrom(from).Draw(t, label)
}

func drawVerdicts(t *rapid.T) map[string][ports]string {
	verdicts := map[string][ports]string{}
	for _, name := range []string{"web", "db", "mon", "theirs", "ACCEPT", "DROP"} {
		var table [ports]string
		for port := range ports {
			table[port] = pick(t, fmt.Sprintf("%s on %d", name, port), "accept", "deny", "")
		}
		verdicts[name] = table
	}
	return verdicts
}

func drawOptions(t *rapid.T, label string) map[string]string {
	options := map[string]string{}
	for _, name := range []string{"enable", "ipfilter", "macfilter", "dhcp", "ndp", "radv"} {
		if value := pick(t, label+" "+name, "", "0", "1"); value != "" {
			options[name] = value
		}
	}
	for _, name := range []string{"policy_in", "policy_out"} {
		if value := pick(t, label+" "+name, "", "ACCEPT", "DROP", "REJECT"); value != "" {
			options[name] = value
		}
	}
	if value := pick(t, label+" log", "", "info", "nolog"); value != "" {
		options["log_level_in"] = value
	}
	return options
}

func drawRule(t *rapid.T) firewall.Rule {
	rule := firewall.Rule{"type": "group", "enable": pick(t, "enabled", "0", "1", "1"), "action": pick(t, "group", "web", "db", "mon")}
	switch pick(t, "whose", "ours", "ours", "theirs", "another machine's") {
	case "ours":
		rule["comment"] = firewall.Comment(uuid)
	case "theirs":
		rule["type"], rule["action"], rule["comment"] = pick(t, "type", "in", "out", "group"), pick(t, "action", "ACCEPT", "DROP", "theirs"), "theirs"
	default:
		rule["comment"] = firewall.Comment("11111111-2222-3333-4444-555555555555")
	}
	if device := pick(t, "device", "", "net0", "net1"); device != "" {
		rule["iface"] = device
	}
	return rule
}

func drawSets(t *rapid.T) map[string]firewall.Set {
	sets := map[string]firewall.Set{}
	for _, name := range []string{"ipfilter-net0", "ipfilter-net1", "ipfilter-net7", "capve-net0-" + uuid, "theirs"} {
		if !rapid.Bool().Draw(t, "there is "+name) {
			continue
		}
		set := firewall.Set{Comment: pick(t, "comment", "", firewall.Comment(uuid))}
		for _, cidr := range []string{"10.0.0.5", "10.0.0.6/32", "10.0.0.0/24", "fd00::5"} {
			if rapid.Bool().Draw(t, cidr+" in "+name) {
				set.Entries = append(set.Entries, firewall.Entry{CIDR: cidr, NoMatch: pick(t, "nomatch", false, false, true)})
			}
		}
		sets[name] = set
	}
	return sets
}

func drawState(t *rapid.T) firewall.State {
	return firewall.State{
		Options: drawOptions(t, "is"), OptionsDigest: "o", RulesDigest: "r", SetsDigest: "s",
		Rules: rapid.SliceOfN(rapid.Custom(drawRule), 0, 7).Draw(t, "rules"), Sets: drawSets(t),
	}
}

func drawWanted(t *rapid.T) firewall.Wanted {
	wanted := firewall.Wanted{UUID: uuid, Options: drawOptions(t, "wanted"), Before: drawOptions(t, "before")}
	all := []v1beta1.SecurityGroup{
		{Name: "web"}, {Name: "web", Device: "net0"}, {Name: "db"}, {Name: "db", Device: "net1"}, {Name: "mon"},
	}
	all = rapid.Permutation(all).Draw(t, "groups")
	wanted.Groups = all[:rapid.IntRange(0, len(all)).Draw(t, "how many groups")]
	if wanted.Options["ipfilter"] == "1" {
		wanted.Filters = map[string][]netip.Addr{}
		for _, device := range deviceNames {
			wanted.Filters[device] = nil
			for _, address := range []string{"10.0.0.5", "fd00::5"} {
				if rapid.Bool().Draw(t, address+" on "+device) {
					wanted.Filters[device] = append(wanted.Filters[device], netip.MustParseAddr(address))
				}
			}
		}
	}
	return wanted
}

// edits applies edits until there is none.
func edits(t rapid.TB, wanted firewall.Wanted, state firewall.State) []firewall.State {
	t.Helper()
	state = reread(state)
	states := []firewall.State{state}
	for range mostEdits {
		edit, more := firewall.Next(wanted, state)
		if !more {
			return states
		}
		if _, unread := firewall.Unread(edit); unread {
			state = reread(state)
			if edit, _ = firewall.Next(wanted, state); edit == nil {
				t.Fatal("a digest changed the plan")
			}
			if _, unread = firewall.Unread(edit); unread {
				t.Fatalf("%s: takes no digest", edit)
			}
		}
		state = edit.Apply(state)
		states = append(states, state)
	}
	t.Fatalf("no end after %d edits", mostEdits)
	return nil
}

// reread gives all parts their digests again.
func reread(state firewall.State) firewall.State {
	state.OptionsDigest, state.RulesDigest, state.SetsDigest = "o", "r", "s"
	sets := map[string]firewall.Set{}
	for name, set := range state.Sets {
		set.Digest = "e"
		sets[name] = set
	}
	state.Sets = sets
	return state
}

func TestNoEditOpensMoreThanTheOldAndTheNewFirewall(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		wanted, old := drawWanted(t), drawState(t)
		m := model{verdicts: drawVerdicts(t), byDefault: pick(t, "dhcp and ndp by default", "0", "1")}
		states := edits(t, wanted, old)
		before, after := m.reach(old), m.reach(states[len(states)-1])
		for i, state := range states {
			for p, accepted := range m.reach(state) {
				if accepted && !before[p] && !after[p] {
					t.Fatalf("after edit %d of %d %+v is accepted", i, len(states)-1, p)
				}
			}
		}
	})
}

// TestNewRulesNeverCutOffWhatOldAndNewOnesAccept is about rules alone: options and filters first let less pass.
func TestNewRulesNeverCutOffWhatOldAndNewOnesAccept(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		wanted, old := drawWanted(t), drawState(t)
		wanted.Options, wanted.Before, wanted.Filters = map[string]string{}, nil, nil
		for _, policy := range []string{"policy_in", "policy_out"} {
			if rapid.Bool().Draw(t, "with "+policy) {
				wanted.Options[policy] = pick(t, policy, "ACCEPT", "DROP")
			}
		}
		m := model{verdicts: drawVerdicts(t), byDefault: "1"}
		old.Sets = nil
		states := edits(t, wanted, old)
		before, after := m.reach(old), m.reach(states[len(states)-1])
		for i, state := range states {
			for p, accepted := range m.reach(state) {
				if !accepted && before[p] && after[p] {
					t.Fatalf("after edit %d of %d %+v is cut off", i, len(states)-1, p)
				}
			}
		}
	})
}

func TestEditsReachWhatIsWantedAndLeaveTheRestAlone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		wanted, old := drawWanted(t), drawState(t)
		states := edits(t, wanted, old)
		last := states[len(states)-1]
		isWanted(t, wanted, last)
		for i, state := range states {
			if is, was := foreign(wanted, state), foreign(wanted, states[0]); is != was {
				t.Fatalf("after edit %d what is others' is %s and was %s", i, is, was)
			}
		}
	})
}

// TestEditsGoOnFromWhateverIsThere has every edit done twice or by somebody else in between, as lost replies and people do.
func TestEditsGoOnFromWhateverIsThere(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		wanted, state := drawWanted(t), drawState(t)
		for range rapid.IntRange(0, 12).Draw(t, "edits") {
			edit, more := firewall.Next(wanted, state)
			if !more {
				break
			}
			state = edit.Apply(state)
			if insert, is := edit.(firewall.InsertRule); is && rapid.Bool().Draw(t, "twice") {
				state = insert.Apply(state)
			}
		}
		wanted = drawWanted(t)
		states := edits(t, wanted, reread(state))
		isWanted(t, wanted, states[len(states)-1])
	})
}

func isWanted(t rapid.TB, wanted firewall.Wanted, state firewall.State) {
	t.Helper()
	for i, group := range wanted.Groups {
		if i >= len(state.Rules) {
			t.Fatalf("%d rules", len(state.Rules))
		}
		rule := state.Rules[i]
		if rule["action"] != group.Name || rule["iface"] != group.Device || rule["enable"] != "1" || rule["comment"] != firewall.Comment(uuid) {
			t.Fatalf("rule %d is %v, want %+v", i, rule, group)
		}
	}
	for _, rule := range state.Rules[len(wanted.Groups):] {
		if rule["type"] == "group" && rule["comment"] == firewall.Comment(uuid) {
			t.Fatalf("%v is left", rule)
		}
	}
	goals := map[string]string{}
	for name, value := range wanted.Before {
		goals[name] = value
	}
	for name, value := range wanted.Options {
		goals[name] = value
	}
	for name, value := range goals {
		if state.Options[name] != value {
			t.Fatalf("option %s is %q, want %q", name, state.Options[name], value)
		}
	}
	filtersAreWanted(t, wanted, state)
}

func filtersAreWanted(t rapid.TB, wanted firewall.Wanted, state firewall.State) {
	t.Helper()
	for name, set := range state.Sets {
		if _, ours := wanted.Filters[name[min(len(name), len("ipfilter-")):]]; set.Comment == firewall.Comment(uuid) && !ours {
			t.Fatalf("IP set %s is left", name)
		}
	}
	for device, addresses := range wanted.Filters {
		set, exists := state.Sets[firewall.FilterSet(device)]
		if len(set.Entries) != len(addresses) || !exists && len(addresses) > 0 {
			t.Fatalf("%s is filtered by %v, want %v", device, set, addresses)
		}
		for _, entry := range set.Entries {
			if entry.NoMatch {
				t.Fatalf("%s excludes %s", device, entry.CIDR)
			}
		}
	}
}
