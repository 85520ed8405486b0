package pvesim

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// The names of files by content (PVE::Storage).
const (
	isoName      = `^[^/]+\.(?i:iso|img)$`
	templateName = `^[^/]+\.(?i:tar\.(?:gz|xz|zst|bz2))$`
	importName   = `^[a-zA-Z0-9\-.+=_ ]+\.(?:ova|ovf|qcow2|raw|vmdk)$`
	backupName   = `^vzdump-(?:lxc|qemu|openvz)-(\d+)-.+\.(?:tar|vma)(?:\.(?:gz|lzo|zst|bz2))?$`
)

// volumeParts are what the name of a volume tells.
type volumeParts struct {
	// content is images, iso …
	content string
	// file is the last part of the name.
	file   string
	format string
	vmid   proxmox.VMID
	// base is the volume in front of a linked clone's name; empty for others.
	base string
}

// parseVolume takes the name of a volume, what follows the storage and a colon, apart. The text says that it cannot be one of
// that storage (parse_volname of the storage plugins).
func (s *storage) parseVolume(name string) (volumeParts, string) {
	if s.fileBased() {
		return parseFileVolume(name)
	}
	base, file, linked := strings.Cut(name, "/")
	if !linked {
		base, file = "", name
	}
	prefix, owner := diskOwner(file)
	if prefix == "" || (linked && (s.typ == lvmThinStorage || !strings.HasPrefix(base, "base-"))) {
		kind := map[storageType]string{lvmThinStorage: "lvm", zfsPoolStorage: "zfs", rbdStorage: "rbd"}[s.typ]
		return volumeParts{}, fmt.Sprintf("unable to parse %s volume name '%s'", kind, name)
	}
	out := volumeParts{content: "images", file: file, format: "raw", vmid: owner, base: base}
	if prefix == "subvol" {
		out.content, out.format = "rootdir", "subvol"
	}
	return out, ""
}

// diskOwner takes vm-100-disk-0 apart; the prefix is vm, base or subvol, or empty if it is no such name.
func diskOwner(file string) (prefix string, vmid proxmox.VMID) {
	parts := strings.SplitN(file, "-", 3)
	if len(parts) < 3 || parts[2] == "" || strings.ContainsAny(file, "/ \t\n") || toVMID(parts[1]) == 0 {
		return "", 0
	}
	if parts[0] != "vm" && parts[0] != "base" && parts[0] != "subvol" {
		return "", 0
	}
	return parts[0], toVMID(parts[1])
}

func parseFileVolume(name string) (volumeParts, string) {
	kind, file, _ := strings.Cut(name, "/")
	switch {
	case kind == "iso" && matchesName(isoName, file), kind == "vztmpl" && matchesName(templateName, file):
		return volumeParts{content: kind, file: file, format: "raw"}, ""
	case kind == "import" && matchesName(importName, file):
		return volumeParts{content: kind, file: file, format: extension(file)}, ""
	case kind == "snippets" && file != "" && !strings.Contains(file, "/"):
		return volumeParts{content: kind, file: file, format: "raw"}, ""
	case kind == "backup" && matchesName(backupName, file):
		return volumeParts{content: kind, file: file, format: "raw", vmid: toVMID(regexp.MustCompile(backupName).FindStringSubmatch(file)[1])}, ""
	case toVMID(kind) > 0 && file != "":
		return parseDiskFile(name, strings.Split(name, "/"))
	}
	return volumeParts{}, fmt.Sprintf("unable to parse directory volume name '%s'", name)
}

// parseDiskFile parses 100/vm-100-disk-0.qcow2 and that of a linked clone, 100/base-100-disk-0.qcow2/110/vm-110-disk-0.qcow2.
func parseDiskFile(name string, parts []string) (volumeParts, string) {
	out := volumeParts{content: "images", file: parts[len(parts)-1]}
	switch len(parts) {
	case 2:
		out.vmid = toVMID(parts[0])
	case 4:
		out.vmid, out.base = toVMID(parts[2]), parts[0]+"/"+parts[1]
	default:
		return volumeParts{}, fmt.Sprintf("unable to parse directory volume name '%s'", name)
	}
	out.format = extension(out.file)
	known := out.format == "raw" || out.format == "qcow2" || out.format == "vmdk" || out.format == "subvol"
	if !known || len(out.file) < len(out.format)+2 || strings.ContainsAny(out.file, " \t\n") {
		return volumeParts{}, fmt.Sprintf("unable to parse volume filename '%s'", out.file)
	}
	return out, ""
}

func matchesName(pattern, name string) bool { return regexp.MustCompile(pattern).MatchString(name) }

func extension(file string) string { return file[strings.LastIndexByte(file, '.')+1:] }

// listedFormat is what lists of content call the format of a file.
func (p volumeParts) listedFormat() string {
	switch p.content {
	case "iso":
		return "iso"
	case "vztmpl":
		return "t" + extension(p.file)
	case "snippets":
		return "snippet"
	case "backup":
		_, format, _ := strings.Cut(p.file[strings.LastIndexAny(p.file, "-_"):], ".")
		return format
	}
	return p.format
}

// volumeName builds a volume id: files are in a directory per VM and have their format as extension.
func (s *storage) volumeName(vmid proxmox.VMID, name, format string) proxmox.VolumeID {
	if !s.fileBased() {
		return proxmox.VolumeID(fmt.Sprintf("%s:%s", s.id, name))
	}
	return proxmox.VolumeID(fmt.Sprintf("%s:%d/%s.%s", s.id, vmid, name, format))
}

// pathOf is where the volume is on a node.
func (s *storage) pathOf(name string) string {
	p, _ := s.parseVolume(name)
	switch s.typ {
	case lvmThinStorage:
		return "/dev/" + s.options["vgname"] + "/" + p.file
	case zfsPoolStorage:
		return "/dev/zvol/" + s.options["pool"] + "/" + p.file
	case rbdStorage:
		return "rbd:" + s.options["pool"] + "/" + p.file + ":conf=/etc/pve/ceph.conf"
	case dirStorage, nfsStorage:
	}
	if p.content == "images" {
		return fmt.Sprintf("%s/images/%d/%s", s.path, p.vmid, p.file)
	}
	dir := map[string]string{"iso": "template/iso", "vztmpl": "template/cache", "backup": "dump", "import": "import", "snippets": "snippets"}[p.content]
	return s.path + "/" + dir + "/" + p.file
}
