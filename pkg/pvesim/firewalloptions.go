package pvesim

import (
	"maps"
	"slices"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/firewall"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

func logLevels() []string {
	return []string{"emerg", "alert", "crit", "err", "warning", "notice", "info", "debug", "nolog"}
}

func clusterFirewallOptions() []schema.Param {
	limit := schema.PropertyString{DefaultKey: "enable", Params: []schema.Param{
		schema.Integer("burst").Min(0), schema.Boolean("enable").Required(), schema.Text("rate").Pattern(`[1-9][0-9]*/(second|minute|hour|day)`),
	}}
	return []schema.Param{
		schema.Boolean("ebtables"), schema.Integer("enable").Min(0), schema.Text("log_ratelimit").Of(limit), schema.Choice("policy_forward", "ACCEPT", "DROP"),
		schema.Choice("policy_in", "ACCEPT", "REJECT", "DROP"), schema.Choice("policy_out", "ACCEPT", "REJECT", "DROP"),
	}
}

func hostFirewallOptions() []schema.Param {
	level := func(name string) schema.Param { return schema.Choice(name, logLevels()...) }
	return []schema.Param{
		schema.Boolean("enable"), level("log_level_forward"), level("log_level_in"), level("log_level_out"), schema.Boolean("log_nf_conntrack"),
		schema.Boolean("ndp"), schema.Boolean("nf_conntrack_allow_invalid"), schema.Text("nf_conntrack_helpers").Format("pve-fw-conntrack-helper"),
		schema.Integer("nf_conntrack_max").Min(32768), schema.Integer("nf_conntrack_tcp_timeout_established").Min(7875),
		schema.Integer("nf_conntrack_tcp_timeout_syn_recv").Min(30).Max(60), schema.Boolean("nftables"), schema.Boolean("nosmurfs"),
		schema.Boolean("protection_synflood"), schema.Integer("protection_synflood_burst"), schema.Integer("protection_synflood_rate"),
		level("smurf_log_level"), level("tcp_flags_log_level"), schema.Boolean("tcpflags"),
	}
}

func guestFirewallOptions() []schema.Param {
	return []schema.Param{
		schema.Boolean("dhcp"), schema.Boolean("enable"), schema.Boolean("ipfilter"), schema.Choice("log_level_in", logLevels()...),
		schema.Choice("log_level_out", logLevels()...), schema.Boolean("macfilter"), schema.Boolean("ndp"),
		schema.Choice("policy_in", "ACCEPT", "REJECT", "DROP"), schema.Choice("policy_out", "ACCEPT", "REJECT", "DROP"), schema.Boolean("radv"),
	}
}

func (p firewallPlace) optionRoutes(options []schema.Param) []Route {
	changes := append(slices.Clone(options), schema.Text("delete").Format("pve-configid-list"), schema.Text("digest").MaxLength(64))
	isNumber := func(key string) bool {
		o := schema.Lookup(options, key)
		return o != nil && o.Kind != schema.StringKind
	}
	show := func(c *call) reply {
		fields := optionFields(p.find(c))
		out := typed(fields, isNumber)
		out["digest"] = firewall.Digest(fields)
		return ok(out)
	}
	set := func(c *call) reply { return p.setOptions(c, options) }
	return []Route{p.route("GET", "/options", show), p.route("PUT", "/options", set, changes...)}
}

func (p firewallPlace) setOptions(c *call, options []schema.Param) reply {
	file := p.find(c)
	if r, is := c.modified(firewall.Digest(optionFields(file))); is {
		return r
	}
	deleted := schema.SplitList(c.params["delete"])
	for _, name := range deleted {
		if schema.Lookup(options, name) == nil {
			return invalidParam("delete", "no such option '%s'", name)
		}
	}
	maps.DeleteFunc(file.Options, func(name, _ string) bool { return slices.Contains(deleted, name) })
	for _, o := range options {
		if value, given := c.params[o.Name]; given {
			file.SetOption(o.Name, value)
		}
	}
	p.keep(c, file)
	return ok(nil)
}
