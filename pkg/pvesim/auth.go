package pvesim

import (
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	rootUser = "root@pam"
	// authDelay is how long pveproxy holds back the answer to a failed login.
	authDelay = 3 * time.Second
	// ticketLife is how long a ticket is good for (PVE::AccessControl).
	ticketLife = 2 * time.Hour

	ticketCookie = "PVEAuthCookie"
	tokenPrefix  = "PVEAPIToken"
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
func (t Token) Header() string { return tokenPrefix + "=" + t.ID + "=" + string(t.Secret) }

type ticket struct {
	user   *user
	value  string
	csrf   string
	issued time.Time
}

// needsNoLogin are the endpoints that the auth handler of PVE::HTTPServer lets pass.
func needsNoLogin(method, path string) bool {
	switch method + " " + path {
	case "GET /access/domains", "GET /access/ticket", "POST /access/ticket", "POST /access/vncticket", "POST /access/openid/login",
		"POST /access/openid/auth-url":
		return true
	}
	return false
}

// authenticate finds out who asks; nil with the reply to give if that cannot be told. A cookie outweighs a token.
func (w *World) authenticate(x *exchange) (*identity, reply) {
	if needsNoLogin(x.method, x.path) {
		return &identity{}, reply{}
	}
	header := x.header.Get("Authorization")
	value := authValue(x.header.Get("Cookie"), ticketCookie)
	if value == "" {
		value = authValue(header, ticketCookie)
	}
	if value != "" {
		return w.authenticateTicket(x, value)
	}
	if value = authValue(header, tokenPrefix); value != "" {
		return w.authenticateToken(value)
	}
	if header != "" {
		return nil, unauthorized("No ticket", 0)
	}
	return nil, unauthorized("No ticket", authDelay)
}

// authValue finds what follows the name and = or a blank, up to a semicolon (PVE::APIServer::Formatter::extract_auth_value).
func authValue(header, name string) string {
	for at := 0; ; {
		i := strings.Index(header[at:], name)
		if i < 0 {
			return ""
		}
		begin, end := at+i, at+i+len(name)
		atWord := begin == 0 || strings.ContainsRune(" \t;", rune(header[begin-1]))
		if atWord && end < len(header) && (header[end] == '=' || header[end] == ' ') {
			value, _, _ := strings.Cut(header[end+1:], ";")
			return unescaped(value)
		}
		at = end
	}
}

func unescaped(s string) string {
	if out, err := url.PathUnescape(s); err == nil {
		return out
	}
	return s
}

func (w *World) authenticateToken(value string) (*identity, reply) {
	id, secret, _ := strings.Cut(value, "=")
	t := w.tokens[id]
	if t == nil || secret == "" || secret != string(t.secret) || !t.usable(w.clock.Now()) {
		return nil, unauthorized("Authentication failed!", authDelay)
	}
	return &identity{user: t.user, token: t}, reply{}
}

func (w *World) authenticateTicket(x *exchange, value string) (*identity, reply) {
	t := w.validTicket(value)
	switch {
	case t == nil:
		return nil, unauthorized("Authentication failed!", authDelay)
	case !t.user.usable(w.clock.Now()):
		return nil, unauthorized(t.user.unusable(w.clock.Now()), authDelay)
	case x.method != http.MethodGet && !x.isUpload() && x.header.Get("CSRFPreventionToken") != t.csrf:
		return nil, unauthorized("Permission denied - invalid csrf token", authDelay)
	}
	return &identity{user: t.user}, reply{}
}

// validTicket is the ticket of that value unless it is too old or its user is gone; nil otherwise.
func (w *World) validTicket(value string) *ticket {
	t := w.tickets[value]
	if t == nil || w.clock.Since(t.issued) > ticketLife || w.users[t.user.id] != t.user {
		return nil
	}
	return t
}

// unusable is why an account cannot be used.
func (u *user) unusable(now time.Time) string {
	if u.disabled {
		return "user '" + u.id + "' is disabled"
	}
	if expired(u.expire, now) {
		return "user '" + u.id + "' access expired"
	}
	return ""
}

// isUpload tells whether the request is one to upload a file, which needs no CSRF token.
func (x *exchange) isUpload() bool {
	parts := split(x.path)
	return x.method == http.MethodPost && len(parts) == 5 && parts[0] == "nodes" && parts[2] == "storage" && parts[4] == "upload"
}

// mayUpload checks the right to upload together with the login. Its refusal has no body.
func (w *World) mayUpload(x *exchange, who *identity) reply {
	if path := "/storage/" + split(x.path)[3]; !who.isRoot() && !w.may(who, path, "Datastore.AllocateTemplate") {
		r := denied(path, "Datastore.AllocateTemplate")
		r.bare = true
		return r
	}
	return reply{}
}

func unauthorized(reason string, delay time.Duration) reply {
	return reply{status: http.StatusUnauthorized, reason: reason, bare: true, delay: delay}
}
