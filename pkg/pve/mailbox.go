package pve

import (
	"context"
	"sync"
)

// mailbox passes news to listeners on a goroutine of its own. The sender never waits; news about the same thing that was
// not delivered yet is merged, so that a listener that hangs costs bounded memory.
type mailbox[K comparable, V any] struct {
	merge func(older, newer V) V
	wake  chan struct{}

	mu        sync.Mutex
	listeners []func([]V)
	order     []K
	waiting   map[K]V
}

func newMailbox[K comparable, V any](merge func(older, newer V) V) *mailbox[K, V] {
	return &mailbox[K, V]{merge: merge, wake: make(chan struct{}, 1), waiting: map[K]V{}}
}

// listen adds a listener.
func (m *mailbox[K, V]) listen(listener func([]V)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.listeners = append(m.listeners, listener)
}

// put leaves news; it never blocks.
func (m *mailbox[K, V]) put(key K, value V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if older, known := m.waiting[key]; known {
		m.waiting[key] = m.merge(older, value)
	} else {
		m.waiting[key] = value
		m.order = append(m.order, key)
	}
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// run delivers until the context ends.
func (m *mailbox[K, V]) run(ctx context.Context) {
	for {
		select {
		case <-m.wake:
			m.deliver()
		case <-ctx.Done():
			return
		}
	}
}

func (m *mailbox[K, V]) deliver() {
	news, listeners := m.take()
	if len(news) == 0 {
		return // taken with the last delivery
	}
	for _, listener := range listeners {
		listener(news)
	}
}

// take empties the box.
func (m *mailbox[K, V]) take() ([]V, []func([]V)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	news := make([]V, len(m.order))
	for i, key := range m.order {
		news[i] = m.waiting[key]
	}
	m.order, m.waiting = nil, map[K]V{}
	return news, m.listeners
}
