package pvesim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// defaultOptions are entries of storage.cfg that a storage of the type cannot be without.
func (t storageType) defaultOptions(id proxmox.StorageID) map[string]string {
	switch t {
	case nfsStorage:
		return map[string]string{"server": "10.10.0.5", "export": "/export/" + string(id)}
	case lvmThinStorage:
		return map[string]string{"vgname": "pve", "thinpool": "data"}
	case zfsPoolStorage:
		return map[string]string{"pool": "rpool/data", "sparse": "1"}
	case rbdStorage:
		return map[string]string{"pool": "rbd"}
	case dirStorage:
	}
	return map[string]string{}
}

// thick storages take the whole size of a volume at once: ZFS does unless it is told to be sparse.
func (s *storage) thick() bool { return s.typ == zfsPoolStorage && s.options["sparse"] != "1" }

// storageByID returns the storage, or nil.
func (w *World) storageByID(id proxmox.StorageID) *storage {
	for _, s := range w.storages {
		if s.id == id {
			return s
		}
	}
	return nil
}

// storageFor finds a storage on a node; the text says why it cannot be used (PVE::Storage::storage_check_node).
func (w *World) storageFor(id proxmox.StorageID, name proxmox.NodeName) (*storage, string) {
	s := w.storageByID(id)
	if s == nil {
		return nil, fmt.Sprintf("storage '%s' does not exist", id)
	}
	if s.disabled {
		return nil, fmt.Sprintf("storage '%s' is disabled", id)
	}
	if !s.onNode(name) {
		return nil, fmt.Sprintf("storage '%s' is not available on node '%s'", id, name)
	}
	return s, ""
}

func (c *call) storageHere() (*storage, reply) {
	s, msg := c.storageFor(proxmox.StorageID(c.params["storage"]), c.node.Name)
	if s == nil {
		return nil, fail("%s", msg)
	}
	return s, reply{}
}

// volumeAt finds a volume by its id as seen from a node.
func (w *World) volumeAt(name proxmox.NodeName, id proxmox.VolumeID) *volume {
	storageID, _, _ := strings.Cut(string(id), ":")
	s := w.storageByID(proxmox.StorageID(storageID))
	if s == nil {
		return nil
	}
	return w.volumes[volumeKey{s.scope(name), id}]
}

func (w *World) addVolume(v *volume) {
	if v.storage.thick() && v.content == "images" {
		v.used = v.size
	}
	v.created = w.clock.Now()
	w.volumes[v.key] = v
	v.storage.used[v.key.node] += v.used
}

func (w *World) removeVolume(key volumeKey) {
	if v := w.volumes[key]; v != nil {
		v.storage.used[key.node] -= v.used
		delete(w.volumes, key)
	}
}

// freeName returns an unused volume id such as local-lvm:vm-100-disk-1.
func (s *storage) freeName(w *World, name proxmox.NodeName, vmid proxmox.VMID, format string) proxmox.VolumeID {
	for i := 0; ; i++ {
		if id := s.volumeName(vmid, fmt.Sprintf("vm-%d-disk-%d", vmid, i), format); !w.diskNameTaken(s, name, vmid, i) {
			return id
		}
	}
}

// diskNameTaken looks for disk i of the VM in any format and form, as PVE::Storage::Plugin::get_next_vm_diskname does.
func (w *World) diskNameTaken(s *storage, name proxmox.NodeName, vmid proxmox.VMID, i int) bool {
	for _, prefix := range []string{"vm", "base"} {
		for _, format := range []string{"raw", "qcow2", "vmdk"} {
			id := s.volumeName(vmid, fmt.Sprintf("%s-%d-disk-%d", prefix, vmid, i), format)
			if w.volumes[volumeKey{s.scope(name), id}] != nil || w.linkedVolume(s.scope(name), id) != nil {
				return true
			}
		}
	}
	return false
}

// linkedVolume finds a linked clone, whose id has its base in front: local:400/base-400-disk-0.qcow2/410/vm-410-disk-0.qcow2.
func (w *World) linkedVolume(scope proxmox.NodeName, id proxmox.VolumeID) *volume {
	_, file, _ := strings.Cut(string(id), ":")
	for key, v := range w.volumes {
		if v.parent != "" && key.node == scope && strings.HasSuffix(string(key.id), "/"+file) {
			return v
		}
	}
	return nil
}

// sortedVolumes returns all volumes by id, so that lists are repeatable.
func (w *World) sortedVolumes() []*volume {
	out := make([]*volume, 0, len(w.volumes))
	for _, v := range w.volumes {
		out = append(out, v)
	}
	slices.SortFunc(out, func(a, b *volume) int {
		return strings.Compare(string(a.key.id)+string(a.key.node), string(b.key.id)+string(b.key.node))
	})
	return out
}
