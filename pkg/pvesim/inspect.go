package pvesim

import (
	"maps"
	"slices"

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
	// HAState is what the HA manager made of it; empty if it does not look after the VM.
	HAState string
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
	return VM{
		VMID: v.id, Node: v.node, Config: maps.Clone(v.config), Status: v.status(), Lock: v.lock(), Pool: w.poolOf(v.id), HAState: w.haState(v.id),
	}
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

// Firewall returns a copy of the firewall file of a VM; of one without it is empty.
func (w *World) Firewall(id proxmox.VMID) FirewallSpec {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runDue()
	return firewallSpec(w.firewalls.guests[id])
}

// HA returns a copy of what the HA manager is told.
func (w *World) HA() HASpec {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runDue()
	return w.dumpHA()
}
