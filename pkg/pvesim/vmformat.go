package pvesim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

// This file has the formats of options that are property strings, drives aside (PVE::QemuServer and its packages).

func netModels() []string {
	return []string{
		"e1000", "e1000-82540em", "e1000-82544gc", "e1000-82545em", "e1000e", "i82551", "i82557b", "i82559er", "ne2k_isa",
		"ne2k_pci", "pcnet", "rtl8139", "virtio", "vmxnet3",
	}
}

// netFormat is the format of netN of the latest release, which reads those of all.
func netFormat() schema.PropertyString { return netFormatOf(V92) }

func netFormatOf(v Version) schema.PropertyString {
	out := schema.PropertyString{DefaultKey: "model", Params: []schema.Param{
		schema.Choice("model", netModels()...).Required(), schema.Text("macaddr").Format("mac-addr"), schema.Text("bridge").Format("pve-bridge-id"), schema.Boolean("firewall"),
		schema.Boolean("link_down"), schema.Integer("mtu").Min(1).Max(65520), schema.Integer("queues").Min(0).Max(64),
		schema.Number("rate").Min(0), schema.Integer("tag").Min(1).Max(4094), schema.Text("trunks").Pattern(numberRanges),
	}}
	for _, model := range netModels() {
		out.Aliases = append(out.Aliases, schema.Alias{Key: model, Of: "macaddr", KeyOf: "model"})
	}
	if v == V92 {
		out.Params = append(out.Params, schema.Boolean("host-tunnel"))
	}
	return out
}

// numberRanges is a list of numbers and ranges such as 0-1;4-5.
const numberRanges = `\d+(?:-\d+)?(?:;\d+(?:-\d+)?)*`

func ipConfigFormat() schema.PropertyString {
	return schema.PropertyString{Params: []schema.Param{
		schema.Text("ip").Format("pve-ipv4-config"), schema.Text("gw").Format("ipv4").Requires("ip"),
		schema.Text("ip6").Format("pve-ipv6-config"), schema.Text("gw6").Format("ipv6").Requires("ip6"),
	}}
}

func numaFormat() schema.PropertyString {
	return schema.PropertyString{Params: []schema.Param{
		schema.Text("cpus").Pattern(numberRanges).Required(), schema.Text("hostnodes").Pattern(numberRanges), schema.Number("memory"),
		schema.Choice("policy", "preferred", "bind", "interleave"),
	}}
}

func agentFormat(v Version) schema.PropertyString {
	out := schema.PropertyString{DefaultKey: "enabled", Params: []schema.Param{
		schema.Boolean("enabled").Required(), schema.Boolean("fstrim_cloned_disks"), schema.Choice("type", "virtio", "isa"),
	}}
	if v == V84 {
		out.Params = append(out.Params, schema.Boolean("freeze-fs-on-backup"))
		return out
	}
	out.Params = append(out.Params, schema.Boolean("freeze-fs"))
	out.Aliases = []schema.Alias{{Key: "freeze-fs-on-backup", Of: "freeze-fs"}, {Key: "guest-fsfreeze", Of: "freeze-fs"}}
	return out
}

func smbiosFormat() schema.PropertyString {
	const base64 = `[A-Za-z0-9+/]+={0,2}`
	return schema.PropertyString{Params: []schema.Param{
		schema.Text("uuid").Pattern(`[a-fA-F0-9]{8}(?:-[a-fA-F0-9]{4}){3}-[a-fA-F0-9]{12}`), schema.Text("version").Pattern(base64), schema.Text("serial").Pattern(base64),
		schema.Text("manufacturer").Pattern(base64), schema.Text("product").Pattern(base64), schema.Text("sku").Pattern(base64), schema.Text("family").Pattern(base64), schema.Boolean("base64"),
	}}
}

func machineFormat(v Version) schema.PropertyString {
	out := schema.PropertyString{DefaultKey: "type", Params: []schema.Param{
		schema.Text("type").MaxLength(40).Pattern(`(pc|pc(-i440fx)?-\d+(\.\d+)+(\+pve\d+)?(\.pxe)?|q35|pc-q35-\d+(\.\d+)+(\+pve\d+)?(\.pxe)?|virt(?:-\d+(\.\d+)+)?(\+pve\d+)?)`),
		schema.Boolean("enable-s3"), schema.Boolean("enable-s4"), schema.Choice("viommu", "intel", "virtio"),
	}}
	if v == V92 {
		out.Params = append(out.Params, schema.Number("aw-bits").Min(32).Max(64))
	}
	return out
}

