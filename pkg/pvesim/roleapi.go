package pvesim

import (
	"maps"
	"slices"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

func roleRoutes() []Route {
	modify := on("/access", "Sys.Modify")
	id := schema.Text("roleid").Format("pve-roleid").Required()
	data := []schema.Param{id, schema.Text("privs")}
	const path = "/access/roles/{roleid}"
	return []Route{
		{Method: "GET", Path: "/access/roles", handle: listRoles},
		{Method: "POST", Path: "/access/roles", handle: createRole, permission: modify, params: data},
		{Method: "GET", Path: path, handle: readRole, params: data[:1]},
		{Method: "PUT", Path: path, handle: updateRole, permission: modify, params: append(slices.Clone(data), schema.Boolean("append").Requires("privs"))},
		{Method: "DELETE", Path: path, handle: deleteRole, permission: modify, params: data[:1]},
	}
}

// isSpecial tells whether the role is one that Proxmox VE brings.
func (w *World) isSpecial(role string) bool { return specialRoles(w.version)[role] != nil }

func listRoles(c *call) reply {
	out := []map[string]any{}
	special := specialRoles(c.version)
	for _, id := range slices.Sorted(maps.Keys(c.roles)) {
		privileges := slices.Sorted(slices.Values(c.roles[id]))
		out = append(out, map[string]any{"roleid": id, "privs": strings.Join(privileges, ","), "special": pveBool(special[id] != nil)})
	}
	return ok(out)
}

func readRole(c *call) reply {
	privileges, found := c.roles[c.params["roleid"]]
	if !found {
		return fail("role '%s' does not exist", c.params["roleid"])
	}
	out := map[string]int{}
	for _, p := range privileges {
		out[p] = 1
	}
	return ok(out)
}

// givenPrivileges are those of the request; the refusal names the first that the release does not know.
func (c *call) givenPrivileges() ([]string, reply) {
	given := schema.SplitList(c.params["privs"])
	known := administrator(c.version)
	for _, p := range given {
		if !slices.Contains(known, p) {
			return nil, invalidParam("privs", "invalid format - invalid privilege '%s'\n", p)
		}
	}
	slices.Sort(given)
	return slices.Compact(given), reply{}
}

func createRole(c *call) reply {
	id := c.params["roleid"]
	privileges, refused := c.givenPrivileges()
	switch {
	case refused.failed():
		return refused
	case len(id) >= 3 && strings.EqualFold(id[:3], "PVE"):
		return invalidParam("roleid", "cannot use role ID starting with the (case-insensitive) 'PVE' namespace")
	case c.roles[id] != nil:
		return fail("create role failed: role '%s' already exists", id)
	}
	c.roles[id] = append([]string{}, privileges...)
	return ok(nil)
}

func updateRole(c *call) reply {
	id := c.params["roleid"]
	privileges, refused := c.givenPrivileges()
	switch {
	case refused.failed():
		return refused
	case c.isSpecial(id):
		return fail("auto-generated role '%s' cannot be modified", id)
	case c.roles[id] == nil:
		return fail("update role failed: role '%s' does not exist", id)
	}
	if c.flag("append") {
		privileges = append(privileges, c.roles[id]...)
	}
	slices.Sort(privileges)
	c.roles[id] = append([]string{}, slices.Compact(privileges)...)
	return ok(nil)
}

// deleteRole takes the ACL entries with the role along.
func deleteRole(c *call) reply {
	id := c.params["roleid"]
	switch {
	case c.isSpecial(id):
		return fail("auto-generated role '%s' cannot be deleted", id)
	case c.roles[id] == nil:
		return fail("delete role failed: role '%s' does not exist", id)
	}
	delete(c.roles, id)
	c.forgetACL(func(e ACLSpec) bool { return e.Role == id })
	return ok(nil)
}
