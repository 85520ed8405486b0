package soak_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// figures count what runs came to.
type figures struct {
	mu                                sync.Mutex
	seeds, crashes, violations, steps int
	virtual                           time.Duration
	// calls are requests to Proxmox VE, struck those that went wrong, unwritten the writes to Kubernetes that did.
	calls, struck, unwritten map[string]int
	// wishes are what users asked for, deeds what else happened.
	wishes, deeds map[string]int
	undisturbed   undisturbed
}

func newFigures() *figures {
	return &figures{
		calls: map[string]int{}, struck: map[string]int{}, unwritten: map[string]int{}, wishes: map[string]int{}, deeds: map[string]int{},
		undisturbed: undisturbed{calls: map[string]int{}},
	}
}

// merge adds the figures of another.
func (f *figures) merge(other *figures) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seeds, f.crashes, f.violations, f.steps = f.seeds+other.seeds, f.crashes+other.crashes, f.violations+other.violations, f.steps+other.steps
	f.virtual += other.virtual
	f.undisturbed.merge(other.undisturbed)
	for _, pair := range [][2]map[string]int{
		{f.calls, other.calls}, {f.struck, other.struck}, {f.unwritten, other.unwritten}, {f.wishes, other.wishes}, {f.deeds, other.deeds},
	} {
		for key, n := range pair[1] {
			pair[0][key] += n
		}
	}
}

// String is what is printed at the end.
func (f *figures) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out strings.Builder
	fmt.Fprintf(&out, "seeds: %d, with %.1f hours of virtual time in %d steps\nthe manager was killed: %d times\n", f.seeds, f.virtual.Hours(), f.steps, f.crashes)
	for _, part := range []struct {
		title  string
		counts map[string]int
	}{
		{"requests to Proxmox VE", f.calls},
		{"faults injected into them", f.struck},
		{"faults injected into writes to Kubernetes", f.unwritten},
		{"wishes of users", f.wishes},
		{"meddling and mishaps", f.deeds},
	} {
		total := 0
		for _, n := range part.counts {
			total += n
		}
		fmt.Fprintf(&out, "%s: %d\n", part.title, total)
		for _, key := range slices.Sorted(maps.Keys(part.counts)) {
			fmt.Fprintf(&out, "  %8d  %s\n", part.counts[key], key)
		}
	}
	out.WriteString(f.undisturbed.String())
	fmt.Fprintf(&out, "violations: %d\n", f.violations)
	return out.String()
}
