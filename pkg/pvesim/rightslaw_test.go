package pvesim

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// drawAccess is a world with users, groups, tokens, pools and ACL entries of any kind, and nothing else.
func drawAccess(t *rapid.T) *World {
	w := emptyWorld(Model{}.completed())
	w.groups["g"] = &userGroupEntry{}
	w.roles["R1"], w.roles["R2"] = []string{"VM.Audit", "Datastore.Audit"}, []string{"VM.Audit", "VM.Clone"}
	paths := []string{"/", "/vms", "/vms/100", "/vms/101", "/storage", "/storage/s", "/pool", "/pool/p", "/pool/p/q"}
	holders := []holder{{userHolder, "a@pve"}, {userHolder, "b@pve"}, {groupHolder, "g"}, {tokenHolder, "a@pve!sep"}, {tokenHolder, "b@pve!sep"}}
	for _, id := range []string{"a@pve", "b@pve"} {
		w.setUser(UserSpec{ID: id})
		w.addToken(TokenSpec{User: id, Name: "sep"})
		w.addToken(TokenSpec{User: id, Name: "own", Unseparated: true})
	}
	w.users["b@pve"].groups = []string{"g"}
	for range rapid.IntRange(0, 8).Draw(t, "entries") {
		h := rapid.SampledFrom(holders).Draw(t, "holder")
		change := aclChange{path: rapid.SampledFrom(paths).Draw(t, "path"), propagate: rapid.Bool().Draw(t, "propagate")}
		w.setACL(change, rapid.SampledFrom([]string{"R1", "R2", noAccess, "PVEVMUser"}).Draw(t, "role"), h)
	}
	for i, id := range []proxmox.PoolID{"p", "p/q"} {
		p := newPool(id, "")
		p.members[proxmox.VMID(100+i)] = true
		p.storages["s"] = rapid.Bool().Draw(t, "storage")
		w.pools[id] = p
	}
	return w
}

func TestRightsAgree(t *testing.T) {
	t.Parallel()
	paths := []string{"/", "/vms", "/vms/100", "/vms/101", "/storage/s", "/pool/p/q", "/nodes/n"}
	rapid.Check(t, func(t *rapid.T) {
		w := drawAccess(t)
		for _, path := range paths {
			for _, id := range []string{"a@pve", "b@pve", "a@pve!sep", "b@pve!own"} {
				who := w.identify(id)
				held := w.privileges(who, path)
				users := w.privileges(&identity{user: who.user}, path)
				for _, p := range []string{"VM.Audit", "VM.Clone", "VM.Console", "Datastore.Audit", "Sys.Audit"} {
					_, listed := held[p]
					if w.may(who, path, p) != listed {
						t.Fatalf("%s on %s: %s is held: %t, and listed: %t", id, path, p, !listed, listed)
					}
					if _, own := users[p]; listed && !own {
						t.Fatalf("%s has %s on %s, and its user has not", id, p, path)
					}
				}
			}
		}
	})
}

// TestNoAccessOutweighsOtherRoles: whoever has NoAccess on a path by an entry of its own has nothing else there.
func TestNoAccessOutweighsOtherRoles(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := drawAccess(t)
		path := rapid.SampledFrom([]string{"/", "/vms/100", "/storage/s", "/pool/p"}).Draw(t, "path")
		w.setACL(aclChange{path: path}, noAccess, holder{userHolder, "a@pve"})
		if held := w.privileges(w.identify("a@pve"), path); len(held) > 0 {
			t.Fatalf("%v are held on %s", held, path)
		}
	})
}

// TestGivingAndTakingARoleChangesNothing once both are done.
func TestGivingAndTakingARoleChangesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := drawAccess(t)
		path := rapid.SampledFrom([]string{"/", "/vms/100", "/mapping"}).Draw(t, "path")
		before := slices.Clone(w.acl[path])
		change, h := aclChange{path: path, propagate: true}, holder{userHolder, "c@pve"}
		w.setACL(change, "R1", h)
		if len(w.acl[path]) != len(before)+1 {
			t.Fatalf("entries: %v", w.acl[path])
		}
		change.remove = true
		w.setACL(change, "R1", h)
		if !slices.Equal(w.acl[path], before) {
			t.Fatalf("%v became %v", before, w.acl[path])
		}
	})
}

func FuzzNormalPath(f *testing.F) {
	for _, seed := range []string{"/", "//vms//100/", "vms", "a b", "/ä", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		once := normalPath(path)
		if once != "" && normalPath(once) != once {
			t.Errorf("%q became %q and then %q", path, once, normalPath(once))
		}
		if once == "" && validACLPath(V92, path) {
			t.Errorf("%q is a valid path and not normal", path)
		}
	})
}
