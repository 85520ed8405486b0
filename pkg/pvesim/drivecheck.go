package pvesim

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

// This file checks the drives of a request before the VM is looked at.

// newDiskSize is the size in GiB of a disk that is to be made, storage:size; "" for other volumes.
func newDiskSize(id proxmox.VolumeID) string {
	m := regexp.MustCompile(`^(?:[^/:\s]+:)?(\d+(?:\.\d+)?)$`).FindStringSubmatch(string(id))
	if m == nil {
		return ""
	}
	return m[1]
}

// checkDrives is check_drive_param: it refuses values that fit no drive, and writes the others in Proxmox VE's order.
func (c *call) checkDrives(set map[string]string) reply {
	for _, key := range slices.Sorted(maps.Keys(set)) {
		if !isDrive(key) || strings.HasPrefix(key, "unused") {
			continue
		}
		bus := unnumbered(key)
		format := driveFormat(bus, c.version)
		p, msg := format.Parse(set[key])
		if msg != "" || !consistentDrive(bus, p) {
			return invalidParam(key, "unable to parse drive options")
		}
		d := drive{volume: proxmox.VolumeID(p["file"]), props: p}
		if d.volume == "none" || d.volume == "cdrom" {
			d.props["media"] = "cdrom"
		}
		if r := checkImport(key, d); r.failed() {
			return r
		}
		if size := d.props["size"]; size != "" {
			d.props["size"] = schema.FormatSize(schema.ParseSize(size))
		}
		set[key] = d.String()
	}
	return reply{}
}

// consistentDrive refuses properties that contradict each other (parse_drive of qemu-server).
func consistentDrive(bus string, p schema.Properties) bool {
	if p["media"] == "cdrom" && (bus == "virtio" || p["snapshot"] != "" || p["format"] != "" || p["trans"] != "") {
		return false
	}
	for _, limit := range []string{"mbps", "iops", "bps"} {
		if p[limit] != "" && (p[limit+"_rd"] != "" || p[limit+"_wr"] != "") {
			return false
		}
	}
	return true
}

// checkImport refuses an import that is not into a new disk of size 0.
func checkImport(key string, d drive) reply {
	if d.props["import-from"] == "" {
		return reply{}
	}
	if size := newDiskSize(d.volume); size == "" || strings.Trim(size, "0.") != "" {
		return invalidParam(key, "'import-from' requires special syntax - use <storage ID>:0,import-from=<source>")
	}
	required := map[string][]string{"efidisk0": {"efitype", "pre-enrolled-keys"}, "tpmstate0": {"version"}}[key]
	for _, name := range required {
		if d.props[name] == "" {
			return invalidParam(key, "need to specify '%s' when using 'import-from'", name)
		}
	}
	return reply{}
}

// checkVolumes is the part of check_storage_access that is no question of rights: storages must exist and take the volume.
func (c *call) checkVolumes(set map[string]string) reply {
	for _, key := range slices.Sorted(maps.Keys(set)) {
		if !isDrive(key) || strings.HasPrefix(key, "unused") {
			continue
		}
		d := parseDrive(set[key])
		if r := c.checkVolume(key, d); r.failed() {
			return r
		}
		if source := d.props["import-from"]; strings.Contains(source, ":") {
			if r := c.checkSource(key, source); r.failed() {
				return r
			}
		}
	}
	return reply{}
}

func (c *call) checkVolume(key string, d drive) reply {
	storageID, name, managed := strings.Cut(string(d.volume), ":")
	if !managed || name == "cloudinit" {
		return reply{}
	}
	s := c.storageByID(proxmox.StorageID(storageID))
	if s == nil {
		return fail("storage '%s' does not exist", storageID)
	}
	if newDiskSize(d.volume) != "" && !d.cdrom() {
		if !s.holds("images") {
			return invalidParam("storage", "storage '%s' does not support vm images", s.id)
		}
		return reply{}
	}
	parts, msg := s.parseVolume(name)
	switch {
	case msg != "":
		return fail("%s", msg)
	case parts.content == "iso" && !d.cdrom():
		return invalidParam(key, "explicit 'media=cdrom' is required for iso images")
	case parts.content != "iso" && parts.content != "images":
		return invalidParam(key, "content type needs to be 'images' or 'iso'")
	}
	return reply{}
}

// checkSource checks what a disk is imported from.
func (c *call) checkSource(key, source string) reply {
	storageID, name, _ := strings.Cut(source, ":")
	s := c.storageByID(proxmox.StorageID(storageID))
	if s == nil {
		return fail("storage '%s' does not exist", storageID)
	}
	parts, msg := s.parseVolume(name)
	if msg != "" {
		return fail("%s", msg)
	}
	if parts.content != "images" && parts.content != "import" {
		return invalidParam(key, "%s has wrong type '%s' - needs to be 'images' or 'import'", source, parts.content)
	}
	return reply{}
}
