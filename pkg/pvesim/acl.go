package pvesim

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

func aclRoutes() []Route {
	return []Route{
		{Method: "GET", Path: "/access/acl", handle: listACL},
		{Method: "PUT", Path: "/access/acl", handle: updateACL, permission: modifyACL{}, params: []schema.Param{
			schema.Text("path").Required(), schema.Text("roles").Format("pve-roleid-list").Required(), schema.Boolean("propagate"), schema.Boolean("delete"),
			schema.Text("users").Format("pve-userid-list"), schema.Text("groups").Format("pve-groupid-list"), schema.Text("tokens").Format("pve-tokenid-list"),
		}},
	}
}

// listACL shows the entries of paths on which the caller may give rights.
func listACL(c *call) reply {
	audit := c.may(c.who, "/access", "Sys.Audit")
	out := []map[string]any{}
	for _, path := range slices.Sorted(maps.Keys(c.acl)) {
		if !audit && !c.mayModify(path) {
			continue
		}
		for _, e := range c.acl[path] {
			out = append(out, map[string]any{"path": path, "type": e.Type, "ugid": e.Holder, "roleid": e.Role, "propagate": pveBool(!e.NoPropagate)})
		}
	}
	return ok(out)
}

// aclChange is what PUT /access/acl asks for.
type aclChange struct {
	path      string
	roles     []string
	holders   []holder
	remove    bool
	propagate bool
}

func updateACL(c *call) reply {
	change, refused := c.newACLChange()
	if refused.failed() {
		return refused
	}
	for _, role := range change.roles {
		if msg := c.aclRefusal(change, role); msg != "" {
			return fail("ACL update failed: %s", msg)
		}
	}
	for _, role := range change.roles {
		for _, h := range change.holders {
			c.setACL(change, role, h)
		}
	}
	return ok(nil)
}

func (c *call) newACLChange() (aclChange, reply) {
	out := aclChange{
		path: normalPath(c.params["path"]), roles: schema.SplitList(c.params["roles"]), remove: c.flag("delete"), propagate: !c.has("propagate") || c.flag("propagate"),
	}
	for _, kind := range []string{groupHolder, userHolder, tokenHolder} {
		for _, id := range schema.SplitList(c.params[kind+"s"]) {
			out.holders = append(out.holders, holder{kind, id})
		}
	}
	if c.params["users"]+c.params["groups"]+c.params["tokens"] == "" {
		const text = "either 'users', 'groups' or 'tokens' is required."
		return out, invalid(map[string]string{"users": text, "groups": text, "tokens": text})
	}
	if out.path == "" || (!out.remove && !validACLPath(c.version, out.path)) {
		return out, invalidParam("path", "invalid ACL path '%s'", c.params["path"])
	}
	return out, reply{}
}

// aclRefusal is why the role cannot be given or taken, or "".
func (c *call) aclRefusal(change aclChange, role string) string {
	if c.roles[role] == nil {
		return fmt.Sprintf("role '%s' does not exist", role)
	}
	if msg := c.handOutRefusal(change, role); msg != "" {
		return fmt.Sprintf("%d Parameter verification failed.\nrole: %s", http.StatusBadRequest, msg)
	}
	for _, h := range change.holders {
		if msg := c.missingHolder(h); msg != "" {
			return msg
		}
	}
	return ""
}

// handOutRefusal keeps those who may give rights only by, say, VM.Allocate from giving more than they have.
func (c *call) handOutRefusal(change aclChange, role string) string {
	own := c.privileges(c.who, change.path)
	if _, all := own["Permissions.Modify"]; all {
		return ""
	}
	verb := "add"
	if change.remove {
		verb = "remove"
	}
	for _, p := range c.roles[role] {
		propagated, held := own[p]
		if !held {
			return fmt.Sprintf("Cannot %s role '%s' - requires 'Permissions.Modify' or superset of privileges.", verb, role)
		}
		if change.propagate && !propagated && !change.remove {
			return fmt.Sprintf("Cannot %s role '%s' with propagation - requires 'Permissions.Modify' or propagated superset of privileges.", verb, role)
		}
	}
	if role == noAccess {
		return fmt.Sprintf("Cannot %s role '%s' - requires 'Permissions.Modify'", verb, role)
	}
	return ""
}

func (c *call) missingHolder(h holder) string {
	switch {
	case h.kind == groupHolder && c.groups[h.id] == nil:
		return fmt.Sprintf("group '%s' does not exist", h.id)
	case h.kind == userHolder && c.users[h.id] == nil:
		return fmt.Sprintf("user '%s' does not exist", h.id)
	case h.kind == tokenHolder && c.tokens[h.id] == nil:
		user, name, _ := strings.Cut(h.id, "!")
		if c.users[user] == nil {
			return fmt.Sprintf("no such user ('%s')", user)
		}
		return fmt.Sprintf("no such token '%s' for user '%s'", name, user)
	}
	return ""
}

// setACL gives the role to the holder, or takes it.
func (w *World) setACL(change aclChange, role string, h holder) {
	entries := slices.DeleteFunc(w.acl[change.path], func(e ACLSpec) bool { return e.Type == h.kind && e.Holder == h.id && e.Role == role })
	if !change.remove {
		entries = append(entries, ACLSpec{Path: change.path, Role: role, Type: h.kind, Holder: h.id, NoPropagate: !change.propagate})
	}
	w.acl[change.path] = entries
	if len(entries) == 0 {
		delete(w.acl, change.path)
	}
}
