package plan

import (
	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
)

// recordConfigured writes down the spec that the VM's config was brought to, where it is another than that which the machine was
// reserved with. So it is known, once the VM runs, what the spec listed in the meantime and lists no more. The pool stays the one that
// the VM may have been made in: it is moved once it runs.
func recordConfigured(m Machine) Decision {
	if m.Spec.ProviderID != "" || m.VM.Power == PowerRunning || m.VM.Presence != PresenceOurs || m.Upkeep.Applied == "" {
		return nil
	}
	m.Spec.Pool = m.formerPool()
	if m.Upkeep.Applied == vmconfig.WriteApplied(m.Spec) {
		return nil
	}
	return recordApplied(m)
}

// applied is the spec that a VM which runs for the first time was made from, for the annotation. The spec may have changed while
// the VM started, or what it was may not be known: then all that is not as it says counts as new.
func applied(m Machine) string {
	now, nothing := m.Spec, v1beta1.ProxmoxMachineSpec{}
	if former, known := vmconfig.ReadApplied(m.Upkeep.Applied); known {
		now.Pool, nothing.Pool = former.Pool, former.Pool
	}
	for _, text := range []string{m.Upkeep.Applied, vmconfig.WriteApplied(now)} {
		desired, known := desired(m), false
		if desired.Spec, known = specOf(m, text); !known {
			continue
		}
		if vmconfig.Diff(desired, m.VM.Config).Empty() && len(m.ungrown(desired.Growths(m.VM.Config))) == 0 {
			return text
		}
	}
	return vmconfig.WriteApplied(nothing)
}

// specOf is the machine's spec as it was when a part of it was written down.
func specOf(m Machine, applied string) (v1beta1.ProxmoxMachineSpec, bool) {
	spec, known := vmconfig.ReadApplied(applied)
	spec.Reservation, spec.Bootstrap = m.Spec.Reservation, m.Spec.Bootstrap
	return spec, known
}
