package pvesim

import (
	"maps"
	"slices"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

// lastNextID is the VMID at which GET /cluster/nextid gives up unless datacenter.cfg says otherwise.
const lastNextID proxmox.VMID = 1_000_000

// optionParams are those of PUT /cluster/options: the keys of datacenter.cfg.
func optionParams(v Version) []schema.Param {
	tag := `[a-zA-Z0-9_][a-zA-Z0-9_\-+.]*`
	out := []schema.Param{
		schema.Text("bwlimit").Of(properties("", schema.Number("clone").Min(0), schema.Number("default").Min(0), schema.Number("migration").Min(0),
			schema.Number("move").Min(0), schema.Number("restore").Min(0))),
		schema.Text("consent-text").MaxLength(65536), schema.Choice("console", "applet", "vv", "html5", "xtermjs"),
		schema.Text("crs").Of(schedulingFormat(v)),
		schema.Text("delete").Format("pve-configid-list"), schema.Text("description").MaxLength(65536), schema.Text("email_from").Format("email-opt"),
		schema.Choice("fencing", "watchdog", "hardware", "both"),
		schema.Text("ha").Of(properties("", schema.Choice("shutdown_policy", "freeze", "failover", "conditional", "migrate").Required())),
		schema.Text("http_proxy").Pattern(`http://.*`), schema.Choice("keyboard", keyboards()...), schema.Choice("language", languages()...),
		schema.Text("mac_prefix").Format("mac-prefix"), schema.Integer("max_workers").Min(1),
		schema.Text("migration").Of(properties("type", schema.Choice("type", "secure", "insecure").Required(), schema.Text("network"))),
		schema.Boolean("migration_unsecure"), schema.Text("next-id").Of(properties("", schema.Integer("lower"), schema.Integer("upper"))),
		schema.Text("notify").Of(notifyFormat()), schema.Text("registered-tags").Pattern("(?:" + tag + ";)*" + tag),
		schema.Text("tag-style").Of(properties("", schema.Boolean("case-sensitive"), schema.Text("color-map"), schema.Choice("ordering", "config", "alphabetical"),
			schema.Choice("shape", "full", "circle", "dense", "none"))),
		schema.Text("u2f").Of(properties("", schema.Text("appid"), schema.Text("origin"))),
		schema.Text("user-tag-access").Of(properties("", schema.Choice("user-allow", "none", "list", "existing", "free"), schema.Text("user-allow-list"))),
		schema.Text("webauthn").Of(properties("", schema.Boolean("allow-subdomains"), schema.Text("id"), schema.Text("origin"), schema.Text("rp"))),
	}
	if v != V84 {
		out = append(out, schema.Text("location").Format("pve-node-location"),
			schema.Text("replication").Of(properties("type", schema.Choice("type", "secure", "insecure").Required(), schema.Text("network"))))
	}
	return out
}

// schedulingFormat is that of the cluster resource scheduler's settings.
func schedulingFormat(v Version) schema.PropertyString {
	if v == V84 {
		return properties("", schema.Choice("ha", "basic", "static"), schema.Boolean("ha-rebalance-on-start"))
	}
	const rebalance = "ha-auto-rebalance"
	return properties("", schema.Choice("ha", "basic", "static", "dynamic"), schema.Boolean("ha-rebalance-on-start"), schema.Boolean(rebalance),
		schema.Number(rebalance+"-hold-duration").Min(0).Requires(rebalance), schema.Number(rebalance+"-margin").Min(0).Max(100).Requires(rebalance),
		schema.Choice(rebalance+"-method", "bruteforce", "topsis").Requires(rebalance),
		schema.Number(rebalance+"-threshold").Min(0).Max(100).Requires(rebalance))
}

func notifyFormat() schema.PropertyString {
	return properties("", schema.Choice("fencing", "always", "never"), schema.Choice("package-updates", "auto", "always", "never"),
		schema.Choice("replication", "always", "never"), schema.Text("target-fencing"), schema.Text("target-package-updates"),
		schema.Text("target-replication"))
}

func properties(first string, params ...schema.Param) schema.PropertyString {
	return schema.PropertyString{DefaultKey: first, Params: params}
}

func keyboards() []string {
	return strings.Fields(`de de-ch da en-gb en-us es fi fr fr-be fr-ca fr-ch hu is it ja lt mk nl no pl pt pt-br sv sl tr`)
}

func languages() []string {
	return strings.Fields(`ar ca da de en es eu fa fr hr he it ja ka kr nb nl nn pl pt_BR ru sl sv tr ukr zh_CN zh_TW`)
}

// getOptions is GET /cluster/options: datacenter.cfg for who may audit the cluster, and the tags that the caller may use.
func getOptions(c *call) reply {
	out := map[string]any{}
	audit := c.may(c.who, "/", "Sys.Audit")
	for key, value := range c.options {
		if audit || key == "console" || key == "tag-style" {
			out[key] = parsedOption(c.version, key, value)
		}
	}
	if audit {
		out["mac_prefix"] = c.macPrefix()
		out["description"] = c.options["description"]
	}
	out["allowed-tags"] = c.allowedTags()
	return ok(out)
}

// parsedOption is an option as PVE::DataCenterConfig reads it: property strings as objects, lists of tags as lists.
func parsedOption(v Version, key, value string) any {
	if key == "registered-tags" {
		return schema.SplitList(value)
	}
	p := schema.Lookup(optionParams(v), key)
	switch {
	case p == nil, p.Properties == nil && p.Kind != schema.IntegerKind && p.Kind != schema.BooleanKind:
		return value
	case p.Properties == nil:
		return atoi(value, 0)
	}
	parsed, msg := p.Properties.Parse(value)
	if msg != "" {
		return value
	}
	return parsed
}

func (w *World) macPrefix() string {
	if p := w.options["mac_prefix"]; p != "" {
		return p
	}
	return "BC:24:11"
}

// allowedTags are the tags that the caller may give guests beside new ones (PVE::GuestHelpers::get_allowed_tags).
func (c *call) allowedTags() []string {
	access := properties("", schema.Text("user-allow"), schema.Text("user-allow-list"))
	rule, _ := access.Parse(c.options["user-tag-access"])
	mode := rule["user-allow"]
	privileged := c.may(c.who, "/", "Sys.Modify")
	tags := map[string]bool{}
	add := func(list string) {
		for _, tag := range schema.SplitList(list) {
			tags[tag] = true
		}
	}
	if privileged {
		add(c.options["registered-tags"])
	}
	if privileged || mode != "none" {
		add(rule["user-allow-list"])
	}
	if privileged || mode == "" || mode == "free" || mode == "existing" {
		for id, v := range c.vms {
			if list := v.config["tags"]; list != "" && (privileged || c.canSee(id)) {
				add(list)
			}
		}
		for id, ct := range c.containers {
			if ct.Tags != "" && (privileged || c.canSee(id)) {
				add(ct.Tags)
			}
		}
	}
	return slices.AppendSeq([]string{}, slices.Values(slices.Sorted(maps.Keys(tags))))
}

func setOptions(c *call) reply {
	for _, key := range schema.SplitList(c.params["delete"]) {
		delete(c.options, key)
	}
	for key, value := range c.params {
		if key != "delete" {
			c.options[key] = value
		}
	}
	return ok(nil)
}

// nextID returns the lowest free VMID of the range in datacenter.cfg. It reserves nothing.
func nextID(c *call) reply {
	if id := toVMID(c.params["vmid"]); id != 0 {
		if c.hasGuest(id) {
			return invalidParam("vmid", "VM %d already exists", id)
		}
		return ok(id.String())
	}
	format := properties("", schema.Text("lower"), schema.Text("upper"))
	bounds, _ := format.Parse(c.options["next-id"])
	low, high := proxmox.MinVMID, lastNextID
	if n := toVMID(bounds["lower"]); n != 0 {
		low = n
	}
	if n := toVMID(bounds["upper"]); n != 0 {
		high = n
	}
	for id := low; id < high; id++ {
		if !c.hasGuest(id) {
			return ok(id.String())
		}
	}
	return fail("unable to get any free VMID in range [%d, %d]", low, high)
}
