package pvesim_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

const guestRules = "/nodes/pve1/qemu/9001/firewall/rules"

// expect makes a request and checks its status and text, or the errors of its parameters.
func (a *api) expect(want, method, path string, pairs ...string) {
	a.t.Helper()
	r := a.do(method, path, pairs...)
	got := fmt.Sprint(r.status, " ", r.reason)
	if len(r.errors) > 0 {
		got = fmt.Sprint(r.status, " ", r.errors)
	}
	if got != want {
		a.t.Errorf("%s %s %v:\n got %s\nwant %s", method, path, pairs, got, want)
	}
}

// columns are some members of the entries of a list, separated by slashes.
func columns(list any, keys ...string) []string {
	var out []string
	for _, x := range list.([]any) {
		var values []string
		for _, key := range keys {
			values = append(values, fmt.Sprint(x.(map[string]any)[key]))
		}
		out = append(out, strings.Join(values, "/"))
	}
	return out
}

func TestRulesAreAddedAtTheTopMovedAndDeletedByPosition(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for _, comment := range []string{"a", "b", "c"} {
		a.must("POST", guestRules, "type", "in", "action", "ACCEPT", "comment", comment, "pos", "7", "enable", "1")
	}
	list := func(want string) {
		t.Helper()
		if got := fmt.Sprint(columns(a.must("GET", guestRules), "pos", "comment", "enable")); got != want {
			t.Errorf("rules are %s, want %s", got, want)
		}
	}
	list("[0/c/1 1/b/1 2/a/1]")
	a.must("PUT", guestRules+"/0", "moveto", "2", "comment", "ignored")
	list("[0/b/1 1/c/1 2/a/1]")
	a.must("PUT", guestRules+"/2", "enable", "0", "delete", "comment")
	list("[0/b/1 1/c/1 2/<nil>/0]")
	a.must("DELETE", guestRules+"/0")
	list("[0/c/1 1/<nil>/0]")
	if pos := a.object(guestRules + "/1")["pos"]; pos != "1" {
		t.Errorf("position is %v, want a text, as Proxmox VE gives it", pos)
	}
	a.expect("500 no rule at position 9", "GET", guestRules+"/9")
	a.expect("500 no rule at position 9", "PUT", guestRules+"/9", "comment", "x")
	a.expect("500 no rule at position 9", "DELETE", guestRules+"/9")
}

func TestADigestGuardsRulesAndOptions(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	const changed = "500 detected modified configuration - file changed by other user? Try again."
	a.must("POST", guestRules, "type", "in", "action", "DROP")
	digest := fmt.Sprint(a.object(guestRules + "/0")["digest"])
	a.must("PUT", guestRules+"/0", "comment", "x", "digest", digest)
	a.expect(changed, "DELETE", guestRules+"/0", "digest", digest)
	options := strings.TrimSuffix(guestRules, "rules") + "options"
	digest = fmt.Sprint(a.object(options)["digest"])
	a.must("PUT", options, "enable", "1", "digest", digest)
	a.must("PUT", options, "enable", "1")
	a.expect(changed, "PUT", options, "enable", "0", "digest", digest)
	a.expect("400 map[delete:no such option 'foo']", "PUT", options, "delete", "foo")
	a.must("PUT", options, "policy_in", "DROP", "delete", "enable")
	if got := a.object(options); got["policy_in"] != "DROP" || got["enable"] != nil {
		t.Errorf("options are %v", got)
	}
}

