package act

import (
	"context"
	"fmt"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/observe"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
)

// prepare does what has to be done before a request that makes something: it makes sure that the reservation still stands,
// and takes a slot for a VM that is made.
func (a *Actor) prepare(ctx context.Context, subject observe.MachineSubject, action plan.Action) error {
	switch action := action.(type) { // partial: the others make nothing
	case plan.UploadSeed:
		return a.readBack(ctx, subject)
	case plan.Clone:
		return a.prepareVM(ctx, subject, action.Place)
	case plan.Create:
		return a.prepareVM(ctx, subject, action.Place)
	}
	return nil
}

func (a *Actor) prepareVM(ctx context.Context, subject observe.MachineSubject, place plan.ClonePlace) error {
	if err := a.readBack(ctx, subject); err != nil {
		return err
	}
	if err := a.Slots.Take(subject.Key(), place); err != nil {
		return err
	}
	a.Memory.Touched(proxmox.SMBIOSUUID(subject.ProxmoxMachine.Spec.Reservation.UUID))
	return nil
}

// readBack makes sure that the reservation which was planned with is the one that is written: a cache may show one from
// before the machine went to another host, or was deleted, and what is made then would be left behind.
func (a *Actor) readBack(ctx context.Context, subject observe.MachineSubject) error {
	written := &v1beta1.ProxmoxMachine{}
	if err := a.Live.Get(ctx, subject.Key(), written); err != nil {
		return fmt.Errorf("read the reservation back: %w", err)
	}
	machine := subject.ProxmoxMachine
	isDeletedSince := machine.DeletionTimestamp.IsZero() && !written.DeletionTimestamp.IsZero()
	if written.UID != machine.UID || written.Spec.Reservation != machine.Spec.Reservation || isDeletedSince {
		return observe.ErrBehind
	}
	return nil
}

// settle notes, after a request, what it means for slots, VMIDs, seeds, disks and hosts.
func (a *Actor) settle(subject observe.MachineSubject, action plan.Action, outcome Outcome, err error) {
	identity := proxmox.SMBIOSUUID(subject.ProxmoxMachine.Spec.Reservation.UUID)
	switch action := action.(type) { // partial: the others mean nothing for these
	case plan.Clone, plan.Create:
		if err != nil && pve.ClassOf(err) != pve.Ambiguous { // it does not run; without an answer it may
			a.Slots.Release(subject.Key())
			a.Memory.CloneFailed(identity, a.Ledger.FailureOf(subject, "", err))
		}
	case plan.Destroy:
		entry := a.Ledger.NewEntry(subject.ProxmoxMachine, subject.ProxmoxCluster, subject.ProxmoxMachine.Spec.Reservation)
		a.Allocator.Rest(entry.PVE, entry.VMID)
	case plan.Resize:
		a.Memory.Grows(identity, outcome.Task, action.Disk, action.Size)
	case plan.UploadSeed:
		a.Memory.SeedWithdrawn(identity, plan.SeedNotLookedAt)
	case plan.WithdrawSeed:
		if err == nil && outcome.Task == "" {
			a.Memory.SeedWithdrawn(identity, plan.SeedAbsent)
		}
	}
}
