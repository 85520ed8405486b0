package plan_test

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
)

var update = flag.Bool("update", false, "write docs/machine-life.md anew")

const (
	page      = "../../docs/machine-life.md"
	lastPause = time.Second
	// seeds is how often each scenario is walked through. A few are enough to see all; more change nothing.
	seeds = 20
	// mostEdges is what a person can still read.
	mostEdges = 30
)

// edge is a step from one phase to another. The empty phase is the beginning or the end.
type edge struct{ from, to string }

// diagram holds the edges of a part of the life, with the actions that lead along them.
type diagram map[edge]map[string]bool

// add draws the steps between the phases of a walk; rounds in the same phase are one.
func (d diagram) add(visits []visit, belongs func(visit) bool) {
	last := visit{}
	for i, now := range visits {
		if belongs(now) && (i == 0 || belongs(visits[i-1])) || belongs(now) && d.enters(visits, i) {
			d.step(last, now)
		}
		last = now
		if belongs(now) && i == len(visits)-1 && now.code == plan.Deleted {
			d.step(now, visit{})
		}
	}
}

// enters reports whether a walk comes into a part of the life at a visit.
func (d diagram) enters(visits []visit, i int) bool {
	return i > 0 && visits[i].deleting && !visits[i-1].deleting
}

func (d diagram) step(from, to visit) {
	if to.deleting && !from.deleting {
		from = visit{}
	}
	if from.code == to.code {
		return
	}
	way := edge{from.code, to.code}
	if d[way] == nil {
		d[way] = map[string]bool{}
	}
	if from.action != "" {
		d[way][from.action] = true
	}
}

// String renders the diagram for GitHub.
func (d diagram) String() string {
	text := "```mermaid\nstateDiagram-v2\n    direction LR\n"
	for _, way := range slices.SortedFunc(maps.Keys(d), func(a, b edge) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to))
	}) {
		text += fmt.Sprintf("    %s --> %s", cmp.Or(way.from, "[*]"), cmp.Or(way.to, "[*]"))
		if actions := slices.Sorted(maps.Keys(d[way])); len(actions) > 0 {
			text += " : " + strings.Join(actions, ", ")
		}
		text += "\n"
	}
	return text + "```\n"
}

// chapter is a part of the page.
type chapter struct {
	title, text string
	scenarios   []scenario
	belongs     func(visit) bool
}

func chapters() []chapter {
	return []chapter{
		{
			"Until it has its place", "All that a VM needs is there before anything is asked of Proxmox VE.", lives(),
			func(v visit) bool { return !v.deleting && !v.reserved },
		},
		{
			"From its place to its rest", "`Running` and `PoweredOff` are where a machine rests. `VirtualMachineGone` is left by deleting the Machine.", lives(),
			func(v visit) bool { return !v.deleting && (v.reserved || v.code == plan.Placed) },
		},
		{
			"A VM that is made without a template", "With an image it is imported and grown; one that boots from the network needs nothing more. All else is as above.", creates(),
			func(v visit) bool { return !v.deleting && (v.reserved || v.code == plan.Placed) },
		},
		{
			"Deletion", "It may begin in any phase. A task that is under way is waited for first.", append(deletions(nil), deletions(fromImage)...),
			func(v visit) bool { return v.deleting },
		},
	}
}

func (c chapter) diagram() diagram {
	drawn := diagram{}
	for _, scenario := range c.scenarios {
		for seed := range seeds {
			drawn.add(scenario.run(seed), c.belongs)
		}
	}
	return drawn
}

// aside is where a detour leads, and from where.
type aside struct{ code, what, part string }

// asides has every detour happen in every round.
func asides() map[aside]map[string]bool {
	found := map[aside]map[string]bool{}
	const firstDeletion = 25 // at rest
	for _, source := range []change{nil, fromImage} {
		for part, s := range map[string]scenario{"life": {source: source}, "deletion": deletions(source)[firstDeletion]} {
			for _, detour := range detours() {
				for round := range 45 {
					note(found, detour, part, detour.during(s, round).run(0))
				}
			}
		}
	}
	return found
}

func note(found map[aside]map[string]bool, detour detour, part string, visits []visit) {
	for i, v := range visits {
		if !v.detour || i == 0 || v.deleting != (part == "deletion") {
			continue
		}
		key := aside{v.code, detour.what, part}
		if found[key] == nil {
			found[key] = map[string]bool{}
		}
		found[key][visits[i-1].code] = true
	}
}

func asidesText() string {
	text := "| phase | when | in | seen after |\n| --- | --- | --- | --- |\n"
	found := asides()
	for _, key := range slices.SortedFunc(maps.Keys(found), func(a, b aside) int {
		return cmp.Or(cmp.Compare(a.code, b.code), cmp.Compare(b.part, a.part), cmp.Compare(a.what, b.what))
	}) {
		text += fmt.Sprintf("| `%s` | %s | %s | %s |\n", key.code, key.what, key.part, strings.Join(slices.Sorted(maps.Keys(found[key])), ", "))
	}
	return text
}

const preface = `# The life of a machine

This page is generated: ` + "`make generate`" + ` has the planner (pkg/plan) live through every scenario of its model, and draws what it
decided. The phases are the reasons of the condition ` + "`VirtualMachineReady`" + `, and of ` + "`Deleting`" + `; the words on an arrow are the actions
that lead along it. Phases without an action wait. What each says to a person stands in [proxmoxmachine.md](proxmoxmachine.md).
`

func lifePage(t *testing.T) string {
	t.Helper()
	text := preface
	for _, c := range chapters() {
		drawn := c.diagram()
		if len(drawn) > mostEdges || len(drawn) < 5 {
			t.Errorf("%s: %d edges are not readable:\n%s", c.title, len(drawn), drawn)
		}
		text += "\n## " + c.title + "\n\n" + c.text + "\n\n" + drawn.String()
	}
	return text + "\n## Detours\n\nThese may come in almost any phase, and lead back to where the machine was:\n\n" + asidesText()
}

// TestThePageOfTheLifeOfAMachine keeps docs/machine-life.md what the planner does.
func TestThePageOfTheLifeOfAMachine(t *testing.T) {
	want := lifePage(t)
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	is, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(want, string(is)); diff != "" {
		t.Errorf("docs/machine-life.md is out of date, run `make generate` (-want +is):\n%s", diff)
	}
}