func TestGroups(t *testing.T) {
	t.Parallel()
	const groups = "/cluster/firewall/groups"
	a := newAPI(t)
	a.must("POST", groups, "group", "workers", "comment", "w")
	a.expect("400 map[group:Security group 'workers' already exists]", "POST", groups, "group", "workers")
	a.expect("400 map[group:value must be at least 2 characters long]", "POST", groups, "group", "w")
	a.must("POST", groups+"/workers", "type", "in", "action", "ACCEPT", "macro", "ssh")
	a.must("POST", guestRules, "type", "group", "action", "workers")
	a.expect("400 map[group:Security group 'none' does not exist]", "POST", groups, "group", "x1", "rename", "none")
	a.must("POST", groups, "group", "nodes")
	a.expect("400 map[group:Security group 'nodes' does already exist]", "POST", groups, "group", "nodes", "rename", "workers")
	a.must("POST", groups, "group", "wk", "rename", "workers")
	if got := columns(a.must("GET", guestRules), "action"); got[0] != "wk" {
		t.Errorf("the VM's rule names %v, want the group's new name", got)
	}
	if got := fmt.Sprint(columns(a.must("GET", groups), "group", "comment")); got != "[nodes/<nil> wk/w]" {
		t.Errorf("groups are %s", got)
	}
	a.expect("500 Security group 'wk' is not empty", "DELETE", groups+"/wk")
	a.must("DELETE", groups+"/wk/0")
	a.must("DELETE", groups+"/wk")
	a.expect("500 no such security group 'wk'", "DELETE", groups+"/wk")
	a.expect("500 no such security group 'wk'", "GET", groups+"/wk")
	a.expect("500 no such security group 'wk'", "POST", groups+"/wk", "type", "in", "action", "DROP")
	a.must("POST", guestRules, "type", "group", "action", "unknown")
}

func TestIPSets(t *testing.T) {
	t.Parallel()
	const sets = "/nodes/pve1/qemu/9001/firewall/ipset"
	a := newAPI(t)
	a.must("POST", sets, "name", "ipfilter-net0", "comment", "c")
	a.expect("400 map[name:IPSet 'ipfilter-net0' already exists]", "POST", sets, "name", "ipfilter-net0")
	a.must("POST", sets, "name", "other", "rename", "ipfilter-net0")
	a.expect("400 map[name:IPSet 'none' does not exist]", "POST", sets, "name", "x1", "rename", "none")
	a.must("POST", sets, "name", "second")
	a.expect("400 map[name:IPSet 'second' does already exist]", "POST", sets, "name", "second", "rename", "other")
	a.must("POST", sets+"/other", "cidr", "10.0.0.61/24", "nomatch", "1")
	a.must("POST", sets+"/other", "cidr", "10.0.0.5/32", "comment", "five")
	a.expect("400 map[cidr:address '10.0.0.0/24' already exists]", "POST", sets+"/other", "cidr", "10.0.0.0/24")
	a.expect("400 map[cidr:a zero prefix is not allowed in ipset entries]", "POST", sets+"/other", "cidr", "0.0.0.0/0")
	a.expect("500 no such alias 'lan'", "POST", sets+"/other", "cidr", "dc/lan")
	a.must("POST", "/cluster/firewall/aliases", "name", "LAN", "cidr", "10.9.0.0/16")
	a.must("POST", sets+"/other", "cidr", "dc/lan")
	if got := fmt.Sprint(columns(a.must("GET", sets+"/other"), "cidr", "nomatch", "comment")); got != "[10.0.0.0/24/1/<nil> 10.0.0.5/<nil>/five dc/lan/<nil>/<nil>]" {
		t.Errorf("entries are %s", got)
	}
	a.must("PUT", sets+"/other/10.0.0.0/24", "comment", "net")
	if got := a.object(sets + "/other/10.0.0.0/24"); got["comment"] != "net" || got["nomatch"] != nil {
		t.Errorf("entry is %v", got)
	}
	a.expect("400 map[cidr:no such IP/Network]", "GET", sets+"/other/10.0.0.9")
	a.expect("400 map[cidr:no such IP/Network]", "PUT", sets+"/other/10.0.0.9", "comment", "x")
	a.must("DELETE", sets+"/other/10.0.0.9")
	a.must("DELETE", sets+"/other/10.0.0.0%2F24")
	a.expect("500 IPSet 'other' is not empty", "DELETE", sets+"/other")
	a.must("DELETE", sets+"/other", "force", "1")
	a.expect("500 no such IPSet 'other'", "GET", sets+"/other")
}

