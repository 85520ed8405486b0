package pve

import "github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"

// VMChange says that a guest appeared, changed or vanished between two snapshots. Changes of node, status, lock, tags, name,
// pool, HA state and size count; those of usage do not.
type VMChange struct {
	ID proxmox.VMID
	// Before is nil if the guest appeared, After if it vanished.
	Before, After *VM
}

// mergeChanges joins two changes of a guest that were not told yet.
func mergeChanges(older, newer VMChange) VMChange {
	return VMChange{ID: newer.ID, Before: older.Before, After: newer.After}
}

// diff returns what changed from this snapshot to a later one, by VMID, the vanished last.
func (s Snapshot) diff(later Snapshot) []VMChange {
	var changes []VMChange
	for after := range later.VMs() {
		before, known := s.VM(after.ID)
		switch {
		case !known:
			changes = append(changes, VMChange{ID: after.ID, After: &after})
		case !before.sameAs(after):
			changes = append(changes, VMChange{ID: after.ID, Before: &before, After: &after})
		}
	}
	for before := range s.VMs() {
		if _, still := later.VM(before.ID); !still {
			changes = append(changes, VMChange{ID: before.ID, Before: &before})
		}
	}
	return changes
}
