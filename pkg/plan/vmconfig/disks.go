package vmconfig

import (
	"slices"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// disks are the wants of the boot disk and of the additional ones.
func (d Desired) disks(observed Config) []want {
	boot := d.Spec.Disks.Boot
	var all []want
	if key, found := d.bootKey(observed); found {
		all = append(all, d.newOrOptions(disk{
			path: "disks.boot", key: key, source: d.bootSource(), storage: boot.Storage, format: boot.Format, sizeGiB: boot.SizeGiB, options: boot.DiskOptions,
		}, observed)...)
	}
	for _, extra := range d.Spec.Disks.Additional {
		all = append(all, d.newOrOptions(disk{
			path: "disks.additional[" + extra.Name + "]", key: extra.Name, storage: extra.Storage, format: extra.Format, sizeGiB: extra.SizeGiB, options: extra.DiskOptions,
		}, observed)...)
	}
	return append(all, d.bootOrder(observed)...)
}

// disk is one that is asked for.
type disk struct {
	path, key string
	// source is the image that it is made from; empty for none.
	source  string
	storage string
	format  v1beta1.DiskFormat
	sizeGiB int32
	options v1beta1.DiskOptions
}

// newOrOptions wants a disk to be made where there is none. Of one that is there it wants the options: its storage and format
// are told to differ, and stay.
func (d Desired) newOrOptions(disk disk, observed Config) []want {
	options := wants(&disk.options, disk.path+".", disk.key, diskTable)
	file := want{Field: at(disk.path+".storage", disk.key, "file", Replace), value: disk.volume(), same: sameStorage, kept: true}
	format := want{Field: at(disk.path+".format", disk.key, "format", Replace), value: string(disk.format), kept: true}
	source := want{Field: at(disk.path, disk.key, "import-from", Replace), value: disk.source}
	if !isThere(observed[disk.key]) {
		if disk.storage == "" {
			return nil
		}
		return []want{whole(at(disk.path, disk.key, "", plugEffect(disk.key)), append([]want{file, source, format}, options...))}
	}
	if disk.storage != "" {
		options = append(options, file)
	}
	if disk.format != "" {
		options = append(options, format)
	}
	return options
}

// volume is what has Proxmox VE make the disk: an imported one has the image's size at first.
func (d disk) volume() string {
	if d.source != "" {
		return newDisk(d.storage, 0)
	}
	return newDisk(d.storage, d.sizeGiB)
}

func isThere(drive string) bool { return isDisk(drive) && volumeOf(drive) != "" }

// plugEffect is how a new disk reaches a running VM: ide and sata cannot be plugged in.
func plugEffect(key string) Effect {
	if isIndexed(key, "scsi", "virtio") {
		return HotplugDisk
	}
	return Reboot
}

// bootSource is the image that the boot disk is imported from; empty for none.
func (d Desired) bootSource() string { return d.Spec.Source.Image.Volume }

// makesBootDisk reports whether the VM has no template, from which it would have its boot disk.
func (d Desired) makesBootDisk() bool { return !d.Spec.Source.UsesTemplate() }

// bootKey is the key of the boot disk: of a VM without a template as the spec says, else where the template has it.
func (d Desired) bootKey(observed Config) (string, bool) {
	if !d.makesBootDisk() {
		disk, found := observed.bootDisk(d.additional())
		return disk.Key, found
	}
	if d.Spec.Disks.Boot.Storage == "" {
		return "", false
	}
	if name := d.Spec.Disks.Boot.Name; name != "" {
		return name, true
	}
	return "scsi0", true
}

// additional are the keys of the additional disks.
func (d Desired) additional() []string {
	keys := make([]string, len(d.Spec.Disks.Additional))
	for i, disk := range d.Spec.Disks.Additional {
		keys[i] = disk.Name
	}
	return keys
}

// bootOrder has a VM without a template boot from its disk, and from the network while nothing is on it. A template's order
// stays; one that has none gets it when disks are added, which might come before the one it boots from.
func (d Desired) bootOrder(observed Config) []want {
	var order []string
	key, found := d.bootKey(observed)
	if found {
		order = append(order, key)
	}
	if device := d.Spec.Source.Netboot.Device; device != "" {
		order = append(order, device)
	}
	hasOrder := ParseProperties(observed["boot"]).Get("order") != ""
	if !d.makesBootDisk() && (hasOrder || len(d.Spec.Disks.Additional) == 0) || len(order) == 0 {
		return nil
	}
	return []want{{Field: at("source", "boot", "order", Reboot), value: strings.Join(order, ";"), same: startsWith}}
}

// startsWith compares boot orders: Proxmox VE appends each CD-ROM drive that is attached.
func startsWith(observed, wanted string) bool {
	return observed == wanted || strings.HasPrefix(observed, wanted+";")
}

// Growths are the disks that are smaller than asked for.
func (d Desired) Growths(observed Config) []Growth {
	return slices.DeleteFunc(d.sizes(observed), func(size Growth) bool { return diskSize(observed[size.Key]) >= size.Size })
}

// sizes are the sizes that are asked for of disks that are there.
func (d Desired) sizes(observed Config) []Growth {
	var all []Growth
	note := func(path, key string, gib int32) {
		if gib > 0 && isThere(observed[key]) {
			all = append(all, Growth{Key: key, Field: path + ".sizeGiB", Size: proxmox.GiB(gib).Bytes()})
		}
	}
	if key, found := d.bootKey(observed); found {
		note("disks.boot", key, d.Spec.Disks.Boot.SizeGiB)
	}
	for _, extra := range d.Spec.Disks.Additional {
		note("disks.additional["+extra.Name+"]", extra.Name, extra.SizeGiB)
	}
	return all
}

// Storages are those that the disks of a new VM are made on, each once.
func (d Desired) Storages() []proxmox.StorageID {
	names := []string{d.Spec.Source.Template.Storage, d.Spec.Disks.Boot.Storage, d.Spec.Hardware.EFIDisk.Storage, d.Spec.Hardware.TPM.Storage}
	for _, disk := range d.Spec.Disks.Additional {
		names = append(names, disk.Storage)
	}
	var storages []proxmox.StorageID
	for _, name := range names {
		if storage := proxmox.StorageID(name); name != "" && !slices.Contains(storages, storage) {
			storages = append(storages, storage)
		}
	}
	return storages
}
