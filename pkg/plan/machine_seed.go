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
	if m.SeedHost != HostUp {
		return Wait{Reason: Reason{HostDown, fmt.Sprintf("the seed ISO %s of VM %d is on %s, which is %s: %s",
			seedVolume(m), m.Spec.Reservation.VMID, node, downAs(m, m.SeedHost), bringBack(m, node))}, After: lookAgain}
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

// withdrawSeed deletes the seed from the host that the machine leaves; after says what comes after that.
func withdrawSeed(m Machine, after, leaving string) Decision {
	vm := virtualMachine(m)
	vm.Node = seedNode(m)
	if m.SeedHost != HostUp {
		return remark(m, Wait{Reason: Reason{HostDown, fmt.Sprintf("%s once the seed ISO %s, which may be on %s, is deleted: %s",
			after, seedVolume(m), vm.Node, bringBack(m, vm.Node))}, After: lookAgain})
	}
	if wait := awaitUpload(m); wait != nil {
		return wait
	}
	return Do{
		WithdrawSeed{VM: vm, Volume: seedVolume(m)},
		Reason{Relocating, fmt.Sprintf("%s: deleting the seed ISO from %s there", leaving, m.Spec.Reservation.SeedStorage)},
	}
}

// follow gives a VM that was moved before it ran, by a person or the HA manager, its seed where it is now: the one on its old
// host is taken away, and the reservation moves. So the seed is never in more than the one place that the reservation names.
func follow(m Machine) Decision {
	if !m.SeedStranded || m.Spec.ProviderID != "" || m.VM.Power == PowerRunning {
		return nil
	}
	before := m.Spec.Reservation
	why := fmt.Sprintf("leaving %s, as VM %d was moved to %s before it ran", before.Node, before.VMID, m.VM.Node)
	switch isGone := m.SeedIsGone() || m.Uploads == UploadsKnown && m.SeedVolume == SeedAbsent; { // its drive may name it
	case m.Task.State == TaskRunning:
		return Wait{Reason: taskReason(m.Task)}
	case !isGone && !m.seedIsAbandoned():
		return withdrawSeed(m, fmt.Sprintf("VM %d, which was moved to %s before it ran, gets its seed there", before.VMID, m.VM.Node), why)
	}
	return Do{Follow{m.VM.Node}, Reason{Relocating, why}}
}
