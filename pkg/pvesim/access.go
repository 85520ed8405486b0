package pvesim

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

type user struct {
	id       string
	password Secret
	groups   []string
	disabled bool
	expire   time.Time
	// details are firstname, lastname, email, comment and keys, as far as they are set.
	details map[string]string
}

type token struct {
	id     string
	user   *user
	secret Secret
	// separated tokens (privsep) have only what ACL entries give them, as far as the user has it too.
	separated bool
	expire    time.Time
	comment   string
}

// name is that of the token alone, without its user.
func (t *token) name() string { return t.id[len(t.user.id)+1:] }

// usable tells whether the account may be used at that time.
func (u *user) usable(now time.Time) bool { return !u.disabled && !expired(u.expire, now) }

func (t *token) usable(now time.Time) bool { return t.user.usable(now) && !expired(t.expire, now) }

func expired(at, now time.Time) bool { return !at.IsZero() && !now.Before(at) }

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
func (i *identity) isRoot() bool { return i.token == nil && i.user != nil && i.user.id == rootUser }

// identify finds who an ID of a user or a token means; nil if there is none.
func (w *World) identify(id string) *identity {
	if t := w.tokens[id]; t != nil {
		return &identity{user: t.user, token: t}
	}
	if u := w.users[id]; u != nil {
		return &identity{user: u}
	}
	return nil
}

// loadAccess enters users, groups, roles, tokens and the access control list.
func (w *World) loadAccess(s State) error {
	for _, r := range s.Roles {
		w.roles[r.ID] = append([]string{}, r.Privileges...)
	}
	for _, g := range s.UserGroups {
		w.groups[g.ID] = &userGroupEntry{comment: g.Comment}
	}
	w.addUser(rootUser)
	for _, u := range s.Users {
		w.setUser(u)
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

// AddUser adds a user, or changes one there is. Groups that are new are made.
func (w *World) AddUser(s UserSpec) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.setUser(s)
}

func (w *World) setUser(s UserSpec) {
	for _, id := range s.Groups {
		if w.groups[id] == nil {
			w.groups[id] = &userGroupEntry{}
		}
	}
	details := maps.Clone(s.Details)
	if details == nil {
		details = map[string]string{}
	}
	*w.addUser(s.ID) = user{
		id: s.ID, password: s.Password, groups: slices.Sorted(slices.Values(s.Groups)), disabled: s.Disabled, expire: s.Expire, details: details,
	}
}

func (w *World) addUser(id string) *user {
	if w.users[id] == nil {
		w.users[id] = &user{id: id, details: map[string]string{}}
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
	t := &token{id: s.User + "!" + s.Name, user: u, secret: s.Secret, separated: !s.Unseparated, expire: s.Expire, comment: s.Comment}
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

// forgetACL drops the entries of the access control list that the test finds.
func (w *World) forgetACL(gone func(ACLSpec) bool) {
	for path, entries := range w.acl {
		w.acl[path] = slices.DeleteFunc(entries, gone)
		if len(w.acl[path]) == 0 {
			delete(w.acl, path)
		}
	}
}
