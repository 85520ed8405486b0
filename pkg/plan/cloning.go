package plan

import (
	"fmt"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/placement"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// ClonePlace is where it costs something to make a VM, as a clone or from an image: the host that does the work and the
// storage that is written to, with how many VMs may be made there at the same time.
type ClonePlace struct {
	// PVE identifies the Proxmox VE cluster.
	PVE  string
	Host proxmox.NodeName
	// Storage is empty when it is not known.
	Storage proxmox.StorageID
	// StorageHost is the host whose storage it is; empty for a shared one.
	StorageHost         proxmox.NodeName
	PerHost, PerStorage int
}

// CloneSlot is whether a VM may begin to be made now.
type CloneSlot struct {
	Place ClonePlace
	// Full says which others stand in the way; empty when none do.
	Full string
}

// CloneTrouble is what is known of the attempts to make the VM that failed on the reserved host.
type CloneTrouble struct {
	// Leave says why another host is tried; empty while this one is.
	Leave string
	// Unfit says that the VM cannot be made there at all, for what Leave says: the host, the template, the image or a storage is
	// not there.
	Unfit bool
	// MayComeLate says that a request whose answer was lost may still make the VM.
	MayComeLate bool
}

// relocate gives a machine whose clones fail on their host, or that lost it, another one, if another fits: the seed is taken
// away first, and the reservation moves while it is certain that no VM of it exists or can still come, or when that is on a
// host that was declared gone. If no other host fits, the clone is tried again where it is.
func relocate(m Machine) Decision {
	if m.Spec.ProviderID != "" || (m.CloneTrouble.Leave == "" || m.VM.Presence != PresenceAbsent) && !m.isAbandoned() {
		return nil
	}
	before, mustLeave := m.Spec.Reservation, m.CloneTrouble.Unfit || m.isAbandoned()
	choice, refusals, found := placement.Place(request(m), m.Candidates.Hosts)
	after := reservationAt(m, choice)
	after.UUID, after.VMID = before.UUID, before.VMID
	if after.Region == before.Region { // which is the same one, or nothing would be known of the VM
		after.Authority = before.Authority
	}
	stays := !found || after == before && !m.isAbandoned()
	switch {
	case stays && mustLeave:
		return noOtherHost(m, refusals)
	case stays || choice.Host.CloneFailure != "" && !mustLeave:
		return nil
	case m.CloneTrouble.MayComeLate && !m.isAbandoned():
		return Wait{
			Reason: Reason{Relocating, fmt.Sprintf(
				"VM %d goes to another host than %s (%s) once it is certain that no %s whose answer was lost makes it there: for two minutes Proxmox VE may",
				before.VMID, before.Node, m.CloneTrouble.Leave, words(m).attempt)},
			After: lookAgain,
		}
	case m.Task.State == TaskRunning:
		return Wait{Reason: taskReason(m.Task)}
	case !m.SeedIsGone() && !m.seedIsAbandoned() && !m.isAbandoned(): // should the host come back meanwhile, the VM needs its seed
		return withdrawSeed(m, fmt.Sprintf("VM %d, which is not made yet, goes to another host (%s)", before.VMID, m.CloneTrouble.Leave),
			fmt.Sprintf("leaving %s, where VM %d could not be %s (%s)", before.Node, before.VMID, words(m).made, m.CloneTrouble.Leave))
	}
	return moveTo(m, after)
}

// moveTo writes the new place, with another VMID where there is one: the old one must be left when the VM that has it is.
func moveTo(m Machine, after v1beta1.Reservation) Decision {
	_, free := m.Candidates.FreeVMIDs[proxmox.RegionName(after.Region)]
	if !free && after.Region == m.Spec.Reservation.Region && !m.isAbandoned() {
		return reserveAt(m, after) // its own is free, too
	}
	return reserveVMID(m, after)
}

// noOtherHost says why a machine that cannot stay on its host does not leave it.
func noOtherHost(m Machine, refusals placement.Refusals) Decision {
	message := fmt.Sprintf("VM %d cannot be %s on %s (%s), and no other host fits: ",
		m.Spec.Reservation.VMID, words(m).made, m.Spec.Reservation.Node, m.CloneTrouble.Leave)
	if m.Candidates.Unavailable != "" {
		message += m.Candidates.Unavailable + "; "
	}
	return Wait{Reason: Reason{WaitingForCapacity, message + refusals.String()}, After: lookAgain}
}

// reservationAt is the part of a reservation that placement chose.
func reservationAt(m Machine, choice placement.Choice) v1beta1.Reservation {
	return v1beta1.Reservation{
		Region: string(choice.Host.Region), Authority: m.Candidates.Authorities[choice.Host.Region], Node: string(choice.Host.Node),
		SourceNode: string(choice.Host.Template.Node), SourceVMID: int32(choice.Host.Template.ID), SeedStorage: string(choice.SeedStorage),
	}
}

// making is how it is said that a VM is made.
type making struct{ attempt, made string }

func words(m Machine) making {
	if m.Spec.Source.UsesTemplate() {
		return making{"clone", "cloned"}
	}
	return making{"create", "made"}
}

// clone makes the VM from its template, once there is a free slot for it.
func clone(m Machine) Decision {
	if m.VM.Presence == PresenceOurs || !m.Spec.Source.UsesTemplate() {
		return nil
	}
	if wait := awaitSlot(m); wait != nil {
		return wait
	}
	r, template, desired := m.Spec.Reservation, m.Spec.Source.Template, desired(m)
	name, err := desired.Name()
	if err != nil {
		return Stalled{Reason{InvalidConfiguration, err.Error()}}
	}
	return Do{
		Clone{
			VM: virtualMachine(m), Source: proxmox.VMID(r.SourceVMID), SourceNode: proxmox.NodeName(r.SourceNode),
			Name: name, Description: desired.Description(),
			Pool: proxmox.PoolID(m.Spec.Pool), Mode: template.CloneMode,
			Snapshot: template.Snapshot, Storage: proxmox.StorageID(template.Storage), Format: template.Format,
			Place: m.CloneSlot.Place,
		},
		Reason{Cloning, fmt.Sprintf("cloning %s to VM %d on %s", Original(m.Spec), r.VMID, r.Node)},
	}
}

// awaitSlot waits until the VM may begin to be made.
func awaitSlot(m Machine) Decision {
	if m.CloneSlot.Full == "" {
		return nil
	}
	return Wait{Reason: Reason{WaitingForCloneSlot, m.CloneSlot.Full}, After: slotAgain}
}

// create makes the VM of a machine without a template, once there is a free slot for it: with its whole config, the marks of
// its identity among it, which is there as soon as the VM is.
func create(m Machine) Decision {
	if m.VM.Presence == PresenceOurs || m.Spec.Source.UsesTemplate() {
		return nil
	}
	if misfits := desired(m).Misfits(newConfig(m)); len(misfits) > 0 {
		return Stalled{Reason{InvalidConfiguration, strings.Join(misfits, "; ")}}
	}
	if wait := awaitSlot(m); wait != nil {
		return wait
	}
	return Do{
		Create{VM: virtualMachine(m), Pool: proxmox.PoolID(m.Spec.Pool), Config: newConfig(m), Place: m.CloneSlot.Place},
		Reason{Creating, fmt.Sprintf("making VM %d on %s %s", m.Spec.Reservation.VMID, m.Spec.Reservation.Node, Origin(m.Spec.Source))},
	}
}

// newConfig is the config that a VM without a template is made with; nil for one that has a template.
func newConfig(m Machine) vmconfig.Config {
	if m.Spec.Source.UsesTemplate() {
		return nil
	}
	return desired(m).New()
}

// Original names what a VM is a clone of.
func Original(spec v1beta1.ProxmoxMachineSpec) string {
	if snapshot := spec.Source.Template.Snapshot; snapshot != "" {
		return fmt.Sprintf("snapshot %s of VM %d of %s", snapshot, spec.Reservation.SourceVMID, spec.Reservation.SourceNode)
	}
	return fmt.Sprintf("template %d of %s", spec.Reservation.SourceVMID, spec.Reservation.SourceNode)
}

// Origin says what a VM without a template is made from.
func Origin(source v1beta1.VirtualMachineSource) string {
	if image := source.Image.Volume; image != "" {
		return "with a disk from image " + image
	}
	return "to boot from the network by " + source.Netboot.Device
}
