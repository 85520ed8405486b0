package pvesim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

// createVM is POST /nodes/{node}/qemu.
func createVM(c *call) reply {
	id := toVMID(c.params["vmid"])
	if r := c.mayCreate(); r.failed() {
		return r
	}
	if c.has("archive") {
		return notImplemented(c.method, c.path)
	}
	e := &edit{set: map[string]string{}}
	known := configParams(c.version)
	for key, value := range c.params {
		if schema.Lookup(known, key) != nil {
			e.set[key] = value
		}
	}
	if r := c.mayEditNew(e); r.failed() {
		return r
	}
	if other := c.vms[id]; other != nil {
		return fail("unable to create VM %d - VM %d already exists on node '%s'", id, id, other.node)
	}
	return c.task("qmcreate", id.String(), func(t *task) {
		t.vms = []proxmox.VMID{id}
		t.lock(lockRequest{id: id, timeout: flockTimeout, granted: func() { c.create(t, id, e) }})
	})
}

func (c *call) create(t *task, id proxmox.VMID, e *edit) {
	if other := c.vms[id]; other != nil {
		t.end(fmt.Sprintf("unable to create VM %d - VM %d already exists on node '%s'", id, id, other.node))
		return
	}
	v := c.addVM(id, c.node.Name, map[string]string{"lock": "create"})
	t.undo = func(string) { c.dropVM(v) }
	t.after(c.about(createDelay), func() {
		t.undo = nil
		tags := e.set["tags"]
		if r := c.apply(e, v); r.failed() {
			c.dropVM(v)
			t.end(fmt.Sprintf("unable to create VM %d - %s", id, r.failure()))
			return
		}
		delete(v.config, "lock")
		c.complete(v)
		if c.version == V84 && tags != "" {
			v.config["tags"] = tags
		}
		if p := c.pools[proxmox.PoolID(c.params["pool"])]; p != nil {
			p.members[id] = true
		}
		if c.flag("start") {
			c.applyPending(v)
			c.powerOn(v)
		}
		t.end("")
	})
}

// complete adds what qemu-server gives every new VM.
func (w *World) complete(v *vm) {
	if !strings.Contains(v.config["smbios1"], "uuid=") {
		v.config["smbios1"] = strings.TrimSuffix("uuid="+w.newUUID()+","+v.config["smbios1"], ",")
	}
	if v.config["vmgenid"] == "" {
		v.config["vmgenid"] = w.newUUID()
	}
	if v.config["meta"] == "" {
		v.config["meta"] = fmt.Sprintf("creation-qemu=10.0.2,ctime=%d", w.clock.Now().Unix())
	}
	if v.config["boot"] == "" {
		v.config["boot"] = v.defaultBoot()
	}
}

func (v *vm) defaultBoot() string {
	var devices []string
	for _, name := range v.drives() {
		if d := parseDrive(v.config[name]); !d.cdrom() && d.volume != "" && isBootBus(name) {
			devices = append(devices, name)
			break
		}
	}
	if v.config["net0"] != "" {
		devices = append(devices, "net0")
	}
	if len(devices) == 0 {
		return " "
	}
	return "order=" + strings.Join(devices, ";")
}

func isBootBus(name string) bool {
	return slices.Contains([]string{"ide", "sata", "scsi", "virtio"}, strings.TrimRight(name, "0123456789"))
}

// destroyVM is DELETE on a VM.
func destroyVM(c *call) reply {
	v := c.vm()
	switch {
	case v == nil:
		return missingVM(c.node.Name, c.vmid())
	case v.config["protection"] == "1":
		return fail("can't remove VM %d - protection mode enabled", v.id)
	case c.haConfigured(v.id) && !c.flag("purge"):
		return fail("unable to remove VM %d - used in HA resources and purge parameter not set.", v.id)
	case v.running:
		return fail("VM %d is running - destroy failed", v.id)
	}
	return vmTask("qmdestroy", func(c *call, t *task) {
		t.lock(lockRequest{id: c.vmid(), timeout: flockTimeout, granted: func() {
			if msg := c.destroyRefusal(); msg != "" {
				t.end(msg)
				return
			}
			t.after(c.about(destroyDelay), func() { c.destroy(t) })
		}})
	})(c)
}

