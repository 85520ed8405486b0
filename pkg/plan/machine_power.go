package plan

import (
	"fmt"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
)

// shutdownPatience is how long a guest may take to shut down before it is turned off, as kubelets and their pods need it.
const shutdownPatience = 3 * time.Minute

// isToBeOff reports whether the VM is wished to be off.
func (m Machine) isToBeOff() bool { return m.Spec.PowerState == v1beta1.PowerStateStopped }

// start starts the VM, also one that was stopped behind our back.
func start(m Machine) Decision {
	id := m.Spec.Reservation.VMID
	switch {
	case m.VM.Power == PowerRunning:
		return nil
	case m.VM.Power == PowerUnknown:
		return Wait{Reason: Reason{Unobserved, fmt.Sprintf("the state of VM %d on %s is not known: is the node up?", id, m.VM.Node)}, After: lookAgain}
	case m.isToBeOff():
		return nil
	case m.VM.Listing != nil && m.VM.Listing.Template:
		return Stalled{Reason{Drifted, fmt.Sprintf(
			"VM %d on %s was turned into a template, which cannot be started: delete the Machine, or let a MachineHealthCheck replace it", id, m.VM.Node)}}
	}
	if wait := awaitHA(m, "hastart"); wait != nil {
		return wait
	}
	return Do{Start{VM: virtualMachine(m)}, Reason{Starting, fmt.Sprintf("starting VM %d on %s", id, m.VM.Node)}}
}

// turnOff has a VM shut down that is to be off. It comes after the providerID is written, so that it is known that it ran.
func turnOff(m Machine) Decision {
	if !m.isToBeOff() || m.VM.Power != PowerRunning {
		return nil
	}
	if wait := awaitHA(m, "hastop"); wait != nil {
		return wait
	}
	return Do{
		Shutdown{VM: virtualMachine(m), Patience: shutdownPatience},
		Reason{ShuttingDown, fmt.Sprintf("shutting VM %d on %s down, since spec.powerState is Stopped", m.Spec.Reservation.VMID, m.VM.Node)},
	}
}

// rest says in what state the machine needs nothing.
func rest(m Machine) Decision {
	if m.VM.Power == PowerRunning && m.VM.HAState == haError {
		return Done{runsUnwatched(m)}
	}
	if m.VM.Power == PowerRunning {
		return Done{Reason{Running, fmt.Sprintf("VM %d runs on %s", m.Spec.Reservation.VMID, m.VM.Node)}}
	}
	return Done{Reason{PoweredOff, fmt.Sprintf(
		"VM %d on %s is off, since spec.powerState is Stopped: set it to Running to have it started", m.Spec.Reservation.VMID, m.VM.Node)}}
}
