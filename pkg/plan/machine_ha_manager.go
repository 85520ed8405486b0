package plan

import (
	"fmt"
	"strings"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/ha"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// haAgain is when it is looked again at what keeps a VM from being an HA resource as asked, which a person has to mend.
const haAgain = time.Minute

// HighAvailability is what was observed of what the HA manager is told of a VM.
type HighAvailability struct {
	// Present is what it is told; nil when it was not looked at.
	Present *ha.State
	// Record is what it was told before we changed that; nil while nothing there is ours.
	Record *ha.Record
	// Problems say why the VM cannot be what is asked.
	Problems []string
	// Trouble says why it could not be looked at; the zero Reason when it could.
	Trouble Reason
}

// HighAvailabilityWanted is what the HA manager is to be told of the VM.
func (m Machine) HighAvailabilityWanted() ha.Wanted {
	return ha.Wanted{
		ID: proxmox.VMID(m.Spec.Reservation.VMID), Spec: m.Spec.HighAvailability, Off: m.isToBeOff(), Record: m.HighAvailability.Record,
		Comment: fmt.Sprintf("Cluster API machine %s, managed by CAPVE", m.Name),
	}
}

// HasHighAvailability reports whether it is asked for, or something of ours is left of when it was.
func (m Machine) HasHighAvailability() bool {
	return m.HighAvailability.Record != nil || ha.IsAsked(m.Spec.HighAvailability)
}

// tellHAManager has the HA manager look after the VM as asked, once the VM has become what it is to be for now. It does so last: when
// it cannot be done, or may not be, nothing else waits for it. The HA manager leaves a VM that runs as it is when it is to be
// started.
func tellHAManager(m Machine) Decision {
	seen := m.HighAvailability
	if !m.HasHighAvailability() || seen.Present == nil || seen.Trouble.Code != "" || len(seen.Problems) > 0 {
		return nil
	}
	wanted, vm := m.HighAvailabilityWanted(), virtualMachine(m)
	if record, more := wanted.NextRecord(*seen.Present); more {
		return Do{RecordHA{&record}, Reason{ConfiguringHighAvailability, "writing down what the HA manager was told"}}
	}
	if edit, more := ha.Next(wanted, *seen.Present); more {
		return Do{EditHA{VM: vm, Edit: edit}, Reason{ConfiguringHighAvailability, fmt.Sprintf("%s of VM %d", edit, vm.ID)}}
	}
	if !wanted.IsSettled() {
		return Do{RecordHA{wanted.Settled()}, Reason{ConfiguringHighAvailability, "forgetting what the HA manager was told"}}
	}
	return nil
}

// remindOfHAManager looks again at what a person has to mend.
func remindOfHAManager(m Machine) Decision {
	if why, upToDate, found := m.HighAvailabilityState(); found && !upToDate && why.Code != Unobserved && m.VM.Power == PowerRunning {
		return Wait{Reason: why, After: haAgain}
	}
	return nil
}

// HighAvailabilityState says whether the VM is to the HA manager what is asked, and otherwise why not. It says nothing, by
// false, of a machine that asks for nothing.
func (m Machine) HighAvailabilityState() (why Reason, upToDate, found bool) {
	seen := m.HighAvailability
	switch {
	case !m.HasHighAvailability():
		return Reason{}, false, false
	case seen.Trouble.Code != "":
		return seen.Trouble, false, true
	case len(seen.Problems) > 0:
		return Reason{HighAvailabilityInvalid, strings.Join(seen.Problems, "; ")}, false, true
	case seen.Present == nil:
		return Reason{Unobserved, "not looked at yet"}, false, true
	case seen.Present.IsIgnored():
		id := m.Spec.Reservation.VMID
		return Reason{HighAvailabilityIgnored, fmt.Sprintf(
			"the HA resource vm:%d has the state ignored, which somebody set: while it has, the HA manager does not look after the VM; run `ha-manager set vm:%d --state started` to end that",
			id, id)}, false, true
	}
	if do, more := tellHAManager(m).(Do); more {
		return do.Reason, false, true
	}
	return Reason{}, true, true
}
