package observe

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// numbers is a Proxmox VE cluster that an Allocator asks.
type numbers struct {
	*Allocator
	clock  *testingclock.FakeClock
	inUse  map[proxmox.VMID]bool
	unseen map[proxmox.VMID]bool
	probes int
	err    error
}

func newNumbers() *numbers {
	clock := testingclock.NewFakeClock(time.Now())
	return &numbers{Allocator: NewAllocator(clock), clock: clock, inUse: map[proxmox.VMID]bool{}, unseen: map[proxmox.VMID]bool{}}
}

// give finds a VMID from 100 to last for a machine; 0 for none.
func (n *numbers) give(t *testing.T, machine string, last proxmox.VMID) proxmox.VMID {
	t.Helper()
	return n.giveIn(t, "pve", machine, last)
}

// giveIn finds a VMID in one of several Proxmox VE clusters.
func (n *numbers) giveIn(t *testing.T, cluster PVECluster, machine string, last proxmox.VMID) proxmox.VMID {
	t.Helper()
	id, found, err := n.find(t.Context(), search{
		pve: cluster, machine: types.NamespacedName{Name: machine}, bounds: plan.VMIDs{First: 100, Last: last},
		inUse: func(id proxmox.VMID) bool { return n.inUse[id] },
		isFree: func(_ context.Context, id proxmox.VMID) (bool, error) {
			n.probes++
			return !n.unseen[id], n.err
		},
	})
	if !errors.Is(err, n.err) || found != (id != 0) {
		t.Fatalf("VMID %d, found %t, error %v", id, found, err)
	}
	return id
}

func (n *numbers) expect(t *testing.T, machine string, last, want proxmox.VMID) {
	t.Helper()
	if got := n.give(t, machine, last); got != want {
		t.Errorf("%s got VMID %d, want %d", machine, got, want)
	}
}

func TestAMachineKeepsTheVMIDItWasOfferedAndOthersGetOthers(t *testing.T) {
	n := newNumbers()
	n.inUse[100], n.unseen[101] = true, true
	for range 3 {
		n.expect(t, "a", 199, 102)
		n.expect(t, "b", 199, 103)
	}
	if n.probes != 3 {
		t.Errorf("%d questions for three VMIDs", n.probes)
	}
	n.inUse[102] = true // reserved
	n.expect(t, "a", 199, 104)
}

func TestAnOfferIsSharedWhenThereIsNothingElse(t *testing.T) {
	n := newNumbers()
	n.expect(t, "a", 100, 100)
	n.expect(t, "b", 100, 100)
	n.inUse[100] = true
	n.expect(t, "b", 100, 0)
}

func TestAnOfferLapses(t *testing.T) {
	n := newNumbers()
	n.expect(t, "a", 199, 100)
	n.clock.Step(offerTTL)
	n.expect(t, "b", 199, 100)
}

func TestOffersOfOtherRegionsAreGivenBackWhenAMachineReserves(t *testing.T) {
	n := newNumbers()
	n.expect(t, "a", 199, 100)
	n.giveIn(t, "east", "a", 199)
	n.expect(t, "b", 199, 101)
	n.Settled(Entry{Machine: types.NamespacedName{Name: "a"}, PVE: "pve", VMID: 100})
	if got := n.giveIn(t, "east", "b", 199); got != 100 {
		t.Errorf("in the region that was not chosen b got VMID %d, want 100", got)
	}
	n.expect(t, "b", 199, 101) // another's offer stays
	n.expect(t, "c", 199, 102) // and so does what was reserved, until the cache shows it
}

func TestAVMIDRestsAfterItsVM(t *testing.T) {
	n := newNumbers()
	n.Rest("pve", 100)
	n.clock.Step(time.Second)
	n.Rest("pve", 101)
	n.expect(t, "a", 199, 102)
	n.inUse[102] = true
	n.expect(t, "b", 102, 100)
	n.inUse[100] = true
	n.expect(t, "b", 102, 101)
	n.clock.Step(restTTL)
	n.inUse = map[proxmox.VMID]bool{}
	n.expect(t, "c", 199, 100)
}

func TestAVMIDThatCouldNotBeAskedAboutIsAskedAboutAgain(t *testing.T) {
	n := newNumbers()
	n.err = errors.New("no answer")
	n.expect(t, "a", 199, 0)
	n.err = nil
	n.expect(t, "a", 199, 100)
}

func TestTheSearchGoesOnWhereItEnded(t *testing.T) {
	n := newNumbers()
	for id := proxmox.VMID(100); id < 100+mostProbes; id++ {
		n.unseen[id] = true
	}
	n.expect(t, "a", 199, 0)
	n.expect(t, "a", 199, 100+mostProbes)
}
