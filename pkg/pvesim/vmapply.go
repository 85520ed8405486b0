package pvesim

import (
	"maps"
	"slices"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

// change is one edit at work on a copy of a VM's config. As in qemu-server every option is pending first, and then becomes
// real: at once if the VM is stopped or the option can be changed under it. Volumes are made at once, and freed when the config
// that no longer names them is in place.
type change struct {
	*World
	vm      *vm
	config  map[string]string
	pending map[string]pendingValue
	// cloudInit are the values that the cloud-init drive still has.
	cloudInit map[string]staleValue
	// order is the boot order, as it is in the config and as the edit changes it. What was pending before is not looked at.
	order []string
	// modified are the options of the edit.
	modified map[string]bool
	made     []volumeKey
	freed    []volumeKey
	log      *task
}

func (w *World) newChange(v *vm, log *task) *change {
	ch := &change{
		World: w, vm: v, config: maps.Clone(v.config), pending: maps.Clone(v.pending), cloudInit: maps.Clone(v.cloudInit),
		modified: map[string]bool{}, log: log, order: bootOrder(v.config["boot"]),
	}
	if ch.pending == nil {
		ch.pending = map[string]pendingValue{}
	}
	if ch.cloudInit == nil {
		ch.cloudInit = map[string]staleValue{}
	}
	return ch
}

// apply carries the edit out, and tells the log what it makes; nil for none. What a running VM does not take now stays pending. So
// do the options that were looked at before one that is refused: qemu-server writes them one by one.
func (w *World) apply(e *edit, v *vm, log *task) reply {
	pid := uint32(workerPID)
	if log != nil {
		pid = log.pid
	}
	if msg := w.writeRefusal(v, pid); msg != "" {
		return fail("%s", msg)
	}
	ch := w.newChange(v, log)
	if r := ch.write(e); r.failed() {
		ch.commit()
		return r
	}
	ch.cleanUp()
	errors := map[string]string{}
	if v.running {
		errors = ch.hotplug()
	} else {
		ch.makeReal()
	}
	ch.commit()
	if len(errors) > 0 {
		r := invalid(errors)
		r.delay = unplugPatience
		return r
	}
	return ok(nil)
}

// commit puts the changed config in place.
func (ch *change) commit() {
	for _, key := range ch.freed {
		ch.removeVolume(key)
	}
	v := ch.vm
	v.config, v.pending, v.cloudInit = ch.config, ch.pending, ch.cloudInit
	ch.changed(v)
}

func (ch *change) logf(format string, args ...any) {
	if ch.log != nil {
		ch.log.logf(format, args...)
	}
}

// write makes the whole edit pending.
func (ch *change) write(e *edit) reply {
	set, remove := maps.Clone(e.set), slices.Clone(e.remove)
	for _, key := range e.revert {
		if value, now := ch.config[key]; now {
			set[key] = value
		} else if ch.pending[key].value != "" {
			remove = append(remove, key)
		}
	}
	for _, key := range remove {
		if r := ch.writeDelete(key, e); r.failed() {
			return r
		}
	}
	for _, key := range ch.setOrder(set) {
		ch.modified[key] = true
		if r := ch.writeValue(key, set[key]); r.failed() {
			return r
		}
	}
	if value, given := e.set["boot"]; given {
		return ch.checkBoot(value, e)
	}
	return reply{}
}

// setOrder is the order of options, the boot order last because it names the others. In qemu-server chance decides whether drives,
// which can fail, come before the rest; here the release does.
func (w *World) setOrder(set map[string]string) []string {
	rank := func(key string) int {
		switch {
		case key == "boot":
			return 2
		case isDrive(key) == (w.version == V92):
			return 0
		}
		return 1
	}
	keys := slices.Sorted(maps.Keys(set))
	slices.SortStableFunc(keys, func(a, b string) int { return rank(a) - rank(b) })
	return keys
}

// checkBoot refuses a boot order that names a device that is not there.
func (ch *change) checkBoot(value string, e *edit) reply {
	for _, name := range bootOrder(value) {
		if (ch.config[name] == "" && ch.pending[name].value == "") || slices.Contains(e.remove, name) {
			return fail("invalid bootorder: device '%s' does not exist'", name)
		}
	}
	if bootOrder(value) != nil && ch.config["bootdisk"] != "" {
		ch.modified["bootdisk"] = true
		ch.pending["bootdisk"] = pendingValue{delete: true}
	}
	return reply{}
}

// bootOrder are the devices of a boot option; nil for the legacy form.
func bootOrder(value string) []string {
	return schema.SplitList(propertyOr(value, "order", ""))
}

// writeDelete makes it pending that an option goes away. Unused volumes and tags go at once.
func (ch *change) writeDelete(key string, e *edit) reply {
	p, waiting := ch.pending[key]
	waiting = waiting && !p.delete
	value, now := ch.config[key]
	if !now && !waiting {
		ch.logf("cannot delete '%s' - not set in current configuration!", key)
		return reply{}
	}
	if waiting && isDrive(key) {
		ch.keepUnused(p.value)
	}
	delete(ch.pending, key)
	ch.modified[key] = true
	ch.unboot(key)
	switch {
	case strings.HasPrefix(key, "unused"):
		if ch.config["protection"] == "1" {
			return fail("can't remove unused disk '%s' - protection mode enabled", firstProperty(value))
		}
		id := proxmox.VolumeID(firstProperty(value))
		if ch.vm.inSnapshot(id) {
			return fail("unable to delete '%s' - volume is still in use (snapshot?)", id)
		}
		ch.free(id)
		delete(ch.config, key)
	case key == "tags":
		delete(ch.config, key)
	case isDrive(key) && ch.config["protection"] == "1":
		return fail("can't remove drive '%s' - protection mode enabled", key)
	default:
		ch.pending[key] = pendingValue{delete: true, force: e.force}
	}
	return reply{}
}

// inSnapshot tells whether a snapshot needs the volume.
func (v *vm) inSnapshot(id proxmox.VolumeID) bool {
	for _, s := range v.snapshots {
		for _, name := range drivesOf(s.config) {
			if parseDrive(s.config[name]).volume == id {
				return true
			}
		}
	}
	return false
}

// free marks a volume for removal when it belongs to the VM and no snapshot needs it.
func (ch *change) free(id proxmox.VolumeID) {
	if v := ch.volumeAt(ch.vm.node, id); v != nil && v.vmid == ch.vm.id && !ch.vm.inSnapshot(id) {
		ch.freed = append(ch.freed, v.key)
	}
}

// unboot takes a device that goes away out of the boot order.
func (ch *change) unboot(name string) {
	if slices.Contains(ch.order, name) {
		ch.reorder(slices.DeleteFunc(ch.order, func(s string) bool { return s == name }))
	}
}

// reorder makes another boot order pending.
func (ch *change) reorder(devices []string) {
	ch.order = devices
	ch.modified["boot"] = true
	ch.pending["boot"] = pendingValue{value: printBoot(devices)}
}

func printBoot(devices []string) string {
	if len(devices) == 0 {
		return " "
	}
	return "order=" + strings.Join(devices, ";")
}

// writeValue makes a new value pending.
func (ch *change) writeValue(key, value string) reply {
	if p := ch.pending[key]; p.value == value && value != "" {
		return reply{}
	}
	if isDrive(key) {
		return ch.writeDrive(key, value)
	}
	switch unnumbered(key) {
	case "net":
		value = ch.normalNet(value)
	case "tags":
		value = schema.NormalTags(value)
	case "vmgenid":
		if value == "1" {
			value = ch.newUUID()
		}
	case "machine":
		value = ch.pinned(value, ch.expected("ostype"))
	case "ostype":
		if now := ch.expected("machine"); isWindows(value) {
			ch.modified["machine"] = true
			ch.pending["machine"] = pendingValue{value: ch.pinned(now, value)}
		}
	}
	ch.pending[key] = pendingValue{value: storedValue(key, value)}
	return reply{}
}

// keepUnused keeps the volume of a drive that is no longer in the config as unusedN. A cloud-init drive is freed.
func (ch *change) keepUnused(value string) {
	d := parseDrive(value)
	v := ch.volumeAt(ch.vm.node, d.volume)
	switch {
	case v == nil || v.vmid != ch.vm.id:
		return
	case d.cloudInit():
		ch.freed = append(ch.freed, v.key)
		ch.cloudInit = map[string]staleValue{}
		return
	case d.cdrom():
		return
	}
	addUnused(ch.config, d.volume)
}

// cleanUp drops pending changes that change nothing (PVE::AbstractConfig::cleanup_pending).
func (ch *change) cleanUp() {
	for key, p := range ch.pending {
		value, now := ch.config[key]
		if (p.delete && !now) || (!p.delete && now && p.value == value) {
			delete(ch.pending, key)
		}
	}
}

// makeReal turns all pending changes into the config of a stopped VM (vmconfig_apply_pending).
func (ch *change) makeReal() {
	for _, key := range slices.Sorted(maps.Keys(ch.pending)) {
		if ch.pending[key].delete {
			ch.drop(key)
		}
	}
	regenerate := false
	for _, key := range slices.Sorted(maps.Keys(ch.pending)) {
		regenerate = regenerate || (isDrive(key) && parseDrive(ch.pending[key].value).cloudInit())
		ch.put(key)
	}
	if regenerate {
		ch.cloudInit = map[string]staleValue{}
	}
}

// drop deletes an option for which that is pending.
func (ch *change) drop(key string) {
	value, force := ch.config[key], ch.pending[key].force
	delete(ch.pending, key)
	delete(ch.config, key)
	if !isDrive(key) {
		return
	}
	if force {
		ch.free(parseDrive(value).volume)
		return
	}
	ch.keepUnused(value)
}

// put gives an option its pending value.
func (ch *change) put(key string) {
	value := ch.pending[key].value
	delete(ch.pending, key)
	if isDrive(key) {
		if previous := ch.config[key]; previous != "" && parseDrive(previous).volume != parseDrive(value).volume {
			ch.keepUnused(previous)
		}
		ch.forgetUnused(value)
	}
	if key == "description" && value == "" {
		delete(ch.config, key)
		return
	}
	ch.config[key] = value
}

// forgetUnused removes the unusedN of a volume that is in use again.
func (ch *change) forgetUnused(value string) {
	volume := firstProperty(value)
	maps.DeleteFunc(ch.config, func(key, other string) bool {
		return strings.HasPrefix(key, "unused") && firstProperty(other) == volume
	})
}

// applyPending makes waiting changes real; it is called when a VM is stopped or started.
func (w *World) applyPending(v *vm) {
	if len(v.pending) == 0 {
		return
	}
	ch := w.newChange(v, nil)
	ch.makeReal()
	ch.commit()
}
