package observe

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"
)

func newTestCache(ttl time.Duration) (*cache[string, bool], *testingclock.FakePassiveClock) {
	clock := testingclock.NewFakePassiveClock(time.Unix(1000, 0))
	return newCache[string, bool](clock, ttl), clock
}

func yes() (bool, error) { return true, nil }

// TestWhatManyWantToKnowIsAskedForOnce has many want to know the same at a time, which one asks for all of them.
func TestWhatManyWantToKnowIsAskedForOnce(t *testing.T) {
	t.Parallel()
	cache, clock := newTestCache(time.Minute)
	var mu sync.Mutex
	var asks int
	ask := func() (bool, error) {
		mu.Lock()
		defer mu.Unlock()
		asks++
		return true, nil
	}
	var group sync.WaitGroup
	for range 10 {
		group.Go(func() {
			if answer, err := cache.getSince(t.Context(), "a", clock.Now(), ask); err != nil || !answer {
				t.Errorf("learned nothing: %v", err)
			}
		})
	}
	group.Wait()
	if asks != 1 {
		t.Errorf("asked %d times", asks)
	}
	if _, found := cache.peek("b", time.Time{}); found {
		t.Error("what was answered of one thing is told of another")
	}
}

// TestAnAnswerIsBelievedForAWhile lets time pass, and an answer fail.
func TestAnAnswerIsBelievedForAWhile(t *testing.T) {
	t.Parallel()
	const ttl, less = time.Minute, time.Second
	cache, clock := newTestCache(ttl)
	broken := errors.New("no answer")
	if _, err := cache.get(t.Context(), "a", func() (bool, error) { return false, broken }); !errors.Is(err, broken) {
		t.Errorf("the error is %v", err)
	}
	if _, found := cache.peek("a", time.Time{}); found {
		t.Error("an answer that did not come is remembered")
	}
	if _, err := cache.get(t.Context(), "a", yes); err != nil {
		t.Fatal(err)
	}
	clock.SetTime(clock.Now().Add(ttl))
	if answer, err := cache.get(t.Context(), "a", func() (bool, error) { return false, broken }); err != nil || !answer {
		t.Errorf("asked again too early: %v", err)
	}
	if _, found := cache.peek("a", clock.Now().Add(-less)); found {
		t.Error("who wants to know it better is told what is old")
	}
	clock.SetTime(clock.Now().Add(less))
	if _, err := cache.get(t.Context(), "b", yes); err != nil || len(cache.entries) != 1 {
		t.Errorf("%d entries are kept (%v)", len(cache.entries), err)
	}
	cache.clear()
	if _, found := cache.peek("b", time.Time{}); found {
		t.Error("it is believed after all was cleared")
	}
}

// TestWhoWaitsForAnAnswerCanBeCalledOff has another's question take for ever.
func TestWhoWaitsForAnAnswerCanBeCalledOff(t *testing.T) {
	t.Parallel()
	cache, _ := newTestCache(time.Minute)
	asked, answered := make(chan struct{}), make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		_, _ = cache.get(t.Context(), "a", func() (bool, error) {
			close(asked)
			<-answered
			return true, nil
		})
	})
	<-asked
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := cache.get(ctx, "a", yes); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	close(answered)
	group.Wait()
}
