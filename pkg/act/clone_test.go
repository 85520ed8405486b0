package act

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/observe"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
)

// written is an API server that holds one machine.
type written struct {
	client.Reader
	machine v1beta1.ProxmoxMachine
}

func (w *written) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	machine, isMachine := object.(*v1beta1.ProxmoxMachine)
	if !isMachine {
		return errors.New("it holds a machine")
	}
	w.machine.DeepCopyInto(machine)
	return nil
}

// cloner is an Actor for a machine whose reservation is written, and which is all that it knows.
func cloner() (*Actor, *written, observe.MachineSubject) {
	clock := testingclock.NewFakeClock(time.Now())
	api := &written{machine: v1beta1.ProxmoxMachine{Spec: v1beta1.ProxmoxMachineSpec{
		Reservation: v1beta1.Reservation{UUID: "11111111-2222-3333-4444-555555555555", Region: "home", Node: "pve1", VMID: 101},
	}}}
	api.machine.Name = "m1"
	actor := &Actor{
		Live: api, Ledger: observe.NewLedger(api), Memory: observe.NewMemory(clock), Allocator: observe.NewAllocator(clock),
		Slots: observe.NewCloneSlots(clock, func(types.NamespacedName) {}),
	}
	return actor, api, observe.MachineSubject{ProxmoxMachine: api.machine.DeepCopy()}
}

var place = plan.ClonePlace{PVE: "pve", Host: "pve1", PerHost: 1, PerStorage: 1}

func TestNothingIsMadeForAReservationThatIsNotTheOneWritten(t *testing.T) {
	actor, api, subject := cloner()
	api.machine.Spec.Reservation.Node = "pve2"
	for _, action := range []plan.Action{plan.UploadSeed{}, plan.Clone{Place: place}, plan.Create{Place: place}} {
		if err := actor.prepare(t.Context(), subject, action); !errors.Is(err, observe.ErrBehind) {
			t.Errorf("%T: error %v", action, err)
		}
	}
	if actor.Slots.Holds(subject.Key()) {
		t.Error("a slot was taken")
	}
	if err := actor.prepare(t.Context(), subject, plan.DeleteSeed{}); err != nil {
		t.Errorf("deleting: %v", err)
	}
}

func TestASlotIsTakenBeforeACloneAndGivenBackWhenItIsRefused(t *testing.T) {
	clone := plan.Clone{Place: place}
	for _, c := range []struct {
		name  string
		err   error
		holds bool
	}{
		{"the clone runs", nil, true},
		{"the answer was lost", &pve.Error{Method: "POST", Status: 596, Reason: "Connection timed out"}, true},
		{"it was refused", &pve.Error{Method: "POST", Status: 500, Reason: "VM is locked (backup)"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			actor, _, subject := cloner()
			if err := actor.prepare(t.Context(), subject, clone); err != nil {
				t.Fatal(err)
			}
			other := types.NamespacedName{Name: "other"}
			if err := actor.Slots.Take(other, place); !IsStale(err) {
				t.Errorf("another got the slot: %v", err)
			}
			actor.settle(subject, clone, Outcome{}, c.err)
			if got := actor.Slots.Holds(subject.Key()); got != c.holds {
				t.Errorf("holds the slot: %t, want %t", got, c.holds)
			}
		})
	}
}
