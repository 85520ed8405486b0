package firewall_test

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/firewall"
)

// told lists the edits that lead to what is wanted.
func told(t *testing.T, wanted firewall.Wanted, state firewall.State) []string {
	t.Helper()
	var texts []string
	for range mostEdits {
		edit, more := firewall.Next(wanted, state)
		if !more {
			return texts
		}
		texts = append(texts, edit.String())
		state = reread(edit.Apply(state))
	}
	t.Fatalf("no end after %d edits: %v", mostEdits, texts)
	return nil
}

func wanted(spec v1beta1.Firewall, before firewall.Before) firewall.Wanted {
	addresses := map[string][]netip.Addr{
		"net0": {netip.MustParseAddr("10.0.0.5"), netip.MustParseAddr("fd00::5")}, "net1": nil,
	}
	return firewall.NewWanted(uuid, spec, addresses, before)
}

func ours(group string) firewall.Rule {
	return firewall.Rule{"type": "group", "action": group, "enable": "1", "comment": firewall.Comment(uuid)}
}

var theirs = firewall.Rule{"type": "in", "action": "ACCEPT", "macro": "SSH", "enable": "1"}

func on(more ...string) map[string]string {
	options := map[string]string{"enable": "1"}
	for i := 0; i < len(more); i += 2 {
		options[more[i]] = more[i+1]
	}
	return options
}

func groups(names ...string) []v1beta1.SecurityGroup {
	list := make([]v1beta1.SecurityGroup, len(names))
	for i, name := range names {
		list[i].Name = name
	}
	return list
}

