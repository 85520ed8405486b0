package soak_test

import (
	"cmp"
	"context"
	"slices"
	"sync"
)

// kind tells what a ticket waits for.
type kind int

const (
	kubeWrite kind = iota
	pveRequest
	pveReply
	reconciled
)

// fate is what becomes of a write to the API server.
type fate int

const (
	carriedOut fate = iota
	conflicts
	refused
	replyLost
)

// verdict is how a ticket goes on.
type verdict struct {
	fate fate
}

// ticket is a goroutine of a manager that waits to be let on.
type ticket struct {
	kind kind
	// label says who wants what; tickets are ordered by it.
	label string
	// what is done, without names.
	what    string
	arrived int
	// method and path are of a request, or of the one that was answered.
	method, path string
	release      chan verdict
	// resend carries the request out without the one who sent it: it was on its way when the sender died.
	resend func()
	// result is what a reconcile came to.
	result  outcome
	item    item
	process *process
}

// gate is where everything that the managers do to the world has to pass, one at a time: what happens first is drawn, not
// left to the scheduler of Go, so that a run can be repeated.
type gate struct {
	wake chan struct{}

	mu      sync.Mutex
	arrived int
	parked  []*ticket
}

func newGate() *gate { return &gate{wake: make(chan struct{}, 1)} }

// poke wakes the simulation.
func (g *gate) poke() {
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

// leave puts a ticket down and does not wait.
func (g *gate) leave(t *ticket) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.arrived++
	t.arrived = g.arrived
	g.parked = append(g.parked, t)
	g.poke()
}

// pass waits until the ticket is let on.
func (g *gate) pass(ctx context.Context, t *ticket) (verdict, error) {
	if err := ctx.Err(); err != nil {
		return verdict{}, err
	}
	t.release = make(chan verdict, 1)
	g.leave(t)
	select {
	case v := <-t.release:
		return v, nil
	case <-ctx.Done():
		g.remove(t)
		return verdict{}, ctx.Err()
	}
}

func (g *gate) remove(t *ticket) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.parked = slices.DeleteFunc(g.parked, func(other *ticket) bool { return other == t })
}

// waiting are the tickets in an order that does not depend on the scheduler of Go.
func (g *gate) waiting() []*ticket {
	g.mu.Lock()
	defer g.mu.Unlock()
	slices.SortStableFunc(g.parked, func(a, b *ticket) int {
		return cmp.Or(cmp.Compare(a.label, b.label), cmp.Compare(a.kind, b.kind), cmp.Compare(a.arrived, b.arrived))
	})
	return slices.Clone(g.parked)
}

// let lets a ticket on.
func (g *gate) let(t *ticket, v verdict) {
	g.remove(t)
	if t.release != nil {
		t.release <- v
	}
}
