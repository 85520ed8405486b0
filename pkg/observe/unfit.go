package observe

import (
	"context"
	"fmt"

	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
)

// unfit says why a VM that is not made yet cannot be made as reserved: a host, the template, the image or a storage is not
// there. Empty when nothing is known against it.
func (o *Observer) unfit(ctx context.Context, cluster *pve.Cluster, subject MachineSubject, machine *plan.Machine) (string, error) {
	snapshot := cluster.Inventory.Snapshot()
	image := proxmox.VolumeID(machine.Spec.Source.Image.Volume)
	if why := unfit(snapshot, machine); why != "" || image == "" || snapshot.Err != nil {
		return why, nil
	}
	region, _ := regionOf(subject.ProxmoxCluster, proxmox.RegionName(machine.Spec.Reservation.Region))
	finder := &imageFinder{Observer: o, pve: cluster, id: o.Ledger.PVE(region), snapshot: snapshot, image: image}
	return finder.look(ctx, proxmox.NodeName(machine.Spec.Reservation.Node))
}

// unfit says what a fresh snapshot has against it.
func unfit(snapshot pve.Snapshot, machine *plan.Machine) string {
	reservation := machine.Spec.Reservation
	node, source := proxmox.NodeName(reservation.Node), proxmox.NodeName(reservation.SourceNode)
	if snapshot.Err != nil || snapshot.At.IsZero() {
		return ""
	}
	for _, host := range []proxmox.NodeName{machine.VM.Node, node, source} {
		switch hostState(snapshot, host) {
		case plan.HostOffline:
			return fmt.Sprintf("%s is offline", host)
		case plan.HostRemoved:
			if host != "" {
				return fmt.Sprintf("%s is no longer a node of region %s", host, reservation.Region)
			}
		case plan.HostUp:
		}
	}
	if why := noTemplate(snapshot, machine); why != "" {
		return why
	}
	if why := noStorage(snapshot, node, proxmox.StorageID(reservation.SeedStorage), "iso"); why != "" {
		return why
	}
	for _, disks := range (vmconfig.Desired{Spec: machine.Spec}).Storages() {
		if why := noStorage(snapshot, node, disks, "images"); why != "" {
			return why
		}
	}
	return ""
}

// noTemplate says that the template, or the VM whose snapshot is cloned, is not where it was.
func noTemplate(snapshot pve.Snapshot, machine *plan.Machine) string {
	if !machine.Spec.Source.UsesTemplate() {
		return ""
	}
	id, source := proxmox.VMID(machine.Spec.Reservation.SourceVMID), proxmox.NodeName(machine.Spec.Reservation.SourceNode)
	isTemplate := machine.Spec.Source.Template.Snapshot == ""
	template, found := snapshot.VM(id)
	changed := template.Node != source || template.Name != "" && template.Template != isTemplate // without a name the host has not told of it yet
	switch {
	case found && !changed:
		return ""
	case isTemplate:
		return fmt.Sprintf("template %d is not on %s any more, or its token may not see it", id, source)
	}
	return fmt.Sprintf("VM %d, whose snapshot %s is cloned, is not on %s any more, or its token may not see it", id, machine.Spec.Source.Template.Snapshot, source)
}

// noStorage says that a storage is not on a node, not available there, or not for the content.
func noStorage(snapshot pve.Snapshot, node proxmox.NodeName, id proxmox.StorageID, content string) string {
	if storage, found := snapshot.Storage(node, id); !found || !storage.Available || !storage.Holds(content) {
		return fmt.Sprintf("storage %s of %s is not available, or takes no content %q any more", id, node, content)
	}
	return ""
}
