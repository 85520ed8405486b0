package observe

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// counter is a counter of slots with a log of who was woken.
type counter struct {
	*CloneSlots
	clock *testingclock.FakeClock
	woken []string
}

func newCounter() *counter {
	c := &counter{clock: testingclock.NewFakeClock(time.Now())}
	c.CloneSlots = NewCloneSlots(c.clock, func(machine types.NamespacedName) { c.woken = append(c.woken, machine.Name) })
	return c
}

func named(name string) types.NamespacedName { return types.NamespacedName{Name: name} }

// at is a place with two slots on the host and two on the storage, which is shared.
func at(host proxmox.NodeName, storage proxmox.StorageID) plan.ClonePlace {
	return plan.ClonePlace{PVE: "pve", Host: host, Storage: storage, PerHost: 2, PerStorage: 2}
}

func (c *counter) take(t *testing.T, machine string, place plan.ClonePlace) {
	t.Helper()
	if err := c.Take(named(machine), place); err != nil {
		t.Errorf("%s got no slot: %s", machine, c.Full(named(machine), place))
	}
}

func (c *counter) refuse(t *testing.T, machine string, place plan.ClonePlace, why string) {
	t.Helper()
	if got := c.Full(named(machine), place); got != why {
		t.Errorf("full because %q, want %q", got, why)
	}
	if err := c.Take(named(machine), place); !errors.Is(err, ErrNoSlot) {
		t.Errorf("%s: error %v, want no slot", machine, err)
	}
}

func TestSlotsAreCountedByHostAndByStorage(t *testing.T) {
	c := newCounter()
	c.take(t, "a", at("pve1", "ceph"))
	c.take(t, "a", at("pve1", "ceph")) // who has one keeps it
	c.take(t, "b", at("pve1", "local"))
	c.refuse(t, "c", at("pve1", "other"), "2 VMs are being made on pve1 already: a, b")
	c.take(t, "d", at("pve2", "ceph"))
	c.refuse(t, "e", at("pve3", "ceph"), "2 VMs are being made on storage ceph already: a, d")
	c.take(t, "f", at("pve3", ""))
	c.take(t, "g", plan.ClonePlace{PVE: "other", Host: "pve1", PerHost: 1, PerStorage: 1})
	local := at("pve4", "local")
	local.StorageHost = "pve4"
	c.take(t, "h", local)
	c.take(t, "i", local)
	c.Release(named("a"))
	c.take(t, "c", at("pve1", "ceph"))
}

func TestTheOldestWhoCanBeginIsWokenWhenASlotComesFree(t *testing.T) {
	c := newCounter()
	c.take(t, "a", at("pve1", "x"))
	c.take(t, "b", at("pve1", "y"))
	for _, machine := range []string{"z", "m", "c"} {
		if c.Await(named(machine), at("pve1", "")) {
			t.Errorf("%s need not wait", machine)
		}
		c.clock.Step(time.Second)
	}
	c.Await(named("z"), at("pve1", "")) // again, and keeps its turn
	c.taskDone(named("a"), "UPID:pve1:0000C530:0000AAAA:65F1B2C3:qmstart:9000:root@pam:")
	c.taskDone(named("a"), "UPID:pve1:0000C530:0000AAAA:65F1B2C3:qmclone:9000:root@pam:")
	if !slices.Equal(c.woken, []string{"z"}) {
		t.Fatalf("woken: %v", c.woken)
	}
	c.refuse(t, "newcomer", at("pve1", ""), "2 VMs are being made on pve1 already: b, z")
	c.refuse(t, "m", at("pve1", ""), "2 VMs are being made on pve1 already: b, z")
	c.Leave(named("z"))
	c.Leave(named("b")) // holds a slot, which stays
	if !slices.Equal(c.woken, []string{"z", "m"}) {
		t.Fatalf("woken: %v", c.woken)
	}
	c.take(t, "m", at("pve1", ""))
}

func TestAWaiterThatCannotBeginHoldsUpNobody(t *testing.T) {
	c := newCounter()
	c.take(t, "a", at("pve1", ""))
	c.take(t, "b", at("pve1", ""))
	c.Await(named("c"), at("pve1", "ceph"))
	c.take(t, "d", at("pve2", "ceph"))
	c.take(t, "e", at("pve2", "ceph"))
}

func TestAWaiterThatIsNotHeardOfIsForgotten(t *testing.T) {
	c := newCounter()
	c.take(t, "a", at("pve1", ""))
	c.take(t, "b", at("pve1", ""))
	c.Await(named("c"), at("pve1", ""))
	c.clock.Step(waiterTTL + time.Second)
	c.Release(named("a"))
	if len(c.woken) != 0 {
		t.Errorf("woken: %v", c.woken)
	}
	c.take(t, "d", at("pve1", ""))
}

func TestAClonesThatIsSeenToRunCountsWhateverTheLimits(t *testing.T) {
	c := newCounter()
	for _, machine := range []string{"a", "b", "c", "d", "e", "f"} {
		c.Occupy(named(machine), at("pve1", ""))
	}
	if why := c.Full(named("x"), at("pve1", "")); !strings.HasSuffix(why, "6 VMs are being made on pve1 already: a, b, c, d, e, …") {
		t.Errorf("full because %q", why)
	}
	if !c.Await(named("y"), at("pve2", "")) {
		t.Error("there is a slot on another host")
	}
}
