package observe

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
)

// refusedNow are the changes that are not to be tried now, as a pass sees them.
func refusedNow(memory *Memory) (changes []string, lookAgain time.Duration) {
	subject := MachineSubject{ProxmoxMachine: &v1beta1.ProxmoxMachine{}}
	subject.ProxmoxMachine.Spec.Reservation.UUID = string(someVM)
	sight := upkeepSight{machineSight: machineSight{&Observer{Memory: memory, Clock: memory.clock}, nil, subject, &plan.Machine{}}}
	memory.withUpkeep(someVM, func(known *knownUpkeep) { known.live = &plan.Live{} })
	sight.tell()
	for _, refusal := range sight.machine.Upkeep.Refusals {
		changes = append(changes, refusal.Change)
	}
	return changes, sight.machine.Upkeep.LookAgain
}

func TestEachRefusedChangePausesByItself(t *testing.T) {
	memory, clock := newTestMemory()
	check := func(when string, lookAgain time.Duration, want ...string) {
		t.Helper()
		got, again := refusedNow(memory)
		if diff := cmp.Diff(want, got); diff != "" || again != lookAgain {
			t.Errorf("%s, to look again in %s, refused (-want +got):\n%s", when, again, diff)
		}
	}
	memory.ChangeRefused(someVM, "scsi0=1", errDenied)
	clock.Step(20 * time.Second)
	memory.ChangeRefused(someVM, "cores=4", errDenied)
	check("after both", 40*time.Second, "cores=4", "scsi0=1")
	clock.Step(40 * time.Second)
	check("after the first pause of one", 20*time.Second, "cores=4")
	memory.ChangeRefused(someVM, "scsi0=1", errDenied)
	clock.Step(20 * time.Second)
	check("while one is refused again, for longer", 100*time.Second, "scsi0=1")
	clock.Step(2 * lastRepairPause)
	memory.ChangeRefused(someVM, "cores=4", errDenied)
	if known := memory.upkeep(someVM).refusals; len(known) != 1 || known["cores=4"].times != 1 {
		t.Errorf("long afterwards %v are remembered", known)
	}
}
