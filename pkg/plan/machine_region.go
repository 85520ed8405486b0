package plan

import (
	"fmt"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
)

// awaitRegion waits for a region that cannot be asked, unless a person declared it gone for good.
func awaitRegion(m Machine) Decision {
	if m.regionIsAbandoned() {
		return nil
	}
	why := m.VM.Why
	why.Message += fmt.Sprintf("; once region %s is gone for good, run `kubectl annotate proxmoxmachine %s %s=%s`",
		m.Spec.Reservation.Region, m.Name, v1beta1.RegionGoneAnnotation, m.Spec.Reservation.Region)
	return Wait{Reason: why, After: lookAgain}
}

// regionIsAbandoned reports whether the machine's region cannot be asked and was declared gone.
func (m Machine) regionIsAbandoned() bool {
	return m.Deleting && m.RegionDown && string(m.RegionGone) == m.Spec.Reservation.Region
}
