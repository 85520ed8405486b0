package pvesim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// takeSnapshot is POST …/snapshot.
func takeSnapshot(c *call) reply {
	if name := c.params["snapname"]; strings.EqualFold(name, "current") || strings.EqualFold(name, "pending") {
		return fail("unable to use snapshot name '%s' (reserved name)", name)
	}
	return vmTask("qmsnapshot", func(c *call, t *task) {
		t.lock(lockRequest{id: c.vmid(), timeout: flockTimeout, granted: func() {
			if msg := c.snapshotRefusal(); msg != "" {
				t.end(msg)
				return
			}
			if !t.cannotWrite(c.vm()) {
				c.prepareSnapshot(t)
			}
		}})
	})(c)
}

func (c *call) snapshotRefusal() string {
	v, name := c.vm(), c.params["snapname"]
	switch {
	case v == nil:
		return noConfig(c.node.Name, c.vmid())
	case v.isTemplate():
		return "you can't take a snapshot if it's a template"
	case v.lock() != "":
		return v.lockRefusal()
	case v.snapshot(name) != nil:
		return fmt.Sprintf("snapshot name '%s' already used", name)
	case c.lacksFeature(snapshotFeature, v.config, false):
		return "snapshot feature is not available"
	}
	return ""
}

// snapshotConfig is what of the VM's config goes into a snapshot (PVE::AbstractConfig::__snapshot_copy_config).
func (v *vm) snapshotConfig() map[string]string {
	out := maps.Clone(v.config)
	for key := range v.config {
		if slices.Contains([]string{"lock", "description", "parent"}, key) || strings.HasPrefix(key, "unused") {
			delete(out, key)
		}
	}
	return out
}

// prepareSnapshot enters the snapshot under the lock snapshot, which lasts until the disks are done.
func (c *call) prepareSnapshot(t *task) {
	v := c.vm()
	s := &snapshot{
		name: c.params["snapname"], parent: v.config["parent"], description: strings.TrimSuffix(c.params["description"], "\n"),
		config: v.snapshotConfig(), taken: c.clock.Now(), state: "prepare",
	}
	delay := c.about(snapshotDelay)
	if c.flag("vmstate") && v.running {
		s.ram = c.saveMemory(t, v, s.name)
		delay += timeFor(v.memory(), memoryRate)
	}
	v.snapshots = append(v.snapshots, s)
	v.config["lock"] = "snapshot"
	t.unlock(v.id)
	t.undo = func(string) { c.dropSnapshot(v, s) }
	t.afterwards(v, delay, func() {
		if s.ram != "" && c.node.StockQEMU {
			c.dropSnapshot(v, s)
			t.end(fmt.Sprintf("VM %d qmp command 'savevm-start' failed - The command savevm-start has not been found", v.id))
			return
		}
		for _, name := range snapshotDisks(v.config) {
			t.logf("snapshotting 'drive-%s' (%s)", name, parseDrive(v.config[name]).volume)
		}
		s.state, v.config["parent"] = "", s.name
		delete(v.config, "lock")
		t.end("")
	})
}

// afterwards goes on later with a VM that the task holds no lock file of. Only root can destroy it meanwhile, with skiplock.
func (t *task) afterwards(v *vm, d time.Duration, do func()) {
	t.after(d, func() {
		if v.destroyed {
			t.end(noConfig(v.node, v.id))
			return
		}
		do()
	})
}

// saveMemory makes the volume for the memory of a running VM.
func (c *call) saveMemory(t *task, v *vm, name string) proxmox.VolumeID {
	s, _ := c.storageFor(c.stateStorage(v), v.node)
	if s == nil {
		return ""
	}
	id := s.volumeName(v.id, fmt.Sprintf("vm-%d-state-%s", v.id, name), "raw")
	t.logf("saving VM state and RAM using storage '%s'", s.id)
	c.addVolume(&volume{key: volumeKey{s.scope(v.node), id}, storage: s, content: "images", format: "raw", vmid: v.id, size: 2*v.memory() + 500<<20, used: v.memory()})
	return id
}

// snapshotDisks are the drives that a snapshot is taken of.
func snapshotDisks(config map[string]string) []string {
	return slices.DeleteFunc(clonedDrives(config, withData), func(name string) bool { return parseDrive(config[name]).cdrom() })
}

// dropMemory removes the volume with the memory of a snapshot.
func (w *World) dropMemory(v *vm, s *snapshot) {
	if vol := w.volumeAt(v.node, s.ram); vol != nil {
		w.removeVolume(vol.key)
	}
}

