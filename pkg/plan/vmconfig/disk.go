package vmconfig

import (
	"strconv"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

func diskOptionRows() []row[v1beta1.DiskOptions] {
	type options = v1beta1.DiskOptions
	rows := []row[options]{
		{Field: at("cache", "", "cache", Reboot), codec: text(func(o *options) *v1beta1.DiskCache { return &o.Cache }), usual: "none"},
		{Field: at("aio", "", "aio", Reboot), codec: text(func(o *options) *v1beta1.DiskAIO { return &o.AIO })},
		{Field: at("discard", "", "discard", Reboot), codec: flag(func(o *options) **bool { return &o.Discard }, "ignore", "on"), usual: "ignore"},
		{Field: at("ssd", "", "ssd", Reboot), codec: flag(func(o *options) **bool { return &o.SSD }, "0", "1"), usual: "0", same: sameTruth},
		{Field: at("ioThread", "", "iothread", Reboot), codec: flag(func(o *options) **bool { return &o.IOThread }, "0", "1"), usual: "0", same: sameTruth},
		{Field: at("backup", "", "backup", Live), codec: flag(func(o *options) **bool { return &o.Backup }, "0", "1"), usual: "1", same: sameTruth},
		{Field: at("replicate", "", "replicate", Live), codec: flag(func(o *options) **bool { return &o.Replicate }, "0", "1"), usual: "1", same: sameTruth},
		{Field: at("readOnly", "", "ro", Reboot), codec: flag(func(o *options) **bool { return &o.ReadOnly }, "0", "1"), usual: "0", same: sameTruth},
		{Field: at("serial", "", "serial", Reboot), codec: text(func(o *options) *string { return &o.Serial })},
	}
	limit := func(path, part string, of func(*v1beta1.DiskLimits) *int32, excludes ...string) row[options] {
		return row[options]{
			Field: at("limits."+path, "", part, Live), codec: number(func(o *options) *int32 { return of(&o.Limits) }), usual: "0", same: sameNumber, excludes: excludes,
		}
	}
	type limits = v1beta1.DiskLimits
	return append(rows,
		limit("readMiBps", "mbps_rd", func(l *limits) *int32 { return &l.ReadMiBps }, "mbps", "bps", "bps_rd"),
		limit("readBurstMiBps", "mbps_rd_max", func(l *limits) *int32 { return &l.ReadBurstMiBps }, "mbps_max"),
		limit("writeMiBps", "mbps_wr", func(l *limits) *int32 { return &l.WriteMiBps }, "mbps", "bps", "bps_wr"),
		limit("writeBurstMiBps", "mbps_wr_max", func(l *limits) *int32 { return &l.WriteBurstMiBps }, "mbps_max"),
		limit("readIOPS", "iops_rd", func(l *limits) *int32 { return &l.ReadIOPS }, "iops"),
		limit("readBurstIOPS", "iops_rd_max", func(l *limits) *int32 { return &l.ReadBurstIOPS }, "iops_max"),
		limit("writeIOPS", "iops_wr", func(l *limits) *int32 { return &l.WriteIOPS }, "iops"),
		limit("writeBurstIOPS", "iops_wr_max", func(l *limits) *int32 { return &l.WriteBurstIOPS }, "iops_max"),
	)
}

// storage is the storage of a small disk whose size Proxmox VE decides itself: `storage:1` makes it.
func storage[T any](at func(*T) *string) codec[T] {
	return codec[T]{
		encode: func(t *T) (string, bool) { return *at(t) + ":1", *at(t) != "" },
		decode: func(t *T, volume string) { *at(t) = string(Storage(proxmox.VolumeID(volume))) },
	}
}

func sameStorage(a, b string) bool {
	return a != "" && Storage(proxmox.VolumeID(a)) == Storage(proxmox.VolumeID(b))
}

// newDisk is the volume of a disk that Proxmox VE is to make.
func newDisk(storage string, gib int32) string { return storage + ":" + strconv.Itoa(int(gib)) }

// allocates reports whether a value has Proxmox VE make a volume: `storage:size`, or an import.
func allocates(drive string) bool {
	_, size, found := strings.Cut(volumeOf(drive), ":")
	_, err := strconv.ParseFloat(size, 64)
	return found && err == nil
}

// Allocates reports whether the change makes disks: Proxmox VE does that in a task, POST in place of PUT.
func (c Change) Allocates() bool {
	for key, value := range c.Set {
		if (isDriveKey(key) || key == "efidisk0" || key == "tpmstate0") && allocates(value) {
			return true
		}
	}
	return false
}

// diskSize is the size of a disk: as it is, or is to be made.
func diskSize(drive string) proxmox.Bytes {
	if allocates(drive) {
		_, size, _ := strings.Cut(volumeOf(drive), ":")
		return ParseSize(size + "G")
	}
	return ParseSize(ParseProperties(drive).Get("size"))
}

// diskFormat is the format of a disk: as is asked for, or as the volume's name ends. Storages without files have raw alone.
func diskFormat(drive string) v1beta1.DiskFormat {
	if format := ParseProperties(drive).Get("format"); format != "" {
		return v1beta1.DiskFormat(format)
	}
	if allocates(drive) {
		return ""
	}
	volume := volumeOf(drive)
	for _, format := range []v1beta1.DiskFormat{"qcow2", "vmdk"} {
		if strings.HasSuffix(volume, "."+string(format)) {
			return format
		}
	}
	return "raw"
}
