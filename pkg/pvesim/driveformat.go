package pvesim

import "github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"

// This file has the formats of drives: every bus takes its own properties (PVE::QemuServer::Drive).

// driveFormat is that of the drives of a bus: ide, sata, scsi, virtio, efidisk, tpmstate or unused.
func driveFormat(bus string, v Version) schema.PropertyString {
	out := driveSyntax()
	if bus == "unused" {
		out.Params = []schema.Param{schema.Text("file").Format("pve-volume-id").Required()}
		return out
	}
	out.Params = []schema.Param{
		schema.Text("file").Format("pve-volume-id-or-qm-path").Required(), schema.Text("size").Format("disk-size"),
		schema.Text("import-from").Format("pve-volume-id-or-absolute-path"),
	}
	switch bus {
	case "efidisk":
		out.Params = append(out.Params, imageFormat(), schema.Choice("efitype", "2m", "4m"), schema.Boolean("pre-enrolled-keys"),
			schema.Choice("ms-cert", "2011", "2023", "2023w", "2023k"))
	case "tpmstate":
		out.Params = append(out.Params, schema.Choice("version", "v1.2", "v2.0"))
		if v == V92 {
			out.Params = append(out.Params, schema.Choice("format", "raw", "qcow2", "vmdk"))
		}
	default:
		out.Params = append(append(out.Params, imageFormat()), diskParams(bus, v)...)
		out.Aliases = append(out.Aliases, throttleAliases()...)
	}
	return out
}

// driveSyntax is what all drives have in common. It reads any of them, and checks nothing.
func driveSyntax() schema.PropertyString {
	return schema.PropertyString{DefaultKey: "file", Aliases: []schema.Alias{{Key: "volume", Of: "file"}}}
}

func imageFormat() schema.Param {
	return schema.Choice("format", "raw", "qcow", "qed", "qcow2", "vmdk", "cloop")
}

// diskParams are the properties of disks and CD-ROMs.
func diskParams(bus string, v Version) []schema.Param {
	out := append([]schema.Param{
		schema.Choice("aio", "native", "threads", "io_uring"), schema.Boolean("backup"), schema.Choice("cache", "none", "writethrough", "writeback", "unsafe", "directsync"),
		schema.Boolean("detect_zeroes"), schema.Choice("discard", "ignore", "on"), schema.Choice("media", "cdrom", "disk"), schema.Boolean("replicate"),
		schema.Choice("rerror", "ignore", "report", "stop"), schema.Text("serial").Format("urlencoded").MaxLength(60), schema.Boolean("shared"), schema.Boolean("snapshot"),
		schema.Choice("werror", "enospc", "ignore", "report", "stop"),
	}, throttleParams()...)
	if v == V84 {
		out = append(out, schema.Integer("cyls"), schema.Integer("heads"), schema.Integer("secs"), schema.Choice("trans", "none", "lba", "auto"))
	}
	if bus != "virtio" {
		out = append(out, schema.Boolean("ssd"), schema.Text("wwn").Pattern(`^(0x)[0-9a-fA-F]{16}`))
	}
	switch bus {
	case "ide":
		out = append(out, schema.Text("model").Format("urlencoded").MaxLength(120))
	case "virtio":
		out = append(out, schema.Boolean("iothread"), schema.Boolean("ro"))
	case "scsi":
		out = append(out, schema.Boolean("iothread"), schema.Boolean("ro"), schema.Boolean("scsiblock"), schema.Integer("queues").Min(2),
			schema.Text("product").Pattern(`[A-Za-z0-9\-_\s]{,16}`), schema.Text("vendor").Pattern(`[A-Za-z0-9\-_\s]{,8}`))
	}
	return out
}

// throttleParams are the limits of input and output.
func throttleParams() []schema.Param {
	var out []schema.Param
	for _, way := range []string{"", "_rd", "_wr"} {
		out = append(out, schema.Integer("bps"+way), schema.Integer("bps"+way+"_max_length").Min(1), schema.Number("mbps"+way), schema.Number("mbps"+way+"_max"),
			schema.Integer("iops"+way), schema.Integer("iops"+way+"_max"), schema.Integer("iops"+way+"_max_length").Min(1))
	}
	return out
}

// throttleAliases are the older names of some limits.
func throttleAliases() []schema.Alias {
	var out []schema.Alias
	for _, name := range []string{"bps_rd", "bps_wr", "iops_rd", "iops_wr"} {
		out = append(out, schema.Alias{Key: name + "_length", Of: name + "_max_length"})
	}
	return out
}