func memoryFormat() schema.PropertyString {
	return schema.PropertyString{DefaultKey: "current", Params: []schema.Param{schema.Integer("current").Min(16).Required()}}
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

func bootFormat() schema.PropertyString {
	return schema.PropertyString{DefaultKey: "legacy", Params: []schema.Param{
		schema.Text("legacy").Pattern(`[acdn]{1,4}`), schema.Text("order").Format("pve-qm-bootdev-list"),
	}}
}

func watchdogFormat() schema.PropertyString {
	return schema.PropertyString{DefaultKey: "model", Params: []schema.Param{
		schema.Choice("model", "i6300esb", "ib700"), schema.Choice("action", "reset", "shutdown", "poweroff", "pause", "debug", "none"),
	}}
}

func audioFormat() schema.PropertyString {
	return schema.PropertyString{Params: []schema.Param{
		schema.Choice("device", "ich9-intel-hda", "intel-hda", "AC97").Required(), schema.Choice("driver", "spice", "none"),
	}}
}

func ivshmemFormat() schema.PropertyString {
	return schema.PropertyString{Params: []schema.Param{schema.Integer("size").Min(1).Required(), schema.Text("name").Pattern(`[a-zA-Z0-9\-]+`)}}
}

func spiceFormat() schema.PropertyString {
	return schema.PropertyString{Params: []schema.Param{schema.Boolean("foldersharing"), schema.Choice("videostreaming", "off", "all", "filter")}}
}

func ciCustomFormat() schema.PropertyString {
	const volume = "pve-volume-id"
	return schema.PropertyString{Params: []schema.Param{
		schema.Text("meta").Format(volume), schema.Text("network").Format(volume), schema.Text("user").Format(volume), schema.Text("vendor").Format(volume),
	}}
}

func hostPCIFormat(v Version) schema.PropertyString {
	const address, id = `(?:[a-f0-9]{4,}:)?[a-f0-9]{2}:[a-f0-9]{2}(?:\.[a-f0-9])?`, `0x[0-9a-fA-F]{4}`
	out := schema.PropertyString{DefaultKey: "host", Params: []schema.Param{
		schema.Text("host").Pattern(address + `(;` + address + `)*`), schema.Text("mapping").Format("pve-configid"), schema.Boolean("rombar"), schema.Text("romfile").Pattern(`[^,;]+`),
		schema.Boolean("pcie"), schema.Boolean("x-vga"), schema.Boolean("legacy-igd"), schema.Text("mdev").Pattern(`[^/\.:]+`), schema.Text("vendor-id").Pattern(id),
		schema.Text("device-id").Pattern(id), schema.Text("sub-vendor-id").Pattern(id), schema.Text("sub-device-id").Pattern(id),
	}}
	if v == V92 {
		out.Params = append(out.Params, schema.Choice("driver", "vfio", "keep"))
	}
	return out
}

func usbFormat() schema.PropertyString {
	const device = `(?:(?:((0x)?([0-9A-Fa-f]{4}):(0x)?([0-9A-Fa-f]{4})))|(?:((\d+)\-(\d+(\.\d+)*)))|[Ss][Pp][Ii][Cc][Ee])`
	return schema.PropertyString{DefaultKey: "host", Params: []schema.Param{
		schema.Text("host").Pattern(device), schema.Text("mapping").Format("pve-configid"), schema.Boolean("usb3"),
	}}
}

func virtioFSFormat() schema.PropertyString {
	return schema.PropertyString{DefaultKey: "dirid", Params: []schema.Param{
		schema.Text("dirid").Format("pve-configid").Required(), schema.Choice("cache", "auto", "always", "metadata", "never"),
		schema.Boolean("direct-io"), schema.Boolean("expose-acl"), schema.Boolean("expose-xattr"),
	}}
}

func sevFormat() schema.PropertyString {
	return schema.PropertyString{DefaultKey: "type", Params: []schema.Param{
		schema.Text("type").Pattern(`(std|es|snp)`).Required(), schema.Boolean("allow-smt"), schema.Boolean("kernel-hashes"), schema.Boolean("no-debug"), schema.Boolean("no-key-sharing"),
	}}
}

func tdxFormat() schema.PropertyString {
	return schema.PropertyString{DefaultKey: "type", Params: []schema.Param{
		schema.Text("type").Pattern(`tdx`).Required(), schema.Boolean("attestation").Required(), schema.Integer("vsock-cid").Min(2), schema.Integer("vsock-port").Min(0),
	}}
}

// cpuFormat is PVE::QemuServer::CPUConfig's: a model, and flags that a VM may switch.
func cpuFormat(v Version) schema.PropertyString {
	const flag = `[+-][a-zA-Z0-9\-_.]+`
	out := schema.PropertyString{DefaultKey: "cputype", Whole: v.cpuRefusal, Params: []schema.Param{
		schema.Text("cputype"), schema.Choice("reported-model", cpuModels()...), schema.Boolean("hidden"), schema.Text("hv-vendor-id").Pattern(`[a-zA-Z0-9]{1,12}`),
		schema.Text("flags").Pattern(flag + `(;` + flag + `)*`), schema.Text("phys-bits").Format("pve-phys-bits"),
	}}
	if v == V92 {
		out.Params = append(out.Params, schema.Integer("guest-phys-bits").Min(32).Max(64), schema.Integer("level"))
	}
	return out
}

// cpuRefusal is validate_vm_cpu_conf, but for custom models (missingCPUModel), which not every world has.
func (v Version) cpuRefusal(p schema.Properties) string {
	model := p["cputype"]
	if model != "" && !strings.HasPrefix(model, customCPU) && !slices.Contains(cpuModels(), model) {
		return fmt.Sprintf("Built-in cputype '%s' is not defined (missing 'custom-' prefix?)", model)
	}
	for flag := range strings.SplitSeq(p["flags"], ";") {
		if flag != "" && !slices.Contains(v.cpuFlags(), flag[1:]) {
			return "VM-specific CPU flags must be a subset of: " + strings.Join(v.cpuFlags(), ", ")
		}
	}
	if p["reported-model"] != "" {
		return "Property 'reported-model' not allowed in VM-specific CPU config."
	}
	return ""
}

func (v Version) cpuFlags() []string {
	if v == V84 {
		return strings.Fields("pcid spec-ctrl ibpb ssbd virt-ssbd amd-ssbd amd-no-ssb pdpe1gb md-clear hv-tlbflush hv-evmcs aes")
	}
	return strings.Fields("aes amd-no-ssb amd-ssbd hv-evmcs hv-tlbflush ibpb md-clear nested-virt pcid pdpe1gb spec-ctrl ssbd virt-ssbd")
}

func cpuModels() []string {
	return strings.Fields(`486 a64fx athlon Broadwell Broadwell-IBRS Broadwell-noTSX Broadwell-noTSX-IBRS Cascadelake-Server Cascadelake-Server-noTSX
		Cascadelake-Server-v2 Cascadelake-Server-v4 Cascadelake-Server-v5 ClearwaterForest Conroe Cooperlake Cooperlake-v2 core2duo coreduo cortex-a35
		cortex-a53 cortex-a55 cortex-a57 cortex-a710 cortex-a72 cortex-a76 EPYC EPYC-Genoa EPYC-Genoa-v2 EPYC-IBPB EPYC-Milan EPYC-Milan-v2 EPYC-Milan-v3
		EPYC-Rome EPYC-Rome-v2 EPYC-Rome-v3 EPYC-Rome-v4 EPYC-Rome-v5 EPYC-Turin EPYC-v3 EPYC-v4 EPYC-v5 GraniteRapids GraniteRapids-v2 GraniteRapids-v3
		Haswell Haswell-IBRS Haswell-noTSX Haswell-noTSX-IBRS host Icelake-Client Icelake-Client-noTSX Icelake-Server Icelake-Server-noTSX
		Icelake-Server-v3 Icelake-Server-v4 Icelake-Server-v5 Icelake-Server-v6 Icelake-Server-v7 IvyBridge IvyBridge-IBRS KnightsMill kvm32 kvm64 max
		Nehalem Nehalem-IBRS neoverse-n1 neoverse-n2 neoverse-v1 Opteron_G1 Opteron_G2 Opteron_G3 Opteron_G4 Opteron_G5 Penryn pentium pentium2 pentium3
		phenom qemu32 qemu64 SandyBridge SandyBridge-IBRS SapphireRapids SapphireRapids-v2 SapphireRapids-v3 SapphireRapids-v4 SierraForest SierraForest-v2
		SierraForest-v3 Skylake-Client Skylake-Client-IBRS Skylake-Client-noTSX-IBRS Skylake-Client-v4 Skylake-Server Skylake-Server-IBRS
		Skylake-Server-noTSX-IBRS Skylake-Server-v4 Skylake-Server-v5 Westmere Westmere-IBRS x86-64-v2 x86-64-v2-AES x86-64-v3 x86-64-v4`)
}
