package pvesim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

// cloneJob is one clone under way.
type cloneJob struct {
	*World
	task    *task
	source  *vm
	target  *vm
	config  map[string]string
	full    bool
	storage *storage
	format  string
	pool    proxmox.PoolID
	moveTo  proxmox.NodeName
	made    []volumeKey
	// limit is the copy speed in KiB/s; zero means that of the host.
	limit int
}

// cloneVM is POST …/clone. What can be refused before the worker starts is refused here, in the order of qemu-server.
func cloneVM(c *call) reply {
	if r := c.mayClone(); r.failed() {
		return r
	}
	job := &cloneJob{World: c.World, pool: proxmox.PoolID(c.params["pool"]), format: c.params["format"], limit: atoi(c.params["bwlimit"], 0)}
	if r := job.findTarget(c); r.failed() {
		return r
	}
	if job.source = c.vm(); job.source == nil {
		return fail("unable to find configuration file for VM %d on node '%s'", c.vmid(), c.node.Name)
	}
	if r := job.check(c); r.failed() {
		return r
	}
	newID := toVMID(c.params["newid"])
	if c.vmOn(c.node.Name, newID) != nil {
		return fail("unable to create VM %d: config file already exists", newID)
	}
	job.config = job.newConfig(c.params)
	return c.task("qmclone", c.params["vmid"], func(t *task) {
		t.vms = []proxmox.VMID{newID}
		job.task = t
		job.begin(newID)
	})
}

func (j *cloneJob) findTarget(c *call) reply {
	name := proxmox.NodeName(c.params["target"])
	if name == c.node.Name || name == "localhost" {
		name = ""
	}
	if name != "" && j.node(name) == nil {
		return fail("no such cluster node '%s'", name)
	}
	j.moveTo = name
	id := proxmox.StorageID(c.params["storage"])
	if id == "" {
		return reply{}
	}
	s, msg := j.storageFor(id, c.node.Name)
	if s == nil {
		return fail("%s", msg)
	}
	if name != "" && !s.shared {
		return fail("can't clone to non-shared storage '%s'", id)
	}
	j.storage = s
	return reply{}
}

// check refuses by the source's state and disks.
func (j *cloneJob) check(c *call) reply {
	v := j.source
	j.full = !v.isTemplate()
	if c.has("full") {
		j.full = c.flag("full")
	}
	switch {
	case v.lock() != "":
		return fail("VM is locked (%s)", v.lock())
	case c.has("snapname"):
		return fail("snapshot '%s' does not exist", c.params["snapname"])
	case !j.full && c.has("storage"):
		return fail("parameter 'storage' not allowed for linked clones")
	case !j.full && c.has("format"):
		return fail("parameter 'format' not allowed for linked clones")
	}
	return j.checkDrives()
}

func (j *cloneJob) checkDrives() reply {
	for _, name := range j.source.drives() {
		d := parseDrive(j.source.config[name])
		s := j.storageByID(d.storageID())
		if s == nil || strings.HasPrefix(name, "unused") || (d.cdrom() && !d.cloudInit()) {
			continue
		}
		if j.moveTo != "" && !s.shared {
			return fail("can't clone VM to node '%s' (VM uses local storage)", j.moveTo)
		}
		if !j.full && !d.cdrom() && !strings.Contains(string(d.volume), "base-") {
			return fail("Linked clone feature is not supported for '%s' (%s)", d.volume, name)
		}
	}
	return reply{}
}

// newConfig is the clone's config but for its disks: everything is copied, identities are new.
func (j *cloneJob) newConfig(params map[string]string) map[string]string {
	out := maps.Clone(j.source.config)
	for key, value := range j.source.config {
		switch strings.TrimRight(key, "0123456789") {
		case "template", "lock", "unused", "parent":
			delete(out, key)
		case "net":
			out[key] = j.renewMAC(value)
		}
	}
	smbios := schema.Properties{}
	if format := smbiosFormat(); out["smbios1"] != "" {
		smbios, _ = format.Parse(out["smbios1"])
	}
	smbios["uuid"] = j.newUUID()
	out["smbios1"], out["vmgenid"] = smbios.Print(""), j.newUUID()
	out["name"] = params["name"]
	if out["name"] == "" {
		out["name"] = "Copy-of-VM-" + j.source.config["name"]
	}
	if text := params["description"]; text != "" {
		out["description"] = strings.TrimSuffix(text, "\n")
	}
	return out
}

func (w *World) renewMAC(value string) string {
	format := netFormat()
	p, _ := format.Parse(value)
	delete(p, "macaddr")
	p["model"] += "=" + w.newMAC()
	return p.Print("model")
}

// begin takes the lock files: the target's exclusively and, on 9.x for the whole time, the source's shared.
func (j *cloneJob) begin(newID proxmox.VMID) {
	t := j.task
	t.lock(lockRequest{id: newID, timeout: cloneFlockTimeout, granted: func() {
		if j.version == V84 {
			j.create(newID)
			return
		}
		t.lock(lockRequest{id: j.source.id, shared: true, timeout: cloneFlockTimeout, granted: func() { j.create(newID) }})
	}})
}

