package pvesim

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

// This file is vmconfig_hotplug_pending of qemu-server: what changes at once on a running VM.

// hotplugResult is what came of one option.
type hotplugResult string

const (
	// plugged options are in force.
	plugged hotplugResult = ""
	// waits means that the option stays pending.
	waits hotplugResult = "skip"
)

// unplugPatience is how long the guest has to let go of a device.
const unplugPatience = 5 * time.Second

// hotplug makes the changes of the edit real as far as the running VM takes them. It returns the problems, by option.
func (ch *change) hotplug() map[string]string {
	errors := map[string]string{}
	note := func(key string, result hotplugResult) bool {
		if result != plugged && result != waits {
			errors[key] = "hotplug problem - " + string(result) + "\n"
		}
		return result == plugged
	}
	for _, key := range slices.Sorted(maps.Keys(ch.pending)) {
		if !ch.modified[key] {
			continue
		}
		p := ch.pending[key]
		previous, was := ch.config[key]
		switch {
		case p.delete && note(key, ch.unplug(key)):
			ch.drop(key)
			ch.noteCloudInit(key, staleValue{value: previous, added: !was}, "")
		case !p.delete && note(key, ch.plug(key, p.value)):
			ch.put(key)
			ch.noteCloudInit(key, staleValue{value: previous, added: !was}, p.value)
		}
	}
	return errors
}

// features are what may be plugged into the running VM, by its hotplug option.
func (ch *change) features() []string {
	value, given := ch.config["hotplug"]
	if !given || value == "1" {
		return []string{"network", "disk", "usb"}
	}
	return schema.SplitList(value)
}

func (ch *change) can(feature string) hotplugResult {
	if slices.Contains(ch.features(), feature) {
		return plugged
	}
	return waits
}

// isFastPlug tells whether an option means nothing to the running process, or can be told to it at any time.
func isFastPlug(key string) bool {
	switch unnumbered(key) {
	case "lock", "name", "onboot", "shares", "startup", "description", "protection", "vmstatestorage", "hookscript", "tags", "template", "migrate_downtime",
		"migrate_speed", "autostart", "freeze", "cpuunits", "cpulimit":
		return true
	}
	return isCloudInitOption(key)
}

// plug tells what becomes of a new value.
func (ch *change) plug(key, value string) hotplugResult {
	switch base := unnumbered(key); {
	case isFastPlug(key):
		return plugged
	case key == "hotplug":
		return ch.plugFeatures(value)
	case key == "tablet" || base == "usb":
		return ch.can("usb")
	case key == "vcpus":
		return ch.can("cpu")
	case key == "memory":
		return ch.can("memory")
	case key == "balloon":
		if (ch.config["balloon"] == "0") != (value == "0") {
			return waits
		}
		return plugged
	case key == "agent":
		return ch.plugAgent(value)
	case base == "net":
		return ch.plugNet(key, value)
	case isDrive(key):
		return ch.plugDrive(key, value)
	}
	return waits
}

// plugFeatures refuses to switch hotplug of memory or CPUs while the VM runs.
func (ch *change) plugFeatures(value string) hotplugResult {
	for _, feature := range []string{"memory", "cpu"} {
		if strings.Contains(value, feature) != strings.Contains(ch.config["hotplug"], feature) {
			return waits
		}
	}
	return plugged
}

// plugAgent takes only an option that means nothing to the device.
func (ch *change) plugAgent(value string) hotplugResult {
	format := agentFormat(V92)
	before, _ := format.Parse(ch.config["agent"])
	after, _ := format.Parse(value)
	if len(before) == 0 || len(after) == 0 {
		return waits
	}
	delete(before, "fstrim_cloned_disks")
	delete(after, "fstrim_cloned_disks")
	if maps.Equal(before, after) {
		return plugged
	}
	return waits
}

// plugNet changes a link, a bridge or a VLAN in place; another device must be plugged in instead.
func (ch *change) plugNet(key, value string) hotplugResult {
	format := netFormat()
	before, _ := format.Parse(ch.config[key])
	after, _ := format.Parse(value)
	for _, name := range []string{"model", "macaddr", "queues", "mtu"} {
		if len(before) > 0 && before[name] != after[name] {
			return ch.unplugDevice(key, "network")
		}
	}
	if len(before) > 0 && before["bridge"] != "" && after["bridge"] != "" {
		return plugged
	}
	return ch.can("network")
}

// plugDrive changes the medium of a CD-ROM drive, or a disk whose process need not know of the change.
func (ch *change) plugDrive(key, value string) hotplugResult {
	bus := unnumbered(key)
	after := parseDrive(value)
	if bus == "efidisk" || bus == "tpmstate" {
		return waits
	}
	if ch.config[key] == "" {
		if bus == "ide" || bus == "sata" {
			return waits
		}
		return ch.can("disk")
	}
	before := parseDrive(ch.config[key])
	switch {
	case before.cdrom() != after.cdrom():
		return "unable to change media type"
	case before.cdrom():
		return plugged
	case before.volume != after.volume:
		return ch.unplugDevice(key, "disk")
	}
	for _, name := range strings.Fields("aio cache detect_zeroes discard iothread product queues ro scsiblock ssd vendor") {
		if before.props[name] != after.props[name] {
			return waits
		}
	}
	return plugged
}

// unplug tells what becomes of an option that is deleted.
func (ch *change) unplug(key string) hotplugResult {
	switch base := unnumbered(key); {
	case isFastPlug(key):
		return plugged
	case key == "hotplug":
		return ch.plugFeatures("")
	case key == "tablet" || base == "usb":
		return ch.can("usb")
	case key == "vcpus":
		return ch.can("cpu")
	case key == "memory":
		return ch.can("memory")
	case key == "balloon" && ch.config["balloon"] != "0":
		return plugged
	case base == "net":
		return ch.unplugDevice(key, "network")
	case base == "scsi" || base == "virtio":
		return ch.unplugDevice(key, "disk")
	}
	return waits
}

// unplugDevice takes a device from the running VM. One on the PCI bus goes only when the guest lets go of it.
func (ch *change) unplugDevice(key, feature string) hotplugResult {
	if ch.can(feature) == waits {
		return waits
	}
	if !strings.HasPrefix(key, "scsi") && ch.ignoresACPI() {
		text := "error on hot-unplugging device '" + key + "'"
		if ch.version == V92 {
			text += " - still busy in guest?"
		}
		return hotplugResult(text)
	}
	return plugged
}

// ignoresACPI tells whether nothing in the guest answers the signals of the hardware.
func (ch *change) ignoresACPI() bool {
	if ch.vm.guest == nil {
		return true
	}
	_, obeys := ch.vm.guest.Shutdown()
	return !obeys
}
