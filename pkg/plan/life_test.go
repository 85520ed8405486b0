package plan_test

import (
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/network"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// scenario is a life in the model world in which nothing fails, and one thing happens from outside.
type scenario struct {
	// see changes what is observed in a round.
	see func(w *walk, m *plan.Machine)
	// happens comes after a round, until it reports that it has done what it does.
	happens func(w *walk) bool
	// source changes what the VM is made from; nil for the template.
	source change
}

// walk is one run of a scenario.
type walk struct {
	*world
	visits []visit
	round  int
}

// visit is what the planner came to in one round.
type visit struct {
	code, action   string
	rests, stalled bool
	deleting       bool
	reserved       bool
	// detour says that the observation was changed, so that it came to something else.
	detour bool
}

// lifeRounds bound a walk: some 25 rounds are needed.
const lifeRounds = 70

// run walks through a scenario. The seed decides how long tasks take and which VMIDs are taken.
func (s scenario) run(seed int) []visit {
	return rapid.Custom(func(t *rapid.T) []visit {
		w := &walk{world: newWorld(t)}
		w.trouble, w.groupless = 0, 0
		if s.source != nil {
			s.source.in(w.world)
		}
		for happened := false; w.round < lifeRounds && !w.gone; w.round++ {
			w.step(s)
			w.pass()
			if !happened && s.happens != nil {
				happened = s.happens(w)
			}
		}
		return w.visits
	}).Example(seed)
}

func (w *walk) step(s scenario) {
	m := w.observe()
	usual := plan.MachineStep(m).Why().Code
	if s.see != nil {
		s.see(w, &m)
	}
	decision := plan.MachineStep(m)
	visit := visit{
		code: decision.Why().Code, rests: isRest(decision), deleting: m.Deleting, reserved: m.Spec.Reservation.UUID != "", detour: decision.Why().Code != usual,
	}
	_, visit.stalled = decision.(plan.Stalled)
	if do, acts := decision.(plan.Do); acts {
		visit.action = strings.TrimPrefix(fmt.Sprintf("%T", do.Action), "plan.")
		_ = w.do(do.Action)
	}
	w.visits = append(w.visits, visit)
}

// last is what the planner came to in this round.
func (w *walk) last() visit { return w.visits[len(w.visits)-1] }

// settled reports whether the machine is done with all that there is to do.
func (w *walk) settled() bool { return w.last().rests && w.bootstrapped }

// mine is the machine's VM.
func (w *walk) mine() *guest {
	vm := w.vms[proxmox.VMID(w.spec.Reservation.VMID)]
	if vm == nil || vm.foreign || vm.making {
		return nil
	}
	return vm
}

// lives are the scenarios of a machine that is not deleted.
func lives() []scenario {
	return []scenario{
		{},
		{see: waitsForEverything},
		{happens: func(w *walk) bool { // somebody takes the VMID
			if !w.hasSeed() || w.vms[proxmox.VMID(w.spec.Reservation.VMID)] != nil {
				return false
			}
			w.vms[proxmox.VMID(w.spec.Reservation.VMID)] = stranger()
			return true
		}},
		{happens: func(w *walk) bool { // the host turns out to be unable to clone
			if !w.hasSeed() || len(w.ours()) > 0 {
				return false
			}
			w.leave, w.failing[proxmox.NodeName(w.spec.Reservation.Node)] = "its storage is full", "a VM could not be made here"
			return true
		}},
		{happens: func(w *walk) bool { // somebody starts the VM before it is configured
			if w.mine() != nil {
				w.mine().running = true
			}
			return w.mine() != nil
		}},
		{happens: func(w *walk) bool { // somebody stops the VM
			if w.settled() {
				w.mine().running = false
			}
			return w.settled()
		}},
		{happens: func(w *walk) bool { // somebody removes the VM
			if w.settled() {
				delete(w.vms, proxmox.VMID(w.spec.Reservation.VMID))
			}
			return w.settled()
		}},
		{happens: func(w *walk) bool { // and while its seed is there
			ran := w.mine() != nil && w.spec.ProviderID != "" && w.hasSeed()
			if ran {
				delete(w.vms, proxmox.VMID(w.spec.Reservation.VMID))
			}
			return ran
		}},
		{happens: func(w *walk) bool { // the machine is to be off for a while
			return w.settled() && w.isTurnedOff()
		}},
		{happens: (*walk).isTurnedOff}, // and from the beginning
	}
}

// creates are the lives of machines without a template: what differs, until they run.
func creates() []scenario {
	var all []scenario
	for _, source := range []change{fromImage, fromNetworkWithoutDisk} {
		for _, life := range lives()[:4] {
			life.source = source
			all = append(all, life)
		}
	}
	return all
}

func (w *walk) isTurnedOff() bool {
	const rounds = 25
	w.off, w.spec.PowerState = rounds, v1beta1.PowerStateStopped
	return true
}

// waitsForEverything lets a machine come too early for all that it needs before it has its place.
func waitsForEverything(w *walk, m *plan.Machine) {
	seen := func(code string) bool {
		return slices.ContainsFunc(w.visits, func(v visit) bool { return v.code == code })
	}
	switch {
	case w.round == 0:
		m.ClusterReady = false
	case w.round == 1:
		m.Bootstrap.Missing = plan.Reason{Code: plan.WaitingForBootstrapData}
	case w.claims < 2:
	case !seen(plan.WaitingForAddresses):
		m.Addresses.Pending = "the pool is slow"
	case !seen(plan.PoolExhausted):
		m.Addresses.Pending, m.Addresses.Exhausted = "the pool is used up", true
	case !seen(plan.HoldingAddresses):
		m.Addresses.Unheld = network.Claims("worker-1", "cluster", w.spec.Network)
	case !seen(plan.WaitingForCapacity):
		m.Candidates.Hosts = nil
	case !seen(plan.VMIDRangeExhausted):
		m.Candidates.FreeVMIDs = nil
	}
}

// deletions are the scenarios of a machine from a source that is deleted in any round of its life; nil for a template.
func deletions(source change) []scenario {
	var all []scenario
	for round := range 40 {
		all = append(all, scenario{source: source, happens: func(w *walk) bool {
			w.deleting = w.round == round
			return w.deleting
		}})
	}
	return all
}

// detour is something that may happen in any round, and is over in the next one.
type detour struct {
	what string
	see  func(m *plan.Machine)
}

// detours are those that the pages list instead of drawing them.
func detours() []detour {
	return []detour{
		{"Proxmox VE, or the node, does not answer", func(m *plan.Machine) {
			if m.Spec.Reservation.UUID != "" {
				m.VM, m.Task = plan.VM{Why: whyUnknown}, plan.Task{}
			}
		}},
		{"another machine has a MAC address that this one would get", func(m *plan.Machine) {
			m.Cards = network.Cards("worker-0", proxmox.SMBIOSUUID(m.Spec.Reservation.UUID), m.Spec.Network)
		}},
		{"as many clones as may be run on its host or storage", func(m *plan.Machine) {
			m.CloneSlot.Full = "2 VMs are being made on pve3 already: a, b"
		}},
		{"a security group that is asked for does not exist", func(m *plan.Machine) {
			if m.HasFirewall() && m.Spec.ProviderID == "" {
				m.Firewall.MissingGroups = []string{"nodes"}
			}
		}},
		{"a backup or a snapshot holds the VM", func(m *plan.Machine) {
			if m.VM.Presence == plan.PresenceOurs {
				m.VM.Config = vmconfig.Change{Set: map[string]string{"lock": "backup"}}.Apply(m.VM.Config)
			}
		}},
		{"a task failed, and is tried again after a pause", func(m *plan.Machine) {
			if m.Task.State == plan.TaskRunning && !m.Task.RemovesSeed() {
				m.Task.State, m.Task.RetryAfter = plan.TaskFailed, lastPause
			}
		}},
	}
}

// during has a detour happen in one round of a scenario.
func (d detour) during(s scenario, round int) scenario {
	return scenario{happens: s.happens, see: func(w *walk, m *plan.Machine) {
		if w.round == round {
			d.see(m)
		}
	}}
}