// create writes the config that holds the VMID while the disks are copied.
func (j *cloneJob) create(newID proxmox.VMID) {
	t := j.task
	if j.version == V92 {
		t.logf("creating a clone of VM %d with ID %d", j.source.id, newID)
	}
	if other := j.vms[newID]; other != nil && other.node != j.source.node {
		t.end(fmt.Sprintf("close (rename) atomic file '/etc/pve/nodes/%s/qemu-server/%d.conf' failed: File exists", j.source.node, newID))
		return
	} else if other != nil {
		t.end(fmt.Sprintf("unable to create VM %d: config file already exists", newID))
		return
	}
	j.target = j.addVM(newID, j.source.node, map[string]string{"lock": "clone", "description": " qmclone temporary file"})
	j.firewalls.copyGuest(j.source.id, newID)
	t.undo = func(reason string) { j.fail("copy failed: " + reason) }
	for _, name := range j.source.drives() {
		if msg := j.copyDrive(name); msg != "" {
			j.fail(msg)
			return
		}
	}
	t.after(j.duration(), j.finish)
}

// copyDrive makes the target's volume of one drive; the text says why it could not.
func (j *cloneJob) copyDrive(name string) string {
	d := parseDrive(j.source.config[name])
	if strings.HasPrefix(name, "unused") || (d.cdrom() && !d.cloudInit()) || d.storageID() == "" {
		return ""
	}
	from := j.volumeAt(j.source.node, d.volume)
	if from == nil {
		return fmt.Sprintf("volume '%s' does not exist", d.volume)
	}
	if !j.full && !d.cloudInit() {
		j.task.logf("create linked clone of drive %s (%s)", name, d.volume)
		d.volume = j.link(from)
	} else {
		j.task.logf("create full clone of drive %s (%s)", name, d.volume)
		to, msg := j.copy(from, d)
		if msg != "" {
			return msg
		}
		d.volume = to
	}
	d.props["size"] = schema.FormatSize(from.size)
	j.config[name] = d.String()
	return ""
}

func (j *cloneJob) link(from *volume) proxmox.VolumeID {
	s := from.storage
	id := s.freeName(j.World, j.source.node, j.target.id, from.format)
	v := &volume{key: volumeKey{from.key.node, id}, storage: s, content: "images", format: from.format, vmid: j.target.id, size: from.size, used: 512 * 1024}
	if s.fileBased() {
		_, file, _ := strings.Cut(string(id), ":")
		v.parent = from.key.id
		v.key.id = from.key.id + "/" + proxmox.VolumeID(file)
	}
	j.addVolume(v)
	j.made = append(j.made, v.key)
	return v.key.id
}

func (j *cloneJob) copy(from *volume, d drive) (proxmox.VolumeID, string) {
	s, format := from.storage, from.format
	if j.storage != nil {
		s = j.storage
	}
	if j.format != "" {
		format = j.format
	}
	if !s.fileBased() {
		format = "raw"
	}
	name := j.source.node
	id := s.volumeName(j.target.id, fmt.Sprintf("vm-%d-cloudinit", j.target.id), format)
	if !d.cloudInit() {
		id = s.freeName(j.World, name, j.target.id, format)
	}
	if from.used > s.free(name) {
		return "", fmt.Sprintf("copy failed: command '/usr/bin/qemu-img convert' to '%s' failed: exit code 1", id)
	}
	key := volumeKey{s.scope(name), id}
	j.addVolume(&volume{key: key, storage: s, content: "images", format: format, vmid: j.target.id, size: from.size, used: from.used})
	j.made = append(j.made, key)
	return id, ""
}

// duration of the copy on a host with fast disks: a linked clone is a matter of a second.
func (j *cloneJob) duration() time.Duration {
	if !j.full {
		return j.between(800*time.Millisecond, 1500*time.Millisecond)
	}
	if j.limit > 0 {
		total := proxmox.Bytes(0)
		for _, key := range j.made {
			total += j.volumes[key].used
		}
		return time.Duration(int64(total) / 1024 * int64(time.Second) / int64(j.limit))
	}
	return j.between(5*time.Second, 10*time.Second)
}

// fail takes back what the clone made, as the worker does on its way out.
func (j *cloneJob) fail(reason string) {
	for _, key := range j.made {
		j.removeVolume(key)
	}
	j.dropVM(j.target)
	j.task.end("clone failed: " + reason)
}

// finish writes the final config without the lock, moves it to the target node, and enters the pool, in that order.
func (j *cloneJob) finish() {
	t := j.task
	t.undo = nil
	j.target.config = j.config
	j.changed(j.target)
	t.after(30*time.Millisecond, func() {
		if j.moveTo != "" {
			j.target.node = j.moveTo
		}
		t.after(30*time.Millisecond, func() {
			if p := j.pools[j.pool]; p != nil {
				p.members[j.target.id] = true
			}
			t.end("")
		})
	})
}

// addVM enters a VM that is off.
func (w *World) addVM(id proxmox.VMID, name proxmox.NodeName, config map[string]string) *vm {
	v := &vm{id: id, node: name, config: config, queue: &serial{world: w}}
	w.vms[id] = v
	w.changed(v)
	return v
}

// dropVM removes a VM's config and what refers to it.
func (w *World) dropVM(v *vm) {
	v.destroyed = true
	delete(w.vms, v.id)
	delete(w.stale, v.id)
	w.firewalls.removeGuest(v.id)
	for _, p := range w.pools {
		delete(p.members, v.id)
	}
	w.guestDestroyed(v)
}

// usedAsBase returns a volume of the VM that linked clones still need, or nil.
func (w *World) usedAsBase(v *vm) *volume {
	mine := map[volumeKey]*volume{}
	for _, name := range v.drives() {
		if vol := w.volumeAt(v.node, parseDrive(v.config[name]).volume); vol != nil {
			mine[vol.key] = vol
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(w.volumes), func(a, b volumeKey) int { return strings.Compare(string(a.id), string(b.id)) }) {
		child := w.volumes[key]
		if base := mine[volumeKey{key.node, child.parent}]; child.parent != "" && base != nil {
			return base
		}
	}
	return nil
}
