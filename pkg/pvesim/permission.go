package pvesim

import (
	"net/http"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

// permission is what an endpoint asks of the caller before its parameters are looked at: the check tree in the permissions of
// Proxmox VE's API schema (PVE::RPCEnvironment::exec_api2_perm_check). An endpoint without one is for every login.
type permission interface {
	// check returns whether it is met. A refusal that is not empty ends the request even where another permission would do.
	// Quiet checks leave the refusal to the permission that they are part of.
	check(c *call, quiet bool) (met bool, refusal reply)
	// tree is the permission as the schema writes it.
	tree() any
}

// allowed runs the endpoint's permission. root@pam, but none of its tokens, may call everything.
func (c *call) allowed() reply {
	if c.route.permission == nil || c.who.user == nil || c.who.isRoot() {
		return reply{}
	}
	_, refusal := c.route.permission.check(c, false)
	return refusal
}

// refuse is the 403 that says what is missing, unless another part of the permission may do.
func refuse(quiet bool, missing string) (bool, reply) {
	switch {
	case quiet:
		return false, reply{}
	case missing == "":
		return false, reply{status: http.StatusForbidden, reason: "Permission check failed"}
	}
	return false, reply{status: http.StatusForbidden, reason: "Permission check failed (" + missing + ")"}
}

// perm asks for privileges on a path with {variables} of the request. Nobody but root@pam has any on what values make no path.
type perm struct {
	path       string
	privileges []string
	// every privilege is asked for; otherwise one of them suffices.
	every bool
	// param must be given, unless it is empty.
	param string
}

// on asks for one of the privileges on a path with {variables} of the request.
func on(path string, privileges ...string) permission {
	return perm{path: path, privileges: privileges}
}

// allOn asks for all of the privileges on a path with {variables} of the request.
func allOn(path string, privileges ...string) permission {
	return perm{path: path, privileges: privileges, every: true}
}

func (p perm) check(c *call, quiet bool) (bool, reply) {
	if p.param != "" && !c.has(p.param) {
		return refuse(quiet, "")
	}
	path := normalPath(c.fill(p.path))
	if !p.every {
		if path != "" && c.mayAny(c.who, path, p.privileges...) {
			return true, reply{}
		}
		return refuse(quiet, path+", "+strings.Join(p.privileges, "|"))
	}
	for _, privilege := range p.privileges {
		if path == "" || !c.may(c.who, path, privilege) {
			return refuse(quiet, path+", "+privilege)
		}
	}
	return true, reply{}
}

// fill puts the request's values into a path; one that is not given becomes a dash.
func (c *call) fill(path string) string {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			parts[i] = c.params[strings.TrimSuffix(name, "}")]
			if parts[i] == "" {
				parts[i] = "-"
			}
		}
	}
	return strings.Join(parts, "/")
}

func (p perm) tree() any {
	out := []any{"perm", p.path, p.privileges}
	if !p.every && len(p.privileges) > 1 {
		out = append(out, "any", 1)
	}
	if p.param != "" {
		out = append(out, "require_param", p.param)
	}
	return out
}

// allOf asks for all of its parts. The first that is missing ends the request, also where it is one of several that would do.
type allOf []permission

func (a allOf) check(c *call, _ bool) (bool, reply) {
	for _, p := range a {
		if _, refusal := p.check(c, false); refusal.failed() {
			return false, refusal
		}
	}
	return true, reply{}
}

func (a allOf) tree() any { return combined("and", a) }

// anyOf asks for one of its parts.
type anyOf []permission

func (a anyOf) check(c *call, quiet bool) (bool, reply) {
	for _, p := range a {
		if met, refusal := p.check(c, true); met || refusal.failed() {
			return met, refusal
		}
	}
	return refuse(quiet, "")
}

func (a anyOf) tree() any { return combined("or", a) }

func combined(kind string, parts []permission) any {
	out := []any{kind}
	for _, p := range parts {
		out = append(out, p.tree())
	}
	return out
}

// self asks that {userid} be the caller, who is logged in with a ticket: a token is not its user.
type self struct{}

func (self) check(c *call, quiet bool) (bool, reply) {
	if _, refusal := c.userParam(quiet); refusal.failed() {
		return false, refusal
	}
	if c.users[c.params["userid"]] != nil && c.who.name() == c.params["userid"] {
		return true, reply{}
	}
	return refuse(quiet, "")
}

func (self) tree() any { return []any{"userid-param", "self"} }

