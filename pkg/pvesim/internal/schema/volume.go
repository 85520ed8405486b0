package schema

import (
	"fmt"
	"strings"
)

// checkVolumeFormat checks the formats of volume IDs, paths and sizes.
func checkVolumeFormat(format, value string) (msg string, known bool) {
	switch format {
	case "pve-volume-id":
		return checkVolumeID(value), true
	case "pve-volume-id-or-qm-path":
		if value == "none" || value == "cdrom" || strings.HasPrefix(value, "/") {
			return "", true
		}
		return checkVolumeID(value), true
	case "pve-volume-id-or-absolute-path":
		if strings.HasPrefix(value, "/") {
			return "", true
		}
		return checkVolumeID(value), true
	case "disk-size":
		return unless(matches(`\d+(\.\d+)?[KMGT]?`, value), "value does not look like a valid disk size: "+value), true
	case "pve-qm-bootdisk":
		return unless(matches(`(ide[0-3]|scsi([12]?\d|30)|virtio(\d|1[0-5])|sata[0-5])`, value), fmt.Sprintf("invalid boot disk '%s'", value)), true
	case "pve-qm-bootdev":
		return unless(isBootDevice(value), fmt.Sprintf("invalid boot device '%s'", value)), true
	}
	return "", false
}

func validStorageID(value string) bool {
	return matches(`[a-zA-Z][a-zA-Z0-9._-]*[a-zA-Z0-9]`, value)
}

// checkVolumeID is PVE::Storage::Plugin::parse_volume_id.
func checkVolumeID(value string) string {
	storage, volume, _ := strings.Cut(value, ":")
	return unless(volume != "" && validStorageID(storage), fmt.Sprintf("unable to parse volume ID '%s'", value))
}

func isBootDevice(value string) bool {
	return matches(`ide[0-3]|scsi([12]?\d|30)|virtio(\d|1[0-5])|sata[0-5]|efidisk0|tpmstate0|net([12]?\d|3[01])|usb(\d|1[0-3])|hostpci(\d|1[0-5])`, value)
}
