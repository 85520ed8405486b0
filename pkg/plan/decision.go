// Package plan decides the next step of a machine or a cluster. It is pure: a snapshot goes in, one decision comes out,
// and nothing in it reads a clock, a network, a disk or a random source. The same snapshot gives the same decision, so
// that its tests read as the specification and a crash between any two steps changes nothing.
//
// A step never waits and never does: it says what to do, and pkg/act does it.
package plan

import "time"

// Decision is what a step came to: exactly one of Do, Wait, Stalled and Done.
//
//sumtype:decl
type Decision interface {
	isDecision()
	// Why gives the reason for the decision.
	Why() Reason
}

// Reason is why a decision was taken: a CamelCase code, which becomes a condition's reason, and a sentence for a person,
// which says what to do when there is something to do. It is stable: the same state gives the same text.
type Reason struct {
	Code    string
	Message string
}

// Do asks for one action now.
type Do struct {
	Action Action
	Reason Reason
}

// Wait asks for nothing. The object is looked at again when something changes, and after After at the latest.
type Wait struct {
	Reason Reason
	// After bounds the wait; zero leaves it to the events that wake the object and to the resync.
	After time.Duration
}

// Stalled says that nothing more will happen by itself: a person, or the owner of the machine, has to act.
type Stalled struct {
	Reason Reason
}

// Done says that the observed state is the wished one.
type Done struct {
	Reason Reason
}

func (Do) isDecision()      {}
func (Wait) isDecision()    {}
func (Stalled) isDecision() {}
func (Done) isDecision()    {}

// Why implements Decision.
func (d Do) Why() Reason { return d.Reason }

// Why implements Decision.
func (w Wait) Why() Reason { return w.Reason }

// Why implements Decision.
func (s Stalled) Why() Reason { return s.Reason }

// Why implements Decision.
func (d Done) Why() Reason { return d.Reason }
