package observe

import (
	"fmt"

	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
)

// unfit says why a VM that is not made yet cannot be cloned as reserved: a host, the template or a storage is not there.
// Empty when nothing is known against it; only a fresh snapshot counts.
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
	id := proxmox.VMID(reservation.SourceVMID)
	template, found := snapshot.VM(id)
	changed := template.Node != source || template.Name != "" && !template.Template // without a name the host has not told of it yet
	if !found || changed {
		return fmt.Sprintf("template %d is not on %s any more, or its token may not see it", id, source)
	}
	if why := noStorage(snapshot, node, proxmox.StorageID(reservation.SeedStorage), "iso"); why != "" {
		return why
	}
	if disks := proxmox.StorageID(machine.Spec.Source.Template.Storage); disks != "" {
		return noStorage(snapshot, node, disks, "images")
	}
	return ""
}

// noStorage says that a storage is not on a node, not available there, or not for the content.
func noStorage(snapshot pve.Snapshot, node proxmox.NodeName, id proxmox.StorageID, content string) string {
	if storage, found := snapshot.Storage(node, id); !found || !storage.Available || !storage.Holds(content) {
		return fmt.Sprintf("storage %s of %s is not available, or takes no content %q any more", id, node, content)
	}
	return ""
}
