package integration_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
)

// equipped is a machine with every field of its hardware, options and disks.
func (d *desk) equipped() *v1beta1.ProxmoxMachine {
	limit := resource.MustParse("2.5")
	machine := d.validMachine()
	s := &machine.Spec
	s.CPU = v1beta1.CPU{Sockets: 2, Cores: 8, VCPUs: 4, Type: "x86-64-v2-AES", Flags: []string{"+aes", "-pcid"}, Units: 200, Limit: &limit}
	s.Memory = v1beta1.Memory{SizeMiB: 8192, MinimumMiB: ptr.To[int32](8192), Hugepages: "1GiB"}
	s.Hardware = v1beta1.Hardware{
		MachineType: "pc-q35-9.0", BIOS: "ovmf", EFIDisk: v1beta1.EFIDisk{Storage: "local-lvm", Format: "raw", PreEnrolledKeys: ptr.To(true)},
		TPM: v1beta1.TPM{Storage: "local-lvm", Version: "v2.0"}, SCSIController: "virtio-scsi-single", Display: v1beta1.Display{Type: "serial0"},
		SerialPorts: []string{"serial0"}, RNG: v1beta1.RNG{Source: "/dev/urandom", MaxBytes: ptr.To[int32](2048), PeriodMilliseconds: 500},
		Watchdog:   v1beta1.Watchdog{Model: "i6300esb", Action: "reset"},
		PCIDevices: []v1beta1.PCIDevice{{Name: "hostpci0", Mapping: "gpu", MDev: "nvidia-63", PCIe: ptr.To(true), ROMBar: ptr.To(false), PrimaryGPU: ptr.To(true)}},
		USBDevices: []v1beta1.USBDevice{{Name: "usb0", Mapping: "key", USB3: ptr.To(true)}},
	}
	s.Options = v1beta1.Options{
		OSType: "l26", OnBoot: ptr.To(true), Startup: v1beta1.Startup{Order: ptr.To[int32](0), UpSeconds: ptr.To[int32](10), DownSeconds: ptr.To[int32](20)},
		Protection: ptr.To(true), Tablet: ptr.To(false), Hotplug: &[]string{"network", "disk", "cpu", "memory"},
		Agent: v1beta1.Agent{Enabled: ptr.To(true), FSTrimClonedDisks: ptr.To(true), FreezeFSOnBackup: ptr.To(false), Type: "isa"},
	}
	whole := v1beta1.DiskOptions{
		Cache: "writeback", AIO: "io_uring", Discard: ptr.To(true), SSD: ptr.To(true), IOThread: ptr.To(true), Backup: ptr.To(false), Replicate: ptr.To(false),
		ReadOnly: ptr.To(true), Serial: "boot", Limits: v1beta1.DiskLimits{
			ReadMiBps: 100, ReadBurstMiBps: 200, WriteMiBps: 100, WriteBurstMiBps: 100, ReadIOPS: 1000, ReadBurstIOPS: 2000, WriteIOPS: 1000, WriteBurstIOPS: 1000,
		},
	}
	extra := whole
	extra.Serial = "etcd"
	s.Disks = v1beta1.Disks{
		Boot:       v1beta1.BootDisk{SizeGiB: 40, DiskOptions: whole},
		Additional: []v1beta1.AdditionalDisk{{Name: "scsi1", Storage: "local-lvm", SizeGiB: 20, Format: "raw", DiskOptions: extra}, {Name: "virtio15", Storage: "ceph.vm", SizeGiB: 1}},
	}
	s.Network.Devices[0].Trunks = []string{"5", "100-199", "4094"}
	s.Tags, s.Description = []string{"prod", "k8s.1"}, "Made **for** team A.\n\n- see the wiki"
	s.VMName = "{{ .Cluster }}-{{.Machine}}.{{ .Namespace }}.example"
	s.RawConfig = v1beta1.RawConfig{"kvm": "0", "args": "-no-reboot", "numa": "1", "cpu-x": "y"}
	s.Bootstrap.Bus = "scsi"
	return machine
}

func TestHardwareRefusesWhatCannotBe(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	equipped := func() client.Object { return d.equipped() }
	d.refuses(equipped, cpuAndMemoryRefusals())
	d.refuses(equipped, hardwareRefusals())
	d.refuses(equipped, diskRefusals())
	d.refuses(equipped, textRefusals())
}

