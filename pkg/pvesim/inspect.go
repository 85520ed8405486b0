package pvesim

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// VM is a copy of a VM's state.
type VM struct {
	VMID   proxmox.VMID
	Node   proxmox.NodeName
	Config map[string]string
	// Status is running or stopped.
	Status string
	// Lock is the config lock, for example clone; mostly empty.
	Lock string
	// Pool is the resource pool; empty for none.
	Pool proxmox.PoolID
}

// Volume is a copy of a volume's description.
type Volume struct {
	ID proxmox.VolumeID
	// Node is empty for volumes on shared storage.
	Node    proxmox.NodeName
	Content string
	// VMID owns the volume; zero for ISO images.
	VMID proxmox.VMID
	Size proxmox.Bytes
}

// VMs returns all VMs by VMID, templates included.
func (w *World) VMs() []VM {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runDue()
	out := make([]VM, 0, len(w.vms))
	for _, id := range slices.Sorted(maps.Keys(w.vms)) {
		out = append(out, w.copyVM(w.vms[id]))
	}
	return out
}

// VM returns the VM, wherever it is.
func (w *World) VM(id proxmox.VMID) (VM, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runDue()
	v := w.vms[id]
	if v == nil {
		return VM{}, false
	}
	return w.copyVM(v), true
}

func (w *World) copyVM(v *vm) VM {
	return VM{VMID: v.id, Node: v.node, Config: maps.Clone(v.config), Status: v.status(), Lock: v.lock(), Pool: w.poolOf(v.id)}
}

// Volumes returns all volumes by name.
func (w *World) Volumes() []Volume {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runDue()
	out := make([]Volume, 0, len(w.volumes))
	for _, v := range w.sortedVolumes() {
		out = append(out, Volume{ID: v.key.id, Node: v.key.node, Content: v.content, VMID: v.vmid, Size: v.size})
	}
	return out
}

// Check returns what is broken, one sentence each: disks of VMs that are gone or that no config names, ISO images in no
// drive, MAC addresses or SMBIOS UUIDs used twice, and locks without a task. A world in good order returns nothing.
func (w *World) Check() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runDue()
	used := w.usedVolumes()
	var out []string
	for _, v := range w.sortedVolumes() {
		where := fmt.Sprintf("%s on %s", v.key.id, orShared(v.key.node))
		switch owner := w.vms[v.vmid]; {
		case w.tasks.runningOn(v.vmid):
		case v.vmid != 0 && owner == nil:
			out = append(out, fmt.Sprintf("volume %s belongs to VM %d, which does not exist", where, v.vmid))
		case v.vmid != 0 && !used[v.key]:
			out = append(out, fmt.Sprintf("volume %s is in no config of VM %d", where, v.vmid))
		case v.content == "iso" && !used[v.key]:
			out = append(out, fmt.Sprintf("ISO image %s is in no drive", where))
		}
	}
	out = append(out, w.checkTwice("MAC address", (*vm).macs)...)
	out = append(out, w.checkTwice("SMBIOS UUID", func(v *vm) []string { return []string{string(v.uuid())} })...)
	for _, id := range slices.Sorted(maps.Keys(w.vms)) {
		if lock := w.vms[id].lock(); lock != "" && !w.tasks.runningOn(id) {
			out = append(out, fmt.Sprintf("VM %d is locked (%s) and no task works on it", id, lock))
		}
	}
	return out
}

func orShared(name proxmox.NodeName) string {
	if name == "" {
		return "all nodes"
	}
	return string(name)
}

// usedVolumes are those that a drive of some config names, present or pending.
func (w *World) usedVolumes() map[volumeKey]bool {
	out := map[volumeKey]bool{}
	use := func(v *vm, value string) {
		if vol := w.volumeAt(v.node, parseDrive(value).volume); vol != nil {
			out[vol.key] = true
		}
	}
	for _, v := range w.vms {
		for _, name := range v.drives() {
			use(v, v.config[name])
		}
		for key, p := range v.pending {
			if isDrive(key) {
				use(v, p.value)
			}
		}
		for _, s := range v.snapshots {
			use(v, string(s.ram))
			for _, name := range drivesOf(s.config) {
				use(v, s.config[name])
			}
		}
	}
	return out
}

func (w *World) checkTwice(what string, values func(*vm) []string) []string {
	var out []string
	seen := map[string]proxmox.VMID{}
	for _, id := range slices.Sorted(maps.Keys(w.vms)) {
		for _, value := range values(w.vms[id]) {
			value = strings.ToLower(value)
			if other, ok := seen[value]; ok && value != "" {
				out = append(out, fmt.Sprintf("%s %s is used by VM %d and VM %d", what, value, other, id))
			}
			seen[value] = id
		}
	}
	return out
}
