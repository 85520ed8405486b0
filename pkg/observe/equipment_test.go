package observe

import (
	"errors"
	"sync"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"

	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/placement"
)

func pools(has bool) told {
	return func(e *placement.Equipment) { e.HasPool = has }
}

// TestAFactIsAskedForOnce has many want to know the same at a time, which one asks for all of them.
func TestAFactIsAskedForOnce(t *testing.T) {
	t.Parallel()
	clock := testingclock.NewFakePassiveClock(time.Unix(1000, 0))
	book := &factBook{clock: clock, entries: map[factPlace]*factEntry{}}
	at := factPlace{credentials: "a", fact: placement.Pool, name: "p"}
	var mu sync.Mutex
	var asks int
	ask := func() (told, error) {
		mu.Lock()
		defer mu.Unlock()
		asks++
		return pools(true), nil
	}
	var group sync.WaitGroup
	for range 10 {
		group.Go(func() {
			if told, err := book.learn(t.Context(), at, clock.Now(), ask); err != nil || told == nil {
				t.Errorf("learned nothing: %v", err)
			}
		})
	}
	group.Wait()
	if asks != 1 {
		t.Errorf("asked %d times", asks)
	}
	if told := book.recall(factPlace{credentials: "b", fact: placement.Pool, name: "p"}, time.Time{}); told != nil {
		t.Error("what one token was told is told to another")
	}
}

// TestAFactIsBelievedForAWhile lets time pass, and an answer fail.
func TestAFactIsBelievedForAWhile(t *testing.T) {
	t.Parallel()
	clock := testingclock.NewFakePassiveClock(time.Unix(1000, 0))
	book := &factBook{clock: clock, entries: map[factPlace]*factEntry{}}
	at, other := factPlace{credentials: "a", node: "pve1"}, factPlace{credentials: "a", node: "pve2"}
	broken := errors.New("no answer")
	if _, err := book.learn(t.Context(), at, clock.Now(), func() (told, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("the error is %v", err)
	}
	if told := book.recall(at, clock.Now()); told != nil {
		t.Error("an answer that did not come is remembered")
	}
	if _, err := book.learn(t.Context(), at, clock.Now(), func() (told, error) { return pools(true), nil }); err != nil {
		t.Fatal(err)
	}
	clock.SetTime(clock.Now().Add(lackTTL + time.Second))
	if book.recall(at, clock.Now().Add(-lackTTL)) != nil || book.recall(at, clock.Now().Add(-factTTL)) == nil {
		t.Error("it is not believed for as long as it should be")
	}
	clock.SetTime(clock.Now().Add(factTTL))
	_, _ = book.learn(t.Context(), other, clock.Now(), func() (told, error) { return pools(false), nil })
	if len(book.entries) != 1 {
		t.Errorf("%d entries are kept", len(book.entries))
	}
}
