package observe

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
)

// addCloning adds what matters to the making of the VM: whether it may begin, and how attempts before it went. One that is
// seen to run has its slot, and one that is seen to have ended gives it back.
func (o *Observer) addCloning(ctx context.Context, cluster *pve.Cluster, subject MachineSubject, machine *plan.Machine) error {
	runs := machine.Task.State == plan.TaskRunning && machine.Task.Makes()
	switch {
	case runs && !o.Slots.Holds(subject.Key()):
		place, _ := o.clonePlace(ctx, cluster, subject) // without its storage the host counts
		o.Slots.Occupy(subject.Key(), place)
	case !runs && o.cloneEnded(subject, machine):
		o.Slots.Release(subject.Key())
	}
	if runs || machine.Deleting || machine.Spec.ProviderID != "" || machine.VM.Presence != plan.PresenceAbsent && machine.VM.Host == plan.HostUp {
		return nil
	}
	if o.Memory.isSeedWithdrawn(subject.uuid()) || o.Memory.hasNoUpload(subject.uuid()) {
		machine.SeedVolume = plan.SeedAbsent
	}
	machine.CloneTrouble = o.Memory.cloneTrouble(subject.uuid())
	why, err := o.unfit(ctx, cluster, subject, machine)
	if err != nil {
		return err
	}
	if why != "" {
		machine.CloneTrouble.Leave, machine.CloneTrouble.Unfit = why, true
		return o.addCandidates(ctx, subject, machine)
	}
	place, err := o.clonePlace(ctx, cluster, subject)
	if err != nil {
		return err
	}
	machine.CloneSlot = plan.CloneSlot{Place: place, Full: o.Slots.Full(subject.Key(), place)}
	if machine.CloneTrouble.Leave == "" {
		return nil
	}
	return o.addCandidates(ctx, subject, machine) // another host is looked for
}

// cloneEnded reports whether it is certain that nothing makes the machine's VM any more, if something did: an answer that was
// lost leaves that open until the VM is there, or cannot come any more.
func (o *Observer) cloneEnded(subject MachineSubject, machine *plan.Machine) bool {
	switch machine.VM.Presence {
	case plan.PresenceOurs:
		return machine.VM.Config.Lock() != "clone" && machine.VM.Config.Lock() != "create"
	case plan.PresenceAbsent:
		return o.Slots.Holds(subject.Key()) && !o.Memory.mayComeLate(subject.uuid())
	case plan.PresenceForeign:
		return true
	case plan.PresenceUnknown:
	}
	return false
}

// clonePlace finds out where the making of the machine's VM costs something.
func (o *Observer) clonePlace(ctx context.Context, cluster *pve.Cluster, subject MachineSubject) (plan.ClonePlace, error) {
	spec := subject.ProxmoxMachine.Spec
	region, _ := regionOf(subject.ProxmoxCluster, proxmox.RegionName(spec.Reservation.Region))
	place := plan.ClonePlace{
		PVE: string(o.Ledger.PVE(region)), Host: proxmox.NodeName(cmp.Or(spec.Reservation.SourceNode, spec.Reservation.Node)),
		PerHost:    int(cmp.Or(region.CloneLimits.PerHost, v1beta1.DefaultCloneLimit)),
		PerStorage: int(cmp.Or(region.CloneLimits.PerStorage, v1beta1.DefaultCloneLimit)),
	}
	var err error
	snapshot := cluster.Inventory.Snapshot()
	place.Storage = proxmox.StorageID(cmp.Or(spec.Source.Template.Storage, spec.Disks.Boot.Storage))
	if place.Storage == "" && spec.Source.UsesTemplate() && (place.PerStorage < place.PerHost || hasShared(snapshot, place.Host)) {
		place.Storage, err = o.templateStorage(ctx, cluster, PVECluster(place.PVE), spec)
	}
	if storage, found := snapshot.Storage(place.Host, place.Storage); !found || !storage.Shared {
		place.StorageHost = place.Host
	}
	return place, err
}

// templateStorage is the storage of the boot disk of a machine's template.
func (o *Observer) templateStorage(ctx context.Context, cluster *pve.Cluster, id PVECluster, spec v1beta1.ProxmoxMachineSpec) (proxmox.StorageID, error) {
	reservation := spec.Reservation
	ref := pve.VMRef{Node: proxmox.NodeName(reservation.SourceNode), ID: proxmox.VMID(reservation.SourceVMID)}
	config, err := o.template(ctx, cluster, place{id, ref, spec.Source.Template.Snapshot})
	if class := pve.ClassOf(err); err != nil && class != pve.NotFound && class != pve.Forbidden && class != pve.Missing { // the clone will say so
		return "", err
	}
	return diskStorage(config), nil
}

// hasShared reports whether a host has shared storage that a template could be on.
func hasShared(snapshot pve.Snapshot, host proxmox.NodeName) bool {
	for _, storage := range snapshot.Storages(host) {
		if storage.Shared && storage.Holds("images") {
			return true
		}
	}
	return false
}

