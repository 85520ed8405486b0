package pve

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	"k8s.io/utils/clock"
)

const (
	// readAttempts is how often a read is tried at most.
	readAttempts = 3
	// retryBudget ends the retries of a read; a node that does not answer costs 30 s each time.
	retryBudget = 20 * time.Second
	// firstRetryDelay doubles with each retry.
	firstRetryDelay = 200 * time.Millisecond
)

// retrier repeats reads that failed for a reason that may pass soon. Writes go through it once.
type retrier struct {
	clock  clock.Clock
	jitter func(time.Duration) time.Duration
	next   http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (r *retrier) RoundTrip(req *http.Request) (*http.Response, error) {
	start := r.clock.Now()
	for attempt := 1; ; attempt++ {
		answer, err := r.next.RoundTrip(req)
		last := attempt == readAttempts || r.clock.Since(start) > retryBudget
		if err == nil || last || req.Method != http.MethodGet || !worthRepeating(err) {
			return answer, err
		}
		if !sleep(req.Context(), r.clock, r.jitter(firstRetryDelay<<(attempt-1))) {
			return nil, err
		}
	}
}

// worthRepeating says that the read may be answered if asked again at once. A node that no endpoint finds stays away for
// longer than that.
func worthRepeating(err error) bool {
	answer := (*Error)(nil)
	if !errors.As(err, &answer) || IsCanceled(err) {
		return false
	}
	if answer.Status == statusNoConnection {
		return answer.refused()
	}
	class := answer.Class()
	return class == Unreachable || class == Busy
}

// jitter spreads a delay over half to one and a half of it, so that clients that failed together do not return together.
func (o Options) jitter(d time.Duration) time.Duration {
	draw := o.Draw
	if draw == nil {
		draw = rand.Int64N
	}
	return d/2 + time.Duration(draw(int64(d)+1))
}

// sleep waits on the clock; false means the context ended first.
func sleep(ctx context.Context, c clock.Clock, d time.Duration) bool {
	timer := c.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-ctx.Done():
		return false
	}
}
