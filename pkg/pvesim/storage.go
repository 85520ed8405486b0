package pvesim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

func storageRoutes(v Version) []Route {
	types := []string{"btrfs", "cephfs", "cifs", "dir", "esxi", "glusterfs", "iscsi", "iscsidirect", "lvm", "lvmthin", "nfs", "pbs", "rbd", "zfs", "zfspool"}
	if v == V92 {
		types = slices.DeleteFunc(types, func(t string) bool { return t == "glusterfs" })
	}
	id := schema.Text("storage").Format("pve-storage-id")
	audit := on("/storage/{storage}", "Datastore.Audit", "Datastore.AllocateSpace")
	upload := []schema.Param{
		schema.Text("content").Format("pve-storage-content").Required(), schema.Text("checksum").Requires("checksum-algorithm"),
		schema.Text("filename").MaxLength(255).Required(), schema.Text("tmpfilename").Pattern(`/var/tmp/pveupload-[0-9a-f]+`),
		schema.Choice("checksum-algorithm", "md5", "sha1", "sha224", "sha256", "sha384", "sha512").Requires("checksum"),
	}
	upload[0] = upload[0].OneOf("iso", "vztmpl", "import")
	return []Route{
		{Method: "GET", Path: "/storage", handle: listStorageConfig, params: []schema.Param{schema.Choice("type", types...)}},
		{Method: "GET", Path: "/nodes/{node}/storage", handle: listStorages, params: []schema.Param{
			schema.Text("content").Format("pve-storage-content-list"), schema.Boolean("enabled"), schema.Boolean("format"), schema.Text("storage").Format("pve-storage-id"), schema.Text("target").Format("pve-node"),
		}},
		{Method: "GET", Path: "/nodes/{node}/storage/{storage}/status", handle: storageStatus, permission: audit},
		{Method: "GET", Path: "/nodes/{node}/storage/{storage}/content", handle: listContent, permission: audit, params: []schema.Param{
			schema.Text("content").Format("pve-storage-content"), schema.VMID("vmid"),
		}},
		{Method: "GET", Path: "/nodes/{node}/storage/{storage}/content/{volume}", handle: volumeInfo, params: []schema.Param{id}},
		{
			Method: "DELETE", Path: "/nodes/{node}/storage/{storage}/content/{volume}", handle: deleteVolume,
			params: []schema.Param{id, schema.Integer("delay").Min(1).Max(30)},
		},
		{
			Method: "POST", Path: "/nodes/{node}/storage/{storage}/upload", handle: uploadFile,
			permission: on("/storage/{storage}", "Datastore.AllocateTemplate"), params: upload,
		},
	}
}

// storageByID returns the storage, or nil.
func (w *World) storageByID(id proxmox.StorageID) *storage {
	for _, s := range w.storages {
		if s.id == id {
			return s
		}
	}
	return nil
}

// storageFor finds a storage on a node; the text says why it cannot be used (PVE::Storage::storage_check_node).
func (w *World) storageFor(id proxmox.StorageID, name proxmox.NodeName) (*storage, string) {
	s := w.storageByID(id)
	if s == nil {
		return nil, fmt.Sprintf("storage '%s' does not exist", id)
	}
	if s.disabled {
		return nil, fmt.Sprintf("storage '%s' is disabled", id)
	}
	if !s.onNode(name) {
		return nil, fmt.Sprintf("storage '%s' is not available on node '%s'", id, name)
	}
	return s, ""
}

func (c *call) storageHere() (*storage, reply) {
	s, msg := c.storageFor(proxmox.StorageID(c.params["storage"]), c.node.Name)
	if s == nil {
		return nil, fail("%s", msg)
	}
	return s, reply{}
}

// volumeAt finds a volume by its id as seen from a node.
func (w *World) volumeAt(name proxmox.NodeName, id proxmox.VolumeID) *volume {
	storageID, _, _ := strings.Cut(string(id), ":")
	s := w.storageByID(proxmox.StorageID(storageID))
	if s == nil {
		return nil
	}
	return w.volumes[volumeKey{s.scope(name), id}]
}

