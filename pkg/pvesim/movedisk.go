package pvesim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

func moveDiskRoute() Route {
	disks := append(diskNames(), numbered("unused", 256)...)
	return Route{
		Method: "POST", Path: "/nodes/{node}/qemu/{vmid}/move_disk", handle: moveDisk, permission: on("/vms/{vmid}", "VM.Config.Disk"),
		params: []schema.Param{
			schema.VMID("target-vmid"), schema.Choice("disk", disks...).Required(), schema.Choice("target-disk", disks...), schema.Text("storage").Format("pve-storage-id"),
			schema.Choice("format", "raw", "qcow2", "vmdk"), schema.Boolean("delete"), schema.Text("digest").MaxLength(40), schema.Text("target-digest").MaxLength(40),
			schema.Integer("bwlimit").Min(0),
		},
	}
}

// moveDisk is POST …/move_disk: to another storage, or to another VM.
func moveDisk(c *call) reply {
	storageID, target := c.params["storage"], c.params["target-vmid"]
	switch {
	case storageID != "" && target != "":
		return invalidParam("target-vmid", "either set 'storage' or 'target-vmid', but not both")
	case target != "":
		return c.reassignDisk()
	case storageID == "":
		const msg = "both 'storage' and 'target-vmid' missing, either needs to be set"
		return invalid(map[string]string{"target-vmid": msg, "storage": msg})
	}
	if r := c.need("/storage/"+storageID, "Datastore.AllocateSpace"); r.failed() {
		return r
	}
	if _, msg := c.moveRefusal(); msg != "" {
		return fail("%s", msg)
	}
	return vmTask("qmmove", func(c *call, t *task) {
		t.lock(lockRequest{id: c.vmid(), timeout: flockTimeout, granted: func() {
			t.after(c.about(moveDiskDelay), func() {
				d, msg := c.moveRefusal()
				if msg == "" {
					msg = c.move(t, d)
				}
				t.end(msg)
			})
		}})
	})(c)
}

// diskToMove finds the disk of a VM that is to go elsewhere; the text says why it cannot.
func (c *call) diskToMove() (drive, string) {
	v, name := c.vm(), c.params["disk"]
	switch {
	case v == nil:
		return drive{}, noConfig(c.node.Name, c.vmid())
	case v.lock() != "":
		return drive{}, v.lockRefusal()
	case c.has("digest") && c.params["digest"] != v.digest():
		return drive{}, wrongDigest
	case v.config[name] == "":
		return drive{}, fmt.Sprintf("disk '%s' does not exist", name)
	}
	d := parseDrive(v.config[name])
	if d.storageID() == "" {
		return d, fmt.Sprintf("disk '%s' has no associated volume", name)
	}
	return d, ""
}

func (c *call) moveRefusal() (drive, string) {
	d, msg := c.diskToMove()
	if msg != "" {
		return d, msg
	}
	if d.cdrom() && !d.cloudInit() {
		return d, "you can't move a cdrom"
	}
	vol := c.volumeAt(c.node.Name, d.volume)
	if vol == nil {
		return d, fmt.Sprintf("volume '%s' does not exist", d.volume)
	}
	format := c.params["format"]
	if c.flag("delete") && c.vm().inSnapshot(d.volume) {
		return d, "you can't move a disk with snapshots and delete the source"
	}
	if string(d.storageID()) == c.params["storage"] && (format == "" || !vol.storage.fileBased() || format == vol.format) {
		return d, "you can't move to the same storage with same format"
	}
	if _, msg := c.storageFor(proxmox.StorageID(c.params["storage"]), c.node.Name); msg != "" {
		return d, msg
	}
	return d, ""
}

// move copies the disk; the old one is kept as unused unless it shall be deleted.
func (c *call) move(t *task, d drive) string {
	v, name := c.vm(), c.params["disk"]
	s, _ := c.storageFor(proxmox.StorageID(c.params["storage"]), c.node.Name)
	from := c.volumeAt(v.node, d.volume)
	ch := c.newChange(v, nil)
	if c.version == V92 {
		t.logf("copying volume '%s' from current storage '%s' to target storage '%s'", d.volume, d.storageID(), s.id)
	}
	t.logf("create full clone of drive %s (%s)", name, d.volume)
	format := cmp.Or(c.params["format"], from.format)
	if !slices.Contains(s.diskFormats(), format) {
		format = s.diskFormats()[0]
	}
	moved := parseDrive(v.config[name])
	if r := ch.newVolume(newDisk{key: name, drive: &moved, storage: s, format: format, size: from.size}); r.failed() {
		return "storage migration failed: " + r.reason
	}
	ch.pending[name] = pendingValue{value: moved.String()}
	ch.put(name)
	if c.flag("delete") {
		ch.config = withoutVolume(ch.config, d.volume)
		ch.freed = append(ch.freed, from.key)
	}
	if c.version == V92 {
		t.logf("allocated target volume '%s'", moved.volume)
		t.logMoved(d.volume, ch.config)
	}
	ch.commit()
	return ""
}