func TestHardwareChangesInPlace(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	machine := d.equipped()
	d.Expect(d.client.Create(t.Context(), machine)).To(Succeed())
	for _, change := range []edit{
		set("spec.cpu.units", int64(100)), without("spec.memory.minimumMiB"), set("spec.options.onBoot", true), set("spec.options.tablet", true),
		set("spec.disks.additional.0.sizeGiB", int64(21)), set("spec.rawConfig.kvm", "1"), set("spec.vmName", "vm"), without("spec.description"), set("spec.tags.0", "test"),
	} {
		d.Expect(d.client.Update(t.Context(), document(t, d.scheme, machine, change), client.DryRunAll)).To(Succeed(), "%s", change.path)
	}
	err := d.client.Update(t.Context(), document(t, d.scheme, machine, without("spec.disks.additional")), client.DryRunAll)
	d.Expect(err).To(MatchError(ContainSubstring("]: Forbidden: a disk, and what is on it, is not taken from a VM: make a new ProxmoxMachineTemplate")))
}

func cpuAndMemoryRefusals() []refusal {
	return []refusal{
		{"more vcpus than cores", one("spec.cpu.vcpus", int64(17)), "vcpus must not be more than sockets times cores"},
		{"cpu limit 0", one("spec.cpu.limit", "0"), "limit is a number of CPUs above 0, and 128 at most"},
		{"cpu limit 129", one("spec.cpu.limit", "129"), "limit is a number of CPUs above 0, and 128 at most"},
		{"cpu limit in words", one("spec.cpu.limit", "two"), "limit"},
		{"cpu units 0", one("spec.cpu.units", int64(0)), "units in body should be greater than or equal to 1"},
		{"cpu flag without sign", one("spec.cpu.flags.0", "aes"), "flags[0] in body should match"},
		{"cpu type with a property", one("spec.cpu.type", "host,hidden=1"), "type in body should match"},
		{"minimum above memory", one("spec.memory.minimumMiB", int64(8193)), "minimumMiB must not be above sizeMiB"},
		{"memory no multiple of hugepages of 1 GiB", one("spec.memory.sizeMiB", int64(8194)), "sizeMiB is a multiple of the size of the hugepages"},
		{"memory no multiple of hugepages of 2 MiB", []edit{set("spec.memory.hugepages", "2MiB"), set("spec.memory.sizeMiB", int64(8193))}, "sizeMiB is a multiple of the size of the hugepages"},
		{"unknown hugepages", one("spec.memory.hugepages", "2"), `Unsupported value: "2"`},
	}
}

func hardwareRefusals() []refusal {
	hardware := "spec.hardware."
	return []refusal{
		{"no hardware", one("spec.hardware", map[string]any{}), "hardware in body should have at least 1 properties"},
		{"unknown machine type", one(hardware+"machineType", "isa"), "machineType in body should match"},
		{"efi disk with seabios", one(hardware+"bios", "seabios"), "efiDisk needs bios ovmf"},
		{"efi disk without bios", []edit{without(hardware + "bios")}, "efiDisk needs bios ovmf"},
		{"efi disk without storage", []edit{without(hardware + "efiDisk.storage")}, "efiDisk.storage: Required value"},
		{"tpm 3", one(hardware+"tpm.version", "v3"), `Unsupported value: "v3"`},
		{"pcie on pc", one(hardware+"machineType", "pc"), "pcie needs the machineType q35"},
		{"pcie on a version of pc", one(hardware+"machineType", "pc-i440fx-9.0"), "pcie needs the machineType q35"},
		{"raw pci device", one(hardware+"pciDevices.0.mapping", "0000:01:00.0"), "mapping in body should match"},
		{"pci device without mapping", []edit{without(hardware + "pciDevices.0.mapping")}, "mapping: Required value"},
		{"type of mediated device with a dot", one(hardware+"pciDevices.0.mdev", "nvidia.63"), "mdev in body should match"},
		{"17th pci device", one(hardware+"pciDevices.0.name", "hostpci16"), "name in body should match"},
		{"usb14", one(hardware+"usbDevices.0.name", "usb14"), "name in body should match"},
		{"serial port on a device", one(hardware+"serialPorts.0", "/dev/ttyS0"), `Unsupported value: "/dev/ttyS0"`},
		{"unknown display", one(hardware+"display.type", "vnc"), `Unsupported value: "vnc"`},
		{"display with 3 MiB", one(hardware+"display.memoryMiB", int64(3)), "memoryMiB in body should be greater than or equal to 4"},
		{"rng without source", []edit{without(hardware + "rng.source")}, "rng.source: Required value"},
		{"rng from elsewhere", one(hardware+"rng.source", "/dev/zero"), `Unsupported value: "/dev/zero"`},
		{"unknown watchdog", one(hardware+"watchdog.model", "itco"), `Unsupported value: "itco"`},
		{"unknown action", one(hardware+"watchdog.action", "restart"), `Unsupported value: "restart"`},
		{"unknown os type", one("spec.options.osType", "linux"), `Unsupported value: "linux"`},
		{"unknown hotplug", one("spec.options.hotplug.0", "gpu"), `Unsupported value: "gpu"`},
		{"agent that does not say whether", []edit{without("spec.options.agent.enabled")}, "agent.enabled: Required value"},
		{"unknown agent type", one("spec.options.agent.type", "tcp"), `Unsupported value: "tcp"`},
		{"negative startup", one("spec.options.startup.order", int64(-1)), "order in body should be greater than or equal to 0"},
		{"seed on virtio", one("spec.bootstrap.bus", "virtio"), `Unsupported value: "virtio"`},
		{"trunk backwards", one("spec.network.devices.0.trunks.0", "7-5"), "a trunk is a VLAN from 1 to 4094, or a range of them"},
		{"trunk 4095", one("spec.network.devices.0.trunks.0", "4095"), "a trunk is a VLAN from 1 to 4094, or a range of them"},
	}
}

