package pvesim

import (
	"strconv"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

// This file is the parameter table of a VM's configuration: what PUT and POST /nodes/{node}/qemu/{vmid}/config and POST
// /nodes/{node}/qemu accept.

// configParams are the options of a VM's config.
func configParams(v Version) []schema.Param {
	out := append(generalParams(), hardwareParams(v)...)
	out = append(out, cloudInitParams()...)
	out = append(out, deviceParams(v)...)
	if v == V92 {
		out = append(out, schema.Boolean("allow-ksm"), schema.Text("intel-tdx").Format("pve-qemu-tdx-fmt").Of(tdxFormat()))
	}
	return out
}

func generalParams() []schema.Param {
	return []schema.Param{
		schema.Boolean("acpi"), schema.Text("args"), schema.Boolean("autostart"), schema.Text("boot").Format("pve-qm-boot").Of(bootFormat()),
		schema.Text("bootdisk").Format("pve-qm-bootdisk").Pattern(`(ide|sata|scsi|virtio)\d+`),
		schema.Text("description").MaxLength(8192), schema.Boolean("freeze"), schema.Text("hookscript").Format("pve-volume-id"), schema.Text("hotplug").Format("pve-hotplug-features"),
		schema.Choice("lock", "backup", "clone", "create", "migrate", "rollback", "snapshot", "snapshot-delete", "suspending", "suspended"),
		schema.Number("migrate_downtime").Min(0), schema.Integer("migrate_speed").Min(0), schema.Text("name").Format("dns-name"), schema.Boolean("onboot"),
		schema.Choice("ostype", "other", "wxp", "w2k", "w2k3", "w2k8", "wvista", "win7", "win8", "win10", "win11", "l24", "l26", "solaris"),
		schema.Boolean("protection"), schema.Boolean("reboot"), schema.Text("startdate").Pattern(`(now|\d{4}-\d{1,2}-\d{1,2}(T\d{1,2}:\d{1,2}:\d{1,2})?)`),
		schema.Text("startup").Format("pve-startup-order"), schema.Text("tags").Format("pve-tag-list"), schema.Boolean("template"),
		schema.Text("vmgenid").Pattern(`(?:[a-fA-F0-9]{8}(?:-[a-fA-F0-9]{4}){3}-[a-fA-F0-9]{12}|[01])`), schema.Text("vmstatestorage").Format("pve-storage-id"),
	}
}

func hardwareParams(v Version) []schema.Param {
	return []schema.Param{
		schema.Text("affinity").Format("pve-cpuset"), schema.Text("agent").Of(agentFormat(v)), schema.Text("amd-sev").Format("pve-qemu-sev-fmt").Of(sevFormat()),
		schema.Choice("arch", "x86_64", "aarch64"), schema.Integer("balloon").Min(0), schema.Choice("bios", "seabios", "ovmf"), schema.Integer("cores").Min(1),
		schema.Text("cpu").Format("pve-vm-cpu-conf").Of(cpuFormat(v)), schema.Number("cpulimit").Min(0).Max(128), schema.Integer("cpuunits").Min(1).Max(262144),
		schema.Choice("hugepages", "any", "2", "1024"), schema.Text("ivshmem").Of(ivshmemFormat()), schema.Boolean("keephugepages"),
		schema.Choice("keyboard", "de", "de-ch", "da", "en-gb", "en-us", "es", "fi", "fr", "fr-be",
			"fr-ca", "fr-ch", "hu", "is", "it", "ja", "lt", "mk", "nl", "no", "pl", "pt", "pt-br", "sv", "sl", "tr"),
		schema.Boolean("kvm"), schema.Boolean("localtime"), schema.Text("machine").Of(machineFormat(v)), schema.Text("memory").Of(memoryFormat()),
		schema.Boolean("numa"), schema.Text("rng0").Format("pve-qm-rng").Of(rngFormat()),
		schema.Choice("scsihw", "lsi", "lsi53c810", "virtio-scsi-pci", "virtio-scsi-single", "megasas", "pvscsi"),
		schema.Integer("shares").Min(0).Max(50000), schema.Text("smbios1").Format("pve-qm-smbios1").MaxLength(512).Of(smbiosFormat()), schema.Integer("smp").Min(1),
		schema.Integer("sockets").Min(1), schema.Text("spice_enhancements").Of(spiceFormat()), schema.Boolean("tablet"), schema.Boolean("tdf"),
		schema.Integer("vcpus").Min(1), schema.Text("vga").Of(vgaFormat()), schema.Text("watchdog").Format("pve-qm-watchdog").Of(watchdogFormat()),
	}
}

func cloudInitParams() []schema.Param {
	return []schema.Param{
		schema.Text("cicustom").Format("pve-qm-cicustom").Of(ciCustomFormat()), schema.Text("cipassword"), schema.Choice("citype", "configdrive2", "nocloud", "opennebula"),
		schema.Boolean("ciupgrade"), schema.Text("ciuser"), schema.Text("nameserver").Format("address-list"), schema.Text("searchdomain"),
		schema.Text("sshkeys").Format("urlencoded"), schema.Text("ipconfig").Format("pve-qm-ipconfig").Times(32).Of(ipConfigFormat()),
	}
}

func deviceParams(v Version) []schema.Param {
	serial := schema.Text("serial").Times(4).Pattern(`(/dev/[^,]+|socket)`)
	if v == V84 {
		serial = serial.Pattern(`(/dev/.+|socket)`)
	}
	out := []schema.Param{
		schema.Text("audio0").Of(audioFormat()), schema.Text("hostpci").Format("pve-qm-hostpci").Times(16).Of(hostPCIFormat(v)), serial,
		schema.Text("net").Times(32).Of(netFormatOf(v)), schema.Text("numa").Times(8).Of(numaFormat()), schema.Text("parallel").Times(3).Pattern(`/dev/parport\d+|/dev/usb/lp\d+`),
		schema.Text("usb").Times(14).Of(usbFormat()), schema.Text("virtiofs").Times(10).Of(virtioFSFormat()),
	}
	return append(out, driveParams(v)...)
}

func driveParams(v Version) []schema.Param {
	return []schema.Param{
		schema.Text("cdrom").Format("pve-qm-ide").Of(driveFormat("ide", v)), schema.Text("efidisk0").Of(driveFormat("efidisk", v)), schema.Text("tpmstate0").Of(driveFormat("tpmstate", v)),
		schema.Text("ide").Times(4).Of(driveFormat("ide", v)), schema.Text("sata").Times(6).Of(driveFormat("sata", v)), schema.Text("scsi").Times(31).Of(driveFormat("scsi", v)),
		schema.Text("virtio").Times(16).Of(driveFormat("virtio", v)), schema.Text("unused").Times(256).Of(driveFormat("unused", v)),
	}
}

// editParams are what only an update of a config takes.
func editParams() []schema.Param {
	return []schema.Param{
		schema.Text("delete").Format("pve-configid-list"), schema.Text("digest").MaxLength(40), schema.Boolean("force").Requires("delete"),
		schema.Text("revert").Format("pve-configid-list"), schema.Boolean("skiplock"),
	}
}

func createParams(v Version) []schema.Param {
	out := append(configParams(v), schema.VMID("vmid").Required(), schema.Text("archive").MaxLength(255), schema.Integer("bwlimit").Min(0), schema.Boolean("force").Requires("archive"),
		schema.Text("import-working-storage").Format("pve-storage-id"), schema.Boolean("live-restore"), schema.Text("pool").Format("pve-poolid"),
		schema.Boolean("start"), schema.Text("storage").Format("pve-storage-id"), schema.Boolean("unique").Requires("archive"))
	if v == V92 {
		out = append(out, schema.Boolean("ha-managed"))
	}
	return out
}

// diskNames are the drives that resize and template take.
func diskNames() []string {
	var out []string
	for _, bus := range []struct {
		name  string
		count int
	}{{"ide", 4}, {"scsi", 31}, {"virtio", 16}, {"sata", 6}} {
		out = append(out, numbered(bus.name, bus.count)...)
	}
	return append(out, "efidisk0", "tpmstate0")
}

// unnumbered is the kind of an option: net of net0.
func unnumbered(key string) string { return strings.TrimRight(key, "0123456789") }

// numbered returns name0, name1 … of which there are count.
func numbered(name string, count int) []string {
	out := make([]string, count)
	for i := range out {
		out[i] = name + strconv.Itoa(i)
	}
	return out
}
