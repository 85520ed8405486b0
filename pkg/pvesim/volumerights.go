package pvesim

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// mayUseStorages asks for the storages that drives are made on or taken from (check_storage_access of qemu-server).
func (c *call) mayUseStorages(set map[string]string) reply {
	for _, key := range slices.Sorted(maps.Keys(set)) {
		if !isDrive(key) && key != "cdrom" {
			continue
		}
		if r := c.mayUseVolume(set[key]); r.failed() {
			return r
		}
		if source := propertyOr(set[key], "import-from", ""); source != "" {
			if r := c.mayImport(source); r.failed() {
				return r
			}
		}
	}
	if id := set["vmstatestorage"]; id != "" {
		return c.need("/storage/"+id, "Datastore.AllocateSpace")
	}
	return reply{}
}

func (c *call) mayUseVolume(value string) reply {
	volume := firstProperty(value)
	storageID, name, managed := strings.Cut(volume, ":")
	switch {
	case volume == "" || volume == "none" || volume == "cloudinit" || name == "cloudinit":
		return reply{}
	case volume == "cdrom":
		return c.need("/", "Sys.Console")
	case managed && isNewDisk(name):
		return c.need("/storage/"+storageID, "Datastore.AllocateSpace")
	}
	return c.mayAccessVolume(proxmox.VolumeID(volume))
}

// isNewDisk tells whether the name is a size in GiB: a disk that is to be made.
func isNewDisk(name string) bool {
	_, err := strconv.ParseFloat(name, 64)
	return err == nil
}

// mayImport asks for VM.Clone where the source is the disk of a VM, and for access to the volume otherwise.
func (c *call) mayImport(source string) reply {
	storageID, name, _ := strings.Cut(source, ":")
	if s := c.storageByID(proxmox.StorageID(storageID)); s != nil {
		if owner := guessVolume(s, name).VMID; owner != 0 {
			return c.need("/vms/"+owner.String(), "VM.Clone")
		}
	}
	return c.mayAccessVolume(proxmox.VolumeID(source))
}

// mayAccessVolume is PVE::Storage::check_volume_access.
func (c *call) mayAccessVolume(id proxmox.VolumeID) reply {
	storageID, name, managed := strings.Cut(string(id), ":")
	if c.who.isRoot() || (managed && c.may(c.who, "/storage/"+storageID, "Datastore.Allocate")) {
		return reply{}
	}
	s := c.storageByID(proxmox.StorageID(storageID))
	if !managed {
		line := map[Version]int{V84: 581, V92: 651}[c.version]
		return fail("Only root can pass arbitrary filesystem paths. at /usr/share/perl5/PVE/Storage.pm line %d.", line)
	}
	if s == nil {
		return fail("storage '%s' does not exist", storageID)
	}
	path := "/storage/" + storageID
	v := guessVolume(s, name)
	switch {
	case v.Content == "iso" || v.Content == "vztmpl" || v.Content == "import":
		return c.need(path, "Datastore.AllocateSpace", "Datastore.Audit")
	case v.VMID != 0 && v.VMID == c.vmid():
		return reply{}
	case v.Content == "backup" && v.VMID != 0:
		if r := c.need(path, "Datastore.AllocateSpace"); r.failed() {
			return r
		}
		return c.need("/vms/"+v.VMID.String(), "VM.Backup")
	case v.VMID != 0:
		if r := c.need(path, "Datastore.Audit"); r.failed() {
			return r
		}
		return c.need("/vms/"+v.VMID.String(), "VM.Config.Disk")
	}
	return fail("missing privileges to access %s", id)
}

// mayDeleteVolume asks for Datastore.Allocate; for the backup of a VM two lesser rights will do.
func (c *call) mayDeleteVolume(id proxmox.VolumeID) reply {
	storageID, name, _ := strings.Cut(string(id), ":")
	if s := c.storageByID(proxmox.StorageID(storageID)); s != nil {
		if v := guessVolume(s, name); v.Content == "backup" && v.VMID != 0 {
			if r := c.need("/storage/"+storageID, "Datastore.AllocateSpace"); r.failed() {
				return r
			}
			return c.need("/vms/"+v.VMID.String(), "VM.Backup")
		}
	}
	return c.need("/storage/"+storageID, "Datastore.Allocate")
}
