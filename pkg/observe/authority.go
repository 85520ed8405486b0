package observe

import (
	"context"
	"fmt"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
)

// authority is the root CA of a Proxmox VE cluster, as it was seen at a time.
type authority struct {
	fingerprint string
	seen        time.Time
}

// authorityTTL is how long it is believed that the same endpoints lead to the same Proxmox VE cluster, where a mistake lets go of
// nothing.
const authorityTTL = 10 * time.Minute

// authority returns the root CA of a Proxmox VE cluster, seen at a time or later.
func (o *Observer) authority(ctx context.Context, cluster *pve.Cluster, since time.Time) (string, error) {
	o.Regions.mu.Lock()
	known := o.Regions.authorities[cluster.Fingerprint()]
	o.Regions.mu.Unlock()
	if known.fingerprint != "" && !known.seen.Before(since) {
		return known.fingerprint, nil
	}
	now := o.Clock.Now()
	fingerprint, err := cluster.Authority(ctx, anyNode(cluster.Inventory.Snapshot()))
	if err != nil {
		return "", err
	}
	o.Regions.mu.Lock()
	defer o.Regions.mu.Unlock()
	o.Regions.authorities[cluster.Fingerprint()] = authority{fingerprint: fingerprint, seen: now}
	return fingerprint, nil
}

// anyNode is a node that can be asked for what all nodes share.
func anyNode(snapshot pve.Snapshot) proxmox.NodeName {
	for _, node := range snapshot.Nodes() {
		if node.Online {
			return node.Name
		}
	}
	return "localhost"
}

// authorityFor returns the root CA of a region, for new VMs; it is an *UnavailableError when the VMs of the region are elsewhere.
func (o *Observer) authorityFor(ctx context.Context, cluster *pve.Cluster, object *v1beta1.ProxmoxCluster, region string) (string, error) {
	current, err := o.authority(ctx, cluster, o.Clock.Now().Add(-authorityTTL))
	if class := pve.ClassOf(err); class == pve.Unimplemented || class == pve.Forbidden {
		return "", nil // then nothing tells them apart
	}
	if err != nil {
		return "", err
	}
	machines, err := o.machinesIn(ctx, object, region)
	if err != nil {
		return "", err
	}
	for i := range machines {
		recorded := machines[i].Spec.Reservation.Authority
		if recorded != "" && recorded != current && !isSeenOf(cluster.Inventory.Snapshot(), machines, recorded) {
			return "", elsewhere(region, &machines[i], current)
		}
	}
	return current, nil
}

// believed makes sure that what was seen of a VM was seen in its own Proxmox VE cluster, where it is not the VM itself that
// proves it: in another one its VMID is free, or another's, and its host unknown.
func (o *Observer) believed(ctx context.Context, cluster *pve.Cluster, subject MachineSubject, vm plan.VM) error {
	machine := subject.ProxmoxMachine
	reservation := machine.Spec.Reservation
	certain := vm.Presence != plan.PresenceAbsent && vm.Presence != plan.PresenceForeign && vm.Host != plan.HostRemoved
	if certain || reservation.Authority == "" {
		return nil
	}
	since := o.Clock.Now()
	if o.Memory.isUntouched(subject.uuid()) { // there is nothing to let go
		since = since.Add(-authorityTTL)
	}
	current, err := o.authority(ctx, cluster, since)
	if err != nil || current == reservation.Authority {
		return err
	}
	if err := cluster.Inventory.Refresh(ctx, since); err != nil {
		return err
	}
	machines, err := o.machinesIn(ctx, subject.ProxmoxCluster, reservation.Region)
	if err != nil || isSeenOf(cluster.Inventory.Snapshot(), machines, reservation.Authority) {
		return err
	}
	return elsewhere(reservation.Region, machine, current)
}

// isSeenOf reports whether a snapshot shows a VM that carries the tag of one of the machines with a root CA: then it is of the
// same Proxmox VE cluster, which has got a new one.
func isSeenOf(snapshot pve.Snapshot, machines []v1beta1.ProxmoxMachine, recorded string) bool {
	for i := range machines {
		reservation := machines[i].Spec.Reservation
		vm, listed := snapshot.VM(proxmox.VMID(reservation.VMID))
		if reservation.Authority == recorded && listed && vm.HasTag(vmconfig.IdentityTag(proxmox.SMBIOSUUID(reservation.UUID))) {
			return true
		}
	}
	return false
}

// machinesIn lists the machines of a ProxmoxCluster that have their place in a region.
func (o *Observer) machinesIn(ctx context.Context, object *v1beta1.ProxmoxCluster, region string) (in []v1beta1.ProxmoxMachine, err error) {
	var list v1beta1.ProxmoxMachineList
	labels := client.MatchingLabels{clusterv1.ClusterNameLabel: object.Labels[clusterv1.ClusterNameLabel]}
	if err := o.Client.List(ctx, &list, client.InNamespace(object.Namespace), labels); err != nil {
		return nil, fmt.Errorf("list the ProxmoxMachines of region %s: %w", region, err)
	}
	for i := range list.Items {
		if list.Items[i].Spec.Reservation.Region == region {
			in = append(in, list.Items[i])
		}
	}
	return in, nil
}

// elsewhere says that a machine's VM is in another Proxmox VE cluster than the one that its region leads to.
func elsewhere(region string, machine *v1beta1.ProxmoxMachine, current string) error {
	reservation := machine.Spec.Reservation
	return unavailable(v1beta1.OtherProxmoxClusterReason, nil,
		"region %s leads to another Proxmox VE cluster (root CA %s) than the one that VM %d of ProxmoxMachine %s is in (%s): correct spec.regions[%s].endpoints of the ProxmoxCluster; "+
			"if only its root CA is new, run `kubectl patch proxmoxmachine %s --type json -p '[{\"op\":\"remove\",\"path\":\"/spec/reservation/authority\"}]'`",
		region, short(current), reservation.VMID, machine.Name, short(reservation.Authority), region, machine.Name)
}

// short is the beginning of a fingerprint.
func short(fingerprint string) string {
	const most = 23 // eight bytes
	if len(fingerprint) <= most {
		return fingerprint
	}
	return fingerprint[:most] + "…"
}
