package plan

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/firewall"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/network"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// Firewall is what was observed of a VM's firewall.
type Firewall struct {
	// Present is the firewall; nil when it was not looked at.
	Present *firewall.State
	// Before tells what the options were before we set them; nil while nothing there is ours.
	Before firewall.Before
	// MissingGroups are the security groups that are asked for and that the Proxmox VE cluster does not have. It is looked for
	// them before the VM is cloned, and before rules are made.
	MissingGroups []string
	// MayComeLate says that an edit whose answer was lost may still be made.
	MayComeLate bool
}

// FirewallWanted is what the VM's firewall is to be. That a device is filtered at all is said by its own flag, which is in
// the VM's config (vmconfig.Diff); which addresses it has is the network's to say (network.Static).
func (m Machine) FirewallWanted() firewall.Wanted {
	uuid := proxmox.SMBIOSUUID(m.Spec.Reservation.UUID)
	addresses := map[string][]netip.Addr{}
	for _, device := range m.Spec.Network.Devices {
		addresses[device.Name] = nil
	}
	for _, address := range network.Static(uuid, m.Spec.Network, m.Addresses.Bound) {
		addresses[address.Claim.Device] = append(addresses[address.Claim.Device], address.Prefix.Addr())
	}
	return firewall.NewWanted(uuid, m.Spec.Firewall, addresses, m.Firewall.Before)
}

// HasFirewall reports whether a firewall is asked for, or something of ours is left of one that was.
func (m Machine) HasFirewall() bool { return m.Firewall.Before != nil || !m.FirewallWanted().IsEmpty() }

// awaitSecurityGroups waits, before the VM is made and before it starts, for the security groups that are asked for: Proxmox
// VE takes a rule with a group that does not exist, and such a rule does nothing.
func awaitSecurityGroups(m Machine) Decision {
	if len(m.Firewall.MissingGroups) == 0 || m.VM.Power == PowerRunning {
		return nil
	}
	return Wait{Reason: missingGroups(m), After: lookAgain}
}

// remindOfSecurityGroups waits for security groups that a running VM is to get.
func remindOfSecurityGroups(m Machine) Decision {
	if len(m.Firewall.MissingGroups) == 0 {
		return nil
	}
	return Wait{Reason: missingGroups(m), After: lookAgain}
}

func missingGroups(m Machine) Reason {
	return Reason{SecurityGroupMissing, fmt.Sprintf(
		"region %s has no security group %s, which spec.firewall.securityGroups names: make it in Proxmox VE (Datacenter, Firewall, Security Group), or name another one",
		m.Spec.Reservation.Region, strings.Join(m.Firewall.MissingGroups, ", "))}
}

// setFirewall brings the VM's firewall to what is asked, before the VM starts and while it runs. What the options were is
// written down before the first of them is set, so that they can be put back.
func setFirewall(m Machine) Decision {
	switch {
	case !m.HasFirewall() || len(m.Firewall.MissingGroups) > 0 || !m.Addresses.known():
		return nil
	case m.Firewall.Present == nil && m.VM.Power == PowerRunning:
		return nil
	case m.Firewall.Present == nil: // it is looked at once the VM is configured
		return Wait{Reason: Reason{Unobserved, fmt.Sprintf("the firewall of VM %d was not looked at", m.Spec.Reservation.VMID)}, After: lookAgain}
	}
	wanted, vm := m.FirewallWanted(), virtualMachine(m)
	if record, more := wanted.Record(*m.Firewall.Present); more {
		return Do{RecordFirewall{record}, Reason{ConfiguringFirewall, "writing down what the firewall options were"}}
	}
	if edit, more := firewall.Next(wanted, *m.Firewall.Present); more {
		return Do{EditFirewall{VM: vm, Edit: edit}, Reason{ConfiguringFirewall, fmt.Sprintf("%s of VM %d", edit, vm.ID)}}
	}
	if settled := wanted.Settled(); len(settled) != len(m.Firewall.Before) || settled == nil {
		return Do{RecordFirewall{settled}, Reason{ConfiguringFirewall, "forgetting what firewall options were that are put back"}}
	}
	return nil
}

// awaitFirewall waits, before the VM is destroyed, until no edit of its firewall is under way any more: Proxmox VE would make it
// for a VM that is gone, and keep the file.
func awaitFirewall(m Machine) Decision {
	if m.VM.Presence != PresenceOurs || !m.Firewall.MayComeLate {
		return nil
	}
	return Wait{Reason: Reason{ConfiguringFirewall, fmt.Sprintf(
		"the answer to an edit of the firewall of VM %d was lost: for two minutes Proxmox VE may still make it, and it would outlive the VM",
		m.Spec.Reservation.VMID)}, After: lookAgain}
}

// known reports whether all addresses of the machine are there to be looked at.
func (a Addresses) known() bool { return len(a.Absent) == 0 && a.Pending == "" && a.Invalid == "" }

// FirewallState says whether the VM's firewall is as asked, and otherwise why not. It says nothing, by false, of a machine
// without one.
func (m Machine) FirewallState() (why Reason, upToDate, found bool) {
	switch {
	case !m.HasFirewall():
		return Reason{}, false, false
	case len(m.Firewall.MissingGroups) > 0:
		return missingGroups(m), false, true
	case m.Firewall.Present == nil:
		return Reason{Unobserved, "not looked at yet"}, false, true
	}
	switch decision := setFirewall(m).(type) {
	case Do:
		return decision.Reason, false, true
	case Wait, Stalled, Done:
	}
	return Reason{}, m.Addresses.known(), true
}