func TestEdits(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		wanted firewall.Wanted
		is     firewall.State
		edits  []string
	}{
		"nothing asked, nothing there": {wanted(v1beta1.Firewall{}, nil), firewall.State{Rules: []firewall.Rule{theirs}, Options: on()}, nil},
		"a new VM": {
			wanted(v1beta1.Firewall{
				Enabled: ptr.To(true), PolicyIn: "DROP", IPFilter: ptr.To(true), SecurityGroups: groups("web", "db"),
			}, nil),
			firewall.State{},
			[]string{
				"making the rule of security group db", "making the rule of security group web", "making IP set ipfilter-net0",
				"adding 10.0.0.5 to IP set ipfilter-net0", "adding fd00::5 to IP set ipfilter-net0",
				"setting the firewall options enable=1, ipfilter=1, policy_in=DROP",
			},
		},
		"groups before a rule that is there, while the firewall is on": {
			wanted(v1beta1.Firewall{SecurityGroups: groups("web", "db")}, nil),
			firewall.State{Options: on(), Rules: []firewall.Rule{theirs}},
			[]string{"making the rule of security group db", "making the rule of security group web", "enabling firewall rule 1"},
		},
		"a group between others": {
			wanted(v1beta1.Firewall{SecurityGroups: groups("web", "mon", "db")}, nil),
			firewall.State{Options: on(), Rules: []firewall.Rule{ours("web"), ours("db"), theirs}},
			[]string{"making the rule of security group mon", "moving firewall rule 0", "enabling firewall rule 1"},
		},
		"groups in another order": {
			wanted(v1beta1.Firewall{SecurityGroups: groups("db", "web")}, nil),
			firewall.State{Options: on(), Rules: []firewall.Rule{ours("web"), ours("db"), theirs}},
			[]string{"making the rule of security group db", "deleting firewall rule 2"},
		},
		"a rule that somebody put first": {
			wanted(v1beta1.Firewall{SecurityGroups: groups("web")}, nil),
			firewall.State{Options: on(), Rules: []firewall.Rule{theirs, ours("web")}},
			[]string{"making the rule of security group web", "deleting firewall rule 2"},
		},
		"a rule made twice, and one that was not enabled": {
			wanted(v1beta1.Firewall{SecurityGroups: groups("web")}, nil),
			firewall.State{Options: on(), Rules: []firewall.Rule{{"type": "group", "action": "web", "enable": "0", "comment": firewall.Comment(uuid)}, ours("web"), ours("web"), theirs}},
			[]string{"deleting firewall rule 0", "deleting firewall rule 0"},
		},
		"a rule of ours that somebody changed": {
			wanted(v1beta1.Firewall{SecurityGroups: groups("web")}, nil),
			firewall.State{Options: on(), Rules: []firewall.Rule{{"type": "group", "action": "web", "enable": "1", "comment": firewall.Comment(uuid), "log": "info"}}},
			[]string{"making the rule of security group web", "deleting firewall rule 1"},
		},
		"from groups to a policy": {
			wanted(v1beta1.Firewall{PolicyIn: "ACCEPT", SecurityGroups: groups("deny-ssh")}, firewall.Before{"policy_in": ""}),
			firewall.State{Options: on(), Rules: []firewall.Rule{ours("web")}},
			[]string{"making the rule of security group deny-ssh", "setting the firewall options policy_in=ACCEPT", "deleting firewall rule 1"},
		},
		"filters, while the firewall is on": {
			wanted(v1beta1.Firewall{IPFilter: ptr.To(true)}, nil),
			firewall.State{Options: on(), SetsDigest: "s"},
			[]string{
				"making IP set capve-net0-" + uuid, "adding 10.0.0.5 to IP set capve-net0-" + uuid, "adding fd00::5 to IP set capve-net0-" + uuid,
				"renaming IP set capve-net0-" + uuid + " to ipfilter-net0", "setting the firewall options ipfilter=1",
			},
		},
		"a filter that came with the template": {
			wanted(v1beta1.Firewall{IPFilter: ptr.To(true)}, nil),
			firewall.State{
				Options: on("ipfilter", "1"),
				Sets:    map[string]firewall.Set{"ipfilter-net0": {Entries: []firewall.Entry{{CIDR: "10.0.0.5"}, {CIDR: "10.0.0.0/24"}, {CIDR: "dc/lan"}}}},
			},
			[]string{
				"renaming IP set ipfilter-net0 to ipfilter-net0", "taking 10.0.0.0/24 out of IP set ipfilter-net0",
				"taking dc/lan out of IP set ipfilter-net0", "adding fd00::5 to IP set ipfilter-net0",
			},
		},
		"the section is removed": {
			wanted(v1beta1.Firewall{}, firewall.Before{"enable": "", "ipfilter": "0", "policy_in": "REJECT"}),
			firewall.State{
				Options: on("ipfilter", "1", "policy_in", "DROP", "ndp", "1"), Rules: []firewall.Rule{ours("web"), theirs},
				Sets: map[string]firewall.Set{"ipfilter-net0": {Comment: firewall.Comment(uuid)}, "ipfilter-net1": {}, "nodes": {}},
			},
			[]string{
				"setting the firewall options ipfilter=0, policy_in=REJECT, no enable", "deleting firewall rule 0", "deleting IP set ipfilter-net0",
			},
		},
		"switched off": {
			wanted(v1beta1.Firewall{Enabled: ptr.To(false), SecurityGroups: groups("web")}, firewall.Before{"enable": ""}),
			firewall.State{Options: on(), Rules: []firewall.Rule{ours("web")}},
			[]string{"setting the firewall options enable=0"},
		},
		"only what is logged": {
			wanted(v1beta1.Firewall{LogLevelIn: "info", LogLevelOut: "nolog"}, nil),
			firewall.State{Options: on()},
			[]string{"setting the firewall options log_level_in=info, log_level_out=nolog"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.edits, told(t, c.wanted, reread(c.is))); diff != "" {
				t.Errorf("edits (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEveryOptionOfTheSpec(t *testing.T) {
	t.Parallel()
	yes, no := ptr.To(true), ptr.To(false)
	cases := map[string]v1beta1.Firewall{
		"enable=1": {Enabled: yes}, "enable=0": {Enabled: no}, "policy_in=DROP": {PolicyIn: "DROP"}, "policy_out=REJECT": {PolicyOut: "REJECT"},
		"ipfilter=1": {IPFilter: yes}, "ipfilter=0": {IPFilter: no}, "macfilter=1": {MACFilter: yes}, "macfilter=0": {MACFilter: no},
		"dhcp=1": {DHCP: yes}, "dhcp=0": {DHCP: no}, "ndp=1": {NDP: yes}, "ndp=0": {NDP: no}, "radv=1": {RouterAdvertisement: yes},
		"radv=0": {RouterAdvertisement: no}, "log_level_in=nolog": {LogLevelIn: "nolog"}, "log_level_out=info": {LogLevelOut: "info"},
	}
	for option, spec := range cases {
		got := told(t, wanted(spec, nil), firewall.State{})
		if want := "setting the firewall options " + option; !slices.Contains(got, want) {
			t.Errorf("%s: %v", want, got)
		}
		if len(wanted(spec, nil).Options) != 1 {
			t.Errorf("%s: more is set: %v", option, wanted(spec, nil).Options)
		}
	}
}

func TestWhatOptionsWereIsKnownBeforeTheyAreSet(t *testing.T) {
	t.Parallel()
	present := firewall.State{Options: on("policy_in", "REJECT")}
	spec := v1beta1.Firewall{Enabled: ptr.To(true), PolicyIn: "DROP", NDP: ptr.To(true)}
	record, more := wanted(spec, nil).Record(present)
	if diff := cmp.Diff(firewall.Before{"enable": "1", "policy_in": "REJECT", "ndp": ""}, record); diff != "" || !more {
		t.Errorf("at first (-want +got):\n%s", diff)
	}
	if again, more := wanted(spec, record).Record(firewall.State{Options: on("policy_in", "DROP")}); more {
		t.Errorf("what is known is recorded again: %v", again)
	}
	if diff := cmp.Diff(firewall.Before{"policy_in": "REJECT"}, wanted(v1beta1.Firewall{PolicyIn: "DROP"}, record).Settled()); diff != "" {
		t.Errorf("with one left (-want +got):\n%s", diff)
	}
	if settled := wanted(v1beta1.Firewall{SecurityGroups: groups("web")}, record).Settled(); settled == nil || len(settled) > 0 {
		t.Errorf("groups are known of by an empty record, not by %v", settled)
	}
	if settled := wanted(v1beta1.Firewall{}, record).Settled(); settled != nil {
		t.Errorf("nothing of ours is left, and yet %v", settled)
	}
	if _, more := wanted(v1beta1.Firewall{SecurityGroups: groups("web")}, nil).Record(present); !more {
		t.Error("a rule is made before it is known that there is something of ours")
	}
	if _, more := wanted(v1beta1.Firewall{}, nil).Record(present); more {
		t.Error("something is recorded although nothing is asked for")
	}
}
