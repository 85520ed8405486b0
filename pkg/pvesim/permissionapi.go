package pvesim

import (
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// permissions is GET /access/permissions: of the caller, of one of its tokens, or of anybody for who may audit /access.
func permissions(c *call) reply {
	id := c.params["userid"]
	if id == "" {
		id = c.who.name()
	}
	owner, _, _ := strings.Cut(id, "!")
	if id != c.who.name() && owner != c.who.name() && !c.may(c.who, "/access", "Sys.Audit") {
		return denied("/access", "Sys.Audit")
	}
	who := c.identify(id)
	if path := c.params["path"]; path != "" {
		return ok(map[string]any{path: c.shownPrivileges(who, path)})
	}
	out := map[string]any{}
	for path := range c.permissionPaths() {
		if held := c.shownPrivileges(who, path); len(held) > 0 {
			out[path] = held
		}
	}
	return ok(out)
}

// shownPrivileges are the privileges on a path, each with 1 if it is held below it as well.
func (w *World) shownPrivileges(who *identity, path string) map[string]int {
	out := map[string]int{}
	if who == nil {
		return out
	}
	for p, propagated := range w.privileges(who, path) {
		out[p] = pveBool(propagated)
	}
	return out
}

// permissionPaths are the paths that effective permissions are shown for.
func (w *World) permissionPaths() map[string]bool {
	out := w.aclPaths()
	for _, path := range []string{"/", "/access", "/access/groups", "/nodes", "/pool", "/sdn", "/storage", "/vms"} {
		out[path] = true
	}
	for _, p := range w.pools {
		for id := range p.members {
			out["/vms/"+id.String()] = true
		}
		for id := range p.storages {
			out["/storage/"+string(id)] = true
		}
	}
	return out
}

// aclPaths are the paths that have ACL entries, and those above them.
func (w *World) aclPaths() map[string]bool {
	out := map[string]bool{"/": true}
	for path := range w.acl {
		for at := "/"; at != path; {
			at = nextPart(at, path)
			out[at] = true
		}
	}
	return out
}

// canSee tells whether the VM may be audited, for lists that are filtered.
func (c *call) canSee(id proxmox.VMID) bool {
	return c.may(c.who, "/vms/"+id.String(), "VM.Audit")
}

func (c *call) canSeeStorage(id proxmox.StorageID) bool {
	return c.mayAny(c.who, "/storage/"+string(id), "Datastore.Audit", "Datastore.AllocateSpace")
}
