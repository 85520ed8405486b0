package observe

import (
	"context"
	"slices"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
)

// uploads is what is known of the uploads of a seed. None is sent while the seed is there, or while one whose answer was lost
// may land. So whoever sees the seed, or a machine that is past it, knows that what was sent has landed, unless it was sent by
// an earlier process, and again by one after that.
type uploads struct {
	// none says that none was ever sent.
	none bool
	// until is when none can land any more that nobody knows the end of. What an earlier process sent is not known.
	until time.Time
	// lost says that this is for one whose answer was lost, lostLast that no task was started since.
	lost, lostLast bool
	// several says that more than one may have been sent before that time, so that to see the seed proves nothing.
	several bool
}

// Drawn says that the VM's identity is new, so that nothing was ever sent for it.
func (m *Memory) Drawn(uuid proxmox.SMBIOSUUID) {
	m.with(uuid, func(r *recollection) { r.uploads = uploads{none: true} })
}

// Uploaded says how the request for an upload of the seed ended.
func (m *Memory) Uploaded(uuid proxmox.SMBIOSUUID, err error) {
	class, now := pve.ClassOf(err), m.clock.Now()
	if class != pve.None && class != pve.Ambiguous && class != pve.Other {
		return // it was refused
	}
	m.with(uuid, func(r *recollection) {
		u := &r.uploads
		u.none, u.several = false, now.Before(u.until)
		switch class {
		case pve.Ambiguous:
			u.until, u.lost, u.lostLast = now.Add(m.late), true, true
		case pve.Other: // an error that nobody knows may have come after the task had begun; it keeps no other upload up
			u.until, u.lostLast = now.Add(m.late), true
		default:
		}
	})
}

func (m *Memory) uploadsOf(uuid proxmox.SMBIOSUUID) (state plan.Uploads) {
	now := m.clock.Now()
	m.with(uuid, func(r *recollection) {
		switch {
		case !now.Before(r.uploads.until):
			state = plan.UploadsKnown
		case r.uploads.lost:
			state = plan.UploadLost
		default:
			state = plan.UploadsUnknown
		}
	})
	return state
}

// isUploadOpen reports whether to see the seed would tell that an upload has landed.
func (m *Memory) isUploadOpen(uuid proxmox.SMBIOSUUID) (open bool) {
	state := m.uploadsOf(uuid)
	m.with(uuid, func(r *recollection) { open = state != plan.UploadsKnown && !r.uploads.several })
	return open
}

// uploadLanded says that the seed was seen, or a machine that is past it.
func (m *Memory) uploadLanded(uuid proxmox.SMBIOSUUID) {
	m.with(uuid, func(r *recollection) {
		if !r.uploads.several {
			r.uploads.until, r.uploads.lost = time.Time{}, false
		}
	})
}

// isUploadLostSince reports whether an upload's answer was lost since the last task was started.
func (m *Memory) isUploadLostSince(uuid proxmox.SMBIOSUUID) (lost bool) {
	m.with(uuid, func(r *recollection) { lost = r.uploads.lostLast })
	return lost
}

// hasNoUpload reports whether nothing was ever uploaded.
func (m *Memory) hasNoUpload(uuid proxmox.SMBIOSUUID) (none bool) {
	m.with(uuid, func(r *recollection) { none = r.uploads.none })
	return none
}

// addSeed adds what has to be known of the seed.
func (o *Observer) addSeed(ctx context.Context, cluster *pve.Cluster, subject MachineSubject, machine *plan.Machine) (err error) {
	uuid := subject.uuid()
	machine.SeedStranded = isStranded(cluster.Inventory.Snapshot(), machine)
	switch {
	case machine.SeedStranded && o.Memory.isSeedWithdrawn(uuid):
		machine.SeedVolume = plan.SeedAbsent
	case o.seedIsUnknown(subject, machine):
		machine.SeedVolume, err = seedVolume(ctx, cluster, machine)
	}
	if machine.Spec.ProviderID != "" || machine.SeedVolume == plan.SeedStored || vmconfig.HasSeed(machine.VM.Config) {
		o.Memory.uploadLanded(uuid)
	}
	machine.Uploads = o.Memory.uploadsOf(uuid)
	return err
}

// seedIsUnknown reports whether only a look at the storage tells if the seed is there: the machine is on its way, or going,
// and the last task does not tell, as of an upload whose answer was lost, or may be wrong, as what came after it was refused.
func (o *Observer) seedIsUnknown(subject MachineSubject, machine *plan.Machine) bool {
	isComing := machine.Spec.ProviderID == "" && !machine.Deleting
	certain := machine.VM.Presence == plan.PresenceAbsent || machine.VM.Presence == plan.PresenceOurs
	switch {
	case !certain || machine.SeedHost != plan.HostUp || machine.SeedRemoved:
		return false
	case !isComing && !machine.Deleting && !subject.seedInUse(), o.Memory.hasNoUpload(subject.uuid()):
		return false
	case machine.Task.State == plan.TaskNone || o.Memory.isUploadOpen(subject.uuid()):
		return true
	}
	return isComing && (machine.Task.State == plan.TaskFailed || !vmconfig.HasSeed(machine.VM.Config)) &&
		(o.Memory.hasErred(subject.uuid()) || !tellsOfSeed(machine.Task))
}

// tellsOfSeed reports whether a task tells if the seed is there, or is waited for.
func tellsOfSeed(task plan.Task) bool {
	waits := task.State == plan.TaskRunning || task.State == plan.TaskFailed && task.RetryAfter > 0
	return waits || task.State == plan.TaskSucceeded && (task.PutsSeed() || task.RemovesSeed())
}

// seedVolume looks for the seed on its storage.
func seedVolume(ctx context.Context, cluster *pve.Cluster, machine *plan.Machine) (plan.SeedVolume, error) {
	reservation := machine.Spec.Reservation
	storage := proxmox.StorageID(reservation.SeedStorage)
	volumes, err := cluster.StorageContent(ctx, machine.SeedNode, storage, "iso")
	if pve.IsNoStorage(err) {
		return plan.SeedAbsent, nil
	}
	if err != nil {
		return plan.SeedNotLookedAt, err
	}
	wanted := vmconfig.SeedVolume(storage, proxmox.SMBIOSUUID(reservation.UUID))
	if slices.ContainsFunc(volumes, func(volume pve.Volume) bool { return volume.ID == wanted }) {
		return plan.SeedStored, nil
	}
	return plan.SeedAbsent, nil
}

// isStranded reports whether a VM was moved, before it ran, to a node that the storage of its seed is not on. A local storage
// of the same name is another one.
func isStranded(snapshot pve.Snapshot, machine *plan.Machine) bool {
	reservation, vm := machine.Spec.Reservation, machine.VM
	if machine.Spec.ProviderID != "" || machine.Deleting || vm.Presence != plan.PresenceOurs || string(vm.Node) == reservation.Node {
		return false
	}
	storage, found := snapshot.Storage(vm.Node, proxmox.StorageID(reservation.SeedStorage))
	return !found || !storage.Shared
}
