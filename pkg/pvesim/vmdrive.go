package pvesim

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

// This file makes the volumes of new drives (create_disks of qemu-server).

// maxFile is the largest file that the hosts' file systems take.
const maxFile = proxmox.Bytes(16) << 40

// writeDrive makes the volume of a drive, if it is to be a new one, and the drive pending.
func (ch *change) writeDrive(key, value string) reply {
	if p, waiting := ch.pending[key]; waiting && !p.delete {
		ch.keepUnused(p.value)
	}
	d := parseDrive(value)
	if r := ch.prepare(key, &d); r.failed() {
		return r
	}
	ch.pending[key] = pendingValue{value: d.String()}
	if len(ch.order) > 0 && d.cdrom() && !d.cloudInit() && !slices.Contains(ch.order, key) {
		ch.reorder(append(ch.order, key))
	}
	return reply{}
}

// prepare turns the wanted value into one that names an existing volume, making it if need be.
func (ch *change) prepare(key string, d *drive) reply {
	if d.volume == "none" || d.volume == "cdrom" {
		delete(d.props, "size")
		return reply{}
	}
	if strings.HasPrefix(string(d.volume), "/") {
		return reply{}
	}
	s, msg := ch.storageFor(d.storageID(), ch.vm.node)
	if s == nil {
		return fail("%s", msg)
	}
	_, rest, _ := strings.Cut(string(d.volume), ":")
	if rest == "cloudinit" {
		return ch.makeCloudInit(key, d, s)
	}
	if gib, err := strconv.ParseFloat(rest, 64); err == nil {
		if source := d.props["import-from"]; source != "" {
			return ch.importDisk(key, d, s, proxmox.VolumeID(source))
		}
		return ch.makeDisk(key, d, s, gib)
	}
	return ch.useVolume(key, d, s)
}

// useVolume takes a volume that exists. Its size is looked up, unless the drive has it already.
func (ch *change) useVolume(key string, d *drive, s *storage) reply {
	if parseDrive(ch.config[key]).volume == d.volume {
		return reply{}
	}
	v := ch.volumes[volumeKey{s.scope(ch.vm.node), d.volume}]
	if v == nil {
		return fail("volume '%s' does not exist", d.volume)
	}
	// QEMU counts whole sectors of 512 bytes.
	d.props["size"] = schema.FormatSize((v.size + 511) / 512 * 512)
	return reply{}
}

const cloudInitSize = proxmox.Bytes(4 << 20)

func cloudInitFormat(s *storage) string {
	if s.fileBased() {
		return "qcow2"
	}
	return "raw"
}

func (ch *change) makeCloudInit(key string, d *drive, s *storage) reply {
	if other := ch.otherCloudInit(key); other != "" {
		return fail("%s - cloud-init drive is already attached at '%s'", key, other)
	}
	id := s.volumeName(ch.vm.id, fmt.Sprintf("vm-%d-cloudinit", ch.vm.id), cmp.Or(d.props["format"], cloudInitFormat(s)))
	ch.alloc(s, id, cloudInitSize)
	d.volume, d.props["media"] = id, "cdrom"
	delete(d.props, "format")
	ch.logf("%s: successfully created disk '%s'", key, d)
	return reply{}
}

// otherCloudInit is the drive, beside the named one, that holds the VM's cloud-init drive.
func (ch *change) otherCloudInit(key string) string {
	for _, name := range numberedDrives() {
		p := ch.pending[name]
		if name != key && (parseDrive(ch.config[name]).cloudInit() && !p.delete || parseDrive(p.value).cloudInit()) {
			return name
		}
	}
	return ""
}

// numberedDrives are the drives that can hold CD-ROMs.
func numberedDrives() []string {
	return slices.DeleteFunc(diskNames(), func(s string) bool { return !isBootBus(s) })
}

// alloc makes a volume, or takes back one that was to be freed.
func (ch *change) alloc(s *storage, id proxmox.VolumeID, size proxmox.Bytes) {
	key := volumeKey{s.scope(ch.vm.node), id}
	if ch.volumes[key] == nil {
		ch.made = append(ch.made, key)
		_, name, _ := strings.Cut(string(id), ":")
		parts, _ := s.parseVolume(name)
		ch.addVolume(&volume{key: key, storage: s, content: "images", format: parts.format, vmid: ch.vm.id, size: size})
		if s.fileBased() {
			ch.logf("%s", ch.version.formatting(s.diskPath(id), parts.format, size, ""))
		}
	}
	ch.freed = slices.DeleteFunc(ch.freed, func(k volumeKey) bool { return k == key })
}

