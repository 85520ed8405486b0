package vmconfig

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// Config is a VM's config as PVE's API gives it: every value as text.
type Config map[string]string

// The tags and the description that mark a VM as ours.
const (
	// TagPrefix starts the tag that carries the identity of a VM: `capve-<SMBIOS UUID>`.
	TagPrefix = "capve-"
	// markerPrefix starts the line of the description that carries it.
	markerPrefix = "CAPVE-UUID: "
)

// IdentityTag returns the tag that marks the VM with the identity.
func IdentityTag(uuid proxmox.SMBIOSUUID) string { return TagPrefix + string(uuid) }

// IsMarked reports whether a config carries the marker of any machine, in its description or tags.
func IsMarked(config Config) bool {
	isOurs := func(tag string) bool { return strings.HasPrefix(tag, TagPrefix) }
	return strings.Contains(config["description"], markerPrefix) || slices.ContainsFunc(Tags(config["tags"]), isOurs)
}

// BelongsTo reports whether the config carries the marker of the identity, in its description, SMBIOS or tags. One is
// enough: the description comes first, and people edit descriptions.
func (c Config) BelongsTo(uuid proxmox.SMBIOSUUID) bool {
	if uuid == "" {
		return false
	}
	return c.describes(uuid) || c.SMBIOSUUID() == uuid || HasTag(c["tags"], IdentityTag(uuid))
}

func (c Config) describes(uuid proxmox.SMBIOSUUID) bool {
	for line := range strings.Lines(c["description"]) {
		if strings.TrimSpace(line) == Marker(uuid) {
			return true
		}
	}
	return false
}

// SMBIOSUUID returns the UUID that the guest's firmware shows.
func (c Config) SMBIOSUUID() proxmox.SMBIOSUUID {
	return proxmox.SMBIOSUUID(strings.ToLower(ParseProperties(c["smbios1"]).Get("uuid")))
}

// Lock returns the config's lock: clone, create, migrate, backup, …; empty when there is none.
func (c Config) Lock() string { return c["lock"] }

// HasTag reports whether a list of tags, in the form PVE keeps it, holds the tag.
func HasTag(tags, tag string) bool { return slices.Contains(Tags(tags), tag) }

// Tags takes a list of tags apart. PVE accepts `;`, `,` and spaces between them and keeps `;`.
func Tags(tags string) []string {
	return strings.FieldsFunc(tags, func(r rune) bool { return strings.ContainsRune(";, ", r) })
}

// Disk is a disk of a VM.
type Disk struct {
	// Key is the config key, such as scsi0.
	Key string
	// Size is the size that the config gives; 0 when it gives none.
	Size proxmox.Bytes
}

// BootDisk returns the disk that the VM boots from: the first disk in the boot order, else the one that `bootdisk` names,
// else the first one on the first bus.
func (c Config) BootDisk() (Disk, bool) { return c.bootDisk(nil) }

// bootDisk returns the disk that the VM boots from. Where nothing names it, it is none of the others.
func (c Config) bootDisk(others []string) (Disk, bool) {
	order := ParseProperties(c["boot"]).Get("order")
	named := strings.FieldsFunc(order, func(r rune) bool { return r == ';' || r == ' ' })
	for _, key := range append(named, c["bootdisk"]) {
		if isDriveKey(key) && c.hasDisk(key) {
			return c.disk(key), true
		}
	}
	for number := range 31 {
		for _, bus := range []string{"scsi", "virtio", "sata", "ide"} {
			if key := bus + strconv.Itoa(number); c.hasDisk(key) && !slices.Contains(others, key) {
				return c.disk(key), true
			}
		}
	}
	return Disk{}, false
}

func (c Config) hasDisk(key string) bool {
	value, present := c[key]
	return present && isDisk(value)
}

func (c Config) disk(key string) Disk { return Disk{Key: key, Size: diskSize(c[key])} }

// DiskVolumes returns the volumes of the disks, cloud-init drives and EFI and TPM state, by key: what a clone copies.
func (c Config) DiskVolumes() map[string]proxmox.VolumeID {
	volumes := map[string]proxmox.VolumeID{}
	for key, value := range c {
		own := isDriveKey(key) && (isDisk(value) || isCloudInit(value)) || key == "efidisk0" || key == "tpmstate0"
		if volume := volumeOf(value); own && strings.Contains(volume, ":") {
			volumes[key] = proxmox.VolumeID(volume)
		}
	}
	return volumes
}

// Storage returns the storage that a volume is on.
func Storage(volume proxmox.VolumeID) proxmox.StorageID {
	storage, _, _ := strings.Cut(string(volume), ":")
	return proxmox.StorageID(storage)
}

// Owner returns the VM that a disk image is named after; 0 for other volumes.
func Owner(volume proxmox.VolumeID) proxmox.VMID {
	parts := strings.SplitN(path.Base(strings.ReplaceAll(string(volume), ":", "/")), "-", 3) //nolint:mnd // vm-101-disk-0
	if len(parts) < 3 || parts[0] != "vm" && parts[0] != "base" {
		return 0
	}
	number, err := strconv.ParseInt(parts[1], 10, 32)
	if err != nil {
		return 0
	}
	return proxmox.VMID(number)
}

// Names reports whether a drive of the VM has the volume, or had it: a disk that is not used any more.
func (c Config) Names(volume proxmox.VolumeID) bool {
	for key, value := range c {
		isDrive := isDriveKey(key) || isIndexed(key, "unused", "efidisk", "tpmstate")
		if isDrive && volumeOf(value) == string(volume) {
			return true
		}
	}
	return false
}

func volumeOf(drive string) string {
	properties := ParseProperties(drive)
	if volume := properties.Get(""); volume != "" {
		return volume
	}
	return properties.Get("file")
}

func isDisk(drive string) bool {
	return ParseProperties(drive).Get("media") != "cdrom" && volumeOf(drive) != "none" && drive != ""
}

// isCloudInit reports whether a drive is PVE's own cloud-init drive: a volume named `…cloudinit` or `…cloudinit.qcow2`
// (PVE::QemuServer::Drive::drive_is_cloudinit).
func isCloudInit(drive string) bool {
	_, name, _ := strings.Cut(volumeOf(drive), ":")
	name = strings.TrimSuffix(strings.TrimSuffix(name, ".qcow2"), ".raw")
	return name == "cloudinit" || strings.HasSuffix(name, "-cloudinit")
}

// isDriveKey reports whether a key names a drive.
func isDriveKey(key string) bool { return isIndexed(key, "scsi", "virtio", "sata", "ide") }

func isIndexed(key string, families ...string) bool {
	for _, family := range families {
		number, found := strings.CutPrefix(key, family)
		if found && number != "" && strings.Trim(number, "0123456789") == "" {
			return true
		}
	}
	return false
}

// ParseSize reads a size as PVE writes it in a config: a number with K, M, G or T, or without (bytes). What is not a size
// is 0.
func ParseSize(text string) proxmox.Bytes {
	shift := map[string]uint{"": 0, "K": 10, "M": 20, "G": 30, "T": 40}
	digits := strings.TrimRight(text, "KMGT")
	number, err := strconv.ParseFloat(digits, 64)
	bits, known := shift[strings.TrimPrefix(text, digits)]
	const most = 1 << 62
	size := number * float64(int64(1)<<bits)
	if isSize := err == nil && known && size >= 0 && size < most; !isSize { // false for NaN, too
		return 0
	}
	return proxmox.Bytes(size)
}
