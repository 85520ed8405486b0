package pvesim

import "strconv"

// This file is the parameter table of a VM's configuration: what PUT and POST /nodes/{node}/qemu/{vmid}/config and POST
// /nodes/{node}/qemu accept.

// configParams are the options of a VM's config.
func configParams(v Version) []param {
	out := append(generalParams(), hardwareParams()...)
	out = append(out, cloudInitParams()...)
	out = append(out, deviceParams()...)
	if v == V92 {
		out = append(out, boolean("allow-ksm"), text("intel-tdx"))
	}
	return out
}

func generalParams() []param {
	return []param{
		boolean("acpi"), text("args"), boolean("autostart"), text("boot"), text("bootdisk").like(`(ide|sata|scsi|virtio)\d+`),
		text("description").long(8192), boolean("freeze"), text("hookscript"), text("hotplug").as("pve-hotplug-features"),
		choice("lock", "backup", "clone", "create", "migrate", "rollback", "snapshot", "snapshot-delete", "suspending", "suspended"),
		number("migrate_downtime").min(0), integer("migrate_speed").min(0), text("name").as("dns-name"), boolean("onboot"),
		choice("ostype", "other", "wxp", "w2k", "w2k3", "w2k8", "wvista", "win7", "win8", "win10", "win11", "l24", "l26", "solaris"),
		boolean("protection"), boolean("reboot"), text("startdate").like(`(now|\d{4}-\d{1,2}-\d{1,2}(T\d{1,2}:\d{1,2}:\d{1,2})?)`),
		text("startup").as("pve-startup-order"), text("tags").as("pve-tag-list"), boolean("template"),
		text("vmgenid").like(`(?:[a-fA-F0-9]{8}(?:-[a-fA-F0-9]{4}){3}-[a-fA-F0-9]{12}|[01])`), text("vmstatestorage").as("pve-storage-id"),
	}
}

func hardwareParams() []param {
	return []param{
		text("affinity").as("pve-cpuset"), text("agent").of(agentFormat()), text("amd-sev"), choice("arch", "x86_64", "aarch64"),
		integer("balloon").min(0), choice("bios", "seabios", "ovmf"), integer("cores").min(1), text("cpu"),
		number("cpulimit").min(0).max(128), integer("cpuunits").min(1).max(262144), choice("hugepages", "any", "2", "1024"),
		text("ivshmem"), boolean("keephugepages"), choice("keyboard", "de", "de-ch", "da", "en-gb", "en-us", "es", "fi", "fr", "fr-be",
			"fr-ca", "fr-ch", "hu", "is", "it", "ja", "lt", "mk", "nl", "no", "pl", "pt", "pt-br", "sv", "sl", "tr"),
		boolean("kvm"), boolean("localtime"), text("machine").of(machineFormat()), text("memory").of(propertyString{
			defaultKey: "current",
			props:      []param{integer("current").min(16).required()},
		}),
		boolean("numa"), text("rng0").of(rngFormat()), choice("scsihw", "lsi", "lsi53c810", "virtio-scsi-pci", "virtio-scsi-single", "megasas", "pvscsi"),
		integer("shares").min(0).max(50000), text("smbios1").long(512).of(smbiosFormat()), integer("smp").min(1),
		integer("sockets").min(1), text("spice_enhancements"), boolean("tablet"), boolean("tdf"), integer("vcpus").min(1), text("vga").of(vgaFormat()),
		text("watchdog"),
	}
}

func cloudInitParams() []param {
	return []param{
		text("cicustom"), text("cipassword"), choice("citype", "configdrive2", "nocloud", "opennebula"), boolean("ciupgrade"),
		text("ciuser"), text("nameserver"), text("searchdomain"), text("sshkeys").as("urlencoded"),
		text("ipconfig").times(32).of(ipConfigFormat()),
	}
}

func deviceParams() []param {
	drive := driveFormat()
	return []param{
		text("audio0"), text("cdrom"), text("efidisk0").of(drive), text("tpmstate0").of(drive),
		text("hostpci").times(16), text("ide").times(4).of(drive), text("sata").times(6).of(drive), text("scsi").times(31).of(drive),
		text("virtio").times(16).of(drive), text("net").times(32).of(netFormat()), text("numa").times(8).of(numaFormat()),
		text("parallel").times(3), text("serial").times(4).like(`(/dev/[^,]+|socket)`), text("unused").times(256), text("usb").times(14),
		text("virtiofs").times(10),
	}
}

// editParams are what only an update of a config takes.
func editParams() []param {
	return []param{
		text("delete"), text("digest").long(40), boolean("force").needs("delete"), text("revert"), boolean("skiplock"),
	}
}

