package plan

import "fmt"

// deletionStep plans the end of a machine: the VM stopped, seen stopped, destroyed, seen gone; then its seed, its
// addresses, and the finalizer last. Nothing that is not ours is touched, and what could not be observed is waited for.
func deletionStep(m Machine) Decision {
	if m.Spec.Reservation.UUID == "" {
		return release(m) // nothing was ever asked of Proxmox VE
	}
	for _, step := range []func(Machine) Decision{awaitTask, awaitVM, stop, destroy, sweep} {
		if decision := step(m); decision != nil {
			return decision
		}
	}
	return release(m)
}

// awaitVM waits while it is not certain what is at the VMID, or while Proxmox VE works on it.
func awaitVM(m Machine) Decision {
	if m.VM.Presence == PresenceUnknown {
		return Wait{Reason: m.VM.Why, After: lookAgain}
	}
	if lock := m.VM.Config.Lock(); m.VM.Presence == PresenceOurs && lock != "" {
		return Wait{
			Reason: Reason{Locked, fmt.Sprintf("VM %d is locked (%s): deletion waits for the lock; if its task died, run `qm unlock %d` on %s", m.Spec.Reservation.VMID, lock, m.Spec.Reservation.VMID, m.VM.Node)},
			After:  lookAgain,
		}
	}
	return nil
}

func stop(m Machine) Decision {
	switch {
	case m.VM.Presence != PresenceOurs || m.VM.Power == PowerStopped:
		return nil
	case m.VM.Power == PowerUnknown:
		return Wait{Reason: Reason{Unobserved, fmt.Sprintf("the state of VM %d on %s is not known: is the node up?", m.Spec.Reservation.VMID, m.VM.Node)}, After: lookAgain}
	}
	return Do{Stop{virtualMachine(m)}, Reason{Stopping, fmt.Sprintf("stopping VM %d on %s", m.Spec.Reservation.VMID, m.VM.Node)}}
}

func destroy(m Machine) Decision {
	if m.VM.Presence != PresenceOurs {
		return nil
	}
	return Do{Destroy{virtualMachine(m)}, Reason{Destroying, fmt.Sprintf("destroying VM %d on %s", m.Spec.Reservation.VMID, m.VM.Node)}}
}

// sweep deletes the seed. The VM is gone by now, so nothing reads it.
func sweep(m Machine) Decision {
	switch {
	case m.SeedIsGone():
		return nil
	case m.Task.State == TaskRunning:
		return Wait{Reason: taskReason(m.Task)}
	}
	return deleteSeed(m)
}

// release lets go what the machine holds in Kubernetes. The addresses come after the VM: no other may get one while a VM
// can still use it.
func release(m Machine) Decision {
	if m.Addresses.Remain {
		return Do{ReleaseAddresses{}, Reason{ReleasingAddresses, "releasing the addresses"}}
	}
	return Do{RemoveFinalizer{}, Reason{Deleted, "the VM and all that belonged to it are gone"}}
}
