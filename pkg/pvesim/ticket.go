package pvesim

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

// login is POST /access/ticket. The password can be a ticket, which is renewed so; one of root@pam is good for everybody.
func login(c *call) reply {
	id := c.params["username"]
	if realm := c.params["realm"]; realm != "" {
		id += "@" + realm
	}
	u := c.users[id]
	if u == nil || !u.usable(c.clock.Now()) || !c.passes(u) {
		return reply{status: http.StatusUnauthorized, reason: "authentication failure", delay: authDelay}
	}
	who := &identity{user: u}
	out := map[string]any{"username": u.id, "cap": c.capabilities(who)}
	if c.has("path") && c.has("privs") {
		if !c.holdsAll(who) {
			return reply{status: http.StatusUnauthorized, reason: "authentication failure", delay: authDelay}
		}
	} else {
		t := c.newTicket(u)
		out["ticket"], out["CSRFPreventionToken"] = t.value, t.csrf
	}
	if c.may(who, "/", "Sys.Audit") {
		out["clustername"] = c.name
	}
	return ok(out)
}

// passes checks the password. There are no second factors, so no response to one is right.
func (c *call) passes(u *user) bool {
	if c.has("tfa-challenge") {
		return false
	}
	password := c.params["password"]
	if t := c.validTicket(password); t != nil && (t.user == u || t.user.id == rootUser) {
		return true
	}
	return u.password != "" && password == string(u.password)
}

// holdsAll tells whether all of privs are held on path: then a login is asked for to check them, and gives no ticket.
func (c *call) holdsAll(who *identity) bool {
	path, wanted := normalPath(c.params["path"]), schema.SplitList(c.params["privs"])
	for _, p := range wanted {
		if !c.may(who, path, p) {
			return false
		}
	}
	return path != "" && len(wanted) > 0
}

func (c *call) newTicket(u *user) *ticket {
	now := c.clock.Now()
	for value, t := range c.tickets {
		if now.Sub(t.issued) > ticketLife {
			delete(c.tickets, value)
		}
	}
	t := &ticket{
		user: u, issued: now, csrf: fmt.Sprintf("%08X:%s", now.Unix(), c.newUUID()), value: fmt.Sprintf("PVE:%s:%08X::%s", u.id, now.Unix(), c.newUUID()),
	}
	c.tickets[t.value] = t
	return t
}

// capabilities are what a user interface shows by: the privileges anywhere below each part of the tree
// (PVE::RPCEnvironment::compute_api_permission).
func (w *World) capabilities(who *identity) map[string]map[string]int {
	kinds := map[string][]string{
		"vms": {"VM.", "Permissions.Modify"}, "access": {"User.", "Group.", "Permissions.Modify"}, "storage": {"Datastore.", "Permissions.Modify"},
		"nodes": {"Sys.", "Permissions.Modify"}, "sdn": {"SDN.", "Permissions.Modify"}, "dc": {"Sys.Audit", "Sys.Modify", "SDN."},
		"mapping": {"Mapping.", "Permissions.Modify"},
	}
	out := map[string]map[string]int{}
	for kind := range kinds {
		out[kind] = map[string]int{}
	}
	paths := w.aclPaths()
	for _, path := range []string{"/", "/nodes", "/access/groups", "/vms", "/storage", "/sdn", "/mapping"} {
		paths[path] = true
	}
	for path := range paths {
		into := []string{"dc"}
		if parts := split(path); len(parts) > 0 {
			into = []string{parts[0]}
		}
		if into[0] == "pool" {
			into = []string{"vms", "storage"}
		}
		for p := range w.privileges(who, path) {
			for _, kind := range into {
				addCapability(out[kind], kinds[kind], p)
			}
		}
	}
	return out
}

func addCapability(into map[string]int, prefixes []string, privilege string) {
	for _, prefix := range prefixes {
		if strings.HasPrefix(privilege, prefix) {
			into[privilege] = 1
		}
	}
}

// changePassword is PUT /access/password. Passwords of the realm pam are changed by root@pam and their owner alone.
func changePassword(c *call) reply {
	id := c.params["userid"]
	u := c.users[id]
	switch {
	case u == nil:
		return noUser(id)
	case !c.who.isRoot() && c.who.name() != id && strings.HasSuffix(id, "@pam"):
		return reply{status: http.StatusForbidden, reason: "Permission check failed"}
	case realmType(id) == "":
		return fail("auth domain '%s' does not exist", id[strings.LastIndexByte(id, '@')+1:])
	}
	u.password = Secret(c.params["password"])
	return ok(nil)
}
