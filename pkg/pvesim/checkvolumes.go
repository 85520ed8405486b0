package pvesim

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/nocloud"
)

// checkVolumes looks for volumes that nobody will miss, and for linked clones without their base.
func (c *checker) checkVolumes() {
	used := c.usedVolumes()
	for _, v := range c.sortedVolumes() {
		where := fmt.Sprintf("%s on %s", v.key.id, orShared(v.key.node))
		switch {
		case c.tasks.runningOn(v.vmid) || used[v.key]:
		case v.vmid != 0 && !c.guestExists(v.vmid):
			c.report(OrphanVolume, v.key.id, "volume %s belongs to VM %d, which does not exist", where, v.vmid)
		case v.vmid != 0 && c.vms[v.vmid] != nil:
			c.report(OrphanVolume, v.key.id, "volume %s is in no config of VM %d", where, v.vmid)
		case v.content == "iso" && isSeed(v.data):
			c.report(OrphanSeed, v.key.id, "ISO image %s is a seed in no drive", where)
		}
		if v.parent != "" && c.volumes[volumeKey{v.key.node, v.parent}] == nil && c.linkedVolume(v.key.node, v.parent) == nil {
			c.report(MissingBase, v.key.id, "volume %s is a linked clone of %s, which does not exist", where, v.parent)
		}
	}
}

func isSeed(image []byte) bool {
	files, err := nocloud.Files(image)
	return err == nil && files != nil
}

func orShared(name proxmox.NodeName) string {
	if name == "" {
		return "all nodes"
	}
	return string(name)
}

// usedVolumes are those that a config names: as it is now, pending, or in a snapshot.
func (c *checker) usedVolumes() map[volumeKey]bool {
	out := map[volumeKey]bool{}
	for _, v := range c.state.VMs {
		configs := []map[string]string{v.Config, v.Pending}
		for _, s := range v.Snapshots {
			configs = append(configs, s.Config)
		}
		for _, config := range configs {
			for key, value := range config {
				if vol := c.volumeAt(v.Node, parseDrive(value).volume); vol != nil && (isDrive(key) || key == "vmstate") {
					out[vol.key] = true
				}
			}
		}
	}
	return out
}

// checkDisks looks for disks in configs that are not there. CD-ROMs may be gone: they are only missed at the next start.
func (c *checker) checkDisks() {
	for _, v := range c.state.VMs {
		for _, key := range slices.Sorted(maps.Keys(v.Config)) {
			d := parseDrive(v.Config[key])
			if !isDrive(key) || d.storageID() == "" || d.cdrom() || c.tasks.runningOn(v.VMID) || c.volumeAt(v.Node, d.volume) != nil {
				continue
			}
			c.report(MissingVolume, d.volume, "VM %d has %s in %s, which is not on %s", v.VMID, d.volume, key, v.Node)
		}
	}
}

// checkUsage adds up the volumes of every storage.
func (c *checker) checkUsage() {
	sums := map[*storage]map[proxmox.NodeName]proxmox.Bytes{}
	for _, s := range c.storages {
		sums[s] = map[proxmox.NodeName]proxmox.Bytes{}
	}
	for _, v := range c.sortedVolumes() {
		if sums[v.storage] != nil {
			sums[v.storage][v.key.node] += v.used
		}
	}
	for _, s := range c.storages {
		names := slices.Concat(slices.Collect(maps.Keys(s.used)), slices.Collect(maps.Keys(sums[s])))
		slices.SortFunc(names, func(a, b proxmox.NodeName) int { return strings.Compare(string(a), string(b)) })
		for _, name := range slices.Compact(names) {
			if s.used[name] != sums[s][name] {
				c.report(WrongUsage, s.id, "storage %s on %s has %d bytes in use, and its volumes %d", s.id, orShared(name), s.used[name], sums[s][name])
			}
		}
	}
}
