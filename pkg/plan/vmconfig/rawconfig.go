package vmconfig

import "strings"

// RefusedKey reports whether rawConfig may not set a key of a config, and the field that is for it; "" for what is the
// provider's alone.
func RefusedKey(key string) (field string, refused bool) {
	switch {
	case isIndexed(key, "net"):
		return "network.devices", true
	case isDriveKey(key) || isIndexed(key, "unused") || key == "cdrom" || key == "hda" || key == "hdb" || key == "hdc" || key == "hdd":
		return "disks", true
	case isIndexed(key, "hostpci"):
		return "hardware.pciDevices", true
	case isIndexed(key, "usb"):
		return "hardware.usbDevices", true
	case isIndexed(key, "serial"):
		return "hardware.serialPorts", true
	case isIndexed(key, "ipconfig"):
		return "network.devices", true
	}
	if field, refused = fieldKeys[key]; refused {
		return field, true
	}
	return "", isProviders(key)
}

// FieldOf returns the field of a ProxmoxMachine's spec that a key of a config stands for.
func FieldOf(key string) string {
	switch field, refused := RefusedKey(key); {
	case field != "":
		return field
	case refused:
		return key
	}
	return "rawConfig[" + key + "]"
}

// keysOfFields are the keys that stand for fields.
func keysOfFields() map[string]string {
	keys := map[string]string{
		"name": "vmName", "description": "description", "tags": "tags", "boot": "source", "bootdisk": "source", "nameserver": "network.dns", "searchdomain": "network.dns",
	}
	for _, row := range specTable {
		keys[row.Key] = row.Path
		if row.Part == "" {
			continue
		}
		if parent := row.Path[:strings.LastIndexByte(row.Path, '.')]; parent != "" {
			keys[row.Key] = parent
		}
	}
	return keys
}

// isProviders reports whether a key, or a parameter of the request that sets keys, is the provider's alone: what says whose
// the VM is, what Proxmox VE keeps for itself, and PVE's own cloud-init, in whose place the guest has the provider's seed.
func isProviders(key string) bool {
	switch key {
	case "smbios1", "vmgenid", "lock", "template", "meta", "parent", "digest", "delete", "revert", "force", "skiplock", "background_delay",
		"import-working-storage", "start", "pool", "archive", "storage", "unique", "bwlimit", "live-restore", "ha-managed", "node", "vmid", "snaptime", "snapstate", "vmstate", "runningmachine", "runningcpu",
		"ciuser", "cipassword", "citype", "cicustom", "ciupgrade", "sshkeys":
		return true
	}
	return false
}
