// Package act executes what pkg/plan decided: one action, one change in Kubernetes or one mutating request to Proxmox VE.
// It never waits for a Proxmox VE task; it hands the task to the tracker, which wakes the machine when it ends.
package act

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/observe"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
)

// ErrNotOurs says that a VM does not carry the identity of the machine that it should be of, and was not touched.
var ErrNotOurs = errors.New("the VM is not this machine's")

// Actor executes actions. It is safe for concurrent use.
type Actor struct {
	Client  client.Client
	Regions *observe.Regions
	Ledger  *observe.Ledger
	Memory  *observe.Memory
	// Live reads past the cache.
	Live      client.Reader
	Allocator *observe.Allocator
	Slots     *observe.CloneSlots
	// NewUUID draws the identity of a VM; nil draws a random UUID.
	NewUUID func() string
}

// New returns an Actor that writes with the client and shares what the observer knows.
func New(writer client.Client, observer *observe.Observer) *Actor {
	return &Actor{
		Client: writer, Live: observer.Live, Regions: observer.Regions, Ledger: observer.Ledger, Memory: observer.Memory,
		Allocator: observer.Allocator, Slots: observer.Slots,
	}
}

// Outcome is what an action came to.
type Outcome struct {
	// Task is the Proxmox VE task that was started; empty when the action is done.
	Task proxmox.UPID
	// SeedRemoved says that the seed is gone.
	SeedRemoved bool
}

// Machine executes an action for a machine. After an error nothing is certain: look again.
func (a *Actor) Machine(ctx context.Context, subject observe.MachineSubject, action plan.Action) (Outcome, error) {
	machine := owner{subject.ProxmoxMachine, machineKind}
	switch action := action.(type) {
	case plan.ClaimAddresses:
		return Outcome{}, a.claimAddresses(ctx, machine, action)
	case plan.Reserve:
		return Outcome{}, a.reserve(ctx, subject, action)
	case plan.Follow:
		return Outcome{}, a.follow(ctx, subject, action)
	case plan.RecordProviderID:
		return Outcome{}, a.patch(ctx, subject.ProxmoxMachine, func(machine *v1beta1.ProxmoxMachine) {
			machine.Spec.ProviderID = action.ProviderID
			setAnnotation(machine, v1beta1.AppliedSpecAnnotation, action.Applied)
		})
	case plan.RecordApplied:
		return Outcome{}, a.patch(ctx, subject.ProxmoxMachine, func(machine *v1beta1.ProxmoxMachine) {
			setAnnotation(machine, v1beta1.AppliedSpecAnnotation, action.Spec)
		})
	case plan.RecordFirewall:
		return Outcome{}, a.recordFirewall(ctx, subject.ProxmoxMachine, action)
	case plan.RecordHA:
		return Outcome{}, a.recordHighAvailability(ctx, subject.ProxmoxMachine, action)
	case plan.HoldAddresses:
		return Outcome{}, a.holdAddresses(ctx, machine, action)
	case plan.ReleaseAddresses:
		return Outcome{}, a.releaseAddresses(ctx, machine.GetNamespace(), subject.Claims())
	case plan.Clone, plan.Create, plan.UploadSeed, plan.Configure, plan.Reconfigure, plan.MovePool, plan.Resize, plan.Start, plan.EjectSeed, plan.DeleteSeed,
		plan.WithdrawSeed, plan.Shutdown, plan.Stop, plan.Destroy, plan.EditFirewall, plan.EditHA:
		return a.onProxmox(ctx, subject, action)
	case plan.RemoveFinalizer, plan.SetEndpoint, plan.ApplyPool:
		return Outcome{}, fmt.Errorf("action %T is the controller's", action)
	}
	return Outcome{}, fmt.Errorf("no such action: %T", action)
}

// reserve enters the reservation into the ledger and then into the machine's spec; it holds once the spec is written.
func (a *Actor) reserve(ctx context.Context, subject observe.MachineSubject, action plan.Reserve) error {
	reservation := action.Reservation
	if reservation.UUID == "" {
		reservation.UUID = a.newUUID()
	}
	entry := a.Ledger.NewEntry(subject.ProxmoxMachine, subject.ProxmoxCluster, reservation)
	err := a.Ledger.Take(entry, action.LedgerVersion)
	if err == nil || errors.Is(err, observe.ErrBehind) {
		a.Allocator.Settled(entry)
	}
	if err != nil {
		return err
	}
	before := subject.ProxmoxMachine.Spec.Reservation
	left := a.Ledger.NewEntry(subject.ProxmoxMachine, subject.ProxmoxCluster, before)
	identity := proxmox.SMBIOSUUID(reservation.UUID)
	err = a.patch(ctx, subject.ProxmoxMachine, func(machine *v1beta1.ProxmoxMachine) {
		machine.Spec.Reservation = reservation
		setAnnotation(machine, v1beta1.AppliedSpecAnnotation, action.Applied)
	})
	if err != nil {
		a.Ledger.Return(subject.Key())
		if before.UUID != "" && !errors.Is(err, observe.ErrBehind) {
			a.Memory.MayBeReserved(identity)
		}
		return fmt.Errorf("write the reservation: %w", err)
	}
	a.Memory.Reserved(identity)
	if before.UUID == "" {
		a.Memory.Drawn(identity)
		return nil
	}
	a.Allocator.Rest(left.PVE, left.VMID)
	return nil
}

