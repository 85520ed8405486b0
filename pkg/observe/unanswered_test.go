package observe

import (
	"testing"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
)

func TestARequestThatNamesAVMIDMayBeCarriedOutLate(t *testing.T) {
	memory, clock := newTestMemory()
	memory.Drawn(someVM) // so that it has begun to remember
	started := clock.Now()
	clock.Step(time.Hour)
	expect := func(when string, deleted time.Time, want plan.Unanswered) {
		t.Helper()
		if got := memory.unansweredOf(someVM, deleted); got != want {
			t.Errorf("%s: %d, want %d", when, got, want)
		}
	}
	for _, action := range []plan.Action{plan.Start{}, plan.Shutdown{}, plan.Stop{}, plan.Destroy{}} {
		memory.Ordered(someVM, action, nil)
		memory.Ordered(someVM, action, errDenied)
	}
	memory.Ordered(someVM, plan.Configure{}, errLost)
	expect("with answers", clock.Now(), plan.NothingUnanswered)
	for _, action := range []plan.Action{plan.Start{}, plan.Shutdown{}, plan.Stop{}} {
		memory.Ordered(someVM, action, errLost)
		expect("when one was lost", clock.Now(), plan.PowerUnanswered)
		clock.Step(lateAfter)
		expect("long after", clock.Now(), plan.NothingUnanswered)
	}
	memory.Ordered(someVM, plan.Destroy{}, errLost)
	expect("when the last was lost", clock.Now(), plan.DestroyUnanswered)
	clock.Step(lateAfter)
	expect("of a deletion that an earlier process began, long after", started.Add(-time.Hour), plan.NothingUnanswered)
}

func TestAnEarlierProcessMayHaveSentARequest(t *testing.T) {
	memory, clock := newTestMemory()
	memory.Drawn(someVM)
	if got := memory.unansweredOf(someVM, clock.Now().Add(-time.Second)); got != plan.DestroyUnanswered {
		t.Errorf("%d of a deletion that it began", got)
	}
	if got := memory.unansweredOf(someVM, clock.Now().Add(time.Second)); got != plan.NothingUnanswered {
		t.Errorf("%d of one that began since", got)
	}
	clock.Step(lateAfter)
	if got := memory.unansweredOf(someVM, clock.Now().Add(-time.Hour)); got != plan.NothingUnanswered {
		t.Errorf("%d long after", got)
	}
}
