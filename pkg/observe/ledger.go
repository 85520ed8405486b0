package observe

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// ErrLedgerChanged says that a reservation was made since the snapshot that a choice came from: look again and choose anew.
var ErrLedgerChanged = errors.New("other reservations were made meanwhile")

// ErrBehind says that the machine was read from a cache that lags behind what was written: it is looked at again.
var ErrBehind = errors.New("the cache does not show the machine as it is yet")

// Entry is one reservation.
type Entry struct {
	Machine types.NamespacedName
	// UID tells the machine from one of the same name that was there before.
	UID    types.UID
	PVE    PVECluster
	VMID   proxmox.VMID
	Node   proxmox.NodeName
	Memory proxmox.Bytes
	Group  string
}

// Ledger knows every reservation: those that stand in the specs of ProxmoxMachines, and those that are being written
// there. It is the single writer of placements: a choice that was made from an older state is refused.
type Ledger struct {
	reader client.Reader
	mu     sync.Mutex
	// version counts the reservations taken.
	version int64
	// pending are the reservations that the cache does not show yet.
	pending map[types.NamespacedName]Entry
	// clusters tells which regions are one Proxmox VE cluster.
	clusters pveClusters
}

// NewLedger returns a Ledger over the ProxmoxMachines that the reader shows.
func NewLedger(reader client.Reader) *Ledger {
	return &Ledger{reader: reader, pending: map[types.NamespacedName]Entry{}}
}

// Take enters a reservation. It is ErrLedgerChanged when others were entered since the version of the ledger, and ErrBehind
// when the machine has one that the cache does not show yet.
func (l *Ledger) Take(entry Entry, version int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, behind := l.pending[entry.Machine]; behind {
		return ErrBehind
	}
	if version != l.version {
		return ErrLedgerChanged
	}
	l.version++
	l.pending[entry.Machine] = entry
	return nil
}

// Return takes a reservation back that could not be written.
func (l *Ledger) Return(machine types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.pending, machine)
}

// Entries returns all reservations and the version that they are of.
func (l *Ledger) Entries(ctx context.Context) (map[types.NamespacedName]Entry, int64, error) {
	// The lock is held over the read, so that no entry passes from pending to the cache unseen. The reader is a cache.
	l.mu.Lock()
	defer l.mu.Unlock()
	entries, existing, err := l.written(ctx)
	if err != nil {
		return nil, 0, fmt.Errorf("read the reservations: %w", err)
	}
	for machine, entry := range l.pending {
		written, found := entries[machine]
		if found && written.VMID == entry.VMID || existing[machine] != entry.UID { // it is shown, or the machine is gone
			delete(l.pending, machine)
			continue
		}
		entries[machine] = entry
	}
	return entries, l.version, nil
}

// PVE identifies the Proxmox VE cluster of a region.
func (l *Ledger) PVE(region v1beta1.Region) PVECluster {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.clusters.of(region)
}

// written returns the reservations in the specs of ProxmoxMachines, and the UIDs of all ProxmoxMachines there are.
func (l *Ledger) written(ctx context.Context) (map[types.NamespacedName]Entry, map[types.NamespacedName]types.UID, error) {
	var clusters v1beta1.ProxmoxClusterList
	var machines v1beta1.ProxmoxMachineList
	if err := errors.Join(l.reader.List(ctx, &clusters), l.reader.List(ctx, &machines)); err != nil {
		return nil, nil, err
	}
	l.clusters = identify(clusters.Items)
	byName := map[types.NamespacedName]*v1beta1.ProxmoxCluster{}
	for i := range clusters.Items {
		cluster := &clusters.Items[i]
		byName[types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.Labels[clusterv1.ClusterNameLabel]}] = cluster
	}
	entries, existing := map[types.NamespacedName]Entry{}, map[types.NamespacedName]types.UID{}
	for i := range machines.Items {
		machine := &machines.Items[i]
		existing[client.ObjectKeyFromObject(machine)] = machine.UID
		cluster := byName[types.NamespacedName{Namespace: machine.Namespace, Name: machine.Labels[clusterv1.ClusterNameLabel]}]
		if machine.Spec.Reservation.UUID == "" || cluster == nil {
			continue
		}
		entries[client.ObjectKeyFromObject(machine)] = l.newEntry(machine, cluster, machine.Spec.Reservation)
	}
	return entries, existing, nil
}

// NewEntry returns the entry of a machine's reservation.
func (l *Ledger) NewEntry(machine *v1beta1.ProxmoxMachine, cluster *v1beta1.ProxmoxCluster, reservation v1beta1.Reservation) Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.newEntry(machine, cluster, reservation)
}

func (l *Ledger) newEntry(machine *v1beta1.ProxmoxMachine, cluster *v1beta1.ProxmoxCluster, reservation v1beta1.Reservation) Entry {
	entry := Entry{
		Machine: client.ObjectKeyFromObject(machine), UID: machine.UID, VMID: proxmox.VMID(reservation.VMID), Node: proxmox.NodeName(reservation.Node),
		Memory: proxmox.MiB(machine.Spec.Memory.SizeMiB).Bytes(), Group: group(machine),
	}
	if region, found := regionOf(cluster, proxmox.RegionName(reservation.Region)); found {
		entry.PVE = l.clusters.of(region)
	}
	return entry
}

// group names the machines that are spread over hosts together: those of a control plane, of a MachineDeployment, of a
// MachineSet.
func group(machine *v1beta1.ProxmoxMachine) string {
	parts := []string{machine.Namespace, machine.Labels[clusterv1.ClusterNameLabel]}
	for _, label := range []string{clusterv1.MachineControlPlaneNameLabel, clusterv1.MachineDeploymentNameLabel, clusterv1.MachineSetNameLabel} {
		if name, found := machine.Labels[label]; found {
			return strings.Join(append(parts, label, name), "/")
		}
	}
	return strings.Join(parts, "/")
}

func regionOf(cluster *v1beta1.ProxmoxCluster, name proxmox.RegionName) (v1beta1.Region, bool) {
	if cluster != nil {
		for _, region := range cluster.Spec.Regions {
			if region.Name == string(name) {
				return region, true
			}
		}
	}
	return v1beta1.Region{}, false
}
