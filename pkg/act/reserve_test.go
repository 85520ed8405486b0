package act

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capve/cluster-api-provider-proxmox/pkg/observe"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
)

// patched is an API server that answers each patch with an error, or none.
type patched struct {
	client.Client
	err error
}

func (p patched) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	return p.err
}

// TestAReservationThatCannotBeWrittenIsTakenBack moves a machine to another host.
func TestAReservationThatCannotBeWrittenIsTakenBack(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "proxmoxmachines"}, "m1", errors.New("it was modified"))
	for _, c := range []struct {
		name         string
		err          error
		behind, kept bool
	}{
		{"it is written", nil, false, true},
		{"the cache was behind", conflict, true, false},
		{"the answer was lost", errors.New("connection reset"), false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			actor, _, subject := cloner()
			actor.Client = patched{err: c.err}
			moved := subject.ProxmoxMachine.Spec.Reservation
			moved.Node, moved.VMID = "pve2", 102
			err := actor.reserve(t.Context(), subject, plan.Reserve{Reservation: moved})
			if (err == nil) != (c.err == nil) || errors.Is(err, observe.ErrBehind) != c.behind {
				t.Errorf("error %v", err)
			}
			if got := subject.ProxmoxMachine.Spec.Reservation; (got == moved) != c.kept {
				t.Errorf("the machine has %+v", got)
			}
			again := actor.Ledger.Take(observe.Entry{Machine: subject.Key(), VMID: 103}, 1)
			if errors.Is(again, observe.ErrBehind) != c.kept {
				t.Errorf("the ledger says %v", again)
			}
		})
	}
}
