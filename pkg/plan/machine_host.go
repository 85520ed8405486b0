package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// awaitHost waits for the VM's host, unless a person declared it gone for good.
func awaitHost(m Machine) Decision {
	if m.isAbandoned() {
		return nil
	}
	message := fmt.Sprintf("VM %d is on %s, which is %s: %s", m.Spec.Reservation.VMID, m.VM.Node, downAs(m, m.VM.Host), bringBack(m, m.VM.Node))
	if m.VM.HAState != "" {
		message += fmt.Sprintf("; if the HA manager (state %s) starts it on another node, it is deleted there", m.VM.HAState)
	}
	return Wait{Reason: Reason{HostDown, message}, After: lookAgain}
}

// downAs says what a host is that is not up.
func downAs(m Machine, host HostState) string {
	if host == HostRemoved {
		return "no longer a node of region " + m.Spec.Reservation.Region
	}
	return "offline"
}

// bringBack is what a person can do about a host that is down.
func bringBack(m Machine, node proxmox.NodeName) string {
	if !m.mayAbandon() {
		return "it is removed when the node is back"
	}
	return fmt.Sprintf("bring it back or, once it is gone for good, run `kubectl annotate proxmoxmachine %s %s=%s`", m.Name, v1beta1.HostGoneAnnotation, node)
}

// mayAbandon reports whether the machine goes on without what is on a host that was declared gone: one that is deleted, or
// whose VM never ran, so that another can take its place.
func (m Machine) mayAbandon() bool { return m.Deleting || m.Spec.ProviderID == "" }

// isAbandoned reports whether the VM is on a host that is down and was declared gone.
func (m Machine) isAbandoned() bool {
	return m.mayAbandon() && m.VM.Host != HostUp && m.VM.Node != "" && m.HostGone == m.VM.Node
}

// seedIsAbandoned is the same for the seed.
func (m Machine) seedIsAbandoned() bool {
	return m.mayAbandon() && m.SeedHost != HostUp && m.HostGone == seedNode(m) && !m.SeedIsGone()
}

// leftovers lists what is left on a host, or in a region, that was declared gone.
func leftovers(m Machine) []string {
	var left []string
	if m.isAbandoned() || m.regionIsAbandoned() {
		left = append(left, fmt.Sprintf("VM %d (%s) with its disks", m.Spec.Reservation.VMID, m.Spec.Reservation.UUID))
	}
	if m.seedIsAbandoned() || m.regionIsAbandoned() && !m.SeedIsGone() {
		left = append(left, fmt.Sprintf("the seed ISO %s", seedVolume(m)))
	}
	return left
}

// without says what a machine goes on without.
func without(m Machine, left []string) string {
	where, it := fmt.Sprintf("on %s of region %s", m.HostGone, m.Spec.Reservation.Region), "that node"
	if m.regionIsAbandoned() {
		where, it = "in region "+m.Spec.Reservation.Region, "it"
	}
	return fmt.Sprintf("without what is %s, which was declared gone: should %s come back, remove %s there before anything else", where, it, strings.Join(left, " and "))
}

// awaitedNode is the node that the machine cannot go on without.
func awaitedNode(m Machine) proxmox.NodeName {
	if m.VM.Host == HostUp && m.SeedHost != HostUp {
		return seedNode(m)
	}
	return virtualMachine(m).Node
}

// remark adds to what the machine waits for, or does, what else a person should know: the snapshot's remarks, and that an
// annotation has no effect.
func remark(m Machine, decision Decision) Decision {
	if decision == nil {
		return nil
	}
	notes := slices.Clone(m.Remarks)
	if m.HostGone != "" && !m.isAbandoned() && !m.seedIsAbandoned() {
		notes = append(notes, fmt.Sprintf("the annotation %s=%s changes nothing: it counts only while the node that is waited for, %s, is the one it names and is seen to be down",
			v1beta1.HostGoneAnnotation, m.HostGone, awaitedNode(m)))
	}
	if m.RegionGone != "" && !m.regionIsAbandoned() {
		notes = append(notes, fmt.Sprintf("the annotation %s=%s changes nothing: it counts only while the region of the machine, %s, is the one it names and cannot be asked",
			v1beta1.RegionGoneAnnotation, m.RegionGone, m.Spec.Reservation.Region))
	}
	if len(notes) == 0 {
		return decision
	}
	suffix := "; " + strings.Join(notes, "; ")
	switch decision := decision.(type) {
	case Wait:
		decision.Reason.Message += suffix
		return decision
	case Do:
		if _, last := decision.Action.(RemoveFinalizer); !last {
			decision.Reason.Message += suffix
		}
		return decision
	case Stalled, Done:
	}
	return decision
}
