package plan

import (
	"time"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/cloudinit"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/firewall"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/ha"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/network"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// Action is one thing to do: one change in Kubernetes, or one mutating request to Proxmox VE.
//
//sumtype:decl
type Action interface{ isAction() }

// VirtualMachine says which VM an action is for: where it is, and the identity it must prove before it is touched.
type VirtualMachine struct {
	Region proxmox.RegionName
	Node   proxmox.NodeName
	ID     proxmox.VMID
	UUID   proxmox.SMBIOSUUID
}

// ClaimAddresses makes the IPAddressClaims that the machine lacks.
type ClaimAddresses struct {
	Claims []network.Claim
}

// HoldAddresses makes the machine the owner of its IPAddressClaims, where it is not, and keeps claims and addresses from
// going before it lets them go.
type HoldAddresses struct {
	Claims []network.Claim
}

// Reserve writes into the machine's spec where its VM goes and who it is. An empty UUID is drawn by the actor. It is
// refused, to be planned anew, when other reservations were made since the snapshot.
type Reserve struct {
	Reservation v1beta1.Reservation
	// Applied is what RecordApplied writes down: the VM is made so.
	Applied string
	// LedgerVersion is the state of the reservations that the choice was made from.
	LedgerVersion int64
	// Abandoned says what is left on a host that was declared gone; empty when nothing is.
	Abandoned string
}

// Follow writes into the reservation the node that the VM was moved to before it ran, so that its seed is put there.
type Follow struct {
	Node proxmox.NodeName
}

// Clone makes the VM from its template.
type Clone struct {
	VM          VirtualMachine
	Source      proxmox.VMID
	SourceNode  proxmox.NodeName
	Name        string
	Description string
	Pool        proxmox.PoolID
	Mode        v1beta1.CloneMode
	// Snapshot, Storage and Format may be empty.
	Snapshot string
	Storage  proxmox.StorageID
	Format   v1beta1.DiskFormat
	// Place is where a slot has to be free for it. It is refused, to be planned anew, when none is.
	Place ClonePlace
}

// Create makes the VM without a template, with all of its config: nothing is left to configure.
type Create struct {
	VM     VirtualMachine
	Pool   proxmox.PoolID
	Config vmconfig.Config
	// Place is where a slot has to be free for it, as for a clone.
	Place ClonePlace
}

// UploadSeed puts the seed ISO, with the bootstrap data in it, where the VM can read it.
type UploadSeed struct {
	VM      VirtualMachine
	Storage proxmox.StorageID
	Seed    cloudinit.Seed
}

// Configure changes the config of the stopped VM.
type Configure struct {
	VM     VirtualMachine
	Change vmconfig.Change
	Digest proxmox.Digest
}

// Reconfigure changes the config of a VM that ran once. What a running VM cannot take waits for its next start.
type Reconfigure struct {
	VM     VirtualMachine
	Change vmconfig.Change
	Digest proxmox.Digest
	// Repairs says that somebody changed the VM, and that it is changed back.
	Repairs bool
}

// MovePool puts a VM that ran once into another pool. An empty pool is none.
type MovePool struct {
	VM       VirtualMachine
	From, To proxmox.PoolID
	// Repairs says that somebody moved the VM, and that it is moved back.
	Repairs bool
}

// RecordApplied writes down that the config of the VM is as the spec says.
type RecordApplied struct {
	// Spec is the part of it that the config is brought to, as JSON.
	Spec string
}

// Resize grows a disk to an absolute size.
type Resize struct {
	VM     VirtualMachine
	Disk   string
	Size   proxmox.Bytes
	Digest proxmox.Digest
}

// RecordFirewall writes down what the options of the VM's firewall were before we set them; nil when nothing there is ours.
type RecordFirewall struct {
	Before firewall.Before
}

// EditFirewall changes one thing of the VM's firewall.
type EditFirewall struct {
	VM   VirtualMachine
	Edit firewall.Edit
}

// RecordHA writes down what the VM was to the HA manager before we changed that; nil when nothing there is ours.
type RecordHA struct {
	Record *ha.Record
}

// EditHA changes one thing of what the HA manager is told of the VM.
type EditHA struct {
	VM   VirtualMachine
	Edit ha.Edit
}

// Start starts the VM.
type Start struct {
	VM VirtualMachine
}

// RecordProviderID writes the machine's providerID into its spec.
type RecordProviderID struct {
	ProviderID string
	// Applied is what RecordApplied writes down: the VM was made so.
	Applied string
}

// EjectSeed takes the seed ISO out of the VM's drive.
type EjectSeed struct {
	VM     VirtualMachine
	Change vmconfig.Change
	Digest proxmox.Digest
	// Config is the VM's config after the change.
	Config vmconfig.Config
}

// DeleteSeed deletes the seed ISO from its storage.
type DeleteSeed struct {
	VM     VirtualMachine
	Volume proxmox.VolumeID
}

// Shutdown has the guest shut the VM down; Proxmox VE turns it off when that takes longer than Patience.
type Shutdown struct {
	VM       VirtualMachine
	Patience time.Duration
}

// WithdrawSeed deletes the seed ISO from the storage of a host that the machine leaves for another. The VM gets a new one.
type WithdrawSeed struct {
	VM     VirtualMachine
	Volume proxmox.VolumeID
}

// Stop stops the VM, without asking the guest.
type Stop struct {
	VM VirtualMachine
}

// Destroy destroys the stopped VM with all that belongs to it.
type Destroy struct {
	VM VirtualMachine
}

// ReleaseAddresses lets the machine's IPAddressClaims go.
type ReleaseAddresses struct{}

// RemoveFinalizer lets the object go.
type RemoveFinalizer struct{}

func (ClaimAddresses) isAction()   {}
func (HoldAddresses) isAction()    {}
func (Reserve) isAction()          {}
func (Follow) isAction()           {}
func (Clone) isAction()            {}
func (Create) isAction()           {}
func (UploadSeed) isAction()       {}
func (Configure) isAction()        {}
func (Reconfigure) isAction()      {}
func (MovePool) isAction()         {}
func (RecordApplied) isAction()    {}
func (Resize) isAction()           {}
func (RecordFirewall) isAction()   {}
func (EditFirewall) isAction()     {}
func (RecordHA) isAction()         {}
func (EditHA) isAction()           {}
func (Start) isAction()            {}
func (RecordProviderID) isAction() {}
func (EjectSeed) isAction()        {}
func (DeleteSeed) isAction()       {}
func (Shutdown) isAction()         {}
func (WithdrawSeed) isAction()     {}
func (Stop) isAction()             {}
func (Destroy) isAction()          {}
func (ReleaseAddresses) isAction() {}
func (RemoveFinalizer) isAction()  {}
