package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// Upkeep is what is known of a VM that ran once and is to follow its spec.
type Upkeep struct {
	// Applied is the spec that the VM's config was brought to last (v1beta1.AppliedSpecAnnotation); empty when nobody wrote it
	// down.
	Applied string
	// Live is the VM's config; nil when the pass did not have to read it.
	Live *Live
	// Trouble is why it could not be read; the zero Reason when it could, or did not have to be.
	Trouble Reason
	// Refusals are the changes that Proxmox VE refused, each once, in order. Any other may be tried.
	Refusals []Refusal
	// Contested are the keys that were changed back and have changed again. They are left alone for a while.
	Contested []string
	// LookAgain is when the config is to be read again; zero when something will wake the machine.
	LookAgain time.Duration
}

// Live is the config of a VM that ran once.
type Live struct {
	// Config is as it will be when the VM is started the next time, and Waiting are the keys that are not so yet.
	Config  vmconfig.Config
	Waiting []string
	Digest  proxmox.Digest
}

// Refusal is a change that Proxmox VE did not make, and is not asked for again for a while.
type Refusal struct {
	// Change is the change as Reconfigure.Text, or Resize.Text, gives it.
	Change, Message string
}

// Text tells one change from another.
func (r Reconfigure) Text() string { return r.Change.String() }

// Text tells one growth from another.
func (r Resize) Text() string { return fmt.Sprintf("%s=%d", r.Disk, r.Size) }

// refuses reports whether a change was refused.
func (u Upkeep) refuses(change string) bool {
	return slices.ContainsFunc(u.Refusals, func(refusal Refusal) bool { return refusal.Change == change })
}

// alteration is how the VM's config compares with the spec; false when that is not known.
func (m Machine) alteration() (vmconfig.Alteration, bool) {
	if m.Upkeep.Live == nil || m.Spec.ProviderID == "" || m.VM.Presence != PresenceOurs {
		return vmconfig.Alteration{}, false
	}
	applied, known := vmconfig.ReadApplied(m.Upkeep.Applied)
	if !known {
		applied = m.Spec
	}
	alteration := vmconfig.Alter(desired(m), applied, m.Upkeep.Live.Config)
	alteration.Grow, alteration.Regrow = m.ungrown(alteration.Grow), m.ungrown(alteration.Regrow)
	alteration.Drift = append(alteration.Drift, m.driftedPool()...)
	return alteration, true
}

// ungrown are the disks that were not seen to be grown: the config may never say that they were.
func (m Machine) ungrown(growths []vmconfig.Growth) []vmconfig.Growth {
	return slices.DeleteFunc(growths, func(growth vmconfig.Growth) bool { return m.Grown[growth.Key] >= growth.Size })
}

// HasNewSpec reports whether the spec says other things of the VM's config than when it was last carried out.
func (m Machine) HasNewSpec() bool {
	return m.Spec.ProviderID != "" && m.Upkeep.Applied != "" && m.Upkeep.Applied != vmconfig.WriteApplied(m.Spec)
}

// alterBeforeStart has a VM that is about to be started begin with what the spec says anew, but for what a task has to do: it
// might fail, and the VM would not be started. Some of what is to be changed back a VM takes only now.
func alterBeforeStart(m Machine) Decision {
	alteration, known := m.alteration()
	if !known || m.VM.Power != PowerStopped || m.isToBeOff() || alteration.Change.Allocates() {
		return nil
	}
	if decision := reconfigure(m, alteration.Change, false); decision != nil || m.Spec.DriftPolicy != v1beta1.DriftPolicyRepair {
		return decision
	}
	return reconfigure(m, alteration.Repair.Without(m.Upkeep.Contested...), true)
}

// alter carries out what the spec says anew. It comes last: nothing that a VM needs waits for it.
func alter(m Machine) Decision {
	if m.Spec.ProviderID == "" || m.VM.Presence != PresenceOurs {
		return nil
	}
	if m.Upkeep.Applied == "" { // it ran before that was written down: it was made so
		return recordApplied(m)
	}
	alteration, known := m.alteration()
	if !known {
		return nil
	}
	if decision := carryOut(m, alteration.Change, alteration.Grow, false); decision != nil {
		return decision
	}
	if m.HasNewSpec() && alteration.Change.Empty() && len(alteration.Grow) == 0 && len(alteration.Beyond) == 0 && len(alteration.AtStart) == 0 && !m.isNewPool() {
		return recordApplied(m)
	}
	if m.Spec.DriftPolicy != v1beta1.DriftPolicyRepair {
		return nil
	}
	return carryOut(m, alteration.Repair.Without(m.Upkeep.Contested...), alteration.Regrow, true)
}

