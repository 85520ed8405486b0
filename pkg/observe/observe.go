// Package observe takes the snapshots that pkg/plan decides from: one of a machine or of a cluster per pass, put together
// from Kubernetes and from Proxmox VE. What Proxmox VE says comes from the shared inventory wherever that is enough; a
// request for one VM is made only while something is done to it.
//
// What this package remembers between passes is a cache: after a restart it is empty, and the same conclusions follow.
package observe

import (
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// Observer takes snapshots. It is safe for concurrent use.
type Observer struct {
	// Client reads from the manager's cache.
	Client client.Reader
	// Live reads past the cache: bootstrap data and credentials, so that the manager holds no Secret in memory, and what
	// decides that a machine holds nothing any more.
	Live    client.Reader
	Regions *Regions
	Ledger  *Ledger
	Memory  *Memory
	Waker   *Waker
	// Allocator finds VMIDs; Slots count the clones that run.
	Allocator *Allocator
	Slots     *CloneSlots
	Clock     clock.PassiveClock
}

// MachineSubject is a machine with the objects around it.
type MachineSubject struct {
	ProxmoxMachine *v1beta1.ProxmoxMachine
	// Machine is the owner; nil for an orphan, which can only be deleted.
	Machine *clusterv1.Machine
	// Cluster is the Machine's Cluster; nil for an orphan.
	Cluster *clusterv1.Cluster
	// ProxmoxCluster is the cluster's infrastructure; nil when it is gone.
	ProxmoxCluster *v1beta1.ProxmoxCluster
}

// Key is the machine's name in its namespace.
func (s MachineSubject) Key() client.ObjectKey { return client.ObjectKeyFromObject(s.ProxmoxMachine) }

// Forget drops what is kept for a machine that is gone.
func (o *Observer) Forget(machine client.ObjectKey) {
	o.Waker.Forget(machine)
	o.Slots.Release(machine)
}

// uuid is the identity of the machine's VM; empty before the reservation.
func (s MachineSubject) uuid() proxmox.SMBIOSUUID {
	return proxmox.SMBIOSUUID(s.ProxmoxMachine.Spec.Reservation.UUID)
}
