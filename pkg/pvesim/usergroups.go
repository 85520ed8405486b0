package pvesim

import (
	"maps"
	"slices"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

// userGroupEntry is a group of users; the users name the groups that they are in.
type userGroupEntry struct {
	comment string
}

func userGroupRoutes() []Route {
	allocate := on("/access/groups", "Group.Allocate")
	id := schema.Text("groupid").Format("pve-groupid").Required()
	data := []schema.Param{id, schema.Text("comment")}
	const path = "/access/groups/{groupid}"
	return []Route{
		{Method: "GET", Path: "/access/groups", handle: listUserGroups},
		{Method: "POST", Path: "/access/groups", handle: createUserGroup, permission: allocate, params: data},
		{Method: "GET", Path: path, handle: readUserGroup, permission: on("/access/groups", "Sys.Audit", "Group.Allocate"), params: data[:1]},
		{Method: "PUT", Path: path, handle: updateUserGroup, permission: allocate, params: data},
		{Method: "DELETE", Path: path, handle: deleteUserGroup, permission: allocate, params: data[:1]},
	}
}

// membersOf are the users of a group, sorted.
func (w *World) membersOf(group string) []string {
	out := []string{}
	for id, u := range w.users {
		if slices.Contains(u.groups, group) {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

func listUserGroups(c *call) reply {
	out := []map[string]any{}
	for _, id := range slices.Sorted(maps.Keys(c.groups)) {
		if !c.mayAny(c.who, "/access/groups/"+id, "User.Modify", "Sys.Audit", "Group.Allocate") {
			continue
		}
		entry := map[string]any{"groupid": id, "users": strings.Join(c.membersOf(id), ",")}
		if text := c.groups[id].comment; text != "" {
			entry["comment"] = text
		}
		out = append(out, entry)
	}
	return ok(out)
}

func readUserGroup(c *call) reply {
	id := c.params["groupid"]
	g := c.groups[id]
	if g == nil {
		return fail("group '%s' does not exist", id)
	}
	out := map[string]any{"members": c.membersOf(id)}
	if g.comment != "" {
		out["comment"] = g.comment
	}
	return ok(out)
}

func createUserGroup(c *call) reply {
	id := c.params["groupid"]
	if c.groups[id] != nil {
		return fail("create group failed: group '%s' already exists", id)
	}
	c.groups[id] = &userGroupEntry{comment: c.params["comment"]}
	return ok(nil)
}

func updateUserGroup(c *call) reply {
	g := c.groups[c.params["groupid"]]
	if g == nil {
		return fail("update group failed: group '%s' does not exist", c.params["groupid"])
	}
	if c.has("comment") {
		g.comment = c.params["comment"]
	}
	return ok(nil)
}

func deleteUserGroup(c *call) reply {
	id := c.params["groupid"]
	if c.groups[id] == nil {
		return fail("delete group failed: group '%s' does not exist", id)
	}
	delete(c.groups, id)
	for _, u := range c.users {
		u.groups = slices.DeleteFunc(u.groups, func(g string) bool { return g == id })
	}
	c.forgetACL(func(e ACLSpec) bool { return e.Type == groupHolder && e.Holder == id })
	return ok(nil)
}
