package firewall

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// The digest is that of a real Proxmox VE.
func TestDigestIsThatOfProxmoxVE(t *testing.T) {
	t.Parallel()
	if got, want := Digest(map[string]string{"enable": "1"}), "bb9ed91416c7ca9fe0bdb701360217e37ab4497f"; got != want {
		t.Errorf("digest is %s, want %s", got, want)
	}
	if got, want := Digest(), "da39a3ee5e6b4b0d3255bfef95601890afd80709"; got != want {
		t.Errorf("digest of nothing is %s, want %s", got, want)
	}
}

func scope(place Place) Scope {
	cluster, own := &Config{}, &Config{}
	cluster.AddIPSet("nodes", &IPSet{})
	cluster.AddAlias(Alias{Name: "LAN", CIDR: "10.0.0.0/24"})
	own.AddIPSet("mine", &IPSet{})
	own.AddAlias(Alias{Name: "gw6", CIDR: "fd00::1"})
	return Scope{Place: place, Cluster: cluster, Own: own, SDNSets: []string{"vnet1-all"}}
}

func TestWhatIsWrongWithARule(t *testing.T) {
	t.Parallel()
	in := func(pairs ...string) Rule {
		r := Rule{"type": "in", "action": "ACCEPT"}
		for i := 0; i < len(pairs); i += 2 {
			r[pairs[i]] = pairs[i+1]
		}
		return r
	}
	for _, c := range []struct {
		place Place
		rule  Rule
		want  string
	}{
		{GuestPlace, in(), "[]"},
		{GuestPlace, in("source", "10.0.0.1,10.0.1.0/24", "proto", "tcp", "dport", "ssh,80:90"), "[]"},
		{GuestPlace, in("source", "+nodes", "dest", "+guest/mine"), "[]"},
		{GuestPlace, in("source", "+sdn/vnet1-all"), "[]"},
		{GuestPlace, in("source", "+sdn/vnet2-all"), "[{source no such ipset 'vnet2-all'}]"},
		{GuestPlace, in("source", "+dc/mine"), "[{source no such ipset 'mine'}]"},
		{GuestPlace, in("source", "+a/b/c"), "[{source invalid ipset name '+a/b/c'}]"},
		{GuestPlace, in("source", "lan"), "[]"},
		{GuestPlace, in("source", "nope"), "[{source no such alias 'nope'}]"},
		{GuestPlace, in("source", "lan", "dest", "gw6"), "[{dest detected mixed ipv4/ipv6 addresses in rule}]"},
		{GuestPlace, in("source", "10.0.0.1", "dest", "fd00::1"), "[{dest detected mixed ipv4/ipv6 addresses in rule}]"},
		{GuestPlace, in("dport", "80"), "[{proto missing property - 'dport' requires this property} {dport protocol '' does not support ports}]"},
		{GuestPlace, in("dport", "80", "proto", "gre"), "[{dport protocol 'gre' does not support ports}]"},
		{GuestPlace, in("sport", "80", "proto", "icmp"), "[{sport protocol 'icmp' does not support ports}]"},
		{GuestPlace, in("proto", "foo"), "[{proto unknown protocol 'foo'}]"},
		{GuestPlace, in("icmp-type", "echo-request"), "[{proto missing property - 'icmp-type' requires this property}]"},
		{GuestPlace, in("icmp-type", "packet-too-big", "proto", "icmp"), "[{icmp-type invalid icmp-type 'packet-too-big' for proto 'icmp'}]"},
		{GuestPlace, in("icmp-type", "any", "dport", "any", "proto", "icmp"), "[{icmp-type 'icmp-type' cannot be specified together with 'dport'}]"},
		{GuestPlace, in("macro", "ssh"), "[]"},
		{GuestPlace, in("macro", "ssh", "proto", "udp"), "[{proto parameter 'proto' already define in macro (value = 'tcp')}]"},
		{GuestPlace, in("macro", "Ping", "source", "fd00::1"), "[]"},
		{GuestPlace, in("macro", "Foo"), "[{macro unknown macro 'Foo'}]"},
		{GuestPlace, in("iface", "net"), `[{iface value does not match the regex pattern 'net\d+'}]`},
		{HostPlace, in("iface", "vmbr0"), "[]"},
		{GroupPlace, in("iface", "net0"), "[{type parameter -i not allowed for this rule type}]"},
		{GroupPlace, Rule{"type": "group", "action": "workers"}, "[{type security groups not allowed}]"},
		{ClusterPlace, Rule{"type": "group", "action": "a b"}, "[{action invalid characters in security group name}]"},
		{ClusterPlace, Rule{"type": "in", "action": "workers"}, "[{action unknown action 'workers'}]"},
		{ClusterPlace, Rule{"type": "sideways", "action": "DROP"}, "[{type unknown rule type 'sideways'}]"},
	} {
		if got := fmt.Sprint(Verify(maps.Clone(c.rule), scope(c.place))); got != c.want {
			t.Errorf("%s rule %v: %s, want %s", c.place, c.rule, got, c.want)
		}
	}
}

func TestVerifyTellsTheVersionOfIP(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{"10.0.0.1": "4", "fd00::/8": "6", "LAN": "4", "gw6": "6", "+nodes": "", "": ""} {
		r := Rule{"type": "in", "action": "DROP", "source": source}
		Verify(r, scope(GuestPlace))
		if r["ipversion"] != want {
			t.Errorf("version of %q is %q, want %q", source, r["ipversion"], want)
		}
	}
}

