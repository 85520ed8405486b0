package pvesim

import (
	"maps"
	"slices"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// StopNode takes a host down: its VMs lose their power, and what is asked of it gets 595.
func (w *World) StopNode(name proxmox.NodeName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.node(name)
	if n == nil {
		return
	}
	n.online = false
	for t := range w.tasks.active {
		if t.node == name {
			t.kill()
		}
	}
	for _, id := range slices.Sorted(maps.Keys(w.vms)) {
		if v := w.vms[id]; v.node == name {
			w.powerOff(v, CauseHostLost)
		}
	}
}

// StartNode brings a host back; its VMs with onboot set are started.
func (w *World) StartNode(name proxmox.NodeName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.node(name)
	if n == nil || n.online {
		return
	}
	n.online, n.booted = true, w.clock.Now()
	for _, id := range slices.Sorted(maps.Keys(w.vms)) {
		if v := w.vms[id]; v.node == name && v.config["onboot"] == "1" && !v.isTemplate() {
			w.powerOn(v)
		}
	}
}

// Kill ends the VM's process, as a crash of QEMU does.
func (w *World) Kill(id proxmox.VMID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if v := w.vms[id]; v != nil {
		w.powerOff(v, CauseStop)
	}
}
