package pvesim

import (
	"slices"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// may tells whether the privilege is held on the path.
func (w *World) may(who *identity, path, privilege string) bool {
	if path == "" && who.token != nil {
		return false // what is no path can be nobody's, which only root@pam itself need not care about
	}
	if t := who.token; t != nil && t.separated && !w.grants(who.tokenHolders(), path, privilege) {
		return false
	}
	return who.user.id == rootUser || w.grants(who.user.holders(), path, privilege)
}

// mayAny tells whether one of the privileges is held on the path.
func (w *World) mayAny(who *identity, path string, privileges ...string) bool {
	return slices.ContainsFunc(privileges, func(p string) bool { return w.may(who, path, p) })
}

// privileges are all that are held on the path; the value tells whether they are held below it as well.
func (w *World) privileges(who *identity, path string) map[string]bool {
	if t := who.token; t == nil || !t.separated {
		return w.userPrivileges(who.user, path)
	}
	out := w.compile(w.rolesOn(who.tokenHolders(), path))
	if who.user.id == rootUser {
		return out
	}
	users := w.userPrivileges(who.user, path)
	for p, propagated := range out {
		users, held := users[p]
		out[p] = propagated && users
		if !held {
			delete(out, p)
		}
	}
	return out
}

func (w *World) userPrivileges(u *user, path string) map[string]bool {
	if u.id == rootUser {
		return w.compile(roleSet{"Administrator": true})
	}
	return w.compile(w.rolesOn(u.holders(), path))
}

// compile turns roles into privileges.
func (w *World) compile(roles roleSet) map[string]bool {
	out := map[string]bool{}
	for role, propagated := range roles {
		for _, p := range w.roles[role] {
			out[p] = out[p] || propagated
		}
	}
	return out
}

// holder is one kind and name that ACL entries are given to.
type holder struct{ kind, id string }

// The kinds of holders of ACL entries, in the order in which they outweigh each other at one path.
const (
	tokenHolder = "token"
	userHolder  = "user"
	groupHolder = "group"
)

// holders are what a user's rights come from.
func (u *user) holders() []holder {
	out := []holder{{userHolder, u.id}}
	for _, g := range u.groups {
		out = append(out, holder{groupHolder, g})
	}
	return out
}

func (i *identity) tokenHolders() []holder { return []holder{{tokenHolder, i.token.id}} }

// roleSet are roles that are held on a path; the value tells whether they are held below it as well.
type roleSet map[string]bool

func (w *World) grants(who []holder, path, privilege string) bool {
	for role := range w.rolesOn(who, path) {
		if slices.Contains(w.roles[role], privilege) {
			return true
		}
	}
	return false
}

// rolesOn are the roles held on a path: by ACL entries, and for guests and storages by those of the pools that they are in. NoAccess
// on the path outweighs a pool's roles, and a pool's NoAccess those on the path.
func (w *World) rolesOn(who []holder, path string) roleSet {
	out := w.rolesByACL(who, path)
	if _, none := out[noAccess]; none {
		return out
	}
	for _, pool := range w.poolsOf(path) {
		for role := range w.rolesByACL(who, "/pool/"+string(pool)) {
			if role == noAccess {
				return roleSet{noAccess: false}
			}
			if _, held := out[role]; !held {
				out[role] = false
			}
		}
	}
	return out
}

// poolsOf are the pools that the guest or storage of a path is in.
func (w *World) poolsOf(path string) []proxmox.PoolID {
	if id, ok := strings.CutPrefix(path, "/vms/"); ok {
		if pool := w.poolOf(toVMID(id)); pool != "" {
			return []proxmox.PoolID{pool}
		}
	}
	var out []proxmox.PoolID
	if id, ok := strings.CutPrefix(path, "/storage/"); ok {
		for _, p := range w.pools {
			if p.storages[proxmox.StorageID(id)] {
				out = append(out, p.id)
			}
		}
	}
	return out
}

// rolesByACL goes down the path: the entries of a deeper part replace those above it (PVE::AccessControl::roles).
func (w *World) rolesByACL(who []holder, path string) roleSet {
	out := roleSet{}
	for at := "/"; ; {
		if found := w.rolesAt(who, at, at == path); found != nil {
			out = found
		}
		if at == path {
			break
		}
		at = nextPart(at, path)
	}
	if propagated, none := out[noAccess]; none {
		return roleSet{noAccess: propagated}
	}
	return out
}

// nextPart is the path one part longer on the way to the other path.
func nextPart(at, path string) string {
	from := len(at) + 1
	if at == "/" {
		from = 1
	}
	if from >= len(path) {
		return path
	}
	if end := strings.IndexByte(path[from:], '/'); end >= 0 {
		return path[:from+end]
	}
	return path
}

// rolesAt are the roles by entries of one part of a path, nil if there are none: those of the user itself outweigh those of its groups.
func (w *World) rolesAt(who []holder, at string, final bool) roleSet {
	for _, kind := range []string{tokenHolder, userHolder, groupHolder} {
		var out roleSet
		for _, e := range w.acl[at] {
			if e.Type != kind || (e.NoPropagate && !final) || !slices.Contains(who, holder{kind, e.Holder}) {
				continue
			}
			if out == nil {
				out = roleSet{}
			}
			out[e.Role] = !e.NoPropagate
		}
		if out != nil {
			return out
		}
	}
	return nil
}