func recordApplied(m Machine) Decision {
	return Do{RecordApplied{vmconfig.WriteApplied(m.Spec)}, Reason{Configuring, "writing down the spec that the VM's config is brought to"}}
}

// carryOut changes the config, and grows disks one at a time.
func carryOut(m Machine, change vmconfig.Change, growths []vmconfig.Growth, repairs bool) Decision {
	if decision := reconfigure(m, change, repairs); decision != nil {
		return decision
	}
	for _, growth := range growths {
		action := Resize{VM: virtualMachine(m), Disk: growth.Key, Size: growth.Size, Digest: m.Upkeep.Live.Digest}
		if !m.Upkeep.refuses(action.Text()) {
			return Do{action, Reason{Resizing, fmt.Sprintf("growing disk %s of VM %d to %d GiB", growth.Key, action.VM.ID, growth.Size/proxmox.GiB(1).Bytes())}}
		}
	}
	return nil
}

func reconfigure(m Machine, change vmconfig.Change, repairs bool) Decision {
	action := Reconfigure{VM: virtualMachine(m), Change: change, Digest: m.Upkeep.Live.Digest, Repairs: repairs}
	if change.Empty() || m.Upkeep.refuses(action.Text()) {
		return nil
	}
	what := "changing %s of VM %d as the spec says"
	if repairs {
		what = "changing %s of VM %d back to what the spec says"
	}
	return Do{action, Reason{Configuring, fmt.Sprintf(what, strings.Join(change.Keys(), ", "), action.VM.ID)}}
}

// isRepaired reports whether a key that somebody changed is to be changed back now.
func (m Machine) isRepaired(key string) bool {
	return m.Spec.DriftPolicy == v1beta1.DriftPolicyRepair && !slices.Contains(m.Upkeep.Contested, key)
}

// ConfigurationState says whether the VM's config is as the spec says, and otherwise what is not. It says nothing, by false, of
// what was not looked at.
func (m Machine) ConfigurationState() (why Reason, upToDate, known bool) {
	if m.VM.Listing != nil && m.VM.Listing.Template || m.Upkeep.Live == nil {
		return m.listedState()
	}
	alteration, known := m.alteration()
	if !known {
		return Reason{}, false, false
	}
	var all []Reason // what somebody else changed comes last: a spec that is not carried out is not to be hidden by it
	for _, state := range []func(vmconfig.Alteration) Reason{m.refused, m.unchanged, m.beyond, m.waiting, m.postponed, m.drifted} {
		if reason := state(alteration); reason.Code != "" {
			all = append(all, reason)
		}
	}
	if len(all) == 0 {
		return Reason{}, true, true
	}
	messages := make([]string, len(all))
	for i, reason := range all {
		messages[i] = reason.Message
	}
	return Reason{all[0].Code, strings.Join(messages, ". ")}, false, true
}

// listedState goes by what the inventory says.
func (m Machine) listedState() (why Reason, upToDate, known bool) {
	if m.HasNewSpec() && m.Upkeep.Trouble.Code != "" {
		return m.Upkeep.Trouble, false, true
	}
	if m.HasNewSpec() {
		return Reason{Configuring, fmt.Sprintf("VM %d is to be changed as the spec says", m.Spec.Reservation.VMID)}, false, true
	}
	differences, known := Drift(m)
	if !known || len(differences) == 0 || m.Spec.DriftPolicy == v1beta1.DriftPolicyIgnore {
		return Reason{}, known, known
	}
	return m.changedOutside(differences.String()), false, true
}

func (m Machine) changedOutside(differences string) Reason {
	return Reason{Drifted, fmt.Sprintf(
		"VM %d on %s was changed outside of Cluster API (wanted → is): %s. Change it back in Proxmox VE or have that done by spec.driftPolicy Repair, have the spec say what it is, or roll the machine",
		m.Spec.Reservation.VMID, m.VM.Node, differences)}
}

