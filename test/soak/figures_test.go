package soak_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// tally counts things by name.
type tally map[string]int

func (t tally) total() int {
	total := 0
	for _, n := range t {
		total += n
	}
	return total
}

func (t tally) merge(other tally) {
	for key, n := range other {
		t[key] += n
	}
}

// list gives a line to each name.
func (t tally) list() string {
	var out strings.Builder
	for _, key := range slices.Sorted(maps.Keys(t)) {
		fmt.Fprintf(&out, "  %8d  %s\n", t[key], key)
	}
	return out.String()
}

// table counts what happened to things, by thing and by what it was.
type table map[string]tally

func (t table) add(thing, what string) {
	if t[thing] == nil {
		t[thing] = tally{}
	}
	t[thing][what]++
}

func (t table) total() int {
	total := 0
	for _, row := range t {
		total += row.total()
	}
	return total
}

func (t table) merge(other table) {
	for thing, row := range other {
		if t[thing] == nil {
			t[thing] = tally{}
		}
		t[thing].merge(row)
	}
}

// list gives a line to each thing.
func (t table) list(columns ...string) string {
	var out strings.Builder
	for _, column := range columns {
		fmt.Fprintf(&out, "  %8s", column)
	}
	out.WriteString("\n")
	for _, thing := range slices.Sorted(maps.Keys(t)) {
		for _, column := range columns {
			fmt.Fprintf(&out, "  %8d", t[thing][column])
		}
		fmt.Fprintf(&out, "  %s\n", thing)
	}
	return out.String()
}

// figures count what runs came to.
type figures struct {
	mu                       sync.Mutex
	seeds, violations, steps int
	virtual                  time.Duration
	// calls are requests to Proxmox VE, kills of the manager by what it did last.
	calls, kills tally
	// struck are the requests to Proxmox VE that went wrong, unwritten the writes to Kubernetes that did.
	struck, unwritten table
	// wishes are what users asked for, deeds what else happened.
	wishes, deeds tally
	// changes are those of specs, by what was changed; walls counts the edits of firewalls that were watched.
	changes     tally
	walls       int
	undisturbed undisturbed
}

func newFigures() *figures {
	return &figures{
		calls: tally{}, kills: tally{}, struck: table{}, unwritten: table{}, wishes: tally{}, deeds: tally{}, changes: tally{}, undisturbed: undisturbed{calls: tally{}},
	}
}

// merge adds the figures of another.
func (f *figures) merge(other *figures) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seeds, f.violations, f.steps, f.virtual = f.seeds+other.seeds, f.violations+other.violations, f.steps+other.steps, f.virtual+other.virtual
	f.calls.merge(other.calls)
	f.kills.merge(other.kills)
	f.struck.merge(other.struck)
	f.unwritten.merge(other.unwritten)
	f.wishes.merge(other.wishes)
	f.deeds.merge(other.deeds)
	f.changes.merge(other.changes)
	f.walls += other.walls
	f.undisturbed.merge(other.undisturbed)
}

// String is what is printed at the end.
func (f *figures) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out strings.Builder
	section := func(title string, total int, list string) { fmt.Fprintf(&out, "%s: %d\n%s", title, total, list) }
	section("requests to Proxmox VE", f.calls.total(), f.calls.list())
	section("faults injected into them", f.struck.total(), f.struck.list(before, after, lost, hang, taskFail))
	section("faults injected into writes to Kubernetes", f.unwritten.total(), f.unwritten.list(conflicts.String(), refused.String(), replyLost.String()))
	section("kills of the manager, by what it did last", f.kills.total(), f.kills.list())
	section("wishes of users", f.wishes.total(), f.wishes.list())
	section("changes of specs", f.changes.total(), f.changes.list())
	section("meddling and mishaps", f.deeds.total(), f.deeds.list())
	fmt.Fprintf(&out, "edits of firewalls that opened no more than before and after: %d\n", f.walls)
	out.WriteString(f.undisturbed.String())
	fmt.Fprintf(&out, "seeds: %d, of %.1f hours of virtual time in %d steps\nviolations: %d\n", f.seeds, f.virtual.Hours(), f.steps, f.violations)
	return out.String()
}
