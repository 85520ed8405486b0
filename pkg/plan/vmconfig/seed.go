package vmconfig

import (
	"slices"
	"strconv"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// SeedFileName returns the file name of a VM's seed ISO. It carries the identity, so that nobody else's is overwritten.
func SeedFileName(uuid proxmox.SMBIOSUUID) string { return TagPrefix + string(uuid) + ".iso" }

// SeedVolume returns the volume of a VM's seed ISO on a storage.
func SeedVolume(storage proxmox.StorageID, uuid proxmox.SMBIOSUUID) proxmox.VolumeID {
	return proxmox.VolumeID(string(storage) + ":iso/" + SeedFileName(uuid))
}

// SeedDrive returns the key of the drive that the seed goes into: the one that has a seed of ours or PVE's cloud-init
// drive, which it replaces, since a guest would find two seeds; else a free one. IDE first, as every guest reads it; but
// aarch64 has no IDE, and q35 only ide0 and ide2 (PVE::QemuServer::PCI, the machine's controllers).
func SeedDrive(config Config) string {
	if drive, found := drive(config, isSeed); found {
		return drive
	}
	if drive, found := drive(config, isCloudInit); found {
		return drive
	}
	drives := seedDrives(config)
	for _, key := range drives {
		if value, taken := config[key]; !taken || volumeOf(value) == "none" {
			return key
		}
	}
	return drives[len(drives)-1] // a VM with 31 SCSI disks; Proxmox VE will say what it makes of it
}

func seedDrives(config Config) []string {
	var drives []string
	if config["arch"] != "aarch64" {
		drives = []string{"ide2", "ide0", "sata5"}
	}
	for number := 30; number >= 0; number-- {
		drives = append(drives, "scsi"+strconv.Itoa(number))
	}
	return drives
}

// Eject returns the change that takes the seed out of its drive and leaves the drive empty: a CD-ROM drive cannot be
// unplugged from a running guest. It is empty when no seed is in a drive.
func Eject(config Config) Change {
	key, found := drive(config, isSeed)
	if !found {
		return Change{}
	}
	return Change{Set: map[string]string{key: "none,media=cdrom"}}
}

// HasSeed reports whether a drive of the VM has a seed of ours.
func HasSeed(config Config) bool {
	_, found := drive(config, isSeed)
	return found
}

func isSeed(drive string) bool {
	_, path, _ := strings.Cut(volumeOf(drive), ":")
	name, iso := strings.CutPrefix(path, "iso/"+TagPrefix)
	return iso && strings.HasSuffix(name, ".iso")
}

// drive returns the first drive, in the order of the keys, whose value is of the kind.
func drive(config Config, is func(string) bool) (string, bool) {
	var keys []string
	for key, value := range config {
		if isDriveKey(key) && is(value) {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return "", false
	}
	slices.Sort(keys)
	return keys[0], true
}
