package pvesim

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

func userRoutes() []Route {
	modify := []string{"User.Modify"}
	data := []schema.Param{
		schema.Text("comment").MaxLength(2048), schema.Text("email").Format("email-opt").MaxLength(254), schema.Boolean("enable"), schema.Integer("expire").Min(0),
		schema.Text("firstname").MaxLength(1024), schema.Text("groups").Format("pve-groupid-list"), schema.Text("keys").Pattern(`[0-9a-zA-Z!=]{0,4096}`),
		schema.Text("lastname").MaxLength(1024), userIDParam(),
	}
	return []Route{
		{Method: "GET", Path: "/access/users", handle: listUsers, params: []schema.Param{schema.Boolean("enabled"), schema.Boolean("full")}},
		{
			Method: "POST", Path: "/access/users", handle: createUser, permission: allOf{allocateUser{}, userGroup{modify, "create"}},
			params: append(slices.Clone(data), schema.Text("password").MinLength(8).MaxLength(64)),
		},
		{
			Method: "GET", Path: "/access/users/{userid}", handle: readUser, permission: userGroup{privileges: []string{"User.Modify", "Sys.Audit"}},
			params: []schema.Param{userIDParam()},
		},
		{
			Method: "PUT", Path: "/access/users/{userid}", handle: updateUser, permission: userGroup{modify, "update"},
			params: append(slices.Clone(data), schema.Boolean("append").Requires("groups")),
		},
		{
			Method: "DELETE", Path: "/access/users/{userid}", handle: deleteUser, permission: allOf{allocateUser{}, userGroup{privileges: modify}},
			params: []schema.Param{userIDParam()},
		},
	}
}

// userFields are the texts that are kept of a user.
func userFields() []string { return []string{"firstname", "lastname", "email", "comment", "keys"} }

func (u *user) fields() map[string]any {
	out := map[string]any{"enable": pveBool(!u.disabled), "expire": unixOrZero(u.expire)}
	for name, value := range u.details {
		out[name] = value
	}
	return out
}

// unixOrZero is a time as Proxmox VE writes the end of an account: 0 means that there is none.
func unixOrZero(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

// expiry reads the end of an account.
func expiry(s string) time.Time {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n == 0 {
		return time.Time{}
	}
	return time.Unix(n, 0).UTC()
}

// listUsers shows the caller itself, and others by the rights on their groups.
func listUsers(c *call) reply {
	privileges := []string{"User.Modify", "Sys.Audit"}
	all := c.mayAny(c.who, "/access/groups", privileges...)
	out := []map[string]any{}
	for _, id := range slices.Sorted(maps.Keys(c.users)) {
		u := c.users[id]
		if !all && id != c.who.name() && !c.mayOnGroupOf(u, privileges) {
			continue
		}
		if c.has("enabled") && c.flag("enabled") == u.disabled {
			continue
		}
		entry := u.fields()
		entry["userid"] = id
		if realm := realmType(id); realm != "" {
			entry["realm-type"] = realm
		}
		if c.flag("full") {
			entry["groups"] = strings.Join(u.groups, ",")
			if tokens := c.tokensOf(u); len(tokens) > 0 {
				entry["tokens"] = tokenList(tokens)
			}
		}
		out = append(out, entry)
	}
	return ok(out)
}

func readUser(c *call) reply {
	u := c.users[c.params["userid"]]
	if u == nil {
		return noUser(c.params["userid"])
	}
	out := u.fields()
	out["groups"], out["tokens"] = append([]string{}, u.groups...), nil
	if tokens := c.tokensOf(u); len(tokens) > 0 {
		list := map[string]any{}
		for _, t := range tokens {
			list[t.name()] = t.fields()
		}
		out["tokens"] = list
	}
	return ok(out)
}

func createUser(c *call) reply {
	id := c.params["userid"]
	if c.users[id] != nil {
		return fail("create user failed: user '%s' already exists", id)
	}
	if c.has("password") && realmType(id) == "" {
		return fail("create user failed: auth domain '%s' does not exist", id[strings.LastIndexByte(id, '@')+1:])
	}
	u := &user{id: id, password: Secret(c.params["password"]), details: map[string]string{}}
	if missing := c.changeUser(u); missing != "" {
		return fail("create user failed: no such group '%s'", missing)
	}
	c.users[id] = u
	return ok(nil)
}

func updateUser(c *call) reply {
	u := c.users[c.params["userid"]]
	if u == nil {
		return fail("update user failed: no such user ('%s')", c.params["userid"])
	}
	changed := *u
	changed.details = maps.Clone(u.details)
	if missing := c.changeUser(&changed); missing != "" {
		return fail("update user failed: no such group '%s'", missing)
	}
	*u = changed
	return ok(nil)
}

// changeUser takes over what the request has; the result is a group that is missing. root@pam cannot be disabled.
func (c *call) changeUser(u *user) (missing string) {
	if c.has("enable") {
		u.disabled = !c.flag("enable") && u.id != rootUser
	}
	if c.has("expire") {
		u.expire = expiry(c.params["expire"])
	}
	for _, name := range userFields() {
		if value := c.params[name]; value != "" {
			u.details[name] = value
		} else if c.has(name) {
			delete(u.details, name)
		}
	}
	if !c.has("groups") {
		return ""
	}
	groups := schema.SplitList(c.params["groups"])
	for _, id := range groups {
		if c.groups[id] == nil {
			return id
		}
	}
	if c.flag("append") {
		groups = append(groups, u.groups...)
	}
	slices.Sort(groups)
	u.groups = slices.Compact(groups)
	return ""
}

// deleteUser takes the user's tokens and ACL entries along. root@pam itself stays.
func deleteUser(c *call) reply {
	u := c.users[c.params["userid"]]
	if u == nil {
		return noUser(c.params["userid"])
	}
	for _, t := range c.tokensOf(u) {
		c.removeToken(t)
	}
	if u.id != rootUser {
		delete(c.users, u.id)
	}
	c.forgetACL(func(e ACLSpec) bool { return e.Type == userHolder && e.Holder == u.id })
	return ok(nil)
}
