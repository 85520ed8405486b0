package vmconfig

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// SeedFileName returns the file name of a VM's seed ISO. It carries the identity, so that nobody else's is overwritten.
func SeedFileName(uuid proxmox.SMBIOSUUID) string { return TagPrefix + string(uuid) + ".iso" }

// SeedVolume returns the volume of a VM's seed ISO on a storage.
func SeedVolume(storage proxmox.StorageID, uuid proxmox.SMBIOSUUID) proxmox.VolumeID {
	return proxmox.VolumeID(string(storage) + ":iso/" + SeedFileName(uuid))
}

// SeedDrive returns the key of the drive that the seed goes into, and whether there is one: the one that has a seed of ours or
// PVE's cloud-init drive, which it replaces, since a guest would find two seeds; else a free one on the bus that is asked for.
// Where none is, IDE comes first, as every guest reads it.
func (d Desired) SeedDrive(observed Config) (string, bool) {
	bus := d.Spec.Bootstrap.Bus
	config := d.withDisks(observed)
	if key, found := drive(config, isSeed); found {
		return key, true
	}
	if key, found := drive(config, isCloudInit); found && (bus == "" || isIndexed(key, string(bus))) {
		return key, true
	}
	for _, key := range seedDrives(bus, d.machine(config)) {
		if value, taken := config[key]; !taken || volumeOf(value) == "none" {
			return key, true
		}
	}
	return "", false
}

// withDisks is the config with the disks that are to be made.
func (d Desired) withDisks(observed Config) Config {
	config := maps.Clone(observed)
	if config == nil {
		config = Config{}
	}
	names := d.additional()
	if key, found := d.bootKey(observed); found {
		names = append(names, key)
	}
	for _, name := range names {
		if !isThere(config[name]) {
			config[name] = newDisk("new", 1)
		}
	}
	return config
}

// machine is the kind of machine that the VM will be: aarch64 (also virt), q35 or pc.
func (d Desired) machine(observed Config) string {
	kind := cmp.Or(d.Spec.Hardware.MachineType, ParseProperties(observed["machine"]).Get(""), ParseProperties(observed["machine"]).Get("type"))
	switch {
	case observed["arch"] == "aarch64" || d.Spec.RawConfig["arch"] == "aarch64" || strings.HasPrefix(kind, "virt"):
		return "aarch64"
	case strings.Contains(kind, "q35"):
		return "q35"
	}
	return "pc"
}

// seedDrives are the drives that may have the seed. aarch64 has no IDE, and q35 only ide0 and ide2 (PVE::QemuServer::PCI, the
// machine's controllers).
func seedDrives(bus v1beta1.SeedBus, machine string) []string {
	var ide, sata, scsi []string
	switch machine {
	case "pc":
		ide = []string{"ide2", "ide0", "ide3", "ide1"}
	case "q35":
		ide = []string{"ide2", "ide0"}
	}
	for number := 5; number >= 0; number-- {
		sata = append(sata, "sata"+strconv.Itoa(number))
	}
	for number := 30; number >= 0; number-- {
		scsi = append(scsi, "scsi"+strconv.Itoa(number))
	}
	switch {
	case bus == "ide":
		return ide
	case bus == "sata":
		return sata
	case bus == "scsi" || machine == "aarch64":
		return scsi
	}
	return append(append(ide[:2:2], "sata5"), scsi...)
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
