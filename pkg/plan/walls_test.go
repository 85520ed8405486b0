package plan_test

import (
	"net/netip"

	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/firewall"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/network"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// walls are what the world knows of firewalls.
type walls struct {
	// template is the firewall that a clone gets.
	template firewall.State
	// before is the annotation; it survives what the status does not.
	before firewall.Before
	// groupless is for how many more rounds a security group is missing.
	groupless int
}

// drawWalls draws which firewall is asked for, and what the template has.
func (w *world) drawWalls() {
	if !rapid.Bool().Draw(w.t, "a firewall is asked for") {
		return
	}
	w.spec.Firewall = firewallSpec()
	w.groupless = rapid.IntRange(0, 5).Draw(w.t, "rounds without the security group")
	if rapid.Bool().Draw(w.t, "the template has a firewall") {
		w.template = firewall.State{
			Options: map[string]string{"enable": "1", "policy_in": "ACCEPT", "ndp": "1"},
			Rules:   []firewall.Rule{{"type": "in", "action": "ACCEPT", "macro": "SSH", "enable": "1"}},
			Sets:    map[string]firewall.Set{"ipfilter-net0": {Entries: []firewall.Entry{{CIDR: "10.0.0.0/8"}}}},
		}
	}
}

// firewallOfNone is the firewall of a VM that has no template.
func firewallOfNone() firewall.State { return firewall.State{} }

func firewallSpec() v1beta1.Firewall {
	return v1beta1.Firewall{
		Enabled: ptr.To(true), PolicyIn: "DROP", IPFilter: ptr.To(true), SecurityGroups: []v1beta1.SecurityGroup{{Name: "nodes"}, {Name: "web", Device: "net0"}},
	}
}

// given is the address that the machine's claim gets.
func given() []network.Address {
	claim := network.Claim{Name: "worker-1-net0-ipv4", Device: "net0", Family: network.IPv4}
	return []network.Address{{Claim: claim, Prefix: netip.MustParsePrefix("10.0.0.5/24")}}
}

// seeWalls adds what is observed of the firewall: it is looked at once the VM is configured.
func (w *world) seeWalls(m *plan.Machine) {
	m.Firewall.Before = w.before
	if !m.HasFirewall() {
		return
	}
	if w.groupless > 0 && m.VM.Presence != plan.PresenceUnknown {
		m.Firewall.MissingGroups = []string{"nodes"}
	}
	if m.VM.Presence == plan.PresenceOurs && (w.spec.ProviderID != "" || vmconfig.HasSeed(m.VM.Config)) {
		state := w.vms[proxmox.VMID(w.spec.Reservation.VMID)].firewall
		m.Firewall.Present = &state
	}
}

func (w *world) editWalls(action plan.EditFirewall) error {
	vm := w.own(action.VM)
	if insert, is := action.Edit.(firewall.InsertRule); is && w.happens("the rule is made twice") {
		vm.firewall = insert.Apply(vm.firewall)
	}
	vm.firewall = action.Edit.Apply(vm.firewall)
	return nil
}

// wallsStand reports whether the firewall of a VM is as it is to be.
func (w *world) wallsStand(vm *guest) bool {
	wanted := firewall.NewWanted(proxmox.SMBIOSUUID(w.spec.Reservation.UUID), w.spec.Firewall, map[string][]netip.Addr{"net0": {netip.MustParseAddr("10.0.0.5")}}, w.before)
	_, more := firewall.Next(wanted, vm.firewall)
	return !more
}
