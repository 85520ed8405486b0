package plan_test

import (
	"fmt"

	"pgregory.net/rapid"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// follows is how far a VM of the world that ran once is as its spec says.
type follows struct {
	applied string
	// said counts what the spec said anew.
	said int
}

// seeUpkeep adds the config of a VM that ran once. It costs nothing here.
func (w *world) seeUpkeep(m *plan.Machine) {
	m.Upkeep.Applied = w.applied
	if w.spec.ProviderID != "" && m.VM.Presence == plan.PresenceOurs {
		m.Upkeep.Live = &plan.Live{Config: m.VM.Config}
		m.VM.Listing = &plan.Listing{Pool: w.vms[proxmox.VMID(w.spec.Reservation.VMID)].pool}
	}
}

// sayAnew has the spec change, or somebody change the VM.
func (w *world) sayAnew(vm *guest) {
	if vm == nil || vm.foreign || vm.making {
		return
	}
	if isMade := vm.running && vmconfig.HasSeed(vm.config); w.spec.ProviderID == "" && !isMade {
		return
	}
	if w.happens("the spec says something new") { // maybe before it is known that the VM runs
		w.said++
		w.spec.CPU.Units, w.spec.Tags = int32(100+w.said), []string{fmt.Sprintf("tag%d", w.said)}
		w.spec.Pool = rapid.SampledFrom([]string{"capi", "other", ""}).Draw(w.t, "pool")
		if rapid.Bool().Draw(w.t, "a larger disk") {
			w.spec.Disks.Boot.SizeGiB += 10
		}
	}
	if w.spec.ProviderID != "" && w.happens("somebody changes the VM") {
		vm.config["cores"] = "7"
		w.spec.DriftPolicy = rapid.SampledFrom([]v1beta1.DriftPolicy{v1beta1.DriftPolicyRepair, v1beta1.DriftPolicyReport}).Draw(w.t, "policy")
	}
}

// checkFollows checks that the VM followed its spec, and that only who asked for it had the VM changed back.
func (w *world) checkFollows(vm *guest) {
	desired := vmconfig.Desired{UUID: proxmox.SMBIOSUUID(w.spec.Reservation.UUID), Machine: "worker-1", Spec: w.spec}
	alteration := vmconfig.Alter(desired, v1beta1.ProxmoxMachineSpec{Tags: []string{"tag1", "tag2"}}, vm.config)
	for _, difference := range alteration.Drift {
		w.t.Fatalf("the VM is %v: %v", vm.config, difference)
	}
	wrong := alteration.Change.Without("cores")
	if w.spec.DriftPolicy == v1beta1.DriftPolicyRepair {
		wrong = alteration.Change
	}
	if !wrong.Empty() || w.applied != vmconfig.WriteApplied(w.spec) {
		w.t.Fatalf("the VM is %v, and not yet %v", vm.config, wrong)
	}
	if vm.pool != proxmox.PoolID(w.spec.Pool) {
		w.t.Fatalf("the VM is in pool %q, not %q", vm.pool, w.spec.Pool)
	}
	for _, growth := range alteration.Grow {
		if w.grown[growth.Key] < growth.Size {
			w.t.Fatalf("the VM is %v, and %v is too small", vm.config, growth)
		}
	}
}

// afterwards gives a machine whose VM runs what the spec says anew, and what the config says then.
func afterwards(say func(*v1beta1.ProxmoxMachineSpec), changes ...change) change {
	return func(m *plan.Machine) {
		bootstrapped(m)
		m.SeedRemoved = true
		m.Upkeep.Applied = vmconfig.WriteApplied(m.Spec)
		config := vmconfig.Eject(m.VM.Config).Apply(m.VM.Config)
		m.Upkeep.Live, m.VM.Config = &plan.Live{Config: config, Digest: "live"}, nil
		say(&m.Spec)
		for _, change := range changes {
			change(m)
		}
	}
}
