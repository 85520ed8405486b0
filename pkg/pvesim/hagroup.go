package pvesim

import (
	"fmt"
	"maps"
	"slices"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

// haGroupRoutes are those of 8.4's groups. In 9.x they are still there, and all refuse: groups became rules.
func haGroupRoutes(v Version) []Route {
	const path = "/cluster/ha/groups"
	audit, console := on("/", "Sys.Audit"), on("/", "Sys.Console")
	params, handlers := haGroupParams(v), haGroupHandlers(v)
	change := slices.Clone(params)
	change[0].Optional = true
	return []Route{
		{Method: "GET", Path: path, handle: handlers["index groups"], permission: audit},
		{Method: "POST", Path: path, handle: handlers["create group"], permission: console, params: append(params,
			schema.Text("group").Format("pve-configid").Required(), schema.Choice("type", "group"))},
		{Method: "GET", Path: path + "/{group}", handle: handlers["read group"], permission: audit},
		{Method: "PUT", Path: path + "/{group}", handle: handlers["update group"], permission: console, params: append(change, updateParams()...)},
		{Method: "DELETE", Path: path + "/{group}", handle: handlers["delete group"], permission: console},
	}
}

func haGroupParams(v Version) []schema.Param {
	format := "pve-ha-group-node-list"
	if v == V92 {
		format = "pve-ha-node-list"
	}
	return []schema.Param{
		schema.Text("nodes").Format(format).Required(), schema.Boolean("nofailback"), schema.Boolean("restricted"), schema.Text("comment").MaxLength(4096),
	}
}

func haGroupHandlers(v Version) map[string]func(*call) reply {
	out := map[string]func(*call) reply{
		"index groups": listHAGroups, "create group": addHAGroup, "read group": getHAGroup, "update group": changeHAGroup, "delete group": deleteHAGroup,
	}
	if v == V84 {
		return out
	}
	for act := range out {
		out[act] = func(*call) reply { return fail("cannot %s: ha groups have been migrated to rules", act) }
	}
	return out
}

func (c *call) haGroup(name string) map[string]any {
	out := section(c.ha.groups[name], "nofailback", "restricted")
	out["group"], out["type"], out["digest"] = name, "group", sectionsDigest(c.ha.groups)
	return out
}

func listHAGroups(c *call) reply {
	out := []map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(c.ha.groups)) {
		out = append(out, c.haGroup(name))
	}
	return ok(out)
}

func getHAGroup(c *call) reply {
	name := c.params["group"]
	if c.ha.groups[name] == nil {
		return fail("no such ha group '%s'", name)
	}
	return ok(c.haGroup(name))
}

func (c *call) haGroupOptions() map[string]string {
	out := map[string]string{}
	for _, key := range []string{"nodes", "nofailback", "restricted", "comment"} {
		if c.has(key) {
			out[key] = c.params[key]
		}
	}
	return out
}

func addHAGroup(c *call) reply {
	name := c.params["group"]
	if c.ha.groups[name] != nil {
		return fail("create ha group failed: ha group ID '%s' already defined", name)
	}
	c.ha.groups[name] = c.haGroupOptions()
	return ok(nil)
}

func changeHAGroup(c *call) reply {
	name := c.params["group"]
	msg := ""
	switch {
	case c.has("digest") && c.params["digest"] != sectionsDigest(c.ha.groups):
		msg = fileModified
	case c.ha.groups[name] == nil:
		msg = fmt.Sprintf("no such ha group '%s'", name)
	default:
		msg = updateSection(c.ha.groups[name], c.haGroupOptions(), schema.SplitList(c.params["delete"]), haGroupParams(c.version))
	}
	if msg != "" {
		return fail("update ha group failed: %s", msg)
	}
	return ok(nil)
}

func deleteHAGroup(c *call) reply {
	name := c.params["group"]
	for _, sid := range slices.Sorted(maps.Keys(c.ha.resources)) {
		if c.ha.resources[sid]["group"] == name {
			return fail("delete ha group failed: ha group is used by service '%s'", sid)
		}
	}
	delete(c.ha.groups, name)
	return ok(nil)
}
