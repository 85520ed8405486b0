package soak_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// trace is what happened in a run: when, who, what.
type trace struct {
	start time.Time
	mu    sync.Mutex
	lines []string
}

func (t *trace) add(who, format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	line := fmt.Sprintf("%12s  %-12s %s", time.Since(t.start).Round(time.Millisecond), who, fmt.Sprintf(format, args...))
	t.lines = append(t.lines, line)
}

// tail is the last lines.
func (t *trace) tail(n int) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.lines[max(0, len(t.lines)-n):], "\n")
}

// figures count what runs came to.
type figures struct {
	mu                                sync.Mutex
	seeds, crashes, violations, steps int
	virtual                           time.Duration
	calls, faults, deeds              map[string]int
}

func newFigures() *figures {
	return &figures{calls: map[string]int{}, faults: map[string]int{}, deeds: map[string]int{}}
}

// merge adds the figures of another.
func (f *figures) merge(other *figures) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seeds, f.crashes, f.violations, f.steps = f.seeds+other.seeds, f.crashes+other.crashes, f.violations+other.violations, f.steps+other.steps
	f.virtual += other.virtual
	for into, from := range map[*map[string]int]map[string]int{&f.calls: other.calls, &f.faults: other.faults, &f.deeds: other.deeds} {
		for key, n := range from {
			(*into)[key] += n
		}
	}
}

// String is what is printed at the end.
func (f *figures) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out strings.Builder
	fmt.Fprintf(&out, "seeds %d, virtual hours %.1f, steps %d, crashes of the manager %d, violations %d\n",
		f.seeds, f.virtual.Hours(), f.steps, f.crashes, f.violations)
	for _, part := range []struct {
		title  string
		counts map[string]int
	}{{"requests to Proxmox VE", f.calls}, {"faults injected", f.faults}, {"deeds", f.deeds}} {
		total := 0
		for _, n := range part.counts {
			total += n
		}
		fmt.Fprintf(&out, "%s: %d\n", part.title, total)
		for _, key := range slices.Sorted(maps.Keys(part.counts)) {
			fmt.Fprintf(&out, "  %8d  %s\n", part.counts[key], key)
		}
	}
	return out.String()
}
