package pvesim

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

// change is one edit at work on a copy of a VM's config. Volumes are made at once and taken back when it fails; they are
// freed only when it succeeds.
type change struct {
	*World
	vm      *vm
	config  map[string]string
	pending map[string]pendingValue
	made    []volumeKey
	freed   []volumeKey
}

// apply carries the edit out, completely or not at all.
func (w *World) apply(e *edit, v *vm) reply {
	ch := &change{World: w, vm: v, config: maps.Clone(v.config), pending: maps.Clone(v.pending)}
	if ch.pending == nil {
		ch.pending = map[string]pendingValue{}
	}
	r := ch.run(e)
	if msg := w.writeRefusal(v, workerPID); msg != "" && !r.failed() {
		r = fail("%s", msg)
	}
	if r.failed() {
		for _, key := range ch.made {
			w.removeVolume(key)
		}
		return r
	}
	for _, key := range ch.freed {
		w.removeVolume(key)
	}
	v.config, v.pending = ch.config, ch.pending
	w.changed(v)
	return ok(nil)
}

func (ch *change) run(e *edit) reply {
	for _, key := range e.revert {
		delete(ch.pending, key)
	}
	for _, key := range e.remove {
		ch.remove(key, e.force)
	}
	for _, key := range setOrder(e.set) {
		if r := ch.set(key, e.set[key]); r.failed() {
			return r
		}
	}
	return ch.checkWhole(e)
}

// setOrder puts drives before the boot order that names them.
func setOrder(set map[string]string) []string {
	keys := slices.Sorted(maps.Keys(set))
	slices.SortStableFunc(keys, func(a, b string) int { return pveBool(a == "boot") - pveBool(b == "boot") })
	return keys
}

// checkWhole refuses values that do not fit together.
func (ch *change) checkWhole(e *edit) reply {
	if order, ok := strings.CutPrefix(e.set["boot"], "order="); ok {
		for _, name := range strings.Split(order, ";") {
			if ch.config[name] == "" && ch.pending[name].value == "" && name != "" {
				return fail("invalid bootorder: device '%s' does not exist'", name)
			}
		}
	}
	memory := ch.config["memory"]
	if p, ok := ch.pending["memory"]; ok {
		memory = p.value
	}
	if atoi(e.set["balloon"], 0) > atoi(firstProperty(memory), 512) {
		return fail("balloon value too large (must be smaller than assigned memory)")
	}
	return reply{}
}

// remove takes an option away. A disk is only detached, unless it is unused already or force is given.
func (ch *change) remove(key string, force bool) {
	value, ok := ch.config[key]
	if !ok {
		delete(ch.pending, key)
		return
	}
	if ch.vm.running && !hotpluggable(key) {
		ch.pending[key] = pendingValue{delete: true}
		return
	}
	delete(ch.config, key)
	delete(ch.pending, key)
	if isDrive(key) {
		ch.dropDrive(value, force || strings.HasPrefix(key, "unused"))
		ch.unboot(key)
	}
}

// dropDrive frees the volume of a drive that is no longer in the config, or keeps it as unusedN.
func (ch *change) dropDrive(value string, free bool) {
	d := parseDrive(value)
	v := ch.volumeAt(ch.vm.node, d.volume)
	if v == nil || v.vmid != ch.vm.id {
		return
	}
	if free || d.cloudInit() {
		ch.freed = append(ch.freed, v.key)
		return
	}
	for i := 0; ; i++ {
		if key := "unused" + strconv.Itoa(i); ch.config[key] == "" {
			ch.config[key] = string(d.volume)
			return
		}
	}
}

// unboot takes a removed device out of the boot order.
func (ch *change) unboot(name string) {
	order, ok := strings.CutPrefix(ch.config["boot"], "order=")
	if !ok {
		return
	}
	devices := slices.DeleteFunc(strings.Split(order, ";"), func(s string) bool { return s == name })
	ch.config["boot"] = "order=" + strings.Join(devices, ";")
	if len(devices) == 0 {
		ch.config["boot"] = " "
	}
}

