package pvesim

import (
	"strconv"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

// This file is the parameter table of a VM's configuration: what PUT and POST /nodes/{node}/qemu/{vmid}/config and POST
// /nodes/{node}/qemu accept.

// configParams are the options of a VM's config.
func configParams(v Version) []schema.Param {
	out := append(generalParams(), hardwareParams()...)
	out = append(out, cloudInitParams()...)
	out = append(out, deviceParams()...)
	if v == V92 {
		out = append(out, schema.Boolean("allow-ksm"), schema.Text("intel-tdx"))
	}
	return out
}

func generalParams() []schema.Param {
	return []schema.Param{
		schema.Boolean("acpi"), schema.Text("args"), schema.Boolean("autostart"), schema.Text("boot"), schema.Text("bootdisk").Pattern(`(ide|sata|scsi|virtio)\d+`),
		schema.Text("description").MaxLength(8192), schema.Boolean("freeze"), schema.Text("hookscript"), schema.Text("hotplug").Format("pve-hotplug-features"),
		schema.Choice("lock", "backup", "clone", "create", "migrate", "rollback", "snapshot", "snapshot-delete", "suspending", "suspended"),
		schema.Number("migrate_downtime").Min(0), schema.Integer("migrate_speed").Min(0), schema.Text("name").Format("dns-name"), schema.Boolean("onboot"),
		schema.Choice("ostype", "other", "wxp", "w2k", "w2k3", "w2k8", "wvista", "win7", "win8", "win10", "win11", "l24", "l26", "solaris"),
		schema.Boolean("protection"), schema.Boolean("reboot"), schema.Text("startdate").Pattern(`(now|\d{4}-\d{1,2}-\d{1,2}(T\d{1,2}:\d{1,2}:\d{1,2})?)`),
		schema.Text("startup").Format("pve-startup-order"), schema.Text("tags").Format("pve-tag-list"), schema.Boolean("template"),
		schema.Text("vmgenid").Pattern(`(?:[a-fA-F0-9]{8}(?:-[a-fA-F0-9]{4}){3}-[a-fA-F0-9]{12}|[01])`), schema.Text("vmstatestorage").Format("pve-storage-id"),
	}
}

func hardwareParams() []schema.Param {
	return []schema.Param{
		schema.Text("affinity").Format("pve-cpuset"), schema.Text("agent").Of(agentFormat()), schema.Text("amd-sev"), schema.Choice("arch", "x86_64", "aarch64"),
		schema.Integer("balloon").Min(0), schema.Choice("bios", "seabios", "ovmf"), schema.Integer("cores").Min(1), schema.Text("cpu"),
		schema.Number("cpulimit").Min(0).Max(128), schema.Integer("cpuunits").Min(1).Max(262144), schema.Choice("hugepages", "any", "2", "1024"),
		schema.Text("ivshmem"), schema.Boolean("keephugepages"), schema.Choice("keyboard", "de", "de-ch", "da", "en-gb", "en-us", "es", "fi", "fr", "fr-be",
			"fr-ca", "fr-ch", "hu", "is", "it", "ja", "lt", "mk", "nl", "no", "pl", "pt", "pt-br", "sv", "sl", "tr"),
		schema.Boolean("kvm"), schema.Boolean("localtime"), schema.Text("machine").Of(machineFormat()), schema.Text("memory").Of(schema.PropertyString{
			DefaultKey: "current",
			Params:     []schema.Param{schema.Integer("current").Min(16).Required()},
		}),
		schema.Boolean("numa"), schema.Text("rng0").Of(rngFormat()), schema.Choice("scsihw", "lsi", "lsi53c810", "virtio-scsi-pci", "virtio-scsi-single", "megasas", "pvscsi"),
		schema.Integer("shares").Min(0).Max(50000), schema.Text("smbios1").MaxLength(512).Of(smbiosFormat()), schema.Integer("smp").Min(1),
		schema.Integer("sockets").Min(1), schema.Text("spice_enhancements"), schema.Boolean("tablet"), schema.Boolean("tdf"), schema.Integer("vcpus").Min(1), schema.Text("vga").Of(vgaFormat()),
		schema.Text("watchdog"),
	}
}

func cloudInitParams() []schema.Param {
	return []schema.Param{
		schema.Text("cicustom"), schema.Text("cipassword"), schema.Choice("citype", "configdrive2", "nocloud", "opennebula"), schema.Boolean("ciupgrade"),
		schema.Text("ciuser"), schema.Text("nameserver"), schema.Text("searchdomain"), schema.Text("sshkeys").Format("urlencoded"),
		schema.Text("ipconfig").Times(32).Of(ipConfigFormat()),
	}
}

func deviceParams() []schema.Param {
	drive := driveFormat()
	return []schema.Param{
		schema.Text("audio0"), schema.Text("cdrom"), schema.Text("efidisk0").Of(drive), schema.Text("tpmstate0").Of(drive),
		schema.Text("hostpci").Times(16), schema.Text("ide").Times(4).Of(drive), schema.Text("sata").Times(6).Of(drive), schema.Text("scsi").Times(31).Of(drive),
		schema.Text("virtio").Times(16).Of(drive), schema.Text("net").Times(32).Of(netFormat()), schema.Text("numa").Times(8).Of(numaFormat()),
		schema.Text("parallel").Times(3), schema.Text("serial").Times(4).Pattern(`(/dev/[^,]+|socket)`), schema.Text("unused").Times(256), schema.Text("usb").Times(14),
		schema.Text("virtiofs").Times(10),
	}
}

// editParams are what only an update of a config takes.
func editParams() []schema.Param {
	return []schema.Param{
		schema.Text("delete"), schema.Text("digest").MaxLength(40), schema.Boolean("force").Requires("delete"), schema.Text("revert"), schema.Boolean("skiplock"),
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

func netModels() []string {
	return []string{
		"e1000", "e1000-82540em", "e1000-82544gc", "e1000-82545em", "e1000e", "i82551", "i82557b", "i82559er", "ne2k_isa",
		"ne2k_pci", "pcnet", "rtl8139", "virtio", "vmxnet3",
	}
}

func netFormat() schema.PropertyString {
	return schema.PropertyString{DefaultKey: "model", Aliases: netModels(), AliasKey: "macaddr", Params: []schema.Param{
		schema.Choice("model", netModels()...).Required(), schema.Text("macaddr").Format("mac-addr"), schema.Text("bridge"), schema.Boolean("firewall"),
		schema.Boolean("host-tunnel"), schema.Boolean("link_down"), schema.Integer("mtu").Min(1).Max(65520), schema.Integer("queues").Min(0).Max(64),
		schema.Number("rate").Min(0), schema.Integer("tag").Min(1).Max(4094), schema.Text("trunks").Pattern(`\d+(?:-\d+)?(?:;\d+(?:-\d+)?)*`),
	}}
}

func ipConfigFormat() schema.PropertyString {
	return schema.PropertyString{Params: []schema.Param{
		schema.Text("ip").Format("pve-ipv4-config"), schema.Text("gw").Requires("ip"), schema.Text("ip6").Format("pve-ipv6-config"), schema.Text("gw6").Requires("ip6"),
	}}
}

func numaFormat() schema.PropertyString {
	const cpus = `\d+(?:-\d+)?(?:;\d+(?:-\d+)?)*`
	return schema.PropertyString{Params: []schema.Param{
		schema.Text("cpus").Pattern(cpus).Required(), schema.Text("hostnodes").Pattern(cpus), schema.Number("memory"), schema.Choice("policy", "preferred", "bind", "interleave"),
	}}
}

func agentFormat() schema.PropertyString {
	return schema.PropertyString{DefaultKey: "enabled", Params: []schema.Param{
		schema.Boolean("enabled").Required(), schema.Boolean("freeze-fs"), schema.Boolean("freeze-fs-on-backup"), schema.Boolean("guest-fsfreeze"),
		schema.Boolean("fstrim_cloned_disks"), schema.Choice("type", "virtio", "isa"),
	}}
}

func smbiosFormat() schema.PropertyString {
	base64 := `[A-Za-z0-9+/]+={0,2}`
	return schema.PropertyString{Params: []schema.Param{
		schema.Text("uuid").Pattern(`[a-fA-F0-9]{8}(?:-[a-fA-F0-9]{4}){3}-[a-fA-F0-9]{12}`), schema.Text("version").Pattern(base64), schema.Text("serial").Pattern(base64),
		schema.Text("manufacturer").Pattern(base64), schema.Text("product").Pattern(base64), schema.Text("sku").Pattern(base64), schema.Text("family").Pattern(base64), schema.Boolean("base64"),
	}}
}

func machineFormat() schema.PropertyString {
	return schema.PropertyString{DefaultKey: "type", Params: []schema.Param{
		schema.Text("type").MaxLength(40).Pattern(`(pc|pc(-i440fx)?-\d+(\.\d+)+(\+pve\d+)?(\.pxe)?|q35|pc-q35-\d+(\.\d+)+(\+pve\d+)?(\.pxe)?|virt(?:-\d+(\.\d+)+)?(\+pve\d+)?)`),
		schema.Boolean("enable-s3"), schema.Boolean("enable-s4"), schema.Choice("viommu", "intel", "virtio"), schema.Number("aw-bits").Min(32).Max(64),
	}}
}

func rngFormat() schema.PropertyString {
	return schema.PropertyString{DefaultKey: "source", Params: []schema.Param{
		schema.Choice("source", "/dev/urandom", "/dev/random", "/dev/hwrng").Required(), schema.Integer("max_bytes"), schema.Integer("period"),
	}}
}

func vgaFormat() schema.PropertyString {
	return schema.PropertyString{DefaultKey: "type", Params: []schema.Param{
		schema.Choice("type", "cirrus", "qxl", "qxl2", "qxl3", "qxl4", "none", "serial0", "serial1", "serial2", "serial3", "std", "virtio", "virtio-gl", "vmware"),
		schema.Integer("memory").Min(4).Max(512), schema.Choice("clipboard", "vnc"),
	}}
}

// driveFormat checks the properties that matter most of a drive; throttling limits are taken as they come.
func driveFormat() schema.PropertyString {
	return schema.PropertyString{DefaultKey: "file", Open: true, Params: []schema.Param{
		schema.Text("file").Required(), schema.Choice("media", "cdrom", "disk"), schema.Choice("format", "raw", "qcow", "qed", "qcow2", "vmdk", "cloop"),
		schema.Choice("cache", "none", "writethrough", "writeback", "unsafe", "directsync"), schema.Choice("aio", "native", "threads", "io_uring"),
		schema.Choice("discard", "ignore", "on"), schema.Boolean("ssd"), schema.Boolean("iothread"), schema.Boolean("backup"), schema.Boolean("replicate"),
		schema.Text("serial").MaxLength(60), schema.Text("import-from"),
	}}
}

// diskNames are the drives that resize and template take.
func diskNames() []string {
	var out []string
	for _, bus := range []struct {
		name  string
		count int
	}{{"ide", 4}, {"scsi", 31}, {"virtio", 16}, {"sata", 6}} {
		for i := range bus.count {
			out = append(out, bus.name+strconv.Itoa(i))
		}
	}
	return append(out, "efidisk0", "tpmstate0")
}
