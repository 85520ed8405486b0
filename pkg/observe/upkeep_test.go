package observe

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
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

// TestTheConfigOfAVMAtRestIsReadOnceAnHour shows what the inventory does not.
func TestTheConfigOfAVMAtRestIsReadOnceAnHour(t *testing.T) {
	for policy, wanted := range map[v1beta1.DriftPolicy]bool{v1beta1.DriftPolicyReport: true, v1beta1.DriftPolicyIgnore: false} {
		memory, clock := newTestMemory()
		object := &v1beta1.ProxmoxMachine{}
		object.Spec.Reservation.UUID = string(someVM)
		object.Spec.DriftPolicy = policy
		sight := upkeepSight{
			machineSight: machineSight{
				Observer: &Observer{Memory: memory, Clock: memory.clock}, subject: MachineSubject{ProxmoxMachine: object},
				machine: &plan.Machine{Spec: object.Spec},
			},
			listed: true, entry: pve.VM{Status: pve.StatusRunning},
		}
		memory.withUpkeep(someVM, func(known *knownUpkeep) { known.seen, known.readAt = &sight.entry, clock.Now() })
		var reads []time.Time
		for start := clock.Now(); clock.Since(start) < 24*time.Hour; clock.Step(time.Minute) {
			if sight.hasToRead(memory.upkeep(someVM)) {
				reads = append(reads, clock.Now())
				memory.withUpkeep(someVM, func(known *knownUpkeep) { known.live, known.readAt = &plan.Live{}, clock.Now() })
			}
			sight.machine.Upkeep = plan.Upkeep{}
			sight.tell()
			if again := sight.machine.Upkeep.LookAgain; (again > 0) != wanted || again > round+firstRest {
				t.Fatalf("%s: it is looked at again in %s", policy, again)
			}
		}
		if wanted && (len(reads) < 23 || len(reads) > 24) || !wanted && len(reads) > 0 {
			t.Errorf("%s: in a day it is read at %v", policy, reads)
		}
	}
}

func TestReadingsAreSpreadOverTheHour(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		uuid := proxmox.SMBIOSUUID(rapid.StringMatching(`[0-9a-f]{8}-[0-9a-f]{4}`).Draw(t, "uuid"))
		last := time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "last"), 0)
		next := nextRound(uuid, last)
		if rest := next.Sub(last); rest < firstRest || rest >= firstRest+round {
			t.Fatalf("it is read after %s", rest)
		}
		if again := nextRound(uuid, next.Add(time.Second)); again.Sub(next) != round {
			t.Fatalf("and then after %s", again.Sub(next))
		}
	})
	minutes := map[int]bool{}
	for i := range 600 {
		minutes[nextRound(proxmox.SMBIOSUUID(fmt.Sprint("vm", i)), time.Unix(0, 0)).UTC().Minute()] = true
	}
	if len(minutes) < 50 {
		t.Errorf("600 VMs are read in %d minutes of the hour", len(minutes))
	}
}