func (ch *change) set(key, value string) reply {
	switch base := strings.TrimRight(key, "0123456789"); {
	case key == "cdrom":
		return ch.setDrive("ide2", value)
	case isDrive(key):
		return ch.setDrive(key, value)
	case base == "net":
		value = ch.normalNet(value)
	case key == "tags":
		value = schema.NormalTags(value)
	case key == "description":
		if value = strings.TrimSuffix(value, "\n"); value == "" {
			ch.remove(key, false)
			return reply{}
		}
	}
	ch.put(key, value)
	return reply{}
}

// put stores a value now, or for the next start when the VM runs and the option cannot change under it.
func (ch *change) put(key, value string) {
	delete(ch.pending, key)
	if !ch.vm.running || hotpluggable(key) {
		ch.config[key] = value
		return
	}
	if current, ok := ch.config[key]; !ok || current != value {
		ch.pending[key] = pendingValue{value: value}
	}
}

// hotpluggable tells whether an option changes at once on a running VM, with PVE's default hotplug=network,disk,usb.
func hotpluggable(key string) bool {
	switch strings.TrimRight(key, "0123456789") {
	case "name", "onboot", "shares", "startup", "description", "protection", "vmstatestorage", "hookscript", "tags", "template", "lock",
		"migrate_downtime", "migrate_speed", "autostart", "freeze", "balloon", "cpuunits", "cpulimit", "net", "scsi", "virtio", "usb", "unused":
		return true
	}
	return false
}

// normalNet writes a network device as PVE does, and draws a MAC address if none is given: also when one was there before.
func (ch *change) normalNet(value string) string {
	format := netFormat()
	p, _ := format.Parse(value)
	model, mac := p["model"], strings.ToUpper(p["macaddr"])
	if mac == "" {
		mac = ch.newMAC()
	}
	delete(p, "macaddr")
	p["model"] = model + "=" + mac
	return p.Print("model")
}

// setDrive attaches, replaces or makes a drive.
func (ch *change) setDrive(key, value string) reply {
	d := parseDrive(value)
	old := parseDrive(ch.config[key])
	if r := ch.prepare(key, &d); r.failed() {
		return r
	}
	media := d.cdrom() && old.cdrom() && !d.cloudInit() && !old.cloudInit()
	if ch.vm.running && !hotpluggable(key) && !media {
		ch.pending[key] = pendingValue{value: d.String()}
		ch.bootCDROM(key, d)
		return reply{}
	}
	if previous := ch.config[key]; previous != "" && old.volume != d.volume {
		ch.dropDrive(previous, false)
	}
	ch.config[key] = d.String()
	for name, other := range ch.config {
		if strings.HasPrefix(name, "unused") && firstProperty(other) == string(d.volume) {
			delete(ch.config, name)
		}
	}
	ch.bootCDROM(key, d)
	return reply{}
}

// bootCDROM appends a CD-ROM drive to the boot order, as qemu-server does for every one but cloud-init's.
func (ch *change) bootCDROM(key string, d drive) {
	order, ok := strings.CutPrefix(ch.config["boot"], "order=")
	if !ok || !d.cdrom() || d.cloudInit() || slices.Contains(strings.Split(order, ";"), key) {
		return
	}
	ch.put("boot", strings.TrimSuffix("order="+order, ";")+";"+key)
}

// prepare turns the wanted value into one that names an existing volume, making it if need be.
func (ch *change) prepare(key string, d *drive) reply {
	if d.volume == "none" || d.volume == "cdrom" {
		d.props["media"] = "cdrom"
		return reply{}
	}
	if strings.HasPrefix(string(d.volume), "/") {
		return fail("Only root can pass arbitrary filesystem paths. at /usr/share/perl5/PVE/Storage.pm line 651.")
	}
	s, msg := ch.storageFor(d.storageID(), ch.vm.node)
	if s == nil {
		return fail("%s", msg)
	}
	_, rest, _ := strings.Cut(string(d.volume), ":")
	if rest == "cloudinit" {
		return ch.makeCloudInit(key, d, s)
	}
	if gib, err := strconv.ParseFloat(rest, 64); err == nil {
		return ch.makeDisk(d, s, diskBytes(key, gib))
	}
	v := ch.volumes[volumeKey{s.scope(ch.vm.node), d.volume}]
	switch {
	case v == nil:
		return fail("volume '%s' does not exist", d.volume)
	case v.content == "iso" && !d.cdrom():
		return invalidParam(key, "explicit 'media=cdrom' is required for iso images")
	}
	// QEMU counts whole sectors of 512 bytes.
	d.props["size"] = schema.FormatSize((v.size + 511) / 512 * 512)
	return reply{}
}