func (w *World) addVolume(v *volume) {
	v.created = w.clock.Now()
	w.volumes[v.key] = v
	v.storage.used[v.key.node] += v.used
}

func (w *World) removeVolume(key volumeKey) {
	if v := w.volumes[key]; v != nil {
		v.storage.used[key.node] -= v.used
		delete(w.volumes, key)
	}
}

// freeName returns an unused volume id such as local-lvm:vm-100-disk-1.
func (s *storage) freeName(w *World, name proxmox.NodeName, vmid proxmox.VMID, format string) proxmox.VolumeID {
	for i := 0; ; i++ {
		if id := s.volumeName(vmid, fmt.Sprintf("vm-%d-disk-%d", vmid, i), format); !w.diskNameTaken(s, name, vmid, i) {
			return id
		}
	}
}

// diskNameTaken looks for disk i of the VM in any format and form, as PVE::Storage::Plugin::get_next_vm_diskname does.
func (w *World) diskNameTaken(s *storage, name proxmox.NodeName, vmid proxmox.VMID, i int) bool {
	for _, prefix := range []string{"vm", "base"} {
		for _, format := range []string{"raw", "qcow2", "vmdk"} {
			id := s.volumeName(vmid, fmt.Sprintf("%s-%d-disk-%d", prefix, vmid, i), format)
			if w.volumes[volumeKey{s.scope(name), id}] != nil || w.linkedVolume(s.scope(name), id) != nil {
				return true
			}
		}
	}
	return false
}

// linkedVolume finds a linked clone, whose id has its base in front: local:400/base-400-disk-0.qcow2/410/vm-410-disk-0.qcow2.
func (w *World) linkedVolume(scope proxmox.NodeName, id proxmox.VolumeID) *volume {
	_, file, _ := strings.Cut(string(id), ":")
	for key, v := range w.volumes {
		if v.parent != "" && key.node == scope && strings.HasSuffix(string(key.id), "/"+file) {
			return v
		}
	}
	return nil
}

// volumeName builds a volume id: files are in a directory per VM and have their format as extension.
func (s *storage) volumeName(vmid proxmox.VMID, name, format string) proxmox.VolumeID {
	if !s.fileBased() {
		return proxmox.VolumeID(fmt.Sprintf("%s:%s", s.id, name))
	}
	return proxmox.VolumeID(fmt.Sprintf("%s:%d/%s.%s", s.id, vmid, name, format))
}

func (s *storage) status(name proxmox.NodeName) map[string]any {
	used := s.total - s.free(name)
	return map[string]any{
		"type": s.typ, "content": strings.Join(s.content, ","), "shared": pveBool(s.shared), "active": 1, "enabled": 1,
		"total": s.total, "used": used, "avail": s.free(name),
	}
}

func listStorages(c *call) reply {
	wanted := schema.SplitList(c.params["content"])
	if id := proxmox.StorageID(c.params["storage"]); id != "" && c.storageByID(id) == nil {
		return invalidParam("storage", "No such storage.")
	}
	out := []map[string]any{}
	for _, s := range c.storages {
		if (c.has("storage") && c.params["storage"] != string(s.id)) || !s.onNode(c.node.Name) || !c.canSeeStorage(s.id) {
			continue
		}
		if len(wanted) > 0 && !slices.ContainsFunc(wanted, s.holds) {
			continue
		}
		entry := s.status(c.node.Name)
		entry["storage"] = s.id
		entry["used_fraction"] = float64(s.total-s.free(c.node.Name)) / float64(s.total)
		out = append(out, entry)
	}
	return ok(out)
}

func storageStatus(c *call) reply {
	s := c.storageByID(proxmox.StorageID(c.params["storage"]))
	if s == nil {
		return invalidParam("storage", "No such storage.")
	}
	return ok(s.status(c.node.Name))
}