func TestARuleIsReadBackAsItWasWritten(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ rule, want Rule }{
		{
			Rule{"type": "in", "action": "DROP", "pos": "5", "digest": "x", "comment": " a \nb"},
			Rule{"type": "in", "action": "DROP", "enable": "1", "comment": "a"},
		},
		{
			Rule{"type": "group", "action": "workers", "macro": "SSH", "enable": "0", "iface": "net0", "source": "10.0.0.1"},
			Rule{"type": "group", "action": "SSH(workers)", "enable": "0", "iface": "net0"},
		},
		{
			Rule{"type": "out", "action": "ACCEPT", "enable": "7", "proto": "tcp", "dport": "22", "log": "info"},
			Rule{"type": "out", "action": "ACCEPT", "enable": "1", "proto": "tcp", "dport": "22", "log": "info"},
		},
	} {
		if diff := cmp.Diff(c.want, c.rule.Stored()); diff != "" {
			t.Errorf("%v (-want +got):\n%s", c.rule, diff)
		}
	}
}

func TestChangingARule(t *testing.T) {
	t.Parallel()
	r := Rule{"type": "in", "action": "DROP", "source": "10.0.0.1", "comment": "c"}
	r.Apply(map[string]string{"action": "ACCEPT", "source": "-", "comment": "", "vmid": "100"})
	if diff := cmp.Diff(Rule{"type": "in", "action": "ACCEPT"}, r); diff != "" {
		t.Errorf("applied (-want +got):\n%s", diff)
	}
	for list, want := range map[string]string{
		"comment,dest": "", "type": "unable to delete required property 'type'", "foo": "no such property ('foo')",
	} {
		if got := r.Delete(list); got != want {
			t.Errorf("delete %s: %q, want %q", list, got, want)
		}
	}
}

func someRule(t *rapid.T) Rule {
	r := Rule{}
	for _, name := range properties() {
		if rapid.Bool().Draw(t, name) {
			r[name] = rapid.OneOf(rapid.SampledFrom([]string{"in", "group", "ACCEPT", "tcp", "SSH", "10.0.0.1", "+dc/nodes", "80", "0"}), rapid.String()).Draw(t, name+" value")
		}
	}
	return r
}

func TestNoRuleMakesItPanicAndStoringTwiceIsStoringOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := someRule(t)
		Verify(maps.Clone(r), scope(rapid.SampledFrom([]Place{ClusterPlace, GroupPlace, GuestPlace, HostPlace, VNetPlace}).Draw(t, "place")))
		once := r.Stored()
		delete(once, "macro")
		if diff := cmp.Diff(once, once.Stored()); diff != "" {
			t.Fatalf("stored again (-once +twice):\n%s", diff)
		}
	})
}

func TestMovingKeepsAllRules(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "rules")
		from, to := rapid.IntRange(0, n-1).Draw(t, "from"), rapid.IntRange(0, 9).Draw(t, "to")
		var rules []Rule
		for i := range n {
			rules = append(rules, Rule{"comment": fmt.Sprint(i)})
		}
		if from == to {
			return
		}
		moved := Move(slices.Clone(rules), from, to)
		names := map[string]bool{}
		for _, r := range moved {
			names[r["comment"]] = true
		}
		if len(moved) != n || len(names) != n {
			t.Fatalf("moved %d to %d of %d: %v", from, to, n, moved)
		}
	})
}

func TestACloneIsItsOwn(t *testing.T) {
	t.Parallel()
	c := &Config{Rules: []Rule{{"type": "group", "action": "a"}}}
	c.SetOption("enable", "1")
	c.AddGroup("A", &Group{Rules: []Rule{{"type": "in"}}})
	set := &IPSet{}
	set.Add(Entry{CIDR: "10.0.0.2"})
	set.Add(Entry{CIDR: "10.0.0.1", NoMatch: true, Comment: "no"})
	c.AddIPSet("s1", set)
	other := c.Clone()
	other.SetOption("enable", "0")
	other.RenameGroup("a", "b")
	other.Groups["a"].Rules[0]["type"] = "out"
	other.IPSets["s1"].Remove("10.0.0.2")
	want := &Config{
		Options: map[string]string{"enable": "1"}, Rules: []Rule{{"type": "group", "action": "a"}},
		Groups: map[string]*Group{"a": {Rules: []Rule{{"type": "in"}}}},
		IPSets: map[string]*IPSet{"s1": {Entries: []Entry{{CIDR: "10.0.0.1", NoMatch: true, Comment: "no"}, {CIDR: "10.0.0.2"}}}},
	}
	if diff := cmp.Diff(want, c); diff != "" {
		t.Errorf("the first was changed with its clone (-want +got):\n%s", diff)
	}
	if other.Rules[0]["action"] != "b" || other.IPSets["s1"].Find("10.0.0.2") != nil || other.IPSets["s1"].Find("10.0.0.1") == nil {
		t.Errorf("clone is %+v", other)
	}
}

func TestEveryMacroExpands(t *testing.T) {
	t.Parallel()
	all := MacroList()
	if len(all) != 86 {
		t.Errorf("%d macros, want 86", len(all))
	}
	for _, m := range all {
		for _, r := range macroNamed(m["macro"]).expand(4) {
			r["type"], r["action"] = "in", "ACCEPT"
			if problems := Verify(r, scope(ClusterPlace)); len(problems) > 0 || m["descr"] == "" {
				t.Errorf("macro %v: rule %v: %v", m, r, problems)
			}
		}
	}
}
