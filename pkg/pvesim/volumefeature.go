package pvesim

import (
	"fmt"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// feature is something that a storage may be able to do with a volume.
type feature string

// The features of PVE::Storage::volume_has_feature that are used here.
const (
	cloneFeature    feature = "clone"
	copyFeature     feature = "copy"
	snapshotFeature feature = "snapshot"
	templateFeature feature = "template"
)

// offers tells whether the storage has the feature for a volume, or for a snapshot of it (volume_has_feature of the plugins).
func (s *storage) offers(f feature, id proxmox.VolumeID, ofSnapshot bool) bool {
	qcow2 := strings.HasSuffix(string(id), ".qcow2")
	cheap := s.typ == lvmThinStorage || s.typ == rbdStorage
	switch f {
	case templateFeature:
		return !isBase(id)
	case copyFeature:
		return !ofSnapshot || cheap || (s.fileBased() && qcow2)
	case cloneFeature:
		return (isBase(id) && !ofSnapshot) || (ofSnapshot && cheap)
	case snapshotFeature:
		if isBase(id) && !ofSnapshot {
			return false
		}
		return qcow2 || (!s.fileBased() && (!ofSnapshot || s.typ != lvmThinStorage))
	}
	return false
}

// isBase tells whether the volume is the base of linked clones, by its name: base-100-disk-0.
func isBase(id proxmox.VolumeID) bool { return strings.HasPrefix(fileName(id), "base-") }

// fileName is the last part of a volume's name, without the storage, the directory and the base volume.
func fileName(id proxmox.VolumeID) string {
	_, name, _ := strings.Cut(string(id), ":")
	return name[strings.LastIndex(name, "/")+1:]
}

// ownName is the volume id without the base volume that a linked clone has in front of its own name.
func (s *storage) ownName(id proxmox.VolumeID) proxmox.VolumeID {
	_, name, _ := strings.Cut(string(id), ":")
	parts, _ := s.parseVolume(name)
	if parts.base == "" {
		return id
	}
	return proxmox.VolumeID(string(s.id) + ":" + strings.TrimPrefix(name, parts.base+"/"))
}

// diskPath is where QEMU finds a volume on its host (PVE::Storage::path).
func (s *storage) diskPath(id proxmox.VolumeID) string {
	_, name, _ := strings.Cut(string(id), ":")
	return s.pathOf(name)
}

// formatting is what qemu-img says when it makes a file.
func (v Version) formatting(path, format string, size proxmox.Bytes, backing string) string {
	options := ""
	switch {
	case format == "raw":
		return fmt.Sprintf("Formatting '%s', fmt=raw size=%d preallocation=off", path, size)
	case format == "vmdk":
		return fmt.Sprintf("Formatting '%s', fmt=vmdk size=%d compat6=off hwversion=undefined", path, size)
	case backing == "":
		options = "cluster_size=65536 extended_l2=off preallocation=metadata"
	case v == V84:
		options = "cluster_size=65536 extended_l2=off"
	default:
		options = "cluster_size=131072 extended_l2=on preallocation=metadata"
	}
	if backing != "" {
		backing = fmt.Sprintf(" backing_file=%s backing_fmt=qcow2", backing)
	}
	return fmt.Sprintf("Formatting '%s', fmt=%s %s compression_type=zlib size=%d%s lazy_refcounts=off refcount_bits=16", path, format, options, size, backing)
}

// resizeFailure is what becomes of growing a base volume: its file cannot be written.
func (v Version) resizeFailure(vol *volume, size proxmox.Bytes) string {
	options := ""
	if v == V92 {
		options = "'--preallocation=metadata' "
		if vol.format == "raw" {
			options = "'--preallocation=off' "
		}
	}
	return fmt.Sprintf("command '/usr/bin/qemu-img resize %s-f %s %s %d' failed: exit code 1", options, vol.format, vol.storage.diskPath(vol.key.id), size)
}

// vmFeature is GET …/feature: whether all disks of the VM can be snapshotted, cloned or copied.
func vmFeature(c *call) reply {
	v := c.vm()
	if v == nil {
		return missingVM(c.node.Name, c.vmid())
	}
	config := v.config
	if name := c.params["snapname"]; name != "" {
		s := v.snapshot(name)
		if s == nil {
			return fail("snapshot '%s' does not exist", name)
		}
		config = s.config
	}
	if missing := c.lacksFeature(feature(c.params["feature"]), config, c.has("snapname")); missing {
		return ok(map[string]any{"hasFeature": 0, "nodes": []string{}})
	}
	return ok(map[string]any{"hasFeature": 1, "nodes": c.nodesFor(config)})
}

// lacksFeature tells whether some disk of the config cannot do it.
func (w *World) lacksFeature(f feature, config map[string]string, ofSnapshot bool) bool {
	for _, name := range drivesOf(config) {
		d := parseDrive(config[name])
		s := w.storageByID(d.storageID())
		if s != nil && !d.cdrom() && !strings.HasPrefix(name, "unused") && !s.offers(f, d.volume, ofSnapshot) {
			return true
		}
	}
	return false
}

// nodesFor are the nodes that have all storages of the config, with the same volumes.
func (c *call) nodesFor(config map[string]string) []proxmox.NodeName {
	out := []proxmox.NodeName{}
	for _, n := range c.nodes {
		fits := true
		for _, name := range drivesOf(config) {
			s := c.storageByID(parseDrive(config[name]).storageID())
			if s != nil && (!s.onNode(n.Name) || (!s.shared && n.Name != c.node.Name)) {
				fits = false
			}
		}
		if fits {
			out = append(out, n.Name)
		}
	}
	return out
}