func (a *Actor) newUUID() string {
	if a.NewUUID != nil {
		return a.NewUUID()
	}
	return uuid.NewString()
}

// follow moves the reservation to the host that its VM is on.
func (a *Actor) follow(ctx context.Context, subject observe.MachineSubject, action plan.Follow) error {
	machine := subject.ProxmoxMachine
	err := a.patchSpec(ctx, machine, func(spec *v1beta1.ProxmoxMachineSpec) { spec.Reservation.Node = string(action.Node) })
	if err == nil {
		a.Memory.Followed(proxmox.SMBIOSUUID(machine.Spec.Reservation.UUID))
	}
	return err
}

// patchSpec changes the machine's spec, as patch does.
func (a *Actor) patchSpec(ctx context.Context, machine *v1beta1.ProxmoxMachine, change func(*v1beta1.ProxmoxMachineSpec)) error {
	return a.patch(ctx, machine, func(machine *v1beta1.ProxmoxMachine) { change(&machine.Spec) })
}

// patch changes the machine's spec and annotations, unless the machine was changed since it was read, which is ErrBehind. The
// status in memory stays.
func (a *Actor) patch(ctx context.Context, machine *v1beta1.ProxmoxMachine, change func(*v1beta1.ProxmoxMachine)) error {
	patched := machine.DeepCopy()
	change(patched)
	patch := client.MergeFromWithOptions(machine.DeepCopy(), client.MergeFromWithOptimisticLock{})
	annotations := patched.DeepCopy().Annotations
	switch err := a.Client.Patch(ctx, patched, patch); {
	case apierrors.IsConflict(err):
		return observe.ErrBehind
	case err != nil:
		return fmt.Errorf("patch ProxmoxMachine %s: %w", machine.Name, err)
	}
	machine.Spec, machine.Annotations = patched.Spec, annotations
	machine.ResourceVersion, machine.Generation = patched.ResourceVersion, patched.Generation
	return nil
}

// setAnnotation sets an annotation; an empty one goes.
func setAnnotation(machine *v1beta1.ProxmoxMachine, key, text string) {
	if text == "" {
		delete(machine.Annotations, key)
		return
	}
	if machine.Annotations == nil {
		machine.Annotations = map[string]string{}
	}
	machine.Annotations[key] = text
}

// onProxmox executes an action that is a request to Proxmox VE.
func (a *Actor) onProxmox(ctx context.Context, subject observe.MachineSubject, action plan.Action) (Outcome, error) {
	cluster, _, err := a.Regions.Of(ctx, subject)
	if err != nil {
		return Outcome{}, err
	}
	identity := proxmox.SMBIOSUUID(subject.ProxmoxMachine.Spec.Reservation.UUID)
	if err := a.prepare(ctx, subject, action); err != nil {
		return Outcome{}, err
	}
	outcome, err := request(ctx, cluster, action)
	a.remember(identity, action, err)
	a.Memory.Ordered(identity, action, err)
	a.settle(subject, action, outcome, err)
	err = a.keepUp(subject, action, err)
	if outcome.Task != "" {
		a.Memory.Started(identity, outcome.Task)
		cluster.Tracker.Follow(outcome.Task, pve.Owner(subject.Key()))
	}
	return outcome, err
}

// remember keeps what is known of the VM's config after an action. What may have changed it unseen makes it unknown.
func (a *Actor) remember(identity proxmox.SMBIOSUUID, action plan.Action, err error) {
	switch action := action.(type) { // partial: the others go through the default
	case plan.Clone, plan.Create:
		a.Memory.Changed(identity)
		a.Memory.FirewallChanged(identity) // it comes with the template, or was left by another VM of that VMID
		a.Memory.Cloned(identity, err)
	case plan.UploadSeed:
		a.Memory.Uploaded(identity, err)
	case plan.DeleteSeed, plan.WithdrawSeed:
		// of a storage, not of the VM
	case plan.MovePool:
		if err == nil {
			a.Memory.PoolMoved(identity, action.To)
		}
	case plan.EditFirewall:
		a.Memory.FirewallEdited(identity, action.Edit, err)
	case plan.EditHA:
		a.Memory.HighAvailabilityEdited(identity, action.Edit, err)
	case plan.Start:
		if err != nil {
			a.Memory.Changed(identity)
		}
	case plan.EjectSeed:
		a.Memory.Changed(identity)
		if err == nil {
			a.Memory.Ejected(identity, action.Config)
		}
	default:
		a.Memory.Changed(identity)
	}
}
