package vmconfig

// Effect is how a change of a field reaches a VM that runs.
type Effect string

// The effects. Hotplug needs the feature of that name in options.hotplug; without it, or where the guest does not let go of
// a device, the change waits for the next start as Reboot does.
const (
	// Live takes effect at once.
	Live Effect = "Live"
	// The device, or part, is plugged in or out.
	HotplugCPU     Effect = "Hotplug (cpu)"
	HotplugMemory  Effect = "Hotplug (memory)"
	HotplugNetwork Effect = "Hotplug (network)"
	HotplugDisk    Effect = "Hotplug (disk)"
	HotplugUSB     Effect = "Hotplug (usb)"
	// Reboot takes effect when the VM is stopped and started, or rebooted by Proxmox VE; not when its guest reboots.
	Reboot Effect = "Reboot"
	// Replace needs another VM: what was made, or told the guest at its first start, cannot be changed.
	Replace Effect = "Replace"
)

// Feature returns the hotplug feature that the effect needs, as options.hotplug names it; empty for other effects.
func (e Effect) Feature() string {
	switch e {
	case HotplugCPU:
		return "cpu"
	case HotplugMemory:
		return "memory"
	case HotplugNetwork:
		return "network"
	case HotplugDisk:
		return "disk"
	case HotplugUSB:
		return "usb"
	case Live, Reboot, Replace:
	}
	return ""
}

// Field is a field of a ProxmoxMachine's spec: what says it in a VM's config, and what becomes of a change.
type Field struct {
	// Path is the field: cpu.cores, network.devices[].bridge; of one device network.devices[net0].bridge.
	Path string
	// Key is the key of the config: cores, net[n]; of one device net0. Empty where the config does not say it.
	Key string
	// Part is the part of the key's property string; empty where the field is the whole value.
	Part string
	// Effect is how a change reaches a VM that runs.
	Effect Effect
	// Note says what else there is to know.
	Note string
}

// RootOnly reports whether Proxmox VE lets only root@pam set the field, with a password: no API token may, root's neither.
func (f Field) RootOnly() bool { return RootOnly(f.Key) }

// RootOnly reports whether Proxmox VE lets only root@pam set a key, with a password.
func RootOnly(key string) bool {
	switch key {
	case "affinity", "amd-sev", "arch", "args", "hookscript", "hugepages", "intel-tdx", "ivshmem", "keephugepages", "lock",
		"spice_enhancements", "vmgenid":
		return true
	}
	return isIndexed(key, "parallel")
}

// Fields returns every field of a ProxmoxMachine's spec, in the order of the API: the one place that says how a change of it
// takes effect.
func Fields() []Field {
	var fields []Field
	fields = append(fields, fieldsOf("", "", specTable)...)
	fields = append(fields, fieldsOf("hardware.pciDevices[].", "hostpci[n]", pciTable)...)
	fields = append(fields, fieldsOf("hardware.usbDevices[].", "usb[n]", usbTable)...)
	fields = append(fields, Field{"hardware.serialPorts", "serial[n]", "", Reboot, "A port that is no longer listed goes, too."})
	fields = append(fields, bootDiskFields()...)
	fields = append(fields, fieldsOf("disks.boot.", "<disk>", diskTable)...)
	fields = append(fields, additionalDiskFields()...)
	fields = append(fields, fieldsOf("disks.additional[].", "<disk>", diskTable)...)
	fields = append(fields, fieldsOf("network.devices[].", "net[n]", deviceTable)...)
	fields = append(fields, otherFields()...)
	return append(fields, besideFields()...)
}

func fieldsOf[T any](prefix, key string, rows []row[T]) []Field {
	fields := make([]Field, len(rows))
	for i, row := range rows {
		fields[i] = row.Field
		fields[i].Path = prefix + row.Path
		if key != "" {
			fields[i].Key = key
		}
	}
	return fields
}

func bootDiskFields() []Field {
	return []Field{
		{"disks.boot.sizeGiB", "<disk>", "size", Live, "It grows, and never shrinks."},
		{"disks.boot.name", "boot", "order", Replace, ""},
		{"disks.boot.storage", "<disk>", "file", Replace, ""},
		{"disks.boot.format", "<disk>", "format", Replace, ""},
	}
}

