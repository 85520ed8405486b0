package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

func pooled(pool string) func(*v1beta1.ProxmoxMachineSpec) {
	return func(s *v1beta1.ProxmoxMachineSpec) { s.Pool = pool }
}

// isIn is the pool that the inventory shows.
func isIn(pool proxmox.PoolID) change {
	return func(m *plan.Machine) {
		m.VM.Listing = &plan.Listing{Running: true, Pool: pool}
	}
}

func hidden(m *plan.Machine) { m.VM.Listing.HidesPool = true }

func everything(changes ...func(*v1beta1.ProxmoxMachineSpec)) func(*v1beta1.ProxmoxMachineSpec) {
	return func(s *v1beta1.ProxmoxMachineSpec) {
		for _, change := range changes {
			change(s)
		}
	}
}

// never had the spec name a pool.
func neverPooled(m *plan.Machine) {
	m.Upkeep.Applied = `{}`
	m.Spec.Pool = ""
}

func TestAVMIsInThePoolOfItsSpec(t *testing.T) {
	const runs = "done | Running: VM 101 runs on pve1"
	writes := "do RecordApplied | Configuring: writing down the spec that the VM's config is brought to"
	contested := func(m *plan.Machine) { m.Upkeep.Contested = []string{"pool"} }
	runSteps(t, []step{
		{"at rest", machine(afterwards(nothing, isIn("capi"))), runs},
		{"another pool", machine(afterwards(pooled("b"), isIn("capi"))), "do MovePool | Configuring: putting VM 101 into pool b as the spec says"},
		{"from wherever it is", machine(afterwards(pooled("b"), isIn(""))), "do MovePool | Configuring: putting VM 101 into pool b as the spec says"},
		{"after its config", machine(afterwards(everything(fewer, pooled("b")), isIn("capi"))), "do Reconfigure | Configuring: changing cpuunits of VM 101 as the spec says"},
		{"once it is there, that is written down", machine(afterwards(pooled("b"), isIn("b"))), writes},
		{"no pool any more", machine(afterwards(pooled(""), isIn("capi"))), "do MovePool | Configuring: taking VM 101 out of pool capi, which the spec says no more"},
		{"not out of another's", machine(afterwards(pooled(""), isIn("theirs"))), writes},
		{"not out of one that no spec named", machine(afterwards(nothing, neverPooled, isIn("theirs"), func(m *plan.Machine) { m.Upkeep.Live = nil })), runs},
		{"not before it is known where it is", machine(afterwards(pooled("b"))), runs},
		{"not what was refused", machine(afterwards(pooled("b"), isIn("capi"), refusing("pool=b"))), runs},
		{"nor seen, and not asked for anew", machine(afterwards(nothing, isIn(""), hidden)), runs},
		{"nor seen, and asked for anew", machine(afterwards(pooled("b"), isIn(""), hidden)), "do MovePool | Configuring: putting VM 101 into pool b as the spec says"},
		{"nor seen, and no pool any more", machine(afterwards(pooled(""), isIn(""), hidden)), "do MovePool | Configuring: taking VM 101 out of pool capi, which the spec says no more"},
		{"what somebody moved stays", machine(afterwards(nothing, isIn("theirs"))), runs},
		{"unless that is to be repaired", machine(afterwards(repairing, isIn("theirs"))), "do MovePool | Configuring: putting VM 101 back into pool capi as the spec says"},
		{"and not again and again", machine(afterwards(repairing, isIn("theirs"), contested)), runs},
	})
}

func TestTheStateOfThePoolIsTold(t *testing.T) {
	for _, c := range []struct {
		name    string
		machine plan.Machine
		want    string
	}{
		{"it is as asked", machine(afterwards(nothing, isIn("capi"))), ": "},
		{"it is not moved yet", machine(afterwards(pooled("b"), isIn("capi"))), "Configuring: changing pool of VM 101 as the spec says"},
		{"it cannot be", machine(afterwards(pooled("b"), isIn("capi"), refusing("pool=b"))), "ChangeRefused: Proxmox VE refuses to change VM 101 on pve1: only root may. It is asked again from time to time"},
		{"somebody moved it", machine(afterwards(nothing, isIn("theirs"))), "Drifted: VM 101 on pve1 was changed outside of Cluster API (wanted → is): pool: capi → theirs. Change it back in Proxmox VE or have that done by spec.driftPolicy Repair, have the spec say what it is, or roll the machine"},
		{"which does not matter", machine(afterwards(ignoring, isIn("theirs"))), ": "},
		{"and moves it again and again", machine(afterwards(repairing, isIn(""), func(m *plan.Machine) { m.Upkeep.Contested = []string{"pool"} })), "RepairContested: VM 101 on pve1 was changed back to the spec, and somebody changed it again (wanted → is): pool: capi → none. pool is left alone for a while, each time for longer: agree on it with who changes it, have the spec say what it is, or set spec.driftPolicy to Report"},
	} {
		t.Run(c.name, func(t *testing.T) {
			why, _, _ := c.machine.ConfigurationState()
			if diff := cmp.Diff(c.want, why.Code+": "+why.Message); diff != "" {
				t.Errorf("state (-want +got):\n%s", diff)
			}
		})
	}
}

// TestASpecThatNamesAnotherPoolBeforeTheVMRanMovesIt once it runs: it was made in the pool that the spec named then.
func TestASpecThatNamesAnotherPoolBeforeTheVMRanMovesIt(t *testing.T) {
	made := machine(resized)
	made.Upkeep.Applied = vmconfig.WriteApplied(made.Spec)
	made.Spec.Pool, made.Spec.CPU.Units = "b", 50
	for _, want := range []string{
		"do Configure | Configuring: configuring VM 101",
		"do RecordApplied | Configuring: writing down the spec that the VM's config is brought to",
		"do Start | Starting: starting VM 101 on pve1",
	} {
		step := plan.MachineStep(made)
		if diff := cmp.Diff(want, told(step)); diff != "" {
			t.Fatalf("step (-want +got):\n%s", diff)
		}
		do, _ := step.(plan.Do)
		switch action := do.Action.(type) {
		case plan.Configure:
			made.VM.Config = action.Change.Apply(made.VM.Config)
		case plan.RecordApplied:
			made.Upkeep.Applied = action.Spec
		}
	}
	made.VM.Power = plan.PowerRunning
	do, _ := plan.MachineStep(made).(plan.Do)
	action, _ := do.Action.(plan.RecordProviderID)
	ran := machine(afterwards(everything(fewer, pooled("b")), isIn("capi"), func(m *plan.Machine) {
		m.Upkeep.Applied, m.Upkeep.Live.Config["cpuunits"] = action.Applied, "50"
	}))
	if diff := cmp.Diff("do MovePool | Configuring: putting VM 101 into pool b as the spec says", told(plan.MachineStep(ran))); diff != "" {
		t.Errorf("once it runs (-want +got):\n%s", diff)
	}
}

// TestAPoolThatIsNotShownYetIsNotRepaired of a VM that was just started: the inventory shows it as it was while it was made.
func TestAPoolThatIsNotShownYetIsNotRepaired(t *testing.T) {
	started := machine(afterwards(repairing, func(m *plan.Machine) { m.VM.Listing = &plan.Listing{} }))
	if diff := cmp.Diff("done | Running: VM 101 runs on pve1", told(plan.MachineStep(started))); diff != "" {
		t.Errorf("step (-want +got):\n%s", diff)
	}
	if why, upToDate, known := started.ConfigurationState(); !upToDate || !known {
		t.Errorf("it is told: %s", why.Message)
	}
}
