package plan

import (
	"fmt"
	"strings"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/cloudinit"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/network"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/placement"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// lookAgain bounds waits for what Proxmox VE may change without telling us.
const lookAgain = 15 * time.Second

// claimsAgain bounds waits for addresses: with a watch filter, claims and addresses may not wake us.
const claimsAgain = time.Minute

// seedAgain bounds the wait for the seed when the answer to its upload was lost.
const seedAgain = 5 * time.Second

// slotAgain bounds waits for a clone slot, which wakes its waiters when it comes free.
const slotAgain = time.Minute

// ProviderID returns the providerID of a VM. Its last segment is unique over all clusters, as cluster-autoscaler needs.
func ProviderID(uuid string) string { return "proxmox://" + uuid }

// MachineStep plans the next step of a machine.
func MachineStep(m Machine) Decision {
	if m.Deleting {
		return deletionStep(m)
	}
	for _, step := range []func(Machine) Decision{
		awaitTask, claimAddresses, holdAddresses, reserve, identify, relocate, follow, distinguish, awaitSecurityGroups, upload, clone, create, halt,
		configure, resize, recordConfigured, unlessLocked(setFirewall), unlessLocked(alterBeforeStart), unlessLocked(start), record, unlessLocked(turnOff),
		unlessLocked(removeSeed), unlessLocked(alter), movePool, tellHAManager, remindOfSecurityGroups, remindOfHAManager,
	} {
		if decision := step(m); decision != nil {
			return decision
		}
	}
	return rest(m)
}

// awaitTask waits for the task in flight, and for a while after one that failed. A task that removes the seed does not
// keep the VM from being looked at.
func awaitTask(m Machine) Decision {
	switch {
	case m.Task.State == TaskRunning && !m.Task.RemovesSeed():
		return Wait{Reason: taskReason(m.Task)}
	case m.Task.State == TaskFailed && m.Task.RetryAfter > 0:
		return Wait{Reason: failure(m.Task), After: m.Task.RetryAfter}
	}
	return nil
}

func taskReason(task Task) Reason {
	codes := map[string]Reason{
		"qmclone":   {Cloning, "cloning the template"},
		"qmcreate":  {Creating, "making the VM"},
		"qmconfig":  {Configuring, "configuring the VM, with disks to make"},
		"imgcopy":   {UploadingSeed, "uploading the seed ISO with the bootstrap data"},
		"resize":    {Resizing, "growing a disk"},
		"qmstart":   {Starting, "starting the VM"},
		"hastart":   {Starting, "asking the HA manager to start the VM"},
		"qmstop":    {Stopping, "stopping the VM"},
		"qmdestroy": {Destroying, "destroying the VM"},
		"imgdel":    {RemovingSeed, "deleting the seed ISO"},

		"qmshutdown": {ShuttingDown, "waiting for the guest to shut the VM down"},
		"hastop":     {Stopping, "asking the HA manager to stop the VM"},
	}
	if reason, known := codes[task.Type]; known {
		return reason
	}
	return Reason{Unobserved, "waiting for task " + task.Type}
}

func failure(task Task) Reason {
	return Reason{TaskFailedReason, fmt.Sprintf("%s failed: %s; it is tried again", taskReason(task).Message, task.Failure)}
}

// claimAddresses waits until all that a new VM needs from Kubernetes is there, so that no VM is made in vain.
func claimAddresses(m Machine) Decision {
	switch {
	case m.Spec.ProviderID != "":
		return nil // the VM exists; what it was made from may be gone
	case !m.ClusterReady:
		return Wait{Reason: Reason{WaitingForCluster, "waiting for the ProxmoxCluster to be provisioned"}}
	case m.Bootstrap.Missing.Code != "":
		return Wait{Reason: m.Bootstrap.Missing, After: lookAgain} // Secrets are not watched
	case len(m.Addresses.Absent) > 0:
		return Do{ClaimAddresses{m.Addresses.Absent}, Reason{ClaimingAddresses, "claiming addresses"}}
	case m.Addresses.Invalid != "":
		return Stalled{Reason{InvalidAddress, m.Addresses.Invalid}}
	case m.Addresses.Pending != "":
		return Wait{Reason: m.Addresses.Wait(), After: claimsAgain}
	}
	return nil
}

// holdAddresses keeps the addresses from being given to another while the VM may use them. It comes before the VM, and again
// when someone took our owner reference or finalizer away, as a restore does.
func holdAddresses(m Machine) Decision {
	if len(m.Addresses.Unheld) == 0 {
		return nil
	}
	return Do{HoldAddresses{m.Addresses.Unheld}, Reason{HoldingAddresses, "holding the addresses"}}
}

// distinguish waits while another machine has a MAC address that this one would get: one of them would not be reached.
func distinguish(m Machine) Decision {
	uuid := proxmox.SMBIOSUUID(m.Spec.Reservation.UUID)
	if m.Spec.ProviderID != "" || m.VM.Presence == PresenceOurs {
		return nil
	}
	card, other, found := network.SameMAC(network.Cards(m.Name, uuid, m.Spec.Network), m.Cards)
	if !found {
		return nil
	}
	return Wait{Reason: Reason{DuplicateMACAddress, fmt.Sprintf(
		"%s would have the MAC address %s, which %s of ProxmoxMachine %s has: delete one of the two machines, leave macAddress out of their template, or make macPrefix shorter",
		card.Device, card.MAC, other.Device, other.Machine)}, After: claimsAgain}
}

// reserve gives the machine its host, VMID and identity.
func reserve(m Machine) Decision {
	if m.Spec.Reservation.UUID != "" {
		return nil
	}
	if misfits := desired(m).Misfits(newConfig(m)); len(misfits) > 0 {
		return Stalled{Reason{InvalidConfiguration, strings.Join(misfits, "; ")}}
	}
	choice, refusals, found := placement.Place(request(m), m.Candidates.Hosts)
	if !found {
		message := refusals.String()
		if m.Candidates.Unavailable != "" {
			message = m.Candidates.Unavailable + "; " + message
		}
		return Wait{Reason: Reason{WaitingForCapacity, message}, After: lookAgain}
	}
	return reserveVMID(m, reservationAt(m, choice))
}

func request(m Machine) placement.Request {
	nodes := make([]proxmox.NodeName, len(m.Spec.Placement.AllowedNodes))
	for i, node := range m.Spec.Placement.AllowedNodes {
		nodes[i] = proxmox.NodeName(node)
	}
	return placement.Request{
		FailureDomain: m.FailureDomain, ControlPlane: m.ControlPlane, AllowedNodes: nodes,
		CPUs:            int(m.Spec.CPU.Sockets * m.Spec.CPU.Cores),
		Memory:          proxmox.MiB(m.Spec.Memory.SizeMiB).Bytes(),
		WithoutTemplate: !m.Spec.Source.UsesTemplate(), DiskStorages: desired(m).Storages(),
		DiskFormats: formats(m.Spec), SeedStorage: proxmox.StorageID(m.Spec.Bootstrap.Storage),
		Needs: needs(m.Spec),
	}
}

// identify makes sure that the VM at the reserved VMID is known, and ours or absent.
func identify(m Machine) Decision {
	switch m.VM.Presence {
	case PresenceUnknown:
		if m.VM.Host != HostUp && m.Spec.ProviderID == "" {
			return remark(m, awaitHost(m))
		}
		return Wait{Reason: m.VM.Why, After: lookAgain}
	case PresenceForeign:
		return otherVMID(m)
	case PresenceAbsent:
		if m.Spec.ProviderID != "" {
			return vanished(m)
		}
	case PresenceOurs:
		if m.Spec.ProviderID == "" {
			return awaitLock(m)
		}
	}
	return nil
}

// awaitLock waits while Proxmox VE, or a person, works on the VM.
func awaitLock(m Machine) Decision {
	lock := m.VM.Config.Lock()
	if live := m.Upkeep.Live; lock == "" && live != nil {
		lock = live.Config.Lock()
	}
	if lock == "" {
		return nil
	}
	id := m.Spec.Reservation.VMID
	return Wait{Reason: Reason{Locked, fmt.Sprintf("VM %d on %s is locked (%s); %s", id, m.VM.Node, lock, LockRemedy(lock, proxmox.VMID(id)))}, After: lookAgain}
}

// unlessLocked is a step of a VM that ran once: one that needs nothing is not kept up by a backup.
func unlessLocked(step func(Machine) Decision) func(Machine) Decision {
	return func(m Machine) Decision {
		decision := step(m)
		if _, acts := decision.(Do); !acts {
			return decision
		}
		if wait := awaitLock(m); wait != nil {
			return wait
		}
		return decision
	}
}

// otherVMID leaves a VMID that another took first; all else of the reservation stays, the seed among it. Once the VM ran
// its VMID cannot have been another's: then ours is gone.
func otherVMID(m Machine) Decision {
	if m.Spec.ProviderID != "" {
		return vanished(m)
	}
	return reserveVMID(m, m.Spec.Reservation)
}

// vanished is the end of a VM that ran and is not there any more. Its bootstrap data does not wait for the Machine to go.
func vanished(m Machine) Decision {
	if !m.SeedIsGone() && m.SeedHost == HostUp && m.Task.State != TaskRunning {
		return deleteSeed(m)
	}
	return Stalled{Reason{VirtualMachineGone, fmt.Sprintf(
		"VM %d (%s) is no longer in region %s: it was removed outside of Cluster API and is not made again; delete the Machine, or let a MachineHealthCheck replace it",
		m.Spec.Reservation.VMID, m.Spec.Reservation.UUID, m.Spec.Reservation.Region)}}
}

func virtualMachine(m Machine) VirtualMachine {
	r := m.Spec.Reservation
	node := m.VM.Node
	if node == "" {
		node = proxmox.NodeName(r.Node)
	}
	return VirtualMachine{Region: proxmox.RegionName(r.Region), Node: node, ID: proxmox.VMID(r.VMID), UUID: proxmox.SMBIOSUUID(r.UUID)}
}

// upload puts the seed where the VM can read it. It comes first, while nothing exists yet: the same file is written over
// after a crash, and a VM never waits, half made, for what it boots with.
func upload(m Machine) Decision {
	if m.VM.Power == PowerRunning || m.Spec.ProviderID != "" || seedUploaded(m) {
		return nil
	}
	if m.Uploads == UploadLost {
		return Wait{Reason: Reason{UploadingSeed, fmt.Sprintf(
			"the answer to the upload of the seed ISO to %s of %s was lost: it is looked for there, and uploaded again after two minutes",
			m.Spec.Reservation.SeedStorage, m.Spec.Reservation.Node)}, After: seedAgain}
	}
	vm := virtualMachine(m)
	config := network.NewConfig(vm.UUID, m.Spec.Network, m.Addresses.Bound)
	seed, err := cloudinit.NewSeed(m.Name, vm.UUID, config, m.Bootstrap.UserData)
	if err != nil {
		return Stalled{Reason{InvalidSeed, err.Error()}}
	}
	vm.Node = proxmox.NodeName(m.Spec.Reservation.Node)
	return Do{
		UploadSeed{VM: vm, Storage: proxmox.StorageID(m.Spec.Reservation.SeedStorage), Seed: seed},
		Reason{UploadingSeed, fmt.Sprintf("uploading the seed ISO to %s of %s", m.Spec.Reservation.SeedStorage, vm.Node)},
	}
}

// seedUploaded reports whether the seed is known to be on its storage: it was seen there, or a drive has it, or it was the
// first step of a VM that is past it, or the last task put it there.
func seedUploaded(m Machine) bool {
	if m.SeedVolume != SeedNotLookedAt {
		return m.SeedVolume == SeedStored
	}
	return vmconfig.HasSeed(m.VM.Config) || m.Task.State == TaskSucceeded && m.Task.PutsSeed()
}

// halt stops a VM that was started by another before it was configured: it booted without its bootstrap data, and with the
// template's MAC addresses.
func halt(m Machine) Decision {
	if m.Spec.ProviderID != "" || m.VM.Power != PowerRunning || vmconfig.HasSeed(m.VM.Config) && !m.VM.StartedEarly {
		return nil
	}
	return Do{Stop{virtualMachine(m)}, Reason{Stopping, fmt.Sprintf("stopping VM %d on %s, which was started before it was configured", m.Spec.Reservation.VMID, m.VM.Node)}}
}

// configure brings the VM's config to what is asked, before it starts for the first time.
func configure(m Machine) Decision {
	if m.VM.Power == PowerRunning || m.Spec.ProviderID != "" {
		return nil
	}
	desired := desired(m)
	if applied, known := vmconfig.ReadApplied(m.Upkeep.Applied); known {
		desired = desired.After(applied)
	}
	if misfits := desired.Misfits(m.VM.Config); len(misfits) > 0 {
		return Stalled{Reason{InvalidConfiguration, strings.Join(misfits, "; ")}}
	}
	change := vmconfig.Diff(desired, m.VM.Config)
	if change.Empty() {
		return nil
	}
	return Do{
		Configure{VM: virtualMachine(m), Change: change, Digest: m.VM.Digest},
		Reason{Configuring, fmt.Sprintf("configuring VM %d", m.Spec.Reservation.VMID)},
	}
}

func desired(m Machine) vmconfig.Desired {
	uuid := proxmox.SMBIOSUUID(m.Spec.Reservation.UUID)
	return vmconfig.Desired{
		UUID: uuid, Machine: m.Name, Cluster: m.Cluster, Namespace: m.Namespace, Spec: m.Spec,
		Seed: seedVolume(m), Running: m.VM.Power == PowerRunning,
	}
}

// resize grows the disks that are smaller than asked for, one at a time.
func resize(m Machine) Decision {
	if m.VM.Power == PowerRunning || m.Spec.ProviderID != "" {
		return nil
	}
	if _, found := m.VM.Config.BootDisk(); !found && m.Spec.Disks.Boot.SizeGiB != 0 {
		return Stalled{Reason{NoBootDisk, fmt.Sprintf(
			"VM %d has no boot disk to grow to %d GiB: its template %d has none; leave out disks.boot or use a template with a disk",
			m.Spec.Reservation.VMID, m.Spec.Disks.Boot.SizeGiB, m.Spec.Reservation.SourceVMID)}}
	}
	// A config that could not be written when the disk grew keeps the old size for good: Proxmox VE has nothing left to grow.
	growths := m.ungrown(desired(m).Growths(m.VM.Config))
	if len(growths) == 0 {
		return nil
	}
	growth := growths[0]
	return Do{
		Resize{VM: virtualMachine(m), Disk: growth.Key, Size: growth.Size, Digest: m.VM.Digest},
		Reason{Resizing, fmt.Sprintf("growing disk %s of VM %d to %d GiB", growth.Key, m.Spec.Reservation.VMID, growth.Size/proxmox.GiB(1).Bytes())},
	}
}

// record writes the providerID, which from then on says that the VM once ran.
func record(m Machine) Decision {
	if m.Spec.ProviderID != "" || m.VM.Power != PowerRunning {
		return nil
	}
	return Do{
		RecordProviderID{ProviderID: ProviderID(m.Spec.Reservation.UUID), Applied: applied(m)},
		Reason{Running, "recording the providerID"},
	}
}

// removeSeed takes the bootstrap data away once it has done its work: first out of the drive, then off the storage.
func removeSeed(m Machine) Decision {
	switch {
	case !m.Bootstrapped || m.SeedIsGone():
		return nil
	case m.Task.State == TaskRunning:
		return Wait{Reason: taskReason(m.Task)}
	}
	vm := virtualMachine(m)
	if change := vmconfig.Eject(m.VM.Config); !change.Empty() {
		return Do{EjectSeed{VM: vm, Change: change, Digest: m.VM.Digest, Config: change.Apply(m.VM.Config)}, Reason{RemovingSeed, "ejecting the seed ISO"}}
	}
	return deleteSeed(m)
}

// SeedIsGone reports whether the seed is known to be gone, and to stay so: seen to be so, now or before, or by the task that
// removed it.
func (m Machine) SeedIsGone() bool {
	seen := m.SeedVolume == SeedAbsent && !vmconfig.HasSeed(m.VM.Config) || m.Task.State == TaskSucceeded && m.Task.RemovesSeed()
	return m.SeedRemoved || m.Uploads == UploadsKnown && seen
}
