package pvesim

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

func poolRoutes() []Route {
	id := schema.Text("poolid").Format("pve-poolid")
	member := []schema.Param{
		schema.Text("comment"), schema.Text("vms").Format("pve-vmid-list"), schema.Text("storage").Format("pve-storage-id-list"), schema.Boolean("delete"),
		schema.Boolean("allow-move"),
	}
	kind := schema.Choice("type", "qemu", "lxc", "storage")
	audit, allocate := on("/pool/{poolid}", "Pool.Audit"), on("/pool/{poolid}", "Pool.Allocate")
	return []Route{
		{Method: "GET", Path: "/pools", handle: listPools, params: []schema.Param{id, kind.Requires("poolid")}},
		{Method: "GET", Path: "/pools/{poolid}", handle: getPool, permission: audit, params: []schema.Param{kind}},
		{Method: "POST", Path: "/pools", handle: createPool, permission: allocate, params: []schema.Param{id.Required(), schema.Text("comment")}},
		{Method: "PUT", Path: "/pools", handle: updatePool, permission: allocate, params: append(member, id.Required())},
		{Method: "PUT", Path: "/pools/{poolid}", handle: updatePool, permission: allocate, params: member},
		{Method: "DELETE", Path: "/pools", handle: deletePool, permission: allocate, params: []schema.Param{id.Required()}},
		{Method: "DELETE", Path: "/pools/{poolid}", handle: deletePool, permission: allocate},
	}
}

// entry is the pool without its members.
func (p *pool) entry() map[string]any {
	out := map[string]any{"poolid": p.id}
	if p.comment != "" {
		out["comment"] = p.comment
	}
	return out
}

func listPools(c *call) reply {
	if c.has("poolid") {
		if _, refusal := on("/pool/{poolid}", "Pool.Audit").check(c, false); refusal.failed() {
			return refusal
		}
		r := getPool(c)
		if !r.failed() {
			r.data = []any{r.data}
		}
		return r
	}
	out := []map[string]any{}
	for _, id := range slices.Sorted(maps.Keys(c.pools)) {
		if c.may(c.who, "/pool/"+string(id), "Pool.Audit") {
			out = append(out, c.pools[id].entry())
		}
	}
	return ok(out)
}

func getPool(c *call) reply {
	p := c.pools[proxmox.PoolID(c.params["poolid"])]
	if p == nil {
		return fail("pool '%s' does not exist", c.params["poolid"])
	}
	out := p.entry()
	out["members"] = append(c.memberGuests(p), c.memberStorages(p)...)
	return ok(out)
}

// memberGuests are those of the wanted type as pvestatd broadcast them. Who may see the pool sees them all.
func (c *call) memberGuests(p *pool) entries {
	out := entries{}
	reader := c.newGuestReader()
	for _, id := range slices.Sorted(maps.Keys(p.members)) {
		switch v, ct := c.vms[id], c.containers[id]; {
		case v != nil && c.wantsMember("qemu"):
			key := entryKey{node: v.node}
			key.stats, key.until = reader.broadcastOf(v)
			out.add(c.vmEntry(v, key))
		case ct != nil && c.wantsMember("lxc"):
			entry := reader.containerEntry(ct, "")
			entry.Tags = ""
			out.add(entry)
		}
	}
	return out
}

func (c *call) wantsMember(kind string) bool {
	return c.params["type"] == "" || c.params["type"] == kind
}

// memberStorages are the pool's storages as the node that is asked has them, or the first that does.
func (c *call) memberStorages(p *pool) entries {
	out := entries{}
	for _, id := range slices.Sorted(maps.Keys(p.storages)) {
		s := c.storageByID(id)
		if s == nil || !c.wantsMember("storage") {
			continue
		}
		n := c.at
		if !s.onNode(n.Name) {
			n = c.World.node(slices.Min(s.nodes))
		}
		if n != nil {
			out.add(c.storageResource(s, n))
		}
	}
	return out
}

// parentPool is the pool that a nested one, a/b, is in; empty for others.
func parentPool(id proxmox.PoolID) proxmox.PoolID {
	return id[:max(0, strings.LastIndexByte(string(id), '/'))]
}

