package plan

import (
	"slices"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/cloudinit"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/network"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/placement"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// Machine is the snapshot that a machine's step is planned from: what is asked for and what was observed in one pass.
type Machine struct {
	// Name is the ProxmoxMachine's name, which is also the guest's host name.
	Name string
	// Namespace is the ProxmoxMachine's, and Cluster the name of the Cluster that it belongs to.
	Namespace, Cluster string
	Spec               v1beta1.ProxmoxMachineSpec
	// Deleting says that the ProxmoxMachine is on its way out.
	Deleting bool
	// ClusterReady says that the cluster's infrastructure is provisioned.
	ClusterReady bool
	// Bootstrap is the bootstrap data; it is waited for while Missing says why there is none.
	Bootstrap Bootstrap
	// Bootstrapped says that the machine has its Node, so that the seed has done its work.
	Bootstrapped bool
	// HostGone is the node that a person declared to be gone for good (v1beta1.HostGoneAnnotation); empty for none.
	HostGone proxmox.NodeName
	// RegionGone is the region that a person declared to be gone for good (v1beta1.RegionGoneAnnotation); empty for none.
	RegionGone proxmox.RegionName
	// RegionDown says that the machine's region could not be asked. Why is what VM.Why says.
	RegionDown bool
	// Remarks are what a person should know of the way the snapshot was taken. They are added to what the machine waits for.
	Remarks []string
	// SeedRemoved says that the seed is known to be gone.
	SeedRemoved bool
	// SeedVolume is what a look at the seed's storage showed. It is looked at only when no task tells.
	SeedVolume SeedVolume
	// Uploads is whether uploads of the seed are on their way that nobody knows the end of.
	Uploads Uploads
	// Unanswered is whether a request about the VM may be carried out yet that nobody knows the end of.
	Unanswered Unanswered
	// SeedStranded says that the VM was moved, before it ran, to a node that the seed's storage is not on.
	SeedStranded bool
	// SeedNode is the node that the seed's storage is reached through; empty for the reserved one.
	SeedNode proxmox.NodeName
	// SeedHost is whether that node is up.
	SeedHost HostState
	// ControlPlane says that the machine is one of the control plane.
	ControlPlane bool
	// FailureDomain is the zone that the machine was asked into; empty for any.
	FailureDomain string
	// Addresses is what the machine's claims have come to.
	Addresses Addresses
	// Cards are the network devices of other machines, which this one's must differ from. They are looked at only where the
	// spec has a say in MAC addresses.
	Cards []network.Card
	// CloneSlot is whether the VM may be made now.
	CloneSlot CloneSlot
	// CloneTrouble is what is known of attempts to make the VM that failed.
	CloneTrouble CloneTrouble
	// Candidates are the hosts for a machine that has no reservation yet, or may need another.
	Candidates Candidates
	// Task is the Proxmox VE task that was started for the machine last; the zero Task when none is known.
	Task Task
	// Grown are the sizes that disks were seen to be grown to, by the key of the disk. The VM's config may not say so.
	Grown map[string]proxmox.Bytes
	// Firewall is what was seen of the VM's firewall.
	Firewall Firewall
	// HighAvailability is what was seen of what the HA manager is told of the VM.
	HighAvailability HighAvailability
	// Upkeep is what is known of a VM that ran once and is to follow its spec.
	Upkeep Upkeep
	// VM is what Proxmox VE says of the reserved VM.
	VM VM
}

// Bootstrap is a machine's bootstrap data.
type Bootstrap struct {
	UserData cloudinit.UserData
	// Missing says why there is no data yet; empty when there is.
	Missing Reason
}

// Addresses is what the address claims of a machine have come to.
type Addresses struct {
	// Absent are the claims that do not exist yet.
	Absent []network.Claim
	// Pending says what is waited for when a claim has no address yet; empty when all have one.
	Pending string
	// Exhausted says that a pool which is waited for has no free address.
	Exhausted bool
	// Invalid says what is wrong with an address that was given; empty when nothing is.
	Invalid string
	// Bound are the addresses, in the order of the claims.
	Bound []network.Address
	// Reported are the addresses that the guest said it got from the network; nil when it was not asked, or said nothing.
	Reported []network.Address
	// Unreported says why the addresses that the guest gets from the network are not known; empty when they are, or when there
	// are none.
	Unreported string
	// AskAgain is when the guest is asked for them next; zero when it need not be.
	AskAgain time.Duration
	// Unheld are the claims that lack our owner reference or finalizer, or whose address lacks it.
	Unheld []network.Claim
	// Remain says that claims or addresses of the machine still have our finalizer.
	Remain bool
}

// Wait is why an address is waited for.
func (a Addresses) Wait() Reason {
	if a.Exhausted {
		return Reason{PoolExhausted, a.Pending}
	}
	return Reason{WaitingForAddresses, a.Pending}
}

// Ready reports whether every claim has an address that is held.
func (a Addresses) Ready() bool {
	return len(a.Absent) == 0 && a.Pending == "" && a.Invalid == "" && len(a.Unheld) == 0
}

// LookAgain is when to look at the machine again although nothing is to be done; zero when something will wake it.
func (m Machine) LookAgain() time.Duration {
	first := time.Duration(0)
	for _, wait := range []time.Duration{m.VM.LookAgain, m.Addresses.AskAgain, m.Upkeep.LookAgain} {
		if wait != 0 && (first == 0 || wait < first) {
			first = wait
		}
	}
	return first
}

// AddressList returns the addresses of the machine as far as they are known, the Node's first. It is not known as long as an
// address is missing that is known before there is a VM.
func (m Machine) AddressList() (list []network.Address, known bool) {
	if len(m.Addresses.Absent) > 0 || m.Addresses.Pending != "" || m.Spec.Reservation.UUID == "" && network.NeedsIdentity(m.Spec.Network) {
		return nil, false
	}
	given := slices.Concat(m.Addresses.Bound, m.Addresses.Reported)
	return network.Static(proxmox.SMBIOSUUID(m.Spec.Reservation.UUID), m.Spec.Network, given), true
}

// Candidates are the hosts that a machine may go to and what a reservation is made from.
type Candidates struct {
	Hosts []placement.Host
	// FreeVMIDs holds the next free VMID by region; none for a region whose range is used up.
	FreeVMIDs map[proxmox.RegionName]proxmox.VMID
	// VMIDs holds the range that the free one was looked for in, by region.
	VMIDs map[proxmox.RegionName]VMIDs
	// Authorities are the root CAs of the Proxmox VE clusters of the regions.
	Authorities map[proxmox.RegionName]string
	// LedgerVersion is the state of the reservations.
	LedgerVersion int64
	// Unavailable says why the hosts of a region are not among Hosts.
	Unavailable string
}

// SeedVolume is whether the seed ISO is on its storage.
type SeedVolume int

// What is known of the seed ISO.
const (
	SeedNotLookedAt SeedVolume = iota
	SeedStored
	SeedAbsent
)

// Uploads is whether an upload of the seed may still put it on its storage, although no task of it is known.
type Uploads int

// What is known of uploads.
const (
	// UploadsKnown: all that were sent have a task, or have ended.
	UploadsKnown Uploads = iota
	// UploadsUnknown: a process before this one may have sent one.
	UploadsUnknown
	// UploadLost: the answer to one was lost.
	UploadLost
)

// Unanswered is whether a request to start, shut down, stop or destroy the VM may be carried out yet although no task of it is
// known. It names a VMID, whoever's that is by then.
type Unanswered int

// What is known of requests whose answer was lost, or that an earlier process may have sent.
const (
	// NothingUnanswered: all that were sent have a task, or have ended.
	NothingUnanswered Unanswered = iota
	// PowerUnanswered: one to start, shut down or stop the VM may be under way.
	PowerUnanswered
	// DestroyUnanswered: one to destroy the VM may be under way, and no other.
	DestroyUnanswered
)

// TaskState is how far a Proxmox VE task is.
type TaskState int

// The states of a task.
const (
	TaskNone TaskState = iota
	TaskRunning
	TaskSucceeded
	TaskFailed
)

// Task is a Proxmox VE task that was started for a machine.
type Task struct {
	UPID  proxmox.UPID
	Type  string
	State TaskState
	// Failure is the task's error text.
	Failure string
	// Warnings counts those of a task that succeeded. They are told once.
	Warnings int
	// RetryAfter is how long to wait before the step is tried again after a failure.
	RetryAfter time.Duration
	// Age is how long ago the task was first seen to have succeeded.
	Age time.Duration
}

// PutsSeed reports whether the task uploads the seed ISO, or comes after that.
func (t Task) PutsSeed() bool { return t.Type == "imgcopy" || t.Makes() }

// Makes reports whether the task makes the VM.
func (t Task) Makes() bool { return MakesVM(t.Type) }

// MakesVM reports whether tasks of a type make a VM.
func MakesVM(taskType string) bool { return taskType == "qmclone" || taskType == "qmcreate" }

// RemovesSeed reports whether the task deletes the seed ISO, which touches no VM.
func (t Task) RemovesSeed() bool { return t.Type == "imgdel" }

// Removes reports whether the task does a step of a deletion.
func (t Task) Removes() bool {
	return t.Type == "qmstop" || t.Type == "hastop" || t.Type == "qmdestroy" || t.RemovesSeed()
}

// TurnsOn reports whether the task starts the VM, or has it started.
func (t Task) TurnsOn() bool { return t.Type == "qmstart" || t.Type == "hastart" }

// TurnsOff reports whether the task stops the VM or shuts it down, or has that done: the HA manager is asked for both by hastop.
func (t Task) TurnsOff() bool {
	return t.Type == "qmshutdown" || t.Type == "qmstop" || t.Type == "hastop"
}

// Presence says whether the reserved VM exists and is ours.
type Presence int

// What is known of the reserved VM. Only Absent and Ours are certain.
const (
	// PresenceUnknown: it could not be found out, or the VM is being made and carries no marker yet.
	PresenceUnknown Presence = iota
	// PresenceAbsent: no VM has the VMID, on no node of the region.
	PresenceAbsent
	// PresenceForeign: a VM has the VMID and does not carry our marker.
	PresenceForeign
	// PresenceOurs: the VM carries our marker.
	PresenceOurs
)

// HostState is whether a node can be asked about what is on it.
type HostState int

// The states of a host. Only a fresh inventory says that a host is not up.
const (
	// HostUp: it is online, or nothing is known against it.
	HostUp HostState = iota
	// HostOffline: it is a node of the Proxmox VE cluster and not online.
	HostOffline
	// HostRemoved: the Proxmox VE cluster has no such node any more.
	HostRemoved
)

// Power is whether a VM runs.
type Power int

// The power states.
const (
	PowerUnknown Power = iota
	PowerStopped
	PowerRunning
)

// VM is what was observed of a reserved VM.
type VM struct {
	Presence Presence
	// Why explains PresenceUnknown.
	Why Reason
	// Node is the node that the VM is on; of a VM that cannot be seen because its host is down, the one it was last on.
	Node proxmox.NodeName
	// Host is whether that node is up.
	Host  HostState
	Power Power
	// HAState is what the HA manager says of the VM: started, request_stop, error, …; empty when it does not look after it.
	HAState string
	// Config is the VM's config; nil when the pass did not have to read it because the inventory said enough.
	Config vmconfig.Config
	Digest proxmox.Digest
	// StartedEarly says that the VM was started while it was configured, so that it runs as it was before.
	StartedEarly bool
	// LookAgain is when to look again at a VM whose node just said that it runs: the inventory lags behind and may never show
	// what becomes of it before it caught up; zero when the inventory shows it.
	LookAgain time.Duration
	// Listing is what the inventory says of the VM; nil when it does not list it, or lists it as it was before it was made.
	Listing *Listing
}