// diskBytes is the size of a new disk: EFI variables and TPM state have a fixed one.
func diskBytes(key string, d *drive, gib float64) proxmox.Bytes {
	switch {
	case key == "tpmstate0":
		return 4 << 20
	case key == "efidisk0" && d.props["efitype"] == "4m":
		return 528 << 10
	case key == "efidisk0":
		return 128 << 10
	}
	return proxmox.Bytes(gib * float64(1<<30))
}

// makeDisk allocates an empty disk.
func (ch *change) makeDisk(key string, d *drive, s *storage, gib float64) reply {
	format := cmp.Or(d.props["format"], s.diskFormats()[0])
	if key == "tpmstate0" && ch.version == V84 {
		format = "raw"
	}
	return ch.newVolume(newDisk{key: key, drive: d, storage: s, format: format, size: diskBytes(key, d, gib)})
}

// newDisk is a disk to be made: where it is in the config, and what volume it gets.
type newDisk struct {
	key     string
	drive   *drive
	storage *storage
	format  string
	size    proxmox.Bytes
}

// newVolume allocates the volume of a disk under the next free name.
func (ch *change) newVolume(n newDisk) reply {
	s := n.storage
	if !s.holds("images") {
		return fail("storage '%s' does not support content-type 'images'", s.id)
	}
	if !slices.Contains(s.diskFormats(), n.format) {
		return fail("unsupported format '%s'", n.format)
	}
	id := s.freeName(ch.World, ch.vm.node, ch.vm.id, n.format)
	switch {
	case s.fileBased() && n.size > maxFile:
		ch.logf("%s", ch.version.formatting(s.diskPath(id), n.format, n.size, ""))
		return fail("unable to create image: qemu-img: %s: The image size is too large for file format '%s'", s.diskPath(id), n.format)
	case !s.fileBased() && n.size > s.free(ch.vm.node):
		return fail("unable to create image: not enough free space on storage '%s'", s.id)
	}
	ch.alloc(s, id, n.size)
	n.drive.volume, n.drive.props["size"] = id, schema.FormatSize(n.size)
	delete(n.drive.props, "format")
	delete(n.drive.props, "import-from")
	ch.logf("%s: successfully created disk '%s'", n.key, n.drive)
	return reply{}
}

// importDisk copies another volume into a new disk. The format is that of the source where the storage takes it.
func (ch *change) importDisk(key string, d *drive, s *storage, source proxmox.VolumeID) reply {
	from := ch.volumeAt(ch.vm.node, source)
	if from == nil {
		return fail("failed to stat '%s'", ch.sourcePath(source))
	}
	format := cmp.Or(d.props["format"], from.format)
	if !slices.Contains(s.diskFormats(), format) {
		format = s.diskFormats()[0]
	}
	line := fmt.Sprintf("create full clone of drive (%s)", source)
	if name := ch.driveOf(from); name != "" {
		line = fmt.Sprintf("create full clone of drive %s (%s)", name, source)
	}
	ch.logf("%s", line)
	quiet := *ch
	quiet.log = nil
	r := quiet.newVolume(newDisk{key: key, drive: d, storage: s, format: format, size: from.size})
	ch.made, ch.freed = quiet.made, quiet.freed
	if r.failed() {
		return r
	}
	if ch.version == V92 {
		ch.logf("allocated target volume '%s'", d.volume)
	}
	ch.logf("%s: successfully created disk '%s'", key, d)
	return reply{}
}

func (ch *change) sourcePath(source proxmox.VolumeID) string {
	storageID, _, managed := strings.Cut(string(source), ":")
	if s := ch.storageByID(proxmox.StorageID(storageID)); managed && s != nil {
		return s.diskPath(source)
	}
	return string(source)
}

// driveOf is the drive of the owner in which the volume is.
func (w *World) driveOf(from *volume) string {
	owner := w.vms[from.vmid]
	if owner == nil {
		return ""
	}
	for _, name := range owner.drives() {
		if parseDrive(owner.config[name]).volume == from.key.id {
			return name
		}
	}
	return ""
}

// diskFormats are those of disks on the storage, the default one first.
func (s *storage) diskFormats() []string {
	if s.fileBased() {
		return []string{"raw", "qcow2", "vmdk"}
	}
	return []string{"raw"}
}
