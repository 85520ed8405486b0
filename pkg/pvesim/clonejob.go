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

// cloneJob is a clone whose worker copies disks, one after another.
type cloneJob struct {
	*cloneOrder
	*clonePlan
	task   *task
	target *vm
	// fresh is the clone's config, with the drives that are done.
	fresh map[string]string
	// left are the drives still to copy.
	left []string
	made []volumeKey
	// command is the one that copies the present drive; empty for none.
	command string
	failed  bool
}

// missingVolume is a disk of the source without its volume, or "" (PVE::Storage::activate_volumes).
func (j *cloneJob) missingVolume() proxmox.VolumeID {
	for _, name := range j.left {
		if d := parseDrive(j.config[name]); !d.cloudInit() && j.volumeAt(j.source.node, d.volume) == nil {
			return d.volume
		}
	}
	return ""
}

// after goes on later, unless the clone has failed meanwhile.
func (j *cloneJob) after(d time.Duration, do func()) {
	j.task.after(d, func() {
		if !j.failed {
			do()
		}
	})
}

// next copies the next drive, or finishes.
func (j *cloneJob) next() {
	if len(j.left) == 0 {
		j.finish()
		return
	}
	name := j.left[0]
	j.left = j.left[1:]
	d := parseDrive(j.config[name])
	from := j.volumeAt(j.source.node, d.volume)
	switch {
	case from == nil && !d.cloudInit():
		j.fail(fmt.Sprintf("volume '%s' does not exist", d.volume))
	case j.full || d.cloudInit():
		j.task.logf("create full clone of drive %s (%s)", name, d.volume)
		j.copy(name, d, from)
	default:
		j.task.logf("create linked clone of drive %s (%s)", name, d.volume)
		j.link(name, d, from)
	}
}

// link makes a volume that refers to the base volume.
func (j *cloneJob) link(name string, d drive, from *volume) {
	s, format := from.storage, "raw"
	if s.fileBased() {
		format = "qcow2"
	}
	v := &volume{storage: s, content: "images", format: format, vmid: j.target.id, size: from.size, used: 200 * 1024}
	v.key = volumeKey{from.key.node, s.freeName(j.World, j.source.node, j.target.id, format)}
	own := v.key.id
	if s.keepsBase() && isBase(from.key.id) {
		_, file, _ := strings.Cut(string(own), ":")
		v.parent = s.ownName(from.key.id)
		v.key.id = v.parent + "/" + proxmox.VolumeID(file)
	}
	j.addVolume(v)
	j.made = append(j.made, v.key)
	if s.fileBased() {
		_, base, _ := strings.Cut(string(v.parent), ":")
		file := fileName(v.key.id)
		j.task.logf("clone %s: images, %s, %d to %s (base=../%s)", base, file, j.target.id, file, base)
		j.task.logf("%s", j.version.formatting(s.diskPath(own), format, v.size, "../"+base))
	}
	j.after(j.about(linkDelay), func() { j.done(name, d, v) })
}

// done enters a drive that is there in the config, which stays locked.
func (j *cloneJob) done(name string, d drive, v *volume) {
	j.command = ""
	delete(d.props, "format")
	d.volume, d.props["size"] = v.key.id, schema.FormatSize(v.size)
	j.fresh[name] = d.String()
	j.target.config = maps.Clone(j.fresh)
	j.target.config["lock"] = "clone"
	j.changed(j.target)
	j.next()
}

// interrupted is the reason of a clone that is stopped.
func (j *cloneJob) interrupted() string {
	if j.command == "" {
		return "interrupted by signal"
	}
	return fmt.Sprintf("copy failed: command '%s' failed: interrupted by signal", j.command)
}

// fail takes back what the clone made, as the worker does on its way out: the config last, so that nobody else gets the VMID
// before.
func (j *cloneJob) fail(reason string) {
	if j.failed {
		return
	}
	j.failed = true
	j.task.after(cloneFailDelay, func() {
		for _, key := range j.made {
			j.removeVolume(key)
		}
		j.dropVM(j.target)
		j.task.end("clone failed: " + reason)
	})
}

// finish writes the final config without the lock, moves it to the target node, and enters the pool, in that order.
func (j *cloneJob) finish() {
	if len(j.source.pending) > 0 && !j.has("snapname") {
		j.task.logf("found pending changes for '%s', discarding for clone", strings.Join(slices.Sorted(maps.Keys(j.source.pending)), ","))
	}
	j.target.config = maps.Clone(j.fresh)
	j.changed(j.target)
	j.after(lockedStep, func() {
		if j.moveTo != "" {
			j.target.node = j.moveTo
			j.changed(j.target)
		}
		j.after(lockedStep, func() {
			if p := j.pools[proxmox.PoolID(j.params["pool"])]; p != nil {
				p.members[j.target.id] = true
			}
			j.task.end("")
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
	for _, name := range v.drives() {
		base := w.volumeAt(v.node, parseDrive(v.config[name]).volume)
		if base == nil || !isBase(base.key.id) {
			continue
		}
		own := base.storage.ownName(base.key.id)
		for key, child := range w.volumes {
			if child.parent == own && key.node == base.key.node {
				return base
			}
		}
	}
	return nil
}