func (ch *change) makeCloudInit(key string, d *drive, s *storage) reply {
	for name, value := range ch.config {
		if name != key && isDrive(name) && parseDrive(value).cloudInit() {
			return fail("%s - cloud-init drive is already attached at '%s'", key, name)
		}
	}
	id := ch.makeVolume(s, fmt.Sprintf("vm-%d-cloudinit", ch.vm.id), cloudInitFormat(s), cloudInitSize)
	d.volume, d.props["media"] = id, "cdrom"
	delete(d.props, "format")
	return reply{}
}

// diskBytes is the size of a new disk: EFI variables and TPM state have a fixed one.
func diskBytes(key string, gib float64) proxmox.Bytes {
	switch key {
	case "efidisk0":
		return 528 << 10
	case "tpmstate0":
		return 4 << 20
	}
	return proxmox.Bytes(gib * float64(1<<30))
}

func (ch *change) makeDisk(d *drive, s *storage, size proxmox.Bytes) reply {
	if source := proxmox.VolumeID(d.props["import-from"]); source != "" {
		v := ch.volumeAt(ch.vm.node, source)
		if v == nil {
			return fail("failed to stat '%s'", source)
		}
		size = v.size
	}
	if !s.holds("images") {
		return fail("storage '%s' does not support content-type 'images'", s.id)
	}
	if size > s.free(ch.vm.node) {
		return fail("unable to create image: not enough free space on storage '%s'", s.id)
	}
	format := d.props["format"]
	if format == "" || !s.fileBased() {
		format = "raw"
	}
	name := s.freeName(ch.World, ch.vm.node, ch.vm.id, format)
	_, file, _ := strings.Cut(string(name), ":")
	ch.made = append(ch.made, volumeKey{s.scope(ch.vm.node), name})
	ch.addVolume(&volume{key: volumeKey{s.scope(ch.vm.node), name}, storage: s, content: "images", format: format, vmid: ch.vm.id, size: size})
	d.volume, d.props["size"] = proxmox.VolumeID(string(s.id)+":"+file), schema.FormatSize(size)
	delete(d.props, "format")
	delete(d.props, "import-from")
	return reply{}
}

const cloudInitSize = proxmox.Bytes(4 << 20)

func cloudInitFormat(s *storage) string {
	if s.fileBased() {
		return "qcow2"
	}
	return "raw"
}

func (ch *change) makeVolume(s *storage, name, format string, size proxmox.Bytes) proxmox.VolumeID {
	key := volumeKey{s.scope(ch.vm.node), s.volumeName(ch.vm.id, name, format)}
	if ch.volumes[key] == nil {
		ch.made = append(ch.made, key)
		ch.addVolume(&volume{key: key, storage: s, content: "images", format: format, vmid: ch.vm.id, size: size, used: size / 16})
	}
	ch.freed = slices.DeleteFunc(ch.freed, func(k volumeKey) bool { return k == key })
	return key.id
}

// applyPending makes waiting changes real; it is called when a stopped VM is started.
func (w *World) applyPending(v *vm) {
	ch := &change{World: w, vm: v, config: v.config, pending: map[string]pendingValue{}}
	for key, p := range v.pending {
		if isDrive(key) && v.config[key] != "" {
			ch.dropDrive(v.config[key], false)
		}
		delete(v.config, key)
		if !p.delete {
			v.config[key] = p.value
		}
	}
	v.pending = nil
	for _, key := range ch.freed {
		w.removeVolume(key)
	}
}