// allocateUser asks for Realm.AllocateUser on the realm of {userid}.
type allocateUser struct{}

func (allocateUser) check(c *call, quiet bool) (bool, reply) {
	id := c.params["userid"]
	if msg := schema.CheckFormat("pve-userid", id); msg != "" {
		return false, fail("%s", msg)
	}
	path := "/access/realm/" + id[strings.LastIndexByte(id, '@')+1:]
	if c.may(c.who, path, "Realm.AllocateUser") {
		return true, reply{}
	}
	return refuse(quiet, path+", Realm.AllocateUser")
}

func (allocateUser) tree() any { return []any{"userid-param", "Realm.AllocateUser"} }

// userGroup asks for one of the privileges on all groups or on one that {userid} is in.
type userGroup struct {
	privileges []string
	// groups is create or update where the parameter groups is looked at as well; a user that is created need not exist.
	groups string
}

func (g userGroup) check(c *call, quiet bool) (bool, reply) {
	if g.groups != "create" {
		if u, refusal := c.userParam(quiet); u == nil {
			return false, refusal
		}
	}
	if c.mayAny(c.who, "/access/groups", g.privileges...) {
		return true, reply{}
	}
	if g.groups != "" {
		if missing := g.missingGroup(c); missing != "" {
			return refuse(false, missing+", "+strings.Join(g.privileges, "|"))
		}
	}
	if g.groups == "create" || c.mayOnGroupOf(c.users[c.params["userid"]], g.privileges) {
		return true, reply{}
	}
	return refuse(quiet, "")
}

// missingGroup is the path of a group in the request on which the caller has none of the privileges.
func (g userGroup) missingGroup(c *call) string {
	groups := schema.SplitList(c.params["groups"])
	if len(groups) == 0 {
		return "/access/groups"
	}
	for _, id := range groups {
		if path := "/access/groups/" + id; c.groups[id] == nil || !c.mayAny(c.who, path, g.privileges...) {
			return path
		}
	}
	return ""
}

func (g userGroup) tree() any {
	out := []any{"userid-group", g.privileges}
	if g.groups != "" {
		out = append(out, "groups_param", g.groups)
	}
	return out
}

// userParam is the user that {userid} names; nil with the refusal if there is none.
func (c *call) userParam(quiet bool) (*user, reply) {
	id := c.params["userid"]
	if msg := schema.CheckFormat("pve-userid", id); msg != "" {
		return nil, fail("%s", msg)
	}
	u := c.users[id]
	if u == nil && !quiet {
		return nil, noUser(id)
	}
	return u, reply{}
}

func noUser(id string) reply { return fail("no such user ('%s')", id) }

// mayOnGroupOf tells whether one of the privileges is held on a group of the user.
func (c *call) mayOnGroupOf(u *user, privileges []string) bool {
	if u == nil {
		return false
	}
	for _, id := range u.groups {
		if c.mayAny(c.who, "/access/groups/"+id, privileges...) {
			return true
		}
	}
	return false
}

// modifyACL asks for what lets one give rights on the {path}.
type modifyACL struct{}

func (modifyACL) check(c *call, quiet bool) (bool, reply) {
	path := normalPath(c.fill("{path}"))
	if path == "" || c.mayModify(path) {
		return path != "", reply{}
	}
	return refuse(quiet, path+", "+strings.Join(modifiers(path), "|"))
}

func (modifyACL) tree() any { return []any{"perm-modify", "{path}"} }

func (c *call) mayModify(path string) bool { return c.mayAny(c.who, path, modifiers(path)...) }

// modifiers are the privileges of which one lets one give rights on a path.
func modifiers(path string) []string {
	out := []string{"Permissions.Modify"}
	for prefix, privilege := range map[string]string{"/storage/": "Datastore.Allocate", "/vms/": "VM.Allocate", "/pool/": "Pool.Allocate"} {
		if strings.HasPrefix(path, prefix) {
			out = append(out, privilege)
		}
	}
	return out
}

// world endpoints can be called without a login.
type world struct{}

func (world) check(_ *call, quiet bool) (bool, reply) { return refuse(quiet, "") }
func (world) tree() any                               { return "world" }

// rootAlone endpoints have no permission in the schema: root@pam calls them, with a ticket.
type rootAlone struct{}

func (rootAlone) check(_ *call, quiet bool) (bool, reply) { return refuse(quiet, "user != root@pam") }
func (rootAlone) tree() any                               { return rootUser }