func (c *call) destroyRefusal() string {
	v := c.vm()
	switch {
	case v == nil:
		return noConfig(c.node.Name, c.vmid())
	case v.lock() != "" && !c.flag("skiplock"):
		return fmt.Sprintf("VM is locked (%s)", v.lock())
	case v.running:
		return fmt.Sprintf("VM %d is running - destroy failed", v.id)
	}
	if base := c.usedAsBase(v); base != nil {
		return fmt.Sprintf("base volume '%s' is still in use by linked cloned", base.key.id)
	}
	return ""
}

func (c *call) destroy(t *task) {
	if msg := c.destroyRefusal(); msg != "" {
		t.end(msg)
		return
	}
	v := c.vm()
	for _, name := range v.drives() {
		if vol := c.volumeAt(v.node, parseDrive(v.config[name]).volume); vol != nil && vol.vmid == v.id {
			c.removeVolume(vol.key)
		}
	}
	for _, s := range v.snapshots {
		c.dropMemory(v, s)
	}
	if c.flag("destroy-unreferenced-disks") {
		for key, vol := range c.volumes {
			if vol.vmid == v.id && (key.node == "" || key.node == v.node) {
				c.removeVolume(key)
			}
		}
	}
	if t.cannotWrite(v) {
		return
	}
	c.dropVM(v)
	if c.flag("purge") {
		t.logf("purging VM %d from related configurations..", v.id)
		if c.haPurge(v.id) {
			t.logf("NOTE: removed VM %d from HA resource configuration.", v.id)
		}
	}
	t.end("")
}

// resizeDisk is PUT …/resize, whose every refusal but that of a malformed size is the task's.
func resizeDisk() func(*call) reply {
	return vmTask("resize", func(c *call, t *task) {
		t.lock(lockRequest{id: c.vmid(), timeout: flockTimeout, granted: func() {
			v := c.vm()
			d, msg := c.resizeRefusal(v)
			if msg != "" {
				t.end(msg)
				return
			}
			t.after(c.about(resizeDelay), func() { t.end(c.resize(v, d)) })
		}})
	})
}

func (c *call) resizeRefusal(v *vm) (drive, string) {
	name := c.params["disk"]
	switch {
	case v == nil:
		return drive{}, noConfig(c.node.Name, c.vmid())
	case c.has("digest") && c.params["digest"] != v.digest():
		return drive{}, "checksum mismatch (file change by other user?)"
	case v.lock() != "" && !c.flag("skiplock"):
		return drive{}, fmt.Sprintf("VM is locked (%s)", v.lock())
	case v.config[name] == "":
		return drive{}, fmt.Sprintf("disk '%s' does not exist", name)
	}
	d := parseDrive(v.config[name])
	if d.cdrom() {
		return drive{}, "you can't resize a cdrom"
	}
	if r := c.need("/storage/"+string(d.storageID()), "Datastore.AllocateSpace"); r.failed() {
		return drive{}, r.failure()
	}
	if c.volumeAt(v.node, d.volume) == nil {
		return drive{}, fmt.Sprintf("volume '%s' does not exist", d.volume)
	}
	return d, ""
}

func (c *call) resize(v *vm, d drive) string {
	vol := c.volumeAt(v.node, d.volume)
	size, relative := strings.CutPrefix(c.params["size"], "+")
	n := schema.ParseSize(size)
	if relative {
		n += vol.size
	}
	switch {
	case n < vol.size:
		return "shrinking disks is not supported"
	case n == vol.size:
		return ""
	case isBase(d.volume):
		return c.version.resizeFailure(vol, n)
	case n-vol.size > vol.storage.free(v.node):
		return fmt.Sprintf("not enough free space on storage '%s'", vol.storage.id)
	}
	vol.size = n
	if msg := c.writeRefusal(v, workerPID); msg != "" {
		return msg
	}
	d.props["size"] = schema.FormatSize(n)
	v.config[c.params["disk"]] = d.String()
	c.changed(v)
	return ""
}
