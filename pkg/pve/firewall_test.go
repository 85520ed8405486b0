package pve_test

import (
	"context"
	"net/url"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
)

const rulesDigest = "195045c1eaab976f2388652484928ab4d6fbc101"

// firewallReads have answers as the real API gives them.
func firewallReads() []request {
	return []request{
		{
			name: "firewall options", send: func(ctx context.Context, c *pve.Client) (any, error) { return c.FirewallOptions(ctx, vm101) },
			line: "GET /nodes/pve1/qemu/101/firewall/options",
			data: `{"macfilter":0,"ndp":0,"log_level_out":"info","enable":1,"digest":"6a12","policy_out":"ACCEPT"}`,
			want: pve.FirewallOptions{Digest: "6a12", Values: map[string]string{
				"macfilter": "0", "ndp": "0", "log_level_out": "info", "enable": "1", "policy_out": "ACCEPT",
			}},
		}, {
			name: "firewall rules", send: func(ctx context.Context, c *pve.Client) (any, error) { return c.FirewallRules(ctx, vm101) },
			line: "GET /nodes/pve1/qemu/101/firewall/rules",
			data: `[{"action":"REJECT","type":"out","enable":0,"pos":0,"ipversion":4,"digest":"1950","dest":"10.0.0.0/8"},
				{"type":"group","pos":1,"errors":{"action":"invalid characters in security group name"},"enable":1,"action":"SSH(workers)","digest":"1950"}]`,
			want: pve.FirewallRules{Digest: "1950", Rules: []map[string]string{
				{"action": "REJECT", "type": "out", "enable": "0", "ipversion": "4", "dest": "10.0.0.0/8"},
				{"type": "group", "enable": "1", "action": "SSH(workers)"},
			}},
		}, {
			name: "IP sets", send: func(ctx context.Context, c *pve.Client) (any, error) { return c.IPSets(ctx, vm101) },
			line: "GET /nodes/pve1/qemu/101/firewall/ipset",
			data: `[{"digest":"e007","name":"ipfilter-net0","comment":"c"},{"digest":"e007","name":"nodes"}]`,
			want: pve.IPSets{Digest: "e007", Comments: map[string]string{"ipfilter-net0": "c", "nodes": ""}},
		}, {
			name: "entries of an IP set", send: func(ctx context.Context, c *pve.Client) (any, error) {
				return c.IPSetEntries(ctx, vm101, "ipfilter-net0")
			},
			line: "GET /nodes/pve1/qemu/101/firewall/ipset/ipfilter-net0",
			data: `[{"cidr":"10.77.0.60","digest":"a348"},{"nomatch":1,"cidr":"10.77.0.99","digest":"a348","comment":"no"}]`,
			want: pve.IPSetEntries{Digest: "a348", Entries: []pve.IPSetEntry{{CIDR: "10.77.0.60"}, {CIDR: "10.77.0.99", NoMatch: true}}},
		}, {
			name: "security groups", send: func(ctx context.Context, c *pve.Client) (any, error) { return c.SecurityGroups(ctx) },
			line: "GET /cluster/firewall/groups",
			data: `[{"digest":"a1","group":"web","comment":"w"},{"digest":"a1","group":"db"}]`, want: []string{"web", "db"},
		},
	}
}

func firewallWrites() []request {
	rule := pve.FirewallRuleRef{VM: vm101, Position: 3, Digest: rulesDigest}
	return []request{
		{
			name: "set firewall options", send: func(ctx context.Context, c *pve.Client) (any, error) {
				return nil, c.UpdateFirewallOptions(ctx, pve.FirewallOptionsUpdate{
					VM: vm101, Set: map[string]string{"enable": "1", "policy_in": "DROP"}, Delete: []string{"ndp", "log_level_in"}, Digest: rulesDigest,
				})
			},
			line: "PUT /nodes/pve1/qemu/101/firewall/options", data: `null`,
			form: url.Values{"enable": {"1"}, "policy_in": {"DROP"}, "delete": {"ndp,log_level_in"}, "digest": {rulesDigest}},
		}, {
			name: "make a firewall rule", send: func(ctx context.Context, c *pve.Client) (any, error) {
				return nil, c.CreateFirewallRule(ctx, vm101, map[string]string{"type": "group", "action": "web", "enable": "0", "comment": "c", "iface": "net0"})
			},
			line: "POST /nodes/pve1/qemu/101/firewall/rules", data: `null`,
			form: url.Values{"type": {"group"}, "action": {"web"}, "enable": {"0"}, "comment": {"c"}, "iface": {"net0"}},
		}, {
			name: "move a firewall rule", send: func(ctx context.Context, c *pve.Client) (any, error) {
				return nil, c.MoveFirewallRule(ctx, pve.FirewallRuleRef{VM: vm101, Position: 0, Digest: rulesDigest}, 2)
			},
			line: "PUT /nodes/pve1/qemu/101/firewall/rules/0", data: `null`, form: url.Values{"moveto": {"2"}, "digest": {rulesDigest}},
		}, {
			name: "enable a firewall rule", send: func(ctx context.Context, c *pve.Client) (any, error) {
				return nil, c.EnableFirewallRule(ctx, rule)
			},
			line: "PUT /nodes/pve1/qemu/101/firewall/rules/3", data: `null`, form: url.Values{"enable": {"1"}, "digest": {rulesDigest}},
		}, {
			name: "delete a firewall rule", send: func(ctx context.Context, c *pve.Client) (any, error) {
				return nil, c.DeleteFirewallRule(ctx, rule)
			},
			line: "DELETE /nodes/pve1/qemu/101/firewall/rules/3?digest=" + rulesDigest, data: `null`,
		}, {
			name: "rename an IP set", send: func(ctx context.Context, c *pve.Client) (any, error) {
				return nil, c.CreateIPSet(ctx, pve.IPSetRequest{VM: vm101, Name: "ipfilter-net0", Comment: "c", Rename: "stage", Digest: rulesDigest})
			},
			line: "POST /nodes/pve1/qemu/101/firewall/ipset", data: `null`,
			form: url.Values{"name": {"ipfilter-net0"}, "comment": {"c"}, "rename": {"stage"}, "digest": {rulesDigest}},
		}, {
			name: "delete an IP set", send: func(ctx context.Context, c *pve.Client) (any, error) {
				return nil, c.DeleteIPSet(ctx, vm101, "ipfilter-net0")
			},
			line: "DELETE /nodes/pve1/qemu/101/firewall/ipset/ipfilter-net0?force=1", data: `null`,
		}, {
			name: "add to an IP set", send: func(ctx context.Context, c *pve.Client) (any, error) {
				return nil, c.AddIPSetEntry(ctx, pve.IPSetEntryRef{VM: vm101, Set: "ipfilter-net0", CIDR: "fd00::1"})
			},
			line: "POST /nodes/pve1/qemu/101/firewall/ipset/ipfilter-net0", data: `null`, form: url.Values{"cidr": {"fd00::1"}},
		}, {
			name: "take out of an IP set", send: func(ctx context.Context, c *pve.Client) (any, error) {
				return nil, c.RemoveIPSetEntry(ctx, pve.IPSetEntryRef{VM: vm101, Set: "ipfilter-net0", CIDR: "10.77.1.0/24", Digest: rulesDigest})
			},
			line: "DELETE /nodes/pve1/qemu/101/firewall/ipset/ipfilter-net0/10.77.1.0/24?digest=" + rulesDigest, data: `null`,
		},
	}
}