func diskRefusals() []refusal {
	boot, disk := "spec.disks.boot.", "spec.disks.additional.0."
	virtio := set(disk+"name", "virtio1")
	image := []edit{without("spec.source.template"), set("spec.source.image", map[string]any{"volume": "shared:import/debian.qcow2"})}
	netboot := []edit{without("spec.source.template"), set("spec.source.netboot", map[string]any{"device": "net31"})}
	onLVM := set(boot+"storage", "local-lvm")
	with := func(edits []edit, more ...edit) []edit { return append(append([]edit(nil), edits...), more...) }
	rows := []refusal{
		{"ssd on virtio", []edit{virtio}, "virtio disks have no ssd: leave it out, or name the disk scsi…"},
		{"io thread on sata", one(disk+"name", "sata1"), "ioThread is for scsi and virtio disks"},
		{"read only on ide", one(disk+"name", "ide1"), "readOnly is for scsi and virtio disks"},
		{"io thread with another controller", one("spec.hardware.scsiController", "virtio-scsi-pci"), "ioThread of a scsi disk needs hardware.scsiController virtio-scsi-single"},
		{"scsi31", one(disk+"name", "scsi31"), "name in body should match"},
		{"disk without storage", []edit{without(disk + "storage")}, "storage: Required value"},
		{"disk without size", []edit{without(disk + "sizeGiB")}, "sizeGiB: Required value"},
		{"a disk twice", one("spec.disks.additional.1.name", "scsi1"), "Duplicate value"},
		{"a serial twice", one("spec.disks.additional.1.serial", "etcd"), "spec.disks.additional[1].serial: Invalid value: \"etcd\": two disks have the same serial, by which the guest finds them: give each its own"},
		{"the boot disk's serial", one(disk+"serial", "boot"), "spec.disks.additional[0].serial: Invalid value: \"boot\": two disks have the same serial"},
		{"long serial", one(disk+"serial", "123456789012345678901"), "may not be more than 20"},
		{"unknown cache", one(disk+"cache", "fast"), `Unsupported value: "fast"`},
		{"unknown format", one(disk+"format", "vdi"), `Unsupported value: "vdi"`},
		{"template and boot name", one(boot+"name", "scsi0"), "with a template, use source.template.storage and source.template.format"},
		{"template and boot storage", []edit{onLVM}, "with a template, use source.template.storage and source.template.format"},
		{"template and boot format", one(boot+"format", "raw"), "spec.disks.boot: Invalid value: format raw: disks.boot.name, storage and format are for the sources image and netboot: with a template, use source.template.storage and source.template.format"},
		{"an appliance", with(image, onLVM, set("spec.source.image.volume", "shared:import/vm.ova")), `spec.source.image.volume: Invalid value: "shared:import/vm.ova": an .ova or .ovf describes a whole VM and is no disk image: unpack it, and name the .vmdk that is in it`},
		{"a disk in an appliance", with(image, onLVM, set("spec.source.image.volume", "shared:import/vm.OVA/disk.vmdk")), "an .ova or .ovf describes a whole VM and is no disk image"},
		{"image without storage", image, "source.image needs disks.boot.storage"},
		{"image and scsi0", with(image, onLVM, set(disk+"name", "scsi0")), "disks.additional has scsi0, which is the boot disk's name"},
		{"image and the same name", with(image, onLVM, set(boot+"name", "scsi1")), "an additional disk has the boot disk's name"},
		{"image on virtio with ssd", with(image, onLVM, set(boot+"name", "virtio0")), "virtio disks have no ssd"},
		{"netboot without size", with(netboot, onLVM, without(boot+"sizeGiB")), "with source.netboot, a boot disk needs disks.boot.storage and disks.boot.sizeGiB"},
		{"netboot without storage", netboot, "with source.netboot, a boot disk needs disks.boot.storage and disks.boot.sizeGiB"},
		{"netboot from no device", with(netboot, onLVM, set("spec.source.netboot.device", "net7")), "source.netboot.device is the name of one of network.devices"},
	}
	for _, limit := range []string{"readMiBps", "writeMiBps", "readIOPS", "writeIOPS"} {
		burst := limit[:len(limit)-len("MiBps")] + "Burst" + "MiBps"
		if limit == "readIOPS" || limit == "writeIOPS" {
			burst = limit[:len(limit)-len("IOPS")] + "BurstIOPS"
		}
		message := fmt.Sprintf("%s needs %s, and is not below it", burst, limit)
		rows = append(rows, refusal{burst + " alone", []edit{without(disk + "limits." + limit)}, message},
			refusal{burst + " below", one(disk+"limits."+burst, int64(10)), message})
	}
	return rows
}

