package pvesim

import (
	"maps"
	"slices"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// StopNode takes a host down: its VMs lose their power, its tasks end, and what is asked of it gets 595 "No route to host". The
// others see it offline. A name that no host has does nothing.
func (w *World) StopNode(name proxmox.NodeName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.node(name)
	if n == nil || !n.online {
		return
	}
	w.silence(n)
	n.online = false
	n.releaseHeld()
	for _, t := range w.tasks.all {
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

// StartNode brings a host back with all its daemons; its VMs with onboot set are started.
func (w *World) StartNode(name proxmox.NodeName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.node(name)
	if n == nil || n.online {
		return
	}
	n.online, n.booted, n.Daemons = true, w.clock.Now(), nil
	w.unsilence(n)
	for _, id := range slices.Sorted(maps.Keys(w.vms)) {
		if v := w.vms[id]; v.node == name && v.config["onboot"] == "1" && !v.isTemplate() {
			w.powerOn(v)
		}
	}
}

// CutLink cuts the cluster network of a host. It runs on, with its VMs, and still answers its own clients, but it and the others
// see each other offline, and requests are no longer passed on between them. Without MendLink the cut lasts. The side that has no
// more than half of the hosts has no quorum: see World.StopNode for the other way to lose it.
func (w *World) CutLink(name proxmox.NodeName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := w.node(name); n != nil && !n.CutOff {
		w.silence(n)
		n.CutOff = true
	}
}

// MendLink ends CutLink.
func (w *World) MendLink(name proxmox.NodeName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := w.node(name); n != nil && n.CutOff {
		n.CutOff = false
		w.unsilence(n)
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

// Lock puts a config lock on a VM, as work does that is not simulated, such as a backup. It stays until Unlock.
func (w *World) Lock(id proxmox.VMID, lock string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if v := w.vms[id]; v != nil {
		v.config["lock"] = lock
		w.changed(v)
	}
}

// Unlock takes a VM's config lock away, as `qm unlock` does, whatever works on the VM.
func (w *World) Unlock(id proxmox.VMID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if v := w.vms[id]; v != nil {
		delete(v.config, "lock")
		w.changed(v)
	}
}

// sees tells whether two hosts are members of one corosync partition.
func (n *node) sees(other *node) bool {
	return n.online && other.online && (n == other || !n.CutOff && !other.CutOff)
}

// quorate tells whether the host's side of the cluster has more than half of the votes.
func (w *World) quorate(n *node) bool {
	seen := 0
	for _, other := range w.nodes {
		seen += pveBool(n.sees(other))
	}
	return 2*seen > len(w.nodes)
}

// staleAfter is how long pmxcfs keeps what pvestatd of a host has broadcast last.
const staleAfter = 5 * time.Minute

// silence is what the others last heard of a host, and it of them, when it or its pvestatd went silent.
type silence struct {
	since time.Time
	stats map[proxmox.VMID]*vmStats
}

// silence keeps what has been broadcast so far. A host that is silent already stays as it is.
func (w *World) silence(n *node) {
	if n.silent != nil {
		return
	}
	n.silent = &silence{since: w.clock.Now(), stats: make(map[proxmox.VMID]*vmStats, len(w.vms))}
	for id, v := range w.vms {
		n.silent.stats[id] = v.stats
	}
}

func (w *World) unsilence(n *node) {
	if n.broadcasts() {
		n.silent = nil
	}
}

// broadcasts tells whether the others hear of the host.
func (n *node) broadcasts() bool {
	return n.online && !n.CutOff && n.Daemons[PVEStatD] == DaemonRunning
}

// heard is what one host knows from the broadcasts of another: nil means that they come in as usual.
func (n *node) heard(of *node) *silence {
	switch {
	case n.sees(of) && of.Daemons[PVEStatD] == DaemonRunning:
		return nil
	case of.silent != nil:
		return of.silent
	}
	return n.silent
}

// forgotten tells whether the last broadcast is so old that pmxcfs has dropped it.
func (w *World) forgotten(s *silence) bool {
	return s != nil && w.clock.Since(s.since) > w.scaled(staleAfter)
}