func createParams(v Version) []param {
	out := append(configParams(v), vmidParam("vmid").required(), text("archive").long(255), integer("bwlimit").min(0), boolean("force").needs("archive"),
		text("import-working-storage").as("pve-storage-id"), boolean("live-restore"), text("pool").as("pve-poolid"),
		boolean("start"), text("storage").as("pve-storage-id"), boolean("unique").needs("archive"))
	if v == V92 {
		out = append(out, boolean("ha-managed"))
	}
	return out
}

func netModels() []string {
	return []string{
		"e1000", "e1000-82540em", "e1000-82544gc", "e1000-82545em", "e1000e", "i82551", "i82557b", "i82559er", "ne2k_isa",
		"ne2k_pci", "pcnet", "rtl8139", "virtio", "vmxnet3",
	}
}

func netFormat() propertyString {
	return propertyString{defaultKey: "model", aliases: netModels(), aliasKey: "macaddr", props: []param{
		choice("model", netModels()...).required(), text("macaddr").as("mac-addr"), text("bridge"), boolean("firewall"),
		boolean("host-tunnel"), boolean("link_down"), integer("mtu").min(1).max(65520), integer("queues").min(0).max(64),
		number("rate").min(0), integer("tag").min(1).max(4094), text("trunks").like(`\d+(?:-\d+)?(?:;\d+(?:-\d+)?)*`),
	}}
}

func ipConfigFormat() propertyString {
	return propertyString{props: []param{
		text("ip").as("pve-ipv4-config"), text("gw").needs("ip"), text("ip6").as("pve-ipv6-config"), text("gw6").needs("ip6"),
	}}
}

func numaFormat() propertyString {
	const cpus = `\d+(?:-\d+)?(?:;\d+(?:-\d+)?)*`
	return propertyString{props: []param{
		text("cpus").like(cpus).required(), text("hostnodes").like(cpus), number("memory"), choice("policy", "preferred", "bind", "interleave"),
	}}
}

func agentFormat() propertyString {
	return propertyString{defaultKey: "enabled", props: []param{
		boolean("enabled").required(), boolean("freeze-fs"), boolean("freeze-fs-on-backup"), boolean("guest-fsfreeze"),
		boolean("fstrim_cloned_disks"), choice("type", "virtio", "isa"),
	}}
}

func smbiosFormat() propertyString {
	base64 := `[A-Za-z0-9+/]+={0,2}`
	return propertyString{props: []param{
		text("uuid").like(`[a-fA-F0-9]{8}(?:-[a-fA-F0-9]{4}){3}-[a-fA-F0-9]{12}`), text("version").like(base64), text("serial").like(base64),
		text("manufacturer").like(base64), text("product").like(base64), text("sku").like(base64), text("family").like(base64), boolean("base64"),
	}}
}

func machineFormat() propertyString {
	return propertyString{defaultKey: "type", props: []param{
		text("type").long(40).like(`(pc|pc(-i440fx)?-\d+(\.\d+)+(\+pve\d+)?(\.pxe)?|q35|pc-q35-\d+(\.\d+)+(\+pve\d+)?(\.pxe)?|virt(?:-\d+(\.\d+)+)?(\+pve\d+)?)`),
		boolean("enable-s3"), boolean("enable-s4"), choice("viommu", "intel", "virtio"), number("aw-bits").min(32).max(64),
	}}
}

func rngFormat() propertyString {
	return propertyString{defaultKey: "source", props: []param{
		choice("source", "/dev/urandom", "/dev/random", "/dev/hwrng").required(), integer("max_bytes"), integer("period"),
	}}
}

func vgaFormat() propertyString {
	return propertyString{defaultKey: "type", props: []param{
		choice("type", "cirrus", "qxl", "qxl2", "qxl3", "qxl4", "none", "serial0", "serial1", "serial2", "serial3", "std", "virtio", "virtio-gl", "vmware"),
		integer("memory").min(4).max(512), choice("clipboard", "vnc"),
	}}
}

// driveFormat checks the properties that matter most of a drive; throttling limits are taken as they come.
func driveFormat() propertyString {
	return propertyString{defaultKey: "file", open: true, props: []param{
		text("file").required(), choice("media", "cdrom", "disk"), choice("format", "raw", "qcow", "qed", "qcow2", "vmdk", "cloop"),
		choice("cache", "none", "writethrough", "writeback", "unsafe", "directsync"), choice("aio", "native", "threads", "io_uring"),
		choice("discard", "ignore", "on"), boolean("ssd"), boolean("iothread"), boolean("backup"), boolean("replicate"),
		text("serial").long(60), text("import-from"),
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
