package pvesim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// progressSteps is how often qemu-img tells of its progress.
const progressSteps = 20

// diskCopy is one disk on its way to a volume of its own.
type diskCopy struct {
	*cloneJob
	name string
	d    drive
	from *volume
	to   *volume
}

// copy makes a full copy of a drive. A cloud-init drive has no data to copy: its volume is new.
func (j *cloneJob) copy(name string, d drive, from *volume) {
	s := j.storage
	if s == nil {
		s = j.storageByID(d.storageID())
	}
	format := j.copyFormat(s, d)
	to := &volume{storage: s, content: "images", format: format, vmid: j.target.id, size: cloudInitSize}
	to.key = volumeKey{s.scope(j.source.node), s.volumeName(j.target.id, fmt.Sprintf("vm-%d-cloudinit", j.target.id), format)}
	if !d.cloudInit() {
		to.size = from.size
		to.used = min(from.used, s.free(j.source.node))
		to.key.id = s.freeName(j.World, j.source.node, j.target.id, format)
	}
	j.addVolume(to)
	j.made = append(j.made, to.key)
	if s.fileBased() {
		j.task.logf("%s", j.version.formatting(s.diskPath(to.key.id), format, to.size, ""))
	}
	if j.version == V92 {
		j.task.logf("allocated target volume '%s'", to.key.id)
	}
	x := &diskCopy{j, name, d, from, to}
	j.after(j.about(allocateDelay), x.start)
}

// copyFormat is the format that was asked for or that of the source, if the storage has it, else raw
// (PVE::QemuServer::resolve_dst_disk_format).
func (j *cloneJob) copyFormat(s *storage, d drive) string {
	format := j.params["format"]
	if from := j.storageByID(d.storageID()); format == "" && from != nil {
		_, name, _ := strings.Cut(string(d.volume), ":")
		format = guessVolume(from, name).Format
	}
	if !s.fileBased() || !slices.Contains([]string{"raw", "qcow2", "vmdk"}, format) {
		return "raw"
	}
	return format
}

// start copies the data: with qemu-img, or by QEMU itself if the VM runs.
func (x *diskCopy) start() {
	switch {
	case x.d.cloudInit():
		x.done(x.name, x.d, x.to)
	case x.running && !x.has("snapname"):
		x.mirror()
	default:
		x.command = x.convert()
		x.progress(0, x.duration())
	}
}

// convert is the command that copies.
func (x *diskCopy) convert() string {
	limit, snapshot := "", ""
	if n := atoi(x.params["bwlimit"], 0); n > 0 {
		limit = fmt.Sprintf(" -r %dK", n)
	}
	if name := x.params["snapname"]; name != "" && x.from.format == "qcow2" {
		snapshot = " -l snapshot.name=" + name
	}
	return fmt.Sprintf("/usr/bin/qemu-img convert -p -n%s%s -f %s -O %s %s zeroinit:%s",
		limit, snapshot, x.from.format, x.to.format, x.from.storage.diskPath(x.from.key.id), x.to.storage.diskPath(x.to.key.id))
}

// duration of the whole copy.
func (x *diskCopy) duration() time.Duration {
	if n := proxmox.Bytes(atoi(x.params["bwlimit"], 0)) * 1024; n > 0 && n < copyRate {
		return timeFor(x.from.used, n)
	}
	return x.about(timeFor(x.from.used, copyRate))
}

// progress logs how far the copy has come and goes on until it is done or the storage is full.
func (x *diskCopy) progress(step int, whole time.Duration) {
	x.logProgress(step)
	steps := progressSteps
	if whole < time.Second {
		steps = 1
	}
	full := x.to.used < x.from.used && int64(x.from.used)*int64(step) >= int64(x.to.used)*progressSteps
	switch {
	case full:
		x.task.logf("qemu-img: error while writing at byte %d: No space left on device", x.to.used)
		x.fail(fmt.Sprintf("copy failed: command '%s' failed: exit code 1", x.command))
	case step == progressSteps:
		x.logProgress(step)
		x.done(x.name, x.d, x.to)
	default:
		x.after(whole/time.Duration(steps), func() { x.progress(step+progressSteps/steps, whole) })
	}
}

func (x *diskCopy) logProgress(step int) {
	x.task.logf("transferred %s of %s (%.2f%%)", humanSize(x.from.size*proxmox.Bytes(step)/progressSteps), humanSize(x.from.size), 100*float64(step)/progressSteps)
}

// humanSize is how PVE::RESTEnvironment's tasks write sizes.
func humanSize(n proxmox.Bytes) string {
	size, unit := float64(n), 0
	for ; size >= 1024 && unit < 4; unit++ {
		size /= 1024
	}
	return fmt.Sprintf("%.1f %s", size, []string{"B", "KiB", "MiB", "GiB", "TiB"}[unit])
}

// mirror lets the running QEMU copy the disk. QEMU without the patches of Proxmox cannot.
func (x *diskCopy) mirror() {
	device := "drive-" + x.name
	x.task.logf("drive mirror is starting for %s", device)
	end := func() {
		x.task.logf("%s: Cancelling block job", device)
		x.task.logf("%s: Done.", device)
	}
	if x.node.StockQEMU {
		end()
		x.fail(fmt.Sprintf("mirroring error: VM %d qmp command 'drive-mirror' failed - Unknown protocol 'zeroinit' ", x.source.id))
		return
	}
	took := x.duration()
	size := humanSize(x.from.size)
	x.task.logf("%s: transferred 0.0 B of %s (0.00%%) in 0s", device, size)
	x.after(took, func() {
		x.task.logf("%s: transferred %s of %s (100.00%%) in %ds, ready", device, size, size, int(took.Seconds()))
		x.task.logf("all 'mirror' jobs are ready")
		end()
		x.done(x.name, x.d, x.to)
	})
}
