package observe

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// cache keeps what Proxmox VE told for a while. Of those who want to know the same, one asks and the others wait for the answer.
// It is safe for concurrent use.
type cache[K comparable, V any] struct {
	clock clock.PassiveClock
	// ttl is how long an answer is believed.
	ttl time.Duration

	mu      sync.Mutex
	entries map[K]*cacheEntry[V]
}

type cacheEntry[V any] struct {
	// asking has room for the one who asks.
	asking chan struct{}
	answer V
	// at is when it was answered; zero before.
	at time.Time
}

func newCache[K comparable, V any](clock clock.PassiveClock, ttl time.Duration) *cache[K, V] {
	return &cache[K, V]{clock: clock, ttl: ttl, entries: map[K]*cacheEntry[V]{}}
}

// get returns the answer that is believed, or asks.
func (c *cache[K, V]) get(ctx context.Context, key K, ask func() (V, error)) (V, error) {
	return c.getSince(ctx, key, c.clock.Now().Add(-c.ttl), ask)
}

// getSince asks, unless there was an answer since then.
func (c *cache[K, V]) getSince(ctx context.Context, key K, since time.Time, ask func() (V, error)) (V, error) {
	entry := c.entry(key)
	select {
	case entry.asking <- struct{}{}:
		defer func() { <-entry.asking }()
	case <-ctx.Done():
		var none V
		return none, ctx.Err()
	}
	if answer, found := c.peek(key, since); found {
		return answer, nil
	}
	answer, err := ask()
	if err != nil {
		return answer, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	entry.answer, entry.at = answer, c.clock.Now()
	c.entries[key] = entry
	return answer, nil
}

// peek returns what was answered since then, if anything was.
func (c *cache[K, V]) peek(key K, since time.Time) (answer V, found bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	entry := c.entries[key]
	if entry == nil || entry.at.IsZero() || entry.at.Before(since) {
		return answer, false
	}
	return entry.answer, true
}

// clear has everything be asked for anew.
func (c *cache[K, V]) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.entries)
}

// entry returns the entry of a key, and drops those that nobody believes any more.
func (c *cache[K, V]) entry(key K) *cacheEntry[V] {
	c.mu.Lock()
	defer c.mu.Unlock()
	for other, entry := range c.entries {
		if other != key && !entry.at.IsZero() && c.clock.Since(entry.at) > c.ttl {
			delete(c.entries, other)
		}
	}
	if c.entries[key] == nil {
		c.entries[key] = &cacheEntry[V]{asking: make(chan struct{}, 1)}
	}
	return c.entries[key]
}