func additionalDiskFields() []Field {
	return []Field{
		{"disks.additional[].name", "<disk>", "", HotplugDisk, "A new scsi or virtio disk; Reboot for sata and ide. A disk is not taken from a VM: that needs another."},
		{"disks.additional[].storage", "<disk>", "file", Replace, "The disk that exists is kept."},
		{"disks.additional[].sizeGiB", "<disk>", "size", Live, "It grows, and never shrinks."},
		{"disks.additional[].format", "<disk>", "format", Replace, "The disk that exists is kept."},
	}
}

// otherFields are those that no config says, or that are said in ways of their own.
func otherFields() []Field {
	return []Field{
		{"hardware.pciDevices[].name", "hostpci[n]", "", Reboot, "A device that is no longer listed goes, too."},
		{"hardware.usbDevices[].name", "usb[n]", "", HotplugUSB, "A device that is no longer listed goes, too."},
		{"network.devices[].name", "net[n]", "", HotplugNetwork, "The guest's network config was told it at the first start: it does not configure a device that is added later, so that only devices without addresses can be added and taken away."},
		{"network.devices[].macPrefix", "net[n]", "macaddr", Replace, "The guest's network config finds the device by its MAC address."},
		{"network.devices[].queuesPerCPU", "net[n]", "queues", Reboot, "Other queues, also for other CPUs, are set before the VM is started after it was shut down: to give them to a VM that runs takes its device away."},
		{"network.devices[].ipv4", "", "", Replace, toldOnce},
		{"network.devices[].ipv6", "", "", Replace, toldOnce},
		{"network.devices[].dns", "", "", Replace, toldOnce},
		{"network.devices[].routes", "", "", Replace, toldOnce},
		{"network.devices[].routingPolicy", "", "", Replace, toldOnce},
		{"network.dns", "", "", Replace, toldOnce},
		{"network.vrfs", "", "", Replace, toldOnce},
		{"network.configVersion", "", "", Replace, toldOnce},
		{"vmName", "name", "", Live, ""},
		{"description", "description", "", Live, ""},
		{"tags", "tags", "", Live, "A tag that the spec listed and lists no more goes; others stay: they may be somebody else's."},
		{"rawConfig", "<key>", "", Reboot, "Some keys take effect at once, and some only root@pam may set."},
		{"pool", "", "", Live, "It needs Pool.Allocate on both pools. A pool that the spec named and names no more is left; without one the VM stays in the pool that others put it in."},
		{"powerState", "", "", Live, ""},
		{"driftPolicy", "", "", Live, ""},
		{"providerID", "", "", Replace, providersNote},
		{"reservation", "", "", Replace, providersNote + " Its uuid is in smbios1, tags and description."},
		{"source", "", "", Replace, ""},
		{"placement", "", "", Replace, ""},
		{"vmIDRange", "", "", Replace, ""},
		{"bootstrap", "<disk>", "", Replace, toldOnce},
	}
}

// besideFields are those of what Proxmox VE keeps beside the VM's config.
func besideFields() []Field {
	var fields []Field
	for _, path := range []string{
		"firewall.enabled", "firewall.policyIn", "firewall.policyOut", "firewall.ipFilter", "firewall.macFilter", "firewall.dhcp", "firewall.ndp",
		"firewall.routerAdvertisement", "firewall.logLevelIn", "firewall.logLevelOut", "firewall.securityGroups[].name", "firewall.securityGroups[].device",
		"highAvailability.enabled", "highAvailability.group", "highAvailability.rules[].name", "highAvailability.rules[].nodeAffinity.nodes[].name",
		"highAvailability.rules[].nodeAffinity.nodes[].priority", "highAvailability.rules[].nodeAffinity.strict",
		"highAvailability.rules[].resourceAffinity", "highAvailability.failback", "highAvailability.maxRestart", "highAvailability.maxRelocate",
	} {
		fields = append(fields, at(path, "", "", Live))
	}
	return fields
}

// providersNote starts the notes of the fields that the provider sets.
const providersNote = "The provider's."

const toldOnce = "The guest is told at its first start."