// refused tells what Proxmox VE said of all that it refused: one change may be refused for another reason than the next.
func (m Machine) refused(vmconfig.Alteration) Reason {
	var said []string
	for _, refusal := range m.Upkeep.Refusals {
		if !slices.Contains(said, refusal.Message) {
			said = append(said, refusal.Message)
		}
	}
	if len(said) == 0 {
		return Reason{}
	}
	return Reason{ChangeRefused, fmt.Sprintf("Proxmox VE refuses to change VM %d on %s: %s. It is asked again from time to time", m.Spec.Reservation.VMID, m.VM.Node, strings.Join(said, "; "))}
}

func (m Machine) unchanged(alteration vmconfig.Alteration) Reason {
	keys := alteration.Change.Keys()
	for _, growth := range alteration.Grow {
		keys = append(keys, growth.Key)
	}
	if m.isNewPool() {
		keys = append(keys, poolKey)
	}
	if len(keys) == 0 || len(m.Upkeep.Refusals) > 0 {
		return Reason{}
	}
	return Reason{Configuring, fmt.Sprintf("changing %s of VM %d as the spec says", strings.Join(keys, ", "), m.Spec.Reservation.VMID)}
}

func (m Machine) drifted(alteration vmconfig.Alteration) Reason {
	if len(alteration.Drift) == 0 || m.Spec.DriftPolicy == v1beta1.DriftPolicyIgnore {
		return Reason{}
	}
	keys := alteration.Repair.Keys()
	if len(m.driftedPool()) > 0 {
		keys = append(keys, poolKey)
	}
	contested := slices.DeleteFunc(keys, func(key string) bool { return !slices.Contains(m.Upkeep.Contested, key) })
	if len(contested) > 0 && m.Spec.DriftPolicy == v1beta1.DriftPolicyRepair {
		return Reason{RepairContested, fmt.Sprintf(
			"VM %d on %s was changed back to the spec, and somebody changed it again (wanted → is): %s. %s is left alone for a while, each time for longer: agree on it with who changes it, have the spec say what it is, or set spec.driftPolicy to Report",
			m.Spec.Reservation.VMID, m.VM.Node, told(alteration.Drift), strings.Join(contested, ", "))}
	}
	return m.changedOutside(told(alteration.Drift))
}

func (m Machine) beyond(alteration vmconfig.Alteration) Reason {
	if len(alteration.Beyond) == 0 {
		return Reason{}
	}
	return Reason{ReplacementRequired, fmt.Sprintf(
		"VM %d on %s cannot be changed to what the spec says (wanted → is): %s. Disks do not shrink, and what was made once stays: have the spec say what it is, or change the ProxmoxMachineTemplate and roll the machine",
		m.Spec.Reservation.VMID, m.VM.Node, told(alteration.Beyond))}
}

// waiting are the keys that wait for a restart. Nothing here restarts a VM for them.
func (m Machine) waiting(alteration vmconfig.Alteration) Reason {
	var keys []string
	for _, key := range m.Upkeep.Live.Waiting {
		if alteration.Waits(key) {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return Reason{}
	}
	return Reason{RestartRequired, fmt.Sprintf(
		"VM %d on %s has to be restarted for %s to take effect: shut it down and start it, by spec.powerState or in Proxmox VE, or reboot it there, when it suits. A reboot from inside the guest does not do, and nothing restarts it by itself",
		m.Spec.Reservation.VMID, m.VM.Node, strings.Join(keys, ", "))}
}

// postponed is what is set before the VM is started the next time, and not before.
func (m Machine) postponed(alteration vmconfig.Alteration) Reason {
	if len(alteration.AtStart) == 0 {
		return Reason{}
	}
	return Reason{RestartRequired, fmt.Sprintf(
		"VM %d on %s has to be shut down and started for this to be changed (wanted → is): %s. While it runs it would lose the device. Set spec.powerState to Stopped and back, or shut it down in Proxmox VE, when it suits; a reboot does not do",
		m.Spec.Reservation.VMID, m.VM.Node, told(alteration.AtStart))}
}

func told(differences []vmconfig.Difference) string {
	texts := make([]string, len(differences))
	for i, difference := range differences {
		texts[i] = difference.Told()
	}
	return strings.Join(texts, "; ")
}
