package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// Listing is what the inventory says of a VM, at no cost. Proxmox VE reports it while the VM runs, some 10 s late.
type Listing struct {
	// Running says that the VM was reported as running, so that the rest is of a time after it was started.
	Running bool
	Name    string
	Tags    []string
	// Pool is empty also while HidesPool says that the credentials may not see whether the VM is in the pools that matter.
	Pool      proxmox.PoolID
	HidesPool bool
	CPUs      int
	Memory    proxmox.Bytes
	Template  bool
	// HostCPUs is how many CPUs the host has; Proxmox VE reports no more of a VM.
	HostCPUs int
}

// Difference is one thing about a VM that is not as it was made.
type Difference struct {
	Field, Wanted, Is string
}

// String returns `field: wanted → is`.
func (d Difference) String() string { return fmt.Sprintf("%s: %s → %s", d.Field, d.Wanted, d.Is) }

// Differences are what somebody changed of a VM.
type Differences []Difference

// String lists the differences.
func (d Differences) String() string {
	texts := make([]string, len(d))
	for i, difference := range d {
		texts[i] = difference.String()
	}
	return strings.Join(texts, "; ")
}

// Drift compares the VM, as the inventory lists it, with what was asked for. It says nothing, by false, of a VM that is not
// ours, was never started, or is not listed as it is now. What differs is told and left alone (docs/adr/0006).
func Drift(m Machine) (Differences, bool) {
	listing := m.VM.Listing
	switch {
	case m.Spec.ProviderID == "" || m.VM.Presence != PresenceOurs || listing == nil:
		return nil, false
	case listing.Template:
		return Differences{{"template", "no", "yes"}}, true
	case !listing.Running || m.VM.Power != PowerRunning:
		return nil, false
	}
	var found Differences
	note := func(field, wanted, is string) {
		if wanted != is {
			found = append(found, Difference{field, wanted, is})
		}
	}
	if name, err := desired(m).Name(); err == nil {
		note("name", name, listing.Name)
	}
	note("cpu", count(wantedCPUs(m), "CPU"), count(listing.CPUs, "CPU"))
	note("memory", fmt.Sprintf("%d MiB", m.Spec.Memory.SizeMiB), fmt.Sprintf("%d MiB", listing.Memory/proxmox.MiB(1).Bytes()))
	if tag := vmconfig.IdentityTag(proxmox.SMBIOSUUID(m.Spec.Reservation.UUID)); !slices.Contains(listing.Tags, tag) {
		note("tags", tag, "missing")
	}
	for _, difference := range m.driftedPool() {
		note(difference.Path, difference.Wanted, cmp.Or(difference.Is, "none"))
	}
	return found, true
}

// wantedCPUs are those that were asked for, or as many as the host shows at most.
func wantedCPUs(m Machine) int {
	wanted := int(m.Spec.CPU.Sockets * m.Spec.CPU.Cores)
	if host := m.VM.Listing.HostCPUs; host > 0 {
		return min(wanted, host)
	}
	return wanted
}

func count(number int, thing string) string {
	if number == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", number, thing)
}
