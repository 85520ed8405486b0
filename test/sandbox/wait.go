package sandbox

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// pollEvery is how often the sandbox looks whether what it waits for is there.
const pollEvery = 100 * time.Millisecond

// waitFor polls until check succeeds, at most readyTimeout, and returns check's last error otherwise.
func waitFor(ctx context.Context, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	return poll(ctx, check)
}

// poll polls until check succeeds or the context ends.
func poll(ctx context.Context, check func(context.Context) error) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("still not: %w", errors.Join(err, context.Cause(ctx)))
		case <-tick.C:
		}
	}
}
