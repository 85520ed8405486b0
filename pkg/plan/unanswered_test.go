package plan_test

import (
	"testing"

	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
)

// lateOrders are requests to start, stop or destroy the VM that nobody knows the end of.
type lateOrders struct {
	// ordered counts the rounds until none of them can be carried out any more.
	ordered int
	// order is what the last one was.
	order plan.Unanswered
}

// lose notes that the answer to a request was lost.
func (o *lateOrders) lose(action plan.Action) {
	switch action.(type) { // partial: the others name what they are for by more than a VMID
	case plan.Start, plan.Shutdown, plan.Stop:
		o.ordered, o.order = lateRounds, plan.PowerUnanswered
	case plan.Destroy:
		o.ordered, o.order = lateRounds, plan.DestroyUnanswered
	}
}

// unanswered is what a process knows of them.
func (o *lateOrders) unanswered() plan.Unanswered {
	if o.ordered == 0 {
		return plan.NothingUnanswered
	}
	return o.order
}

func unanswered(state plan.Unanswered) change { return func(m *plan.Machine) { m.Unanswered = state } }

func TestARequestWhoseAnswerWasLostHitsNobodyElse(t *testing.T) {
	power, destroy := unanswered(plan.PowerUnanswered), unanswered(plan.DestroyUnanswered)
	late := "wait 15s | Destroying: VM 101 of region home is destroyed, and its number free for others, once no request to start, stop or destroy it whose answer was lost, " +
		"or that was sent before the manager was restarted, can be carried out any more: for two minutes Proxmox VE may"
	sweep := "do DeleteSeed | RemovingSeed: deleting the seed ISO from local of pve1"
	runSteps(t, []step{
		{"the VM is not stopped again before that", machine(recorded, power, deleting), late},
		{"nor destroyed", machine(resized, power, deleting), late},
		{"nor destroyed again", machine(resized, destroy, deleting), late},
		{"nor is its number free once somebody else destroyed it", machine(recorded, absent, power, deleting), late},
		{"but when it is gone the request has done its work", machine(recorded, absent, destroy, deleting), sweep},
		{"and nothing keeps a number that is another's", machine(recorded, foreign, power, deleting), sweep},
		{"a machine that is to live goes on", machine(resized, power), "do Start | Starting: starting VM 101 on pve1"},
	})
}
