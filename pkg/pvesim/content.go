package pvesim

import (
	"fmt"
	"strings"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

func contentRoutes() []Route {
	const path = "/nodes/{node}/storage/{storage}/content"
	id := schema.Text("storage").Format("pve-storage-id")
	node := schema.Text("target_node").Format("pve-node")
	return []Route{
		{Method: "GET", Path: path, handle: listContent, permission: on("/storage/{storage}", "Datastore.Audit", "Datastore.AllocateSpace"), params: []schema.Param{
			schema.Text("content").Format("pve-storage-content"), schema.VMID("vmid"),
		}},
		{Method: "POST", Path: path, handle: allocateVolume, permission: on("/storage/{storage}", "Datastore.AllocateSpace"), params: []schema.Param{
			schema.VMID("vmid").Required(), schema.Text("filename").Required(), schema.Text("size").Pattern(`\d+[MG]?`).Required(),
			schema.Choice("format", "raw", "qcow2", "subvol", "vmdk").Requires("size"),
		}},
		{Method: "GET", Path: path + "/{volume}", handle: volumeInfo, params: []schema.Param{id}},
		{Method: "PUT", Path: path + "/{volume}", handle: updateVolume, params: []schema.Param{id, schema.Text("notes"), schema.Boolean("protected")}},
		{Method: "POST", Path: path + "/{volume}", handle: copyVolume, permission: rootAlone{}, params: []schema.Param{id, schema.Text("target").Required(), node}},
		{Method: "DELETE", Path: path + "/{volume}", handle: deleteVolume, params: []schema.Param{id, schema.Integer("delay").Min(1).Max(30)}},
		{Method: "GET", Path: "/nodes/{node}/storage/{storage}/import-metadata", handle: importMetadata, params: []schema.Param{schema.Text("volume").Required()}},
	}
}

// listContent lists the volumes that the caller may see.
func listContent(c *call) reply {
	s, refused := c.storageHere()
	if s == nil {
		return refused
	}
	out := []map[string]any{}
	// Who names a guest in a list has no more rights on its volumes for that.
	anyGuest := *c
	anyGuest.params = map[string]string{}
	for _, v := range c.sortedVolumes() {
		if v.storage != s || v.key.node != s.scope(c.node.Name) {
			continue
		}
		if (c.has("content") && c.params["content"] != v.content) || (c.has("vmid") && c.vmid() != v.vmid) {
			continue
		}
		if missing := anyGuest.mayAccessVolume(v.key.id); !missing.failed() {
			out = append(out, v.entry())
		}
	}
	return ok(out)
}

func (v *volume) entry() map[string]any {
	out := map[string]any{"volid": v.key.id, "content": v.content, "format": v.format, "size": v.size, "ctime": v.created.Unix()}
	if v.vmid != 0 {
		out["vmid"] = v.vmid
	}
	switch {
	case v.content == "backup":
		out["subtype"] = "qemu"
		v.addAttributes(out)
	case v.vmid != 0 && v.storage.fileBased():
		out["used"], out["parent"] = v.used, v.parentPath()
	case v.parent != "":
		out["parent"] = v.parentPath()
	}
	return out
}

// addAttributes tells the notes of a backup and whether it is protected.
func (v *volume) addAttributes(out map[string]any) {
	if v.notes != "" {
		out["notes"] = v.notes
	}
	if v.protected {
		out["protected"] = 1
	}
}

// parentPath is the base volume as the storage remembers it, nil for none.
func (v *volume) parentPath() any {
	_, name, _ := strings.Cut(string(v.parent), ":")
	switch {
	case v.parent == "":
		return nil
	case v.storage.fileBased():
		return "../" + name
	}
	return name + "@__base__"
}

// volumeID is the {volume} of the path, with the storage put in front when it is missing.
func (c *call) volumeID(s *storage) (proxmox.VolumeID, volumeParts, reply) {
	id := c.params["volume"]
	owner, name, named := strings.Cut(id, ":")
	if !named {
		owner, name, id = string(s.id), id, string(s.id)+":"+id
	}
	if owner != string(s.id) {
		return "", volumeParts{}, invalidParam("volume", "storage ID mismatch (%s != %s)\n", owner, s.id)
	}
	parts, msg := s.parseVolume(name)
	if msg != "" {
		return "", volumeParts{}, fail("%s", msg)
	}
	return proxmox.VolumeID(id), parts, reply{}
}

// readVolume is the volume of the path that the caller may read; it is nil when it is not there, which the caller must look at
// unless there is a refusal.
func (c *call) readVolume() (*storage, proxmox.VolumeID, reply) {
	s, refused := c.storageHere()
	if s == nil {
		return nil, "", refused
	}
	id, _, refused := c.volumeID(s)
	if id == "" {
		return nil, "", refused
	}
	return s, id, c.mayAccessVolume(id)
}

func volumeInfo(c *call) reply {
	s, id, refused := c.readVolume()
	if refused.failed() {
		return refused
	}
	v := c.volumeAt(c.node.Name, id)
	switch {
	case v == nil:
		return fail("volume_size_info on '%s' failed - no format", id)
	case v.size == 0:
		return fail("volume '%s' has size zero", id)
	}
	_, name, _ := strings.Cut(string(id), ":")
	parts, _ := s.parseVolume(name)
	out := map[string]any{"format": parts.format, "size": v.size, "used": v.used, "path": s.pathOf(name)}
	v.addAttributes(out)
	return ok(out)
}

// updateVolume sets what only backups have: notes and protection.
func updateVolume(c *call) reply {
	_, id, refused := c.readVolume()
	if refused.failed() {
		return refused
	}
	v := c.volumeAt(c.node.Name, id)
	backup := strings.Contains(string(id), ":backup/")
	switch {
	case c.has("notes") && !backup:
		return fail("only backups can have notes")
	case c.has("protected") && !backup:
		return fail("only backups support attribute 'protected'")
	case v == nil:
		return fail("volume '%s' does not exist", id)
	}
	if c.has("notes") {
		v.notes = c.params["notes"]
	}
	if c.has("protected") {
		v.protected = c.flag("protected")
	}
	return ok(nil)
}

// allocateVolume is POST …/content. It makes an empty disk at once.
func allocateVolume(c *call) reply {
	s, refused := c.storageHere()
	if s == nil {
		return refused
	}
	name, format := c.params["filename"], c.params["format"]
	if end := extension(name); end == "raw" || end == "qcow2" || end == "vmdk" {
		if format != "" && format != end {
			return invalidParam("format", "different storage formats (%s != %s)", format, end)
		}
		format = end
	}
	if format == "" {
		format = "raw"
	}
	id, msg := s.newDiskName(c.vmid(), name, format)
	if msg != "" {
		return fail("%s", msg)
	}
	if c.volumeAt(c.node.Name, id) != nil {
		_, name, _ = strings.Cut(string(id), ":")
		return fail("disk image '%s' already exists", s.pathOf(name))
	}
	size := schema.ParseSize(c.params["size"])
	if strings.Trim(c.params["size"], "0123456789") == "" {
		size *= 1024
	}
	c.addVolume(&volume{key: volumeKey{s.scope(c.node.Name), id}, storage: s, content: "images", format: format, vmid: c.vmid(), size: size, used: min(size, 200<<10)})
	return ok(id)
}

// newDiskName is the id that a disk of this name gets, or why it cannot have it (alloc_image of the storage plugins).
func (s *storage) newDiskName(vmid proxmox.VMID, name, format string) (proxmox.VolumeID, string) {
	if !s.fileBased() {
		switch {
		case format != "raw" && (s.typ != zfsPoolStorage || format != "subvol"):
			return "", fmt.Sprintf("unsupported format '%s'", format)
		case !strings.HasPrefix(name, fmt.Sprintf("vm-%d-", vmid)):
			return "", fmt.Sprintf("illegal name '%s' - should be 'vm-%d-*'", name, vmid)
		}
		return proxmox.VolumeID(fmt.Sprintf("%s:%s", s.id, name)), ""
	}
	parts, msg := parseDiskFile(name, []string{vmid.String(), name})
	switch {
	case msg != "":
		return "", msg
	case parts.format != format:
		return "", fmt.Sprintf("illegal name '%s' - wrong extension for format ('%s != '%s')", name, parts.format, format)
	}
	return proxmox.VolumeID(fmt.Sprintf("%s:%d/%s", s.id, vmid, name)), ""
}

// deleteVolume is DELETE on a volume. Proxmox VE does not care whether a VM uses it, and an absent file is no error.
func deleteVolume(c *call) reply {
	s, refused := c.storageHere()
	if s == nil {
		return refused
	}
	id, parts, refused := c.volumeID(s)
	if id == "" {
		return refused
	}
	if r := c.mayDeleteVolume(id); r.failed() {
		return r
	}
	owner := string(s.id)
	if parts.vmid != 0 {
		owner = parts.vmid.String() + "@" + owner
	}
	var worker *task
	r := c.task("imgdel", owner, func(t *task) {
		worker = t
		t.after(c.about(removeDelay), func() { t.end(c.freeVolume(t, s, id)) })
	})
	if delay := atoi(c.params["delay"], 0); delay > 0 {
		r.later = c.waitedFor(worker, r, time.Duration(delay)*time.Second)
	}
	return r
}

// waitedFor answers when the task has ended, with nothing or its error, or with the task when it takes longer.
func (c *call) waitedFor(t *task, running reply, limit time.Duration) <-chan reply {
	done := make(chan reply, 1)
	var look func(time.Duration)
	look = func(waited time.Duration) {
		switch {
		case t.done() && t.exit != "OK":
			done <- fail("%s", t.exit)
		case t.done():
			done <- ok(nil)
		case waited >= limit:
			done <- running
		default:
			c.after(time.Second, func() { look(waited + time.Second) })
		}
	}
	c.after(time.Second, func() { look(time.Second) })
	return done
}

// freeVolume removes a volume; the text says why it cannot (PVE::Storage::vdisk_free).
func (c *call) freeVolume(t *task, s *storage, id proxmox.VolumeID) string {
	_, name, _ := strings.Cut(string(id), ":")
	v := c.volumeAt(c.node.Name, id)
	for _, child := range c.volumes {
		if child.parent == id && child.key.node == s.scope(c.node.Name) {
			return fmt.Sprintf("base volume '%s' is still in use by linked clones", name)
		}
	}
	switch {
	case v != nil && v.protected:
		return fmt.Sprintf("cannot remove protected volume '%s' on '%s'", name, s.id)
	case v == nil && s.typ == lvmThinStorage:
		return fmt.Sprintf("no such logical volume %s/%s", s.options["vgname"], name)
	case v == nil:
		t.logf("disk image '%s' does not exist", s.pathOf(name))
	}
	c.removeVolume(volumeKey{s.scope(c.node.Name), id})
	t.logf("Removed volume '%s'", id)
	return ""
}

// copyVolume is POST on a volume, an experiment of Proxmox VE: it copies to a volume of another name, maybe on another node.
func copyVolume(c *call) reply {
	s, id, refused := c.readVolume()
	if refused.failed() {
		return refused
	}
	target, to := c.params["target"], c.node
	if !strings.Contains(target, ":") {
		target = string(s.id) + ":" + target
	}
	if name := c.params["target_node"]; name != "" {
		if to = c.World.node(proxmox.NodeName(name)); to == nil {
			return fail("no such cluster node '%s'", name)
		}
	}
	return c.task("imgcopy", "", func(t *task) {
		t.after(c.about(fileCopyDelay), func() {
			v := c.volumeAt(c.node.Name, id)
			if v == nil {
				t.end(fmt.Sprintf("volume '%s' does not exist", id))
				return
			}
			next := VolumeSpec{ID: proxmox.VolumeID(target), Node: to.Name, Size: v.size, Used: v.used, Data: v.data}
			if c.volumeAt(to.Name, next.ID) != nil {
				t.end(fmt.Sprintf("volume '%s' already exists", target))
				return
			}
			if err := c.seedVolume(next); err != nil {
				t.end(err.Error())
				return
			}
			t.end("")
		})
	})
}

// importMetadata is what an appliance says of the VM to make of it; only OVA files do.
func importMetadata(c *call) reply {
	s, id, refused := c.readVolume()
	if refused.failed() {
		return refused
	}
	_, name, _ := strings.Cut(string(id), ":")
	parts, _ := s.parseVolume(name)
	switch {
	case parts.content != "import":
		return fail("invalid content type '%s'", parts.content)
	case parts.format != "ova" && parts.format != "ovf":
		return fail("invalid format")
	case c.volumeAt(c.node.Name, id) == nil:
		return fail("failed to stat '%s'", s.pathOf(name))
	}
	return ok(map[string]any{
		"type": "vm", "source": name, "create-args": map[string]any{"name": strings.TrimSuffix(parts.file, "."+parts.format)},
		"disks": map[string]any{}, "net": map[string]any{}, "warnings": []any{},
	})
}