func textRefusals() []refusal {
	const name = "vmName is a DNS name, in which {{ .Machine }}, {{ .Cluster }} and {{ .Namespace }} may stand"
	rows := []refusal{
		{"the marker in the description", one("spec.description", "x\nCAPVE-UUID: y"), "the line CAPVE-UUID: … is the provider's, which writes it into the notes itself"},
		{"the provider's tag", one("spec.tags.0", "capve-x"), "tags that start with capve- are the provider's"},
		{"tag in capitals", one("spec.tags.0", "Prod"), "tags[0] in body should match"},
		{"no raw keys", one("spec.rawConfig", map[string]any{}), "rawConfig in body should have at least 1 properties"},
	}
	for _, text := range []string{"{{ .Name }}", "{{ .Machine", "{{ printf \"x\" }}", "a_b", "a b", "{.Machine}", "{{ .Machine }}\n"} {
		rows = append(rows, refusal{"name " + text, one("spec.vmName", text), name})
	}
	for _, key := range refusedKeys() {
		rows = append(rows, refusal{"raw " + key, one("spec.rawConfig."+key, "1"), "spec.rawConfig[" + key + "]: Forbidden: rawConfig has the key " + key + ", which "})
	}
	return rows
}

// refusedKeys are all keys that rawConfig may not have, as the planner knows them.
func refusedKeys() []string {
	var keys []string
	for _, field := range vmconfig.Fields() {
		if _, refused := vmconfig.RefusedKey(field.Key); refused {
			keys = append(keys, field.Key)
		}
	}
	for family, count := range map[string]int{"net": 32, "scsi": 31, "virtio": 16, "sata": 6, "ide": 4, "serial": 4, "hostpci": 16, "usb": 14, "ipconfig": 32} {
		for number := range count {
			keys = append(keys, fmt.Sprintf("%s%d", family, number))
		}
	}
	return append(keys, "boot", "bootdisk", "smbios1", "vmgenid", "lock", "template", "digest", "delete", "ciuser", "cicustom", "sshkeys", "nameserver", "cdrom",
		"start", "pool", "archive", "storage", "unique", "bwlimit", "live-restore", "ha-managed") // these are parameters of the request that makes a VM
}

func TestAnEquippedMachineReadsBackAsItWas(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	want, got := d.equipped(), d.equipped()
	want.Spec.Network = v1beta1.Network{}
	d.Expect(d.client.Create(t.Context(), got)).To(Succeed())
	read := &v1beta1.ProxmoxMachine{}
	d.Expect(d.client.Get(t.Context(), client.ObjectKeyFromObject(got), read)).To(Succeed())
	read.Spec.Network = v1beta1.Network{} // has defaults of its own
	want.Spec.PowerState, want.Spec.DriftPolicy = read.Spec.PowerState, read.Spec.DriftPolicy
	want.Spec.Source = read.Spec.Source
	d.Expect(read.Spec.CPU.Limit.Cmp(*want.Spec.CPU.Limit)).To(BeZero())
	read.Spec.CPU.Limit, want.Spec.CPU.Limit = nil, nil
	d.Expect(cmp.Diff(want.Spec, read.Spec)).To(BeEmpty(), "-want +got")
}
