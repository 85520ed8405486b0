package pvesim

import (
	"fmt"
	"maps"
	"slices"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

// createVM is POST /nodes/{node}/qemu. The checks are in the order of qemu-server.
func createVM(c *call) reply {
	id := toVMID(c.params["vmid"])
	e := &edit{set: c.vmOptions()}
	if !schema.ValidSSHKeys(e.set["sshkeys"]) {
		return fail("SSH public key validation error")
	}
	if r := c.mayCreate(); r.failed() {
		return r
	}
	if c.params["archive"] != "" {
		return c.restoreVM(e)
	}
	normalOptions(e.set)
	for _, check := range []func() reply{
		func() reply { return c.mayEditNew(e) },
		func() reply { return c.checkVolumes(e.set) },
		func() reply { return c.needBridges(e.set) },
		func() reply { return c.checkDrives(e.set) },
	} {
		if r := check(); r.failed() {
			return r
		}
	}
	if msg := c.vmidTaken(id); msg != "" {
		return fail("%s", msg)
	}
	return c.task("qmcreate", id.String(), func(t *task) {
		t.vms = []proxmox.VMID{id}
		t.lock(lockRequest{id: id, timeout: flockTimeout, granted: func() { c.create(t, id, e) }})
	})
}

// vmidTaken is why no VM can be made with the ID, or "".
func (w *World) vmidTaken(id proxmox.VMID) string {
	if msg := w.taken(id); msg != "" {
		return fmt.Sprintf("unable to create VM %d - %s", id, msg)
	}
	return ""
}

// restoreVM refuses backups: they are not simulated.
func (c *call) restoreVM(e *edit) reply {
	for _, key := range slices.Sorted(maps.Keys(e.set)) {
		if isDrive(key) {
			return invalidParam(key, "option '%s' would conflict with backup/archive", key)
		}
	}
	id := proxmox.VolumeID(c.params["archive"])
	if r := c.mayAccessVolume(id); r.failed() {
		return r
	}
	if c.volumeAt(c.node.Name, id) == nil {
		return fail("volume '%s' does not exist", id)
	}
	return notImplemented(c.method, c.path)
}

// needBridges refuses network devices without a bridge: 8.4 looks for the right to use it before it looks whether there is one.
func (c *call) needBridges(set map[string]string) reply {
	if c.version != V84 || c.who.isRoot() {
		return reply{}
	}
	format := netFormat()
	for _, key := range slices.Sorted(maps.Keys(set)) {
		p, _ := format.Parse(set[key])
		if unnumbered(key) == "net" && p["bridge"] == "" {
			return fail("no sdn vnet ID specified")
		}
	}
	return reply{}
}

// create is the worker of a new VM.
func (c *call) create(t *task, id proxmox.VMID, e *edit) {
	if msg := c.vmidTaken(id); msg != "" {
		t.end(msg)
		return
	}
	v := c.addVM(id, c.node.Name, map[string]string{"lock": "create"})
	t.undo = func(string) { c.dropVM(v) }
	t.after(c.about(createDelay), func() {
		t.undo = nil
		if r := c.furnish(v, e, t); r.failed() {
			c.dropVM(v)
			t.end(fmt.Sprintf("unable to create VM %d - %s", id, r.failure()))
			return
		}
		if p := c.pools[proxmox.PoolID(c.params["pool"])]; p != nil {
			p.members[id] = true
		}
		if c.flag("ha-managed") {
			t.logf("Add as HA resource")
			c.haAdd(id)
		}
		if !c.flag("start") {
			t.end("")
			return
		}
		t.logf("Execute autostart")
		t.end("")
		c.task("qmstart", id.String(), func(t *task) {
			t.vms = []proxmox.VMID{id}
			c.startVM(t, startJob{node: c.node, id: id})
		})
	})
}

// haAdd makes a new VM an HA resource, which shall run if the VM is started now.
func (c *call) haAdd(id proxmox.VMID) {
	state := "stopped"
	if c.flag("start") {
		state = haStarted
	}
	c.ha.resources[haID(id)] = map[string]string{"state": state}
	c.haTouch(haID(id))
}

// furnish gives a new VM its config and its disks. Tags stay as they are given on 8.4.
func (c *call) furnish(v *vm, e *edit, log *task) reply {
	ch := c.newChange(v, log)
	for _, key := range c.setOrder(e.set) {
		if r := ch.writeValue(key, e.set[key]); r.failed() {
			for _, key := range ch.made {
				c.removeVolume(key)
			}
			return r
		}
	}
	if tags, given := e.set["tags"]; given && c.version == V84 {
		ch.pending["tags"] = pendingValue{value: storedValue("tags", tags)}
	}
	ch.makeReal()
	if ch.config["boot"] == " " {
		delete(ch.config, "boot")
	}
	delete(ch.config, "lock")
	ch.commit()
	c.complete(v)
	return ok(nil)
}

// complete adds what qemu-server gives every new VM.
func (w *World) complete(v *vm) {
	for _, option := range []struct {
		key  string
		make func() string
	}{
		{"smbios1", func() string { return "uuid=" + w.newUUID() }},
		{"vmgenid", w.newUUID},
		{"meta", w.metaInfo},
		{"boot", v.defaultBoot},
	} {
		if v.config[option.key] == "" {
			v.config[option.key] = option.make()
		}
	}
}

// defaultBoot is the boot order of a VM that was given none: the first disk, CD-ROM and network device.
func (v *vm) defaultBoot() string {
	var devices []string
	for _, cdrom := range []bool{false, true} {
		for _, name := range numberedDrives() {
			if value := v.config[name]; value != "" && parseDrive(value).cdrom() == cdrom {
				devices = append(devices, name)
				break
			}
		}
	}
	for _, name := range numbered("net", 32) {
		if v.config[name] != "" {
			devices = append(devices, name)
			break
		}
	}
	return printBoot(devices)
}

func isBootBus(name string) bool {
	return slices.Contains([]string{"ide", "sata", "scsi", "virtio"}, unnumbered(name))
}