func TestAliases(t *testing.T) {
	t.Parallel()
	const aliases = "/cluster/firewall/aliases"
	a := newAPI(t)
	a.must("POST", aliases, "name", "Gw", "cidr", "10.0.0.1/32", "comment", "c")
	a.expect("400 map[name:alias 'gW' already exists]", "POST", aliases, "name", "gW", "cidr", "10.0.0.2")
	a.must("POST", aliases, "name", "v6", "cidr", "fd00::1")
	a.expect("400 map[name:alias 'v6' already exists]", "PUT", aliases+"/gw", "cidr", "10.0.0.3", "rename", "v6")
	a.must("PUT", aliases+"/gw", "cidr", "10.0.0.3", "rename", "router")
	if got := fmt.Sprint(columns(a.must("GET", aliases), "name", "cidr", "ipversion")); got != "[router/10.0.0.3/4 v6/fd00::1/6]" {
		t.Errorf("aliases are %s", got)
	}
	a.must("POST", guestRules, "type", "in", "action", "DROP", "source", "router")
	a.must("DELETE", aliases+"/router")
	a.must("DELETE", aliases+"/router")
	a.expect("400 map[name:no such alias]", "GET", aliases+"/router")
	a.expect("400 map[name:no such alias]", "PUT", aliases+"/router", "cidr", "10.0.0.3")
	rule := a.object(guestRules + "/0")
	if diff := cmp.Diff(map[string]any{"source": "no such alias 'router'"}, rule["errors"]); diff != "" {
		t.Errorf("errors of a rule whose alias is gone (-want +got):\n%s", diff)
	}
}

