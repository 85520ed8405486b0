package pvesim

import (
	"maps"
	"slices"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/firewall"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

func macroRoute() Route {
	return Route{Method: "GET", Path: "/cluster/firewall/macros", handle: func(*call) reply { return ok(firewall.MacroList()) }}
}

// refsRoute lists the sets and aliases that rules of the place may name.
func (p firewallPlace) refsRoute() Route {
	return p.route("GET", "/refs", func(c *call) reply {
		out := []map[string]string{}
		files := map[string]*firewall.Config{"dc": c.firewalls.cluster}
		if p.place == firewall.GuestPlace {
			files["guest"] = p.find(c)
		}
		for _, kind := range []string{"ipset", "alias"} {
			if wanted := c.params["type"]; wanted != "" && wanted != kind {
				continue
			}
			for _, scope := range slices.Sorted(maps.Keys(files)) {
				out = append(out, refs(files[scope], scope, kind)...)
			}
		}
		return ok(out)
	}, schema.Choice("type", "alias", "ipset"))
}

func refs(file *firewall.Config, scope, kind string) []map[string]string {
	list, sign := file.IPSetList(), "+"
	if kind == "alias" {
		list, sign = file.AliasList(), ""
	}
	out := []map[string]string{}
	for _, o := range list {
		ref := map[string]string{"type": kind, "scope": scope, "name": o["name"], "ref": sign + o["name"]}
		if o["comment"] != "" {
			ref["comment"] = o["comment"]
		}
		out = append(out, ref)
	}
	return out
}

// logRoute is the firewall's log, which stays empty: nothing is filtered.
func (p firewallPlace) logRoute(may permission) Route {
	at := func(name string) schema.Param { return schema.Integer(name).Min(0) }
	r := p.route("GET", "/log", func(*call) reply {
		return reply{status: 200, reason: "OK", data: []map[string]any{{"n": 1, "t": "no content"}}, extra: map[string]any{"total": 1}}
	}, at("limit"), at("since"), at("start"), at("until"))
	r.permission = may
	return r
}
