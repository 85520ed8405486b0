package plan

import (
	"fmt"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// deletionStep plans the end of a machine: the VM stopped, seen stopped, destroyed, seen gone; then its seed, its
// addresses, and the finalizer last. Nothing that is not ours is touched, and what could not be observed is waited for.
func deletionStep(m Machine) Decision {
	if m.Spec.Reservation.UUID == "" {
		return release(m) // nothing was ever asked of Proxmox VE
	}
	steps := []func(Machine) Decision{awaitClones, awaitRemoval, awaitVM, protected, unlocked, awaitAnswer, releaseFromHA, stop, awaitFirewall, destroy, sweep}
	switch {
	case m.RegionDown:
		steps = []func(Machine) Decision{awaitRegion}
	case m.VM.Host != HostUp:
		steps = []func(Machine) Decision{awaitHost, sweep}
	}
	for _, step := range steps {
		if decision := step(m); decision != nil {
			return remark(m, decision)
		}
	}
	return remark(m, release(m))
}

// awaitClones waits while the VM, which someone made a template, cannot be destroyed for its linked clones.
func awaitClones(m Machine) Decision {
	const text = "is still in use by linked clone"
	if m.Task.State != TaskFailed || m.Task.RetryAfter == 0 || !strings.Contains(m.Task.Failure, text) {
		return nil
	}
	return Wait{Reason: Reason{TemplateInUse, fmt.Sprintf(
		"VM %d on %s was made a template, and VMs are linked clones of it: %s; destroy those VMs, or move their disks to another storage; it is tried again",
		m.Spec.Reservation.VMID, virtualMachine(m).Node, m.Task.Failure)}, After: m.Task.RetryAfter}
}

// awaitRemoval waits for the task in flight, whatever it does. Of those that failed only the ones of the deletion are waited
// out: the others are not tried again.
func awaitRemoval(m Machine) Decision {
	if m.Task.State == TaskFailed && !m.Task.Removes() {
		return nil
	}
	return awaitTask(m)
}

// awaitVM waits while it is not certain what is at the VMID.
func awaitVM(m Machine) Decision {
	if m.VM.Presence == PresenceUnknown {
		return Wait{Reason: m.VM.Why, After: lookAgain}
	}
	return nil
}

// protected leaves a VM alone that someone protected: it is not even stopped. The protection that the spec asked for ends
// with the machine.
func protected(m Machine) Decision {
	if m.VM.Presence != PresenceOurs || m.VM.Config["protection"] != "1" {
		return nil
	}
	if asked := m.Spec.Options.Protection; asked != nil && *asked {
		return unprotect(m)
	}
	return Wait{Reason: Reason{Protected, fmt.Sprintf(
		"VM %d on %s is protected (protection: 1) and is neither stopped nor destroyed: when it may go, run `qm set %d --protection 0` there, or switch off Options, Protection",
		m.Spec.Reservation.VMID, m.VM.Node, m.Spec.Reservation.VMID)}, After: lookAgain}
}

func unprotect(m Machine) Decision {
	if m.VM.Config.Lock() != "" {
		return nil // is waited for next
	}
	return Do{
		Configure{VM: virtualMachine(m), Change: vmconfig.Change{Set: map[string]string{"protection": "0"}}, Digest: m.VM.Digest},
		Reason{Protected, fmt.Sprintf("ending the protection of VM %d on %s, which options.protection asked for", m.Spec.Reservation.VMID, m.VM.Node)},
	}
}

// unlocked waits while Proxmox VE works on the VM. A VM that was suspended to disk stays locked and can be destroyed.
func unlocked(m Machine) Decision {
	lock := m.VM.Config.Lock()
	if m.VM.Presence != PresenceOurs || lock == "" || lock == "suspended" && m.VM.Power != PowerRunning {
		return nil
	}
	return Wait{Reason: Reason{Locked, fmt.Sprintf("VM %d on %s is locked (%s): %s", m.Spec.Reservation.VMID, m.VM.Node, lock, unlocking(m, lock))}, After: lookAgain}
}

// unlocking says what a lock is there for, and what to do about one that nobody holds any more.
func unlocking(m Machine, lock string) string {
	works := map[string]string{
		"backup":          "a backup runs, and the deletion goes on when it has ended",
		"clone":           "it is being made, and is deleted after that",
		"create":          "it is being made or restored, and is deleted after that",
		"migrate":         "it is moving to another node, and is deleted there",
		"rollback":        "it is being rolled back to a snapshot, and is deleted after that",
		"snapshot":        "a snapshot is being taken, and it is deleted after that, with its snapshots",
		"snapshot-delete": "a snapshot is being deleted, and it is deleted after that, with its snapshots",
		"suspending":      "it is being suspended to disk, and is deleted after that",
		"suspended":       "it was suspended to disk and runs all the same",
	}
	work, known := works[lock]
	if !known {
		work = "the deletion goes on when the lock is gone"
	}
	return work + "; " + LockRemedy(lock, proxmox.VMID(m.Spec.Reservation.VMID))
}

// LockRemedy is what a person can do about a lock that was left behind. We cannot: Proxmox VE lets no token unlock a VM.
func LockRemedy(lock string, id proxmox.VMID) string {
	switch lock {
	case "backup":
		return fmt.Sprintf("never unlock it while the task vzdump runs; if that was broken off, run `qm unlock %d` there as root", id)
	case "clone", "create": // what is there looks whole once it is unlocked
		return fmt.Sprintf("if no task there makes it any more, run `qm unlock %d && qm destroy %d --destroy-unreferenced-disks 1` there as root: "+
			"it takes all disks that are named after VM %d, on all storages, also the half-made one, which is in no config", id, id, id)
	case "destroyed":
		return fmt.Sprintf("if no task there does that any more, run `qm unlock %d && qm destroy %d` there as root", id, id)
	}
	return fmt.Sprintf("if no task there works on it any more, run `qm unlock %d` there as root", id)
}

// awaitAnswer waits until no request whose answer was lost can hit another's VM. While ours is there, nobody else gets its VMID;
// once it is destroyed, somebody does.
func awaitAnswer(m Machine) Decision {
	isDone := m.Unanswered == DestroyUnanswered && m.VM.Presence == PresenceAbsent
	if m.Unanswered == NothingUnanswered || isDone || m.VM.Presence == PresenceForeign {
		return nil
	}
	return Wait{Reason: Reason{Destroying, fmt.Sprintf(
		"VM %d of region %s is destroyed, and its number free for others, once no request to start, stop or destroy it whose answer was lost, or that was sent before the manager was restarted, "+
			"can be carried out any more: for two minutes Proxmox VE may", m.Spec.Reservation.VMID, m.Spec.Reservation.Region)}, After: lookAgain}
}

func stop(m Machine) Decision {
	switch {
	case m.VM.Presence != PresenceOurs || m.VM.Power == PowerStopped:
		return nil
	case m.VM.Power == PowerUnknown:
		return Wait{Reason: Reason{Unobserved, fmt.Sprintf("the state of VM %d on %s is not known: is the node up?", m.Spec.Reservation.VMID, m.VM.Node)}, After: lookAgain}
	}
	if wait := awaitHA(m, "hastop"); wait != nil {
		return wait
	}
	return Do{Stop{virtualMachine(m)}, Reason{Stopping, fmt.Sprintf("stopping VM %d on %s", m.Spec.Reservation.VMID, m.VM.Node)}}
}

func destroy(m Machine) Decision {
	if m.VM.Presence != PresenceOurs {
		return nil
	}
	return Do{Destroy{virtualMachine(m)}, Reason{Destroying, fmt.Sprintf("destroying VM %d on %s", m.Spec.Reservation.VMID, m.VM.Node)}}
}

// sweep deletes the seed. The VM is gone by now, or given up with its host, so nothing reads it.
func sweep(m Machine) Decision {
	switch {
	case m.SeedIsGone() || m.seedIsAbandoned():
		return nil
	case m.SeedHost == HostUp && m.Task.State == TaskRunning && m.Task.RemovesSeed():
		return Wait{Reason: taskReason(m.Task)}
	case m.Task.State == TaskFailed && m.Task.RetryAfter > 0 && m.Task.RemovesSeed():
		return Wait{Reason: failure(m.Task), After: m.Task.RetryAfter}
	}
	return deleteSeed(m)
}

// release lets go what the machine holds in Kubernetes. The addresses come after the VM: no other may get one while a VM
// can still use it.
func release(m Machine) Decision {
	if m.Addresses.Remain {
		return Do{ReleaseAddresses{}, Reason{ReleasingAddresses, "releasing the addresses"}}
	}
	if left := leftovers(m); len(left) > 0 {
		return Do{RemoveFinalizer{}, Reason{Abandoned, "the machine is deleted " + without(m, left)}}
	}
	return Do{RemoveFinalizer{}, Reason{Deleted, "the VM and all that belonged to it are gone"}}
}
