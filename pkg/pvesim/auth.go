package pvesim

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

const (
	rootUser = "root@pam"
	// authDelay is how long pveproxy holds back the answer to a failed login.
	authDelay = 3 * time.Second
	// ticketLife is how long a ticket is good for (PVE::AccessControl).
	ticketLife = 2 * time.Hour
)

// Secret is a password or token secret. It prints as ***.
type Secret string

// String hides the secret.
func (Secret) String() string { return "***" }

// GoString hides the secret.
func (Secret) GoString() string { return "***" }

// MarshalText hides the secret.
func (Secret) MarshalText() ([]byte, error) { return []byte("***"), nil }

// Token is an API token of the world.
type Token struct {
	// ID is user@realm!name.
	ID     string
	Secret Secret
}

// Header is the value of the Authorization header that presents the token. It holds the secret.
func (t Token) Header() string { return "PVEAPIToken=" + t.ID + "=" + string(t.Secret) }

type ticket struct {
	user   *user
	value  string
	csrf   string
	issued time.Time
}

// authenticate finds out who asks; nil with the reply to give if that cannot be told.
func (w *World) authenticate(header http.Header, method string) (*identity, reply) {
	if value, ok := strings.CutPrefix(header.Get("Authorization"), "PVEAPIToken"); ok {
		value = strings.TrimLeft(value, "= ")
		if value == "" {
			return nil, unauthorized("No ticket", 0)
		}
		id, secret, _ := strings.Cut(value, "=")
		if t := w.tokens[id]; t != nil && secret == string(t.secret) {
			return &identity{user: t.user, token: t}, reply{}
		}
		return nil, unauthorized("Authentication failed!", authDelay)
	}
	return w.authenticateTicket(header, method)
}

func (w *World) authenticateTicket(header http.Header, method string) (*identity, reply) {
	value := ""
	for _, c := range (&http.Request{Header: header}).Cookies() {
		if c.Name == "PVEAuthCookie" {
			value, _ = url.PathUnescape(c.Value)
		}
	}
	if value == "" {
		return nil, unauthorized("No ticket", authDelay)
	}
	t := w.tickets[value]
	if t == nil || w.clock.Since(t.issued) > ticketLife {
		return nil, unauthorized("Authentication failed!", authDelay)
	}
	if method != http.MethodGet && header.Get("CSRFPreventionToken") != t.csrf {
		return nil, unauthorized("Permission denied - invalid csrf token", authDelay)
	}
	return &identity{user: t.user}, reply{}
}

func unauthorized(reason string, delay time.Duration) reply {
	return reply{status: http.StatusUnauthorized, reason: reason, bare: true, delay: delay}
}

// login is POST /access/ticket.
func login(c *call) reply {
	name := c.params["username"]
	if realm := c.params["realm"]; realm != "" && !strings.Contains(name, "@") {
		name += "@" + realm
	}
	u := c.users[name]
	password := c.params["password"]
	renewed := c.tickets[password]
	byTicket := renewed != nil && renewed.user == u && c.clock.Since(renewed.issued) <= ticketLife
	if u == nil || (!byTicket && (u.password == "" || password != string(u.password))) {
		return reply{status: http.StatusUnauthorized, reason: "authentication failure", delay: authDelay}
	}
	t := &ticket{user: u, issued: c.clock.Now(), csrf: fmt.Sprintf("%08X:%s", c.clock.Now().Unix(), c.newUUID())}
	t.value = fmt.Sprintf("PVE:%s:%08X::%s", u.id, t.issued.Unix(), c.newUUID())
	c.tickets[t.value] = t
	return ok(map[string]any{
		"username": u.id, "ticket": t.value, "CSRFPreventionToken": t.csrf, "clustername": c.name,
		"cap": map[string]any{"vms": map[string]int{}, "nodes": map[string]int{}, "storage": map[string]int{}, "access": map[string]int{}, "dc": map[string]int{}, "sdn": map[string]int{}, "mapping": map[string]int{}},
	})
}

// permissions is GET /access/permissions.
func permissions(c *call) reply {
	paths := slices.Collect(maps.Keys(c.acl))
	if c.who.user.id == rootUser {
		paths = append(paths, "/", "/access", "/access/groups", "/nodes", "/pool", "/sdn", "/storage", "/vms")
	}
	if c.has("path") {
		paths = []string{c.params["path"]}
	}
	out := map[string]map[string]int{}
	for _, path := range paths {
		held := map[string]int{}
		for _, p := range administrator(c.version) {
			if c.may(c.who, path, p) {
				held[p] = 1
			}
		}
		if len(held) > 0 || c.has("path") {
			out[path] = held
		}
	}
	return ok(out)
}

func accessRoutes() []Route {
	return []Route{
		{Method: "POST", Path: "/access/ticket", handle: login, params: []schema.Param{
			schema.Text("username").MaxLength(64).Required(), schema.Text("password").Required(), schema.Text("realm").MaxLength(32), schema.Boolean("new-format"),
			schema.Text("otp"), schema.Text("path").MaxLength(64).Requires("privs"), schema.Text("privs").MaxLength(64).Requires("path"), schema.Text("tfa-challenge"),
		}},
		{Method: "GET", Path: "/access/permissions", handle: permissions, params: []schema.Param{schema.Text("path"), schema.Text("userid")}},
	}
}

// permission checks the caller's rights before the parameters are looked at, as pveproxy does. It returns the path and
// privileges that are missing, or "".
type permission func(*call) (path, privileges string)

// on asks for one of the privileges on a path with {variables} of the request.
func on(path string, privileges ...string) permission {
	return func(c *call) (string, string) {
		at := path
		for name, value := range c.params {
			at = strings.ReplaceAll(at, "{"+name+"}", value)
		}
		if c.mayAny(c.who, at, privileges...) {
			return "", ""
		}
		return at, strings.Join(privileges, "|")
	}
}

// canSee tells whether the VM may be audited, for lists that are filtered.
func (c *call) canSee(id proxmox.VMID) bool {
	return c.mayAny(c.who, "/vms/"+id.String(), "VM.Audit")
}

func (c *call) canSeeStorage(id proxmox.StorageID) bool {
	return c.mayAny(c.who, "/storage/"+string(id), "Datastore.Audit", "Datastore.AllocateSpace")
}