func TestRefsNameTheSetsAndAliasesOfTheClusterAndTheGuest(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.must("POST", "/cluster/firewall/ipset", "name", "nodes", "comment", "c")
	a.must("POST", "/cluster/firewall/aliases", "name", "lan", "cidr", "10.0.0.0/8")
	a.must("POST", "/nodes/pve1/qemu/9001/firewall/aliases", "name", "gw", "cidr", "10.0.0.1")
	for path, want := range map[string]string{
		"/nodes/pve1/qemu/9001/firewall/refs":            "[ipset/dc/+nodes alias/dc/lan alias/guest/gw]",
		"/nodes/pve1/qemu/9001/firewall/refs?type=alias": "[alias/dc/lan alias/guest/gw]",
		"/cluster/firewall/refs?type=ipset":              "[ipset/dc/+nodes]",
	} {
		path, query, _ := strings.Cut(path, "?type=")
		pairs := []string{"type", query}
		if query == "" {
			pairs = nil
		}
		if got := fmt.Sprint(columns(a.must("GET", path, pairs...), "type", "scope", "ref")); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

func TestAClonesFirewallIsItsSourcesAndADestroyedVMsIsGone(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.must("POST", guestRules, "type", "in", "action", "DROP")
	if exit := a.exit("POST", "/nodes/pve1/qemu/9001/clone", "newid", "100"); exit != "OK" {
		t.Fatal(exit)
	}
	const clone = "/nodes/pve1/qemu/100/firewall/rules"
	a.must("POST", clone, "type", "out", "action", "DROP")
	if got := fmt.Sprint(columns(a.must("GET", clone), "type"), columns(a.must("GET", guestRules), "type")); got != "[out in] [in]" {
		t.Errorf("rules of clone and source are %s", got)
	}
	if exit := a.exit("DELETE", "/nodes/pve1/qemu/100"); exit != "OK" {
		t.Fatal(exit)
	}
	if got := a.must("GET", clone).([]any); len(got) != 0 {
		t.Errorf("the destroyed VM left rules: %v", got)
	}
}

func TestAFirewallOutlivesAWorldEvenWithoutItsVM(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.must("PUT", "/nodes/pve2/qemu/777/firewall/options", "enable", "1")
	a.must("PUT", "/nodes/pve2/firewall/options", "nf_conntrack_max", "40000", "nosmurfs", "0")
	a.must("POST", "/nodes/pve2/firewall/rules", "type", "in", "action", "DROP", "iface", "vmbr0")
	a.must("PUT", "/cluster/firewall/options", "enable", "1", "log_ratelimit", "1,burst=4")
	a.must("POST", "/cluster/firewall/groups", "group", "g1")
	a.must("POST", "/nodes/pve1/qemu/9001/firewall/ipset", "name", "s1")
	a.must("POST", "/nodes/pve1/qemu/9001/firewall/ipset/s1", "cidr", "10.0.0.1")
	first := a.server.World.State()
	second := newWorld(t, pvesim.FromState(first)).State()
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("the world differs (-first +rebuilt):\n%s", diff)
	}
	if got := second.StrayFirewalls[777].Options["enable"]; got != "1" {
		t.Errorf("firewall of the VMID without a VM: %v", second.StrayFirewalls)
	}
}

func TestIndexesMacrosAndLogs(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	if got := fmt.Sprint(columns(a.must("GET", "/cluster/firewall"), "name")); got != "[aliases rules options groups ipset macros refs]" {
		t.Errorf("index is %s", got)
	}
	if got := a.must("GET", "/cluster/firewall/macros").([]any); len(got) != 86 {
		t.Errorf("%d macros", len(got))
	}
	if got := fmt.Sprint(columns(a.must("GET", "/nodes/pve1/firewall/log"), "n", "t")); got != "[1/no content]" {
		t.Errorf("log is %s", got)
	}
}

func TestAnAddressInTheIPFiltersOfTwoVMsIsFound(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for _, id := range []string{"100", "101"} {
		a.exit("POST", "/nodes/pve1/qemu", "vmid", id, "net0", "virtio,bridge=vmbr0", "net1", "virtio,bridge=vmbr1")
		path := "/nodes/pve1/qemu/" + id + "/firewall/ipset"
		for _, set := range []string{"ipfilter-net0", "ipfilter-net5", "other"} {
			a.must("POST", path, "name", set)
			a.must("POST", path+"/"+set, "cidr", "10.0.0.0/24")
			a.must("POST", path+"/"+set, "cidr", "10.0.0.9", "nomatch", "1")
		}
	}
	if broken := a.server.World.Check(); len(broken) > 0 {
		t.Errorf("networks, exceptions and sets of no device count: %v", broken)
	}
	a.must("POST", "/nodes/pve1/qemu/100/firewall/ipset/ipfilter-net0", "cidr", "10.0.0.7")
	a.must("POST", "/nodes/pve1/qemu/101/firewall/ipset", "name", "ipfilter-net1")
	a.must("POST", "/nodes/pve1/qemu/101/firewall/ipset/ipfilter-net1", "cidr", "10.0.0.7")
	if broken := a.server.World.Check(); len(broken) > 0 {
		t.Errorf("the same address in another network counts: %v", broken)
	}
	a.must("POST", "/nodes/pve1/qemu/101/firewall/ipset/ipfilter-net0", "cidr", "10.0.0.7")
	if got := fmt.Sprint(a.server.World.Check()); got != "[address 10.0.0.7 on vmbr0 is used by VM 100 and VM 101]" {
		t.Errorf("broken: %s", got)
	}
}

func TestNamesThatDifferInCaseAloneAreOne(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.must("POST", "/cluster/firewall/groups", "group", "Workers")
	a.expect("500 no such security group 'Workers'", "GET", "/cluster/firewall/groups/Workers")
	a.must("POST", "/cluster/firewall/groups/workers", "type", "in", "action", "DROP")
	a.must("POST", "/cluster/firewall/groups", "group", "WORKERS")
	if got := a.must("GET", "/cluster/firewall/groups/workers").([]any); len(got) != 1 {
		t.Errorf("rules are %v", got)
	}
	a.must("POST", "/cluster/firewall/ipset", "name", "nodes")
	a.must("POST", "/cluster/firewall/ipset/nodes", "cidr", "10.0.0.1")
	a.must("POST", "/cluster/firewall/ipset", "name", "Nodes")
	if got := a.must("GET", "/cluster/firewall/ipset/nodes").([]any); len(got) != 1 {
		t.Errorf("entries are %v", got)
	}
}

func TestOptionsOfAHostHaveItsLimits(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	const options = "/nodes/pve1/firewall/options"
	a.expect("400 map[nf_conntrack_max:value must have a minimum value of 32768]", "PUT", options, "nf_conntrack_max", "5")
	a.must("PUT", options, "nf_conntrack_max", "40000", "nf_conntrack_helpers", "ftp,sip")
	got := a.object(options)
	delete(got, "digest")
	if diff := cmp.Diff(map[string]any{"nf_conntrack_max": 40000.0, "nf_conntrack_helpers": "ftp,sip"}, got); diff != "" {
		t.Errorf("options (-want +got):\n%s", diff)
	}
}