// diskStorage is the storage of a template's boot disk; empty when it has none.
func diskStorage(config vmconfig.Config) proxmox.StorageID {
	if disk, found := config.BootDisk(); found {
		return vmconfig.Storage(config.DiskVolumes()[disk.Key])
	}
	return ""
}

const (
	// mostCloneFailures is how many attempts to make a VM may fail on a host before another host is tried.
	mostCloneFailures = 3
	// hostTroubleTTL is how long a host where a clone failed is passed over while others fit.
	hostTroubleTTL = 10 * time.Minute
)

// hostPlace names a host over all Proxmox VE clusters.
type hostPlace struct {
	cluster PVECluster
	node    proxmox.NodeName
}

// hostTrouble is how a clone failed on a host. A restart forgets it, which costs each new machine that comes there a clone that
// fails once more, and leads to the same host in the end.
type hostTrouble struct {
	at   time.Time
	text string
}

// CloneFailed notes that a VM could not be made, as a clone or otherwise, by its task or, with an empty task, by the answer to its request. The host is given
// up, for now, when it was the cause, or when too many of the VM's clones failed there.
func (m *Memory) CloneFailed(uuid proxmox.SMBIOSUUID, failure CloneFailure) {
	m.images.clear() // which may be why
	if pve.ClassOf(failure.Err) == pve.AlreadyExists {
		m.foundTaken(uuid, failure.Task)
		return
	}
	isHosts := pve.HostFault(failure.Err)
	if failure.Task == "" && !isHosts {
		return
	}
	leave := ""
	m.with(uuid, func(r *recollection) {
		if failure.Task != "" && r.failedClone == failure.Task {
			return
		}
		r.failedClone = failure.Task
		r.cloneFailures++
		if isHosts || r.cloneFailures >= mostCloneFailures {
			leave = failure.text()
			r.leave = leave
		}
	})
	if leave != "" {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.troubles[hostPlace{failure.PVE, failure.Node}] = hostTrouble{at: m.clock.Now(), text: leave}
	}
}

// foundTaken notes that the task of a clone found its VMID taken, so that it made nothing, which counts once. Of an answer
// that says so Cloned knows already.
func (m *Memory) foundTaken(uuid proxmox.SMBIOSUUID, task proxmox.UPID) {
	m.with(uuid, func(r *recollection) {
		if task == "" || r.failedClone == task {
			return
		}
		r.failedClone = task
		r.clones--
		r.anothers = r.reserved && r.clones == 0
	})
}

// CloneFailure is how and where a clone failed.
type CloneFailure struct {
	PVE  PVECluster
	Node proxmox.NodeName
	Task proxmox.UPID
	Err  error
}

// FailureOf says that a clone for the machine's reservation failed; the task is empty when the request was refused.
func (l *Ledger) FailureOf(subject MachineSubject, task proxmox.UPID, err error) CloneFailure {
	reservation := subject.ProxmoxMachine.Spec.Reservation
	region, _ := regionOf(subject.ProxmoxCluster, proxmox.RegionName(reservation.Region))
	return CloneFailure{PVE: l.PVE(region), Node: proxmox.NodeName(reservation.Node), Task: task, Err: err}
}

// text is Proxmox VE's, short enough for a condition that lists all hosts.
func (f CloneFailure) text() string {
	const most = 160
	text := f.Err.Error()
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…" // the cut may go through a character
	}
	return text
}

// cloneTrouble is what is known of failed clones of a VM.
func (m *Memory) cloneTrouble(uuid proxmox.SMBIOSUUID) (trouble plan.CloneTrouble) {
	late := m.mayComeLate(uuid)
	m.with(uuid, func(r *recollection) {
		// What an earlier process sent is not known: time has to show.
		unsure := !r.reserved && !r.old && m.clock.Since(m.started) < m.late
		trouble = plan.CloneTrouble{Leave: r.leave, MayComeLate: late || unsure}
	})
	return trouble
}

// hostTrouble says how a clone failed on a host lately; empty when none did.
func (m *Memory) hostTrouble(at hostPlace) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	trouble, found := m.troubles[at]
	since := m.clock.Since(trouble.at)
	if !found || since >= hostTroubleTTL {
		delete(m.troubles, at)
		return ""
	}
	return fmt.Sprintf("a VM could not be made here %s ago: %s", ago(since), trouble.text)
}

// ago rounds a time, so that a text with it does not change all the time.
func ago(since time.Duration) string {
	const coarse = 10 * time.Second
	if since < time.Minute {
		return fmt.Sprintf("%d s", int(since.Truncate(coarse).Seconds()))
	}
	return fmt.Sprintf("%d min", int(since.Minutes()))
}

// SeedWithdrawn says whether the seed is known to be off the storage of a host that is left.
func (m *Memory) SeedWithdrawn(uuid proxmox.SMBIOSUUID, state plan.SeedVolume) {
	m.with(uuid, func(r *recollection) { r.withdrawn = state == plan.SeedAbsent })
}

func (m *Memory) isSeedWithdrawn(uuid proxmox.SMBIOSUUID) (withdrawn bool) {
	m.with(uuid, func(r *recollection) { withdrawn = r.withdrawn })
	return withdrawn
}
