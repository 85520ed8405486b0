package plan

import (
	"fmt"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// VMIDs are the VMIDs that a new VM may get in a region.
type VMIDs struct {
	First, Last proxmox.VMID
	// Widen says which field bounds them, and how more are had.
	Widen string
}

// VMIDsFor returns the VMIDs for a machine: the most specific range that is set counts, of the machine, the region or the
// cluster.
func VMIDsFor(machine v1beta1.ProxmoxMachineSpec, cluster v1beta1.ProxmoxClusterSpec, region v1beta1.Region) VMIDs {
	for _, bound := range []struct {
		set   v1beta1.VMIDRange
		widen string
	}{
		{machine.VMIDRange, "widen spec.template.spec.vmIDRange of the ProxmoxMachineTemplate and roll the machines"},
		{region.VMIDRange, "widen spec.regions[].vmIDRange of the ProxmoxCluster"},
		{cluster.VMIDRange, "widen spec.vmIDRange of the ProxmoxCluster"},
	} {
		if bound.set.Start != 0 {
			return VMIDs{First: proxmox.VMID(bound.set.Start), Last: proxmox.VMID(bound.set.End), Widen: bound.widen}
		}
	}
	return VMIDs{First: proxmox.MinVMID, Last: proxmox.MaxVMID, Widen: "Proxmox VE has no more: remove guests"}
}

// reserveVMID completes a reservation with the next free VMID of its region.
func reserveVMID(m Machine, reservation v1beta1.Reservation) Decision {
	region := proxmox.RegionName(reservation.Region)
	id, free := m.Candidates.FreeVMIDs[region]
	if !free {
		return Wait{Reason: noVMID(region, m.Candidates.VMIDs[region]), After: lookAgain}
	}
	reservation.VMID = int32(id)
	return reserveAt(m, reservation)
}

func reserveAt(m Machine, reservation v1beta1.Reservation) Decision {
	reserve := Reserve{Reservation: reservation, Applied: vmconfig.WriteApplied(m.Spec), LedgerVersion: m.Candidates.LedgerVersion}
	if left := leftovers(m); len(left) > 0 && m.VM.Presence != PresenceForeign {
		reserve.Abandoned = "the machine goes to another host " + without(m, left)
	}
	return Do{
		reserve,
		Reason{Placed, fmt.Sprintf("placed on %s of region %s as VM %d", reservation.Node, reservation.Region, reservation.VMID) + passedOver(m, reservation)},
	}
}

// passedOver says which hosts did not get the VM for clones that failed there.
func passedOver(m Machine, reservation v1beta1.Reservation) string {
	text := ""
	for _, host := range m.Candidates.Hosts {
		if host.CloneFailure != "" && string(host.Node) != reservation.Node {
			text += fmt.Sprintf("; not on %s: %s", host.Node, host.CloneFailure)
		}
	}
	return text
}

func noVMID(region proxmox.RegionName, ids VMIDs) Reason {
	return Reason{VMIDRangeExhausted, fmt.Sprintf(
		"region %s: no VMID from %d to %d is known to be free: %s", region, ids.First, ids.Last, ids.Widen)}
}