// logMoved tells under which name the source is kept, if it is.
func (t *task) logMoved(source proxmox.VolumeID, config map[string]string) {
	for _, key := range numbered("unused", 256) {
		if config[key] == string(source) {
			t.logf("adding source volume '%s' as '%s' to config", source, key)
		}
	}
}

// withoutVolume drops the unusedN of a volume.
func withoutVolume(config map[string]string, id proxmox.VolumeID) map[string]string {
	for key, value := range config {
		if strings.HasPrefix(key, "unused") && firstProperty(value) == string(id) {
			delete(config, key)
		}
	}
	return config
}

// reassignDisk gives the disk to another VM of the node, under a name of that VM's.
func (c *call) reassignDisk() reply {
	id := toVMID(c.params["target-vmid"])
	if r := c.need("/vms/"+id.String(), "VM.Config.Disk"); r.failed() {
		return r
	}
	if msg := c.reassignRefusal(); msg != "" {
		return fail("%s", msg)
	}
	return vmTask("qmmove", func(c *call, t *task) {
		t.vms = append(t.vms, id)
		t.lock(lockRequest{id: c.vmid(), timeout: flockTimeout, granted: func() {
			t.lock(lockRequest{id: id, timeout: flockTimeout, granted: func() {
				t.after(c.about(lockedStep), func() {
					msg := c.reassignRefusal()
					if msg == "" {
						c.reassign(t)
					}
					t.end(msg)
				})
			}})
		}})
	})(c)
}

func (c *call) targetDisk() string { return cmp.Or(c.params["target-disk"], c.params["disk"]) }

func (c *call) reassignRefusal() string {
	if c.params["target-vmid"] == c.params["vmid"] {
		return "disk reassignment: source and target VM are the same"
	}
	d, msg := c.diskToMove()
	if msg != "" {
		return msg
	}
	id := toVMID(c.params["target-vmid"])
	target := c.vmOn(c.node.Name, id)
	vol := c.volumeAt(c.node.Name, d.volume)
	switch {
	case target == nil:
		return noConfig(c.node.Name, id)
	case target.lock() != "":
		return target.lockRefusal()
	case c.has("target-digest") && c.params["target-digest"] != target.digest():
		return wrongDigest
	case target.config[c.targetDisk()] != "":
		return fmt.Sprintf("Target disk key '%s' is already in use for VM '%d'!", c.targetDisk(), id)
	case vol == nil:
		return fmt.Sprintf("volume '%s' does not exist", d.volume)
	case d.cloudInit():
		return "You can't move a cloud-init disk to another VM"
	case d.cdrom():
		return "You can't move a CD-ROM disk to another VM"
	case c.vm().running && !strings.HasPrefix(c.params["disk"], "unused"):
		return "Cannot move disk of a running VM to another one"
	}
	return ""
}

// reassign renames the volume.
func (c *call) reassign(t *task) {
	source, target := c.vm(), c.vms[toVMID(c.params["target-vmid"])]
	d := parseDrive(source.config[c.params["disk"]])
	vol := c.volumeAt(source.node, d.volume)
	c.removeVolume(vol.key)
	old := vol.key.id
	vol.vmid, vol.key.id = target.id, vol.storage.freeName(c.World, target.node, target.id, vol.format)
	c.addVolume(vol)
	delete(source.config, c.params["disk"])
	d.volume = vol.key.id
	if strings.HasPrefix(c.targetDisk(), "unused") {
		d.props = schema.Properties{}
	}
	target.config[c.targetDisk()] = d.String()
	t.logf("moving disk '%s' from VM '%d' to '%d'", c.params["disk"], source.id, target.id)
	t.logf("renamed '%s' to '%s'", old, vol.key.id)
	c.changed(source)
	c.changed(target)
}