// dropSnapshot removes a snapshot: those that came after it get its parent.
func (w *World) dropSnapshot(v *vm, s *snapshot) {
	w.dropMemory(v, s)
	v.snapshots = slices.DeleteFunc(v.snapshots, func(x *snapshot) bool { return x == s })
	for _, x := range v.snapshots {
		if x.parent == s.name {
			x.parent = s.parent
		}
	}
	if v.config["parent"] == s.name {
		if delete(v.config, "parent"); s.parent != "" {
			v.config["parent"] = s.parent
		}
	}
	delete(v.config, "lock")
}

// snapshotTask is a handler whose worker does something with a snapshot under a config lock.
func snapshotTask(typ, lock string, refusal func(*call, *vm, *snapshot) string, do func(*call, *task, *vm, *snapshot)) func(*call) reply {
	return vmTask(typ, func(c *call, t *task) {
		t.lock(lockRequest{id: c.vmid(), timeout: flockTimeout, granted: func() {
			v, s, r := c.namedSnapshot()
			switch {
			case r.failed():
				t.end(r.failure())
				return
			case v.lock() != "":
				t.end(v.lockRefusal())
				return
			}
			if msg := refusal(c, v, s); msg != "" {
				t.end(msg)
				return
			}
			if t.cannotWrite(v) {
				return
			}
			v.config["lock"] = lock
			t.unlock(v.id)
			t.undo = func(string) { s.state = ""; delete(v.config, "lock") }
			do(c, t, v, s)
		}})
	})
}

// deleteSnapshot is DELETE on a snapshot.
func deleteSnapshot() func(*call) reply {
	refusal := func(_ *call, v *vm, _ *snapshot) string {
		if v.isTemplate() {
			return "you can't delete a snapshot if vm is a template"
		}
		return ""
	}
	return snapshotTask("qmdelsnapshot", "snapshot-delete", refusal, func(c *call, t *task, v *vm, s *snapshot) {
		s.state = "delete"
		t.afterwards(v, c.about(snapshotDelay), func() {
			c.dropSnapshot(v, s)
			t.end("")
		})
	})
}

// rollback is POST …/rollback: a running VM is stopped, its config and disks are those of the snapshot again, and with memory
// in the snapshot or with start=1 it is started.
func rollback() func(*call) reply {
	return snapshotTask("qmrollback", "rollback", (*call).rollbackRefusal, func(c *call, t *task, v *vm, s *snapshot) {
		c.powerOff(v, CauseStop)
		t.afterwards(v, c.about(snapshotDelay), func() {
			c.restore(v, s)
			if c.flag("start") || s.ram != "" {
				c.powerOn(v)
			}
			t.end("")
		})
	})
}

// rollbackRefusal says why the VM cannot go back. ZFS can only go back to the latest snapshot of a volume.
func (c *call) rollbackRefusal(v *vm, s *snapshot) string {
	if v.isTemplate() {
		return "you can't rollback if vm is a template"
	}
	if s.state != "" {
		return fmt.Sprintf("unable to rollback to incomplete snapshot (snapstate = %s)", s.state)
	}
	for _, name := range snapshotDisks(s.config) {
		d := parseDrive(s.config[name])
		st := c.storageByID(d.storageID())
		if st != nil && st.typ == zfsPoolStorage && v.snapshots[len(v.snapshots)-1] != s {
			return fmt.Sprintf("can't rollback, '%s' is not most recent snapshot on '%s'", s.name, d.volume)
		}
	}
	return ""
}

// restore gives the VM the config of the snapshot. The description and unused volumes stay, and disks that the snapshot does not
// have are unused from now on (PVE::AbstractConfig::snapshot_rollback).
func (w *World) restore(v *vm, s *snapshot) {
	config := maps.Clone(s.config)
	kept := map[proxmox.VolumeID]bool{}
	for _, name := range snapshotDisks(config) {
		kept[parseDrive(config[name]).volume] = true
	}
	for _, name := range snapshotDisks(v.config) {
		if id := parseDrive(v.config[name]).volume; !kept[id] {
			addUnused(v.config, id)
		}
	}
	for key, value := range v.config {
		if key == "description" || strings.HasPrefix(key, "unused") {
			config[key] = value
		}
	}
	config["parent"] = s.name
	if config["vmgenid"] != "" && s.ram == "" {
		config["vmgenid"] = w.newUUID()
	}
	v.config, v.pending = config, nil
	w.changed(v)
}
