package observe

import (
	"context"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
)

// isDeleted reports whether the machine is on its way out.
func (s MachineSubject) isDeleted() bool { return !s.ProxmoxMachine.DeletionTimestamp.IsZero() }

// hostState tells whether a node is up. A snapshot that could not be renewed says nothing against it.
func hostState(snapshot pve.Snapshot, node proxmox.NodeName) plan.HostState {
	if snapshot.Err != nil || snapshot.At.IsZero() {
		return plan.HostUp
	}
	switch found, known := snapshot.Node(node); {
	case !known:
		return plan.HostRemoved
	case !found.Online:
		return plan.HostOffline
	}
	return plan.HostUp
}

// seedHost finds the node that the seed's storage is reached through: the reserved one or, when that is down and the storage
// is shared, any other that is up.
func seedHost(snapshot pve.Snapshot, reservation v1beta1.Reservation) (proxmox.NodeName, plan.HostState) {
	node, id := proxmox.NodeName(reservation.Node), proxmox.StorageID(reservation.SeedStorage)
	state := hostState(snapshot, node)
	if state == plan.HostUp {
		return node, state
	}
	for _, other := range snapshot.Nodes() {
		storage, found := snapshot.Storage(other.Name, id)
		if other.Online && found && storage.Shared && storage.Available {
			return other.Name, plan.HostUp
		}
	}
	return node, state
}

// mayLeaveHost reports whether a host that is down is not just waited for: the machine is on its way out, or its VM never ran
// and can be made elsewhere.
func (s MachineSubject) mayLeaveHost() bool {
	return s.isDeleted() || s.ProxmoxMachine.Spec.ProviderID == ""
}

// isLost reports whether a task ran on a node that is down, which does not tell of it: what it did is seen in the VM, wherever
// that is by now. That a clone can still make the VM is seen, too: it takes the VMID before all else, and without its node can
// do nothing more.
func isLost(snapshot pve.Snapshot, task proxmox.TaskID) bool {
	return hostState(snapshot, task.Node) != plan.HostUp
}

// onLostHost observes a VM whose host is down. Proxmox VE still tells whether there is one: all nodes know all VMIDs.
func (s *vmSight) onLostHost(ctx context.Context, host plan.HostState) (plan.VM, error) {
	vm := unknown(plan.HostDown, "node %s of region %s is not online", s.ref.Node, s.subject.ProxmoxMachine.Spec.Reservation.Region)
	vm.Node, vm.Host, vm.HAState = s.ref.Node, host, s.entry.HAState
	switch {
	case s.Memory.isUntouched(s.subject.uuid()) && !s.listed:
		return plan.VM{Presence: plan.PresenceAbsent}, nil
	case s.listed, host == plan.HostRemoved: // the configs of a node that was removed may be removed as well, and the VM still run there
		return vm, nil
	}
	free, err := s.pve.VMIDFree(ctx, s.ref.ID)
	switch {
	case err != nil:
		return plan.VM{}, err
	case free:
		return s.vacant(), nil
	case s.Memory.isAnothers(s.subject.uuid()):
		return plan.VM{Presence: plan.PresenceForeign, Node: s.ref.Node}, nil
	}
	return vm, nil
}
