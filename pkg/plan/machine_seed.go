package plan

import (
	"cmp"
	"fmt"

	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// seedNode is the node that the seed's storage is reached through.
func seedNode(m Machine) proxmox.NodeName {
	return cmp.Or(m.SeedNode, proxmox.NodeName(m.Spec.Reservation.Node))
}

// seedVolume is the seed ISO's name on its storage.
func seedVolume(m Machine) proxmox.VolumeID {
	return vmconfig.SeedVolume(proxmox.StorageID(m.Spec.Reservation.SeedStorage), proxmox.SMBIOSUUID(m.Spec.Reservation.UUID))
}

func deleteSeed(m Machine) Decision {
	node := seedNode(m)
	if m.SeedHost == HostOffline {
		return Wait{Reason: Reason{HostDown, fmt.Sprintf("the seed ISO %s of VM %d is on %s, which is offline: %s",
			seedVolume(m), m.Spec.Reservation.VMID, node, bringBack(m, node))}, After: lookAgain}
	}
	if wait := awaitUpload(m); wait != nil {
		return wait
	}
	vm := virtualMachine(m)
	vm.Node = node
	return Do{
		DeleteSeed{VM: vm, Volume: seedVolume(m)},
		Reason{RemovingSeed, fmt.Sprintf("deleting the seed ISO from %s of %s", m.Spec.Reservation.SeedStorage, node)},
	}
}

// awaitUpload waits until no upload can put the seed back that is about to be deleted.
func awaitUpload(m Machine) Decision {
	if m.Uploads == UploadsKnown {
		return nil
	}
	return Wait{Reason: Reason{RemovingSeed, fmt.Sprintf(
		"the seed ISO is deleted from %s of %s once no upload whose answer was lost can put it back: for two minutes Proxmox VE may",
		m.Spec.Reservation.SeedStorage, seedNode(m))}, After: lookAgain}
}