func listStorageConfig(c *call) reply {
	out := []map[string]any{}
	for _, s := range c.storages {
		if !c.canSeeStorage(s.id) || (c.has("type") && c.params["type"] != string(s.typ)) {
			continue
		}
		entry := map[string]any{"storage": s.id, "type": s.typ, "content": strings.Join(s.content, ",")}
		if s.path != "" {
			entry["path"] = s.path
		}
		if s.shared {
			entry["shared"] = 1
		}
		out = append(out, entry)
	}
	return ok(out)
}

func listContent(c *call) reply {
	s, refused := c.storageHere()
	if s == nil {
		return refused
	}
	out := []map[string]any{}
	for _, v := range c.sortedVolumes() {
		if v.storage != s || v.key.node != s.scope(c.node.Name) {
			continue
		}
		if (c.has("content") && c.params["content"] != v.content) || (c.has("vmid") && toVMID(c.params["vmid"]) != v.vmid) {
			continue
		}
		if c.mayAccessVolume(v.key.id).failed() {
			continue
		}
		out = append(out, v.entry())
	}
	return ok(out)
}

func (v *volume) entry() map[string]any {
	out := map[string]any{"volid": v.key.id, "content": v.content, "format": v.format, "size": v.size, "ctime": v.created.Unix()}
	if v.vmid != 0 {
		out["vmid"], out["used"], out["parent"] = v.vmid, v.used, nil
		if v.parent != "" {
			_, file, _ := strings.Cut(string(v.parent), ":")
			out["parent"] = "../" + file
		}
	}
	return out
}

// sortedVolumes returns all volumes by id, so that lists are repeatable.
func (w *World) sortedVolumes() []*volume {
	out := make([]*volume, 0, len(w.volumes))
	for _, v := range w.volumes {
		out = append(out, v)
	}
	slices.SortFunc(out, func(a, b *volume) int {
		return strings.Compare(string(a.key.id)+string(a.key.node), string(b.key.id)+string(b.key.node))
	})
	return out
}

// volumeID is the {volume} of the path, with the storage put in front when it is missing.
func (c *call) volumeID(s *storage) (proxmox.VolumeID, reply) {
	id := c.params["volume"]
	owner, rest, named := strings.Cut(id, ":")
	if !named {
		owner, rest, id = string(s.id), id, string(s.id)+":"+id
	}
	if owner != string(s.id) {
		return "", invalidParam("volume", "storage ID mismatch (%s != %s)\n", owner, s.id)
	}
	if s.fileBased() && !strings.Contains(rest, "/") {
		return "", fail("unable to parse directory volume name '%s'", rest)
	}
	return proxmox.VolumeID(id), reply{}
}

func volumeInfo(c *call) reply {
	s, refused := c.storageHere()
	if s == nil {
		return refused
	}
	id, refused := c.volumeID(s)
	if id == "" {
		return refused
	}
	if r := c.mayAccessVolume(id); r.failed() {
		return r
	}
	v := c.volumeAt(c.node.Name, id)
	if v == nil {
		return fail("volume_size_info on '%s' failed - no format", id)
	}
	return ok(map[string]any{"format": v.format, "size": v.size, "used": v.used, "path": s.path + "/" + string(id)})
}

// deleteVolume is DELETE on a volume. Proxmox VE does not care whether a VM uses it, and an absent one is no error.
func deleteVolume(c *call) reply {
	s, refused := c.storageHere()
	if s == nil {
		return refused
	}
	id, refused := c.volumeID(s)
	if id == "" {
		return refused
	}
	if r := c.mayDeleteVolume(id); r.failed() {
		return r
	}
	owner := string(s.id)
	if v := c.volumeAt(c.node.Name, id); v != nil && v.vmid != 0 {
		owner = v.vmid.String() + "@" + owner
	}
	return c.task("imgdel", owner, func(t *task) {
		t.after(c.between(50*time.Millisecond, 200*time.Millisecond), func() {
			if c.volumeAt(c.node.Name, id) == nil {
				t.logf("disk image '%s' does not exist", id)
			}
			c.removeVolume(volumeKey{s.scope(c.node.Name), id})
			t.logf("Removed volume '%s'", id)
			t.end("")
		})
	})
}