func createPool(c *call) reply {
	id := proxmox.PoolID(c.params["poolid"])
	if c.pools[id] != nil {
		return fail("create pool failed: pool '%s' already exists", id)
	}
	if parent := parentPool(id); parent != "" && c.pools[parent] == nil {
		return fail("create pool failed: parent '%s' of pool '%s' does not exist", parent, id)
	}
	c.pools[id] = newPool(id, c.params["comment"])
	return ok(nil)
}

func newPool(id proxmox.PoolID, comment string) *pool {
	return &pool{id: id, comment: comment, members: map[proxmox.VMID]bool{}, storages: map[proxmox.StorageID]bool{}}
}

// updatePool changes all that is asked or nothing.
func updatePool(c *call) reply {
	p := c.pools[proxmox.PoolID(c.params["poolid"])]
	if p == nil {
		return fail("update pools failed: pool '%s' does not exist", c.params["poolid"])
	}
	next := &pool{id: p.id, comment: p.comment, members: maps.Clone(p.members), storages: maps.Clone(p.storages)}
	if c.has("comment") {
		next.comment = c.params["comment"]
	}
	for _, s := range schema.SplitList(c.params["vms"]) {
		if msg := c.changeGuest(next, toVMID(s)); msg != "" {
			return fail("update pools failed: %s", msg)
		}
	}
	for _, s := range schema.SplitList(c.params["storage"]) {
		if msg := c.changeStorage(next, proxmox.StorageID(s)); msg != "" {
			return fail("update pools failed: %s", msg)
		}
	}
	for id := range next.members {
		if other := c.poolOf(id); other != "" && other != p.id {
			delete(c.pools[other].members, id)
		}
	}
	*p = *next
	return ok(nil)
}

// changeGuest puts a guest into the pool or takes it out. It need not exist.
func (c *call) changeGuest(p *pool, id proxmox.VMID) string {
	if msg := c.notModified("/vms/" + id.String()); msg != "" {
		return msg
	}
	other := c.poolOf(id)
	switch {
	case c.flag("delete") && !p.members[id]:
		return fmt.Sprintf("VM %d is not a pool member", id)
	case c.flag("delete"):
		delete(p.members, id)
		return ""
	case p.members[id]:
		return fmt.Sprintf("VM %d is already a pool member", id)
	case other != "" && other != p.id && !c.flag("allow-move"):
		return fmt.Sprintf("VM %d belongs already to pool '%s' and 'allow-move' is not set", id, other)
	case other != "" && other != p.id && !c.may(c.who, "/pool/"+string(other), "Pool.Allocate"):
		return fmt.Sprintf("403 Permission check failed (/pool/%s, Pool.Allocate)", other)
	}
	p.members[id] = true
	return ""
}

func (c *call) changeStorage(p *pool, id proxmox.StorageID) string {
	if msg := c.notModified("/storage/" + string(id)); msg != "" {
		return msg
	}
	switch {
	case c.flag("delete") && !p.storages[id]:
		return fmt.Sprintf("Storage '%s' is not a pool member", id)
	case c.flag("delete"):
		delete(p.storages, id)
		return ""
	case p.storages[id]:
		return fmt.Sprintf("Storage '%s' is already a pool member", id)
	}
	p.storages[id] = true
	return ""
}

// notModified says what is missing to move an object between pools, or "" (check_perm_modify in PVE::RPCEnvironment).
func (c *call) notModified(path string) string {
	if c.mayModify(path) {
		return ""
	}
	return fmt.Sprintf("403 Permission check failed (%s, %s)", path, strings.Join(modifiers(path), "|"))
}

// deletePool refuses pools with members; guests and storages that are gone do not count.
func deletePool(c *call) reply {
	id := proxmox.PoolID(c.params["poolid"])
	p := c.pools[id]
	if p == nil {
		return fail("delete pool failed: pool '%s' does not exist", id)
	}
	if what := c.contentOf(p); what != "" {
		return fail("delete pool failed: pool '%s' is not empty (contains %s)", id, what)
	}
	delete(c.pools, id)
	return ok(nil)
}

func (w *World) contentOf(p *pool) string {
	for _, id := range slices.Sorted(maps.Keys(w.pools)) {
		if parentPool(id) == p.id {
			return fmt.Sprintf("pool '%s'", id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(p.members)) {
		if w.hasGuest(id) {
			return fmt.Sprintf("VM %d", id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(p.storages)) {
		if w.storageByID(id) != nil {
			return fmt.Sprintf("storage '%s'", id)
		}
	}
	return ""
}
