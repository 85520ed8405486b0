package vmconfig

import (
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
)

type spec = v1beta1.ProxmoxMachineSpec

// at makes a Field of a key, or of a part of it.
func at(path, key, part string, effect Effect) Field {
	return Field{Path: path, Key: key, Part: part, Effect: effect}
}

func (f Field) noted(note string) Field {
	f.Note = note
	return f
}

// specRows are the fields that stand in a key of their own.
func specRows() []row[spec] {
	var rows []row[spec]
	rows = append(rows, cpuRows()...)
	rows = append(rows, memoryRows()...)
	rows = append(rows, hardwareRows()...)
	rows = append(rows, optionRows()...)
	return append(rows, agentRows()...)
}

func cpuRows() []row[spec] {
	const allCores = "Fewer are plugged out only where the guest lets go of them."
	return []row[spec]{
		{Field: at("cpu.sockets", "sockets", "", Reboot), codec: number(func(s *spec) *int32 { return &s.CPU.Sockets }), usual: "1"},
		{Field: at("cpu.cores", "cores", "", Reboot), codec: number(func(s *spec) *int32 { return &s.CPU.Cores }), usual: "1"},
		{Field: at("cpu.vcpus", "vcpus", "", HotplugCPU).noted(allCores), codec: owned(number(func(s *spec) *int32 { return &s.CPU.VCPUs }))},
		{Field: at("cpu.type", "cpu", "cputype", Reboot), codec: text(func(s *spec) *string { return &s.CPU.Type }), usual: "kvm64"},
		{Field: at("cpu.flags", "cpu", "flags", Reboot), codec: list(func(s *spec) *[]string { return &s.CPU.Flags }, ";"), same: sameSet},
		{Field: at("cpu.units", "cpuunits", "", Live), codec: number(func(s *spec) *int32 { return &s.CPU.Units }), usual: "100"},
		{Field: at("cpu.limit", "cpulimit", "", Live), codec: quantity(func(s *spec) **resource.Quantity { return &s.CPU.Limit }), usual: "0", same: sameNumber},
	}
}

func memoryRows() []row[spec] {
	const onlyRoot = "Only root@pam may set it, with a password: no API token. It needs NUMA, which is switched on with it."
	pages := map[v1beta1.Hugepages]string{"Any": "any", "2MiB": "2", "1GiB": "1024"}
	return []row[spec]{
		{Field: at("memory.sizeMiB", "memory", "current", HotplugMemory), codec: number(func(s *spec) *int32 { return &s.Memory.SizeMiB }), usual: "512"},
		{Field: at("memory.minimumMiB", "balloon", "", Live).noted("Reboot from or to 0, which is the device itself."), codec: optional(func(s *spec) **int32 { return &s.Memory.MinimumMiB })},
		{Field: at("memory.hugepages", "hugepages", "", Reboot).noted(onlyRoot), codec: words(func(s *spec) *v1beta1.Hugepages { return &s.Memory.Hugepages }, pages)},
	}
}

func hardwareRows() []row[spec] {
	return []row[spec]{
		{Field: at("hardware.machineType", "machine", "type", Reboot).noted("The guest may find its devices under other names."), codec: text(func(s *spec) *string { return &s.Hardware.MachineType }), usual: "pc", same: sameMachine},
		{Field: at("hardware.bios", "bios", "", Replace).noted("The guest's boot loader was installed for one of them."), codec: text(func(s *spec) *v1beta1.BIOS { return &s.Hardware.BIOS }), usual: "seabios"},
		{Field: at("hardware.efiDisk.storage", "efidisk0", "file", Replace), codec: storage(func(s *spec) *string { return &s.Hardware.EFIDisk.Storage }), same: sameStorage, kept: true},
		{Field: at("hardware.efiDisk.format", "efidisk0", "format", Replace), codec: text(func(s *spec) *v1beta1.DiskFormat { return &s.Hardware.EFIDisk.Format }), kept: true},
		{Field: at("hardware.efiDisk.preEnrolledKeys", "efidisk0", "pre-enrolled-keys", Replace), codec: flag(func(s *spec) **bool { return &s.Hardware.EFIDisk.PreEnrolledKeys }, "0", "1"), usual: "0", same: sameTruth, kept: true},
		{Field: at("hardware.tpm.storage", "tpmstate0", "file", Replace), codec: storage(func(s *spec) *string { return &s.Hardware.TPM.Storage }), same: sameStorage, kept: true},
		{Field: at("hardware.tpm.version", "tpmstate0", "version", Replace), codec: text(func(s *spec) *string { return &s.Hardware.TPM.Version }), usual: "v1.2", kept: true},
		{Field: at("hardware.scsiController", "scsihw", "", Reboot), codec: text(func(s *spec) *v1beta1.SCSIController { return &s.Hardware.SCSIController }), usual: "lsi"},
		{Field: at("hardware.display.type", "vga", "type", Reboot), codec: text(func(s *spec) *string { return &s.Hardware.Display.Type }), usual: "std"},
		{Field: at("hardware.display.memoryMiB", "vga", "memory", Reboot), codec: number(func(s *spec) *int32 { return &s.Hardware.Display.MemoryMiB })},
		{Field: at("hardware.rng.source", "rng0", "source", Reboot), codec: text(func(s *spec) *string { return &s.Hardware.RNG.Source })},
		{Field: at("hardware.rng.maxBytes", "rng0", "max_bytes", Reboot), codec: optional(func(s *spec) **int32 { return &s.Hardware.RNG.MaxBytes }), usual: "1024"},
		{Field: at("hardware.rng.periodMilliseconds", "rng0", "period", Reboot), codec: number(func(s *spec) *int32 { return &s.Hardware.RNG.PeriodMilliseconds }), usual: "1000"},
		{Field: at("hardware.watchdog.model", "watchdog", "model", Reboot), codec: text(func(s *spec) *string { return &s.Hardware.Watchdog.Model })},
		{Field: at("hardware.watchdog.action", "watchdog", "action", Reboot), codec: text(func(s *spec) *string { return &s.Hardware.Watchdog.Action })},
	}
}

func pciRows() []row[v1beta1.PCIDevice] {
	type device = v1beta1.PCIDevice
	return []row[device]{
		{Field: at("mapping", "", "mapping", Reboot), codec: text(func(d *device) *string { return &d.Mapping }), excludes: []string{"host"}},
		{Field: at("mdev", "", "mdev", Reboot), codec: text(func(d *device) *string { return &d.MDev })},
		{Field: at("pcie", "", "pcie", Reboot), codec: flag(func(d *device) **bool { return &d.PCIe }, "0", "1"), usual: "0", same: sameTruth},
		{Field: at("romBar", "", "rombar", Reboot), codec: flag(func(d *device) **bool { return &d.ROMBar }, "0", "1"), usual: "1", same: sameTruth},
		{Field: at("primaryGPU", "", "x-vga", Reboot), codec: flag(func(d *device) **bool { return &d.PrimaryGPU }, "0", "1"), usual: "0", same: sameTruth},
	}
}

func usbRows() []row[v1beta1.USBDevice] {
	type device = v1beta1.USBDevice
	return []row[device]{
		{Field: at("mapping", "", "mapping", HotplugUSB), codec: text(func(d *device) *string { return &d.Mapping }), excludes: []string{"host"}},
		{Field: at("usb3", "", "usb3", HotplugUSB), codec: flag(func(d *device) **bool { return &d.USB3 }, "0", "1"), usual: "0", same: sameTruth},
	}
}
