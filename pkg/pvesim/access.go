package pvesim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

type user struct {
	id       string
	password Secret
	groups   []string
	disabled bool
	expire   time.Time
}

type token struct {
	id     string
	user   *user
	secret Secret
	// separated tokens (privsep) have only what ACL entries give them, as far as the user has it too.
	separated bool
	expire    time.Time
}

// usable tells whether the account may be used at that time.
func (u *user) usable(now time.Time) bool {
	return !u.disabled && (u.expire.IsZero() || now.Before(u.expire))
}

// The kinds of holders of ACL entries.
const (
	userHolder  = "user"
	groupHolder = "group"
	tokenHolder = "token"
)

// identity is who makes a request.
type identity struct {
	user  *user
	token *token
}

func (i *identity) name() string {
	if i.token != nil {
		return i.token.id
	}
	return i.user.id
}

// isRoot is the test of "Only root may use this option": a ticket of root@pam, never a token.
func (i *identity) isRoot() bool { return i.user.id == rootUser && i.token == nil }

// may tells whether the privilege is held on the path.
func (w *World) may(who *identity, path, privilege string) bool {
	if t := who.token; t != nil && t.separated && !w.granted([]holder{{tokenHolder, t.id}}, path, privilege) {
		return false
	}
	if who.user.id == rootUser {
		return true
	}
	return w.granted(who.user.holders(), path, privilege)
}

// holder is one kind and name that ACL entries are given to.
type holder struct{ kind, id string }

// holders are what a user's rights come from; entries of the user itself outweigh those of its groups at the same path.
func (u *user) holders() []holder {
	out := []holder{{userHolder, u.id}}
	for _, g := range u.groups {
		out = append(out, holder{groupHolder, g})
	}
	return out
}

func (w *World) granted(who []holder, path, privilege string) bool {
	for _, role := range w.rolesOn(who, path) {
		if slices.Contains(w.roles[role], privilege) {
			return true
		}
	}
	return false
}

// rolesOn are the roles held on a path: those of the deepest path with an entry (PVE::AccessControl::roles).
func (w *World) rolesOn(who []holder, path string) []string {
	for at := path; ; at = parentPath(at) {
		for _, kind := range []string{tokenHolder, userHolder, groupHolder} {
			if roles := w.rolesAt(who, kind, at, path); len(roles) > 0 {
				return roles
			}
		}
		if at == "/" {
			return nil
		}
	}
}

// rolesAt are the roles by entries of one path. NoAccess takes all others away.
func (w *World) rolesAt(who []holder, kind, at, path string) []string {
	var out []string
	for _, e := range w.acl[at] {
		if e.Type != kind || (e.NoPropagate && at != path) || !slices.Contains(who, holder{kind, e.Holder}) {
			continue
		}
		if e.Role == "NoAccess" {
			return []string{"NoAccess"}
		}
		out = append(out, e.Role)
	}
	return out
}

func parentPath(path string) string {
	return path[:max(1, strings.LastIndex(path, "/"))]
}

// mayAny tells whether one of the privileges is held on the path. For a guest or storage the pool that it is in counts as well.
func (w *World) mayAny(who *identity, path string, privileges ...string) bool {
	for _, p := range privileges {
		if w.may(who, path, p) {
			return true
		}
	}
	if id, ok := strings.CutPrefix(path, "/vms/"); ok {
		if pool := w.poolOf(toVMID(id)); pool != "" {
			return w.mayAny(who, "/pool/"+string(pool), privileges...)
		}
	}
	return false
}

// loadAccess enters users, roles, tokens and the access control list.
func (w *World) loadAccess(s State) error {
	for _, r := range s.Roles {
		w.roles[r.ID] = slices.Clone(r.Privileges)
	}
	w.addUser(rootUser)
	for _, u := range s.Users {
		*w.addUser(u.ID) = user{id: u.ID, password: u.Password, groups: slices.Clone(u.Groups), disabled: u.Disabled, expire: u.Expire}
	}
	for _, t := range s.Tokens {
		w.addToken(t)
	}
	for _, e := range s.ACL {
		if w.roles[e.Role] == nil {
			return fmt.Errorf("add ACL entry of %s on %s: no role %q", e.Holder, e.Path, e.Role)
		}
		w.acl[e.Path] = append(w.acl[e.Path], e)
	}
	return nil
}

// AddUser adds a user, or changes one there is.
func (w *World) AddUser(s UserSpec) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*w.addUser(s.ID) = user{id: s.ID, password: s.Password, groups: slices.Clone(s.Groups), disabled: s.Disabled, expire: s.Expire}
}

func (w *World) addUser(id string) *user {
	if w.users[id] == nil {
		w.users[id] = &user{id: id}
	}
	return w.users[id]
}

// AddToken adds an API token, with a drawn secret unless the spec has one.
func (w *World) AddToken(s TokenSpec) Token {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.addToken(s)
}

func (w *World) addToken(s TokenSpec) Token {
	u := w.addUser(s.User)
	if s.Secret == "" {
		s.Secret = Secret(w.newUUID())
	}
	t := &token{id: s.User + "!" + s.Name, user: u, secret: s.Secret, separated: !s.Unseparated, expire: s.Expire}
	w.tokens[t.id] = t
	for i, path := range slices.Sorted(maps.Keys(s.Privileges)) {
		role := fmt.Sprintf("%s-%d", s.Name, i)
		w.roles[role] = slices.Clone(s.Privileges[path])
		w.acl[path] = append(w.acl[path], ACLSpec{Path: path, Role: role, Type: userHolder, Holder: u.id})
		if t.separated {
			w.acl[path] = append(w.acl[path], ACLSpec{Path: path, Role: role, Type: tokenHolder, Holder: t.id})
		}
	}
	return Token{ID: t.id, Secret: t.secret}
}
