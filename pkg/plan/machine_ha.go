package plan

import (
	"fmt"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/ha"
)

// haPatience is how long the HA manager may take to serve a request: it looks every 10 s, and so does the VM's node.
const haPatience = time.Minute

// The states of the HA manager (PVE::HA::Manager) that change what there is to do.
const (
	haError       = "error"
	haRequestStop = "request_stop"
)

// awaitHA waits for the HA manager. It is asked by a task that succeeds as soon as the request is noted; the VM follows
// some 9 s later. It does nothing for a VM that it gave up on.
func awaitHA(m Machine, request string) Decision {
	id := m.Spec.Reservation.VMID
	asked := m.Task.State == TaskSucceeded && m.Task.Type == request && m.Task.Age < haPatience
	switch {
	case m.VM.HAState == haError && !m.isReleased():
		return Wait{
			Reason: Reason{HighAvailabilityFailed, fmt.Sprintf(
				"the HA manager gave up on VM %d on %s (state error) and neither starts nor stops it: look into its log there, then run `ha-manager set vm:%d --state disabled`", id, m.VM.Node, id)},
			After: lookAgain,
		}
	case asked, request == "hastop" && m.VM.HAState == haRequestStop:
		return Wait{
			Reason: Reason{taskReason(Task{Type: request}).Code, fmt.Sprintf("VM %d on %s is managed by HA: waiting for the HA manager", id, m.VM.Node)},
			After:  lookAgain,
		}
	}
	return nil
}

// runsUnwatched says of a VM that runs that the HA manager gave up on it. To disable it there would stop the VM.
func runsUnwatched(m Machine) Reason {
	id := m.Spec.Reservation.VMID
	return Reason{HighAvailabilityFailed, fmt.Sprintf(
		"VM %d runs on %s, but the HA manager gave up on it (state error) and does not recover it should the node fail: look into its log there, then run `ha-manager remove vm:%d` and add it again, which does not stop it",
		id, m.VM.Node, id)}
}

// IsForsaken reports whether the HA manager gave up on the VM of a machine that is deleted, although it is its HA resource by
// our doing alone: then it is ours to end that.
func (m Machine) IsForsaken() bool {
	record := m.HighAvailability.Record
	return m.Deleting && m.VM.Presence == PresenceOurs && m.VM.HAState == haError && record != nil && !record.Adopted
}

// isReleased reports whether a VM is no HA resource any more. The inventory tells that late.
func (m Machine) isReleased() bool {
	present := m.HighAvailability.Present
	return m.IsForsaken() && present != nil && present.Resource == nil
}

// releaseFromHA takes a VM out of the hands of the HA manager, which would neither stop it nor let anybody else do so. Proxmox VE
// takes it out of the rules, too.
func releaseFromHA(m Machine) Decision {
	present := m.HighAvailability.Present
	if !m.IsForsaken() || present == nil || present.Resource == nil {
		return nil
	}
	vm := virtualMachine(m)
	return Do{EditHA{VM: vm, Edit: ha.RemoveResource{}}, Reason{ConfiguringHighAvailability, fmt.Sprintf(
		"removing the HA resource of VM %d on %s, which the HA manager gave up on (state error), so that it can be stopped", vm.ID, vm.Node)}}
}
