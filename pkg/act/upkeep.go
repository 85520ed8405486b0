package act

import (
	"github.com/capve/cluster-api-provider-proxmox/pkg/observe"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
)

// keepUp notes what came of a change of a VM that ran once. One that Proxmox VE refuses is no error of the pass: what else the
// VM needs goes on, and the change is asked for again after a pause.
func (a *Actor) keepUp(subject observe.MachineSubject, action plan.Action, err error) error {
	identity, change := proxmox.SMBIOSUUID(subject.ProxmoxMachine.Spec.Reservation.UUID), ""
	switch action := action.(type) { // partial: the others are for VMs that are made, or taken away
	case plan.Reconfigure:
		change = action.Text()
		if action.Repairs && err == nil {
			a.Memory.Repaired(identity, action.Change.Keys())
		}
	case plan.Resize:
		change = action.Text()
	case plan.MovePool:
		change = action.Text()
		if action.Repairs && err == nil {
			a.Memory.Repaired(identity, []string{"pool"})
		}
	default:
		return err
	}
	if subject.ProxmoxMachine.Spec.ProviderID == "" || !isRefusal(err) {
		return err
	}
	a.Memory.ChangeRefused(identity, change, err)
	return errRefused
}

// isRefusal reports whether an error says that Proxmox VE will not do what it was asked, as things are.
func isRefusal(err error) bool {
	switch pve.ClassOf(err) { //nolint:exhaustive // the others pass, or say nothing of the request
	case pve.Other, pve.Forbidden, pve.Invalid, pve.Unimplemented, pve.RootOnly, pve.Missing, pve.Unfit, pve.Capacity, pve.WrongState:
		return true
	}
	return false
}
