// Package soak_test is the crash campaign: whole lives of clusters in virtual time, each drawn from a seed, with the real
// controllers, a simulated Proxmox VE and a stand-in for the API server, in which everything goes wrong that can. After each
// run there must be one VM for each living machine, none otherwise, and nothing of anybody else's may have changed.
//
// `make soak SEED=1234 SEEDS=1` repeats the run of a seed.
package soak_test

import (
	"flag"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

var (
	firstSeed = flag.Uint64("soak.seed", 1, "the first seed")
	seeds     = flag.Int("soak.seeds", 500, "how many seeds are run")
	budget    = flag.Duration("soak.time", 30*time.Second, "no seed is begun after this time; 0 for no limit")
	stop      = flag.Bool("soak.stop", false, "begin no seed after one that fails")
	full      = flag.Bool("soak.trace", false, "print the whole trace of a seed that fails")
)

func TestMain(m *testing.M) {
	flag.Parse()
	debug.SetGCPercent(400)
	ctrl.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// TestCampaign runs the seeds.
func TestCampaign(t *testing.T) {
	begun := time.Now()
	total := newFigures()
	var next, done, failed atomic.Int64
	for worker := range runtime.GOMAXPROCS(0) {
		t.Run(fmt.Sprintf("worker %d", worker), func(t *testing.T) {
			t.Parallel()
			for {
				n := next.Add(1) - 1
				if n >= int64(*seeds) || *budget > 0 && time.Since(begun) > *budget || *stop && failed.Load() > 0 {
					return
				}
				seed := *firstSeed + uint64(n)
				run := play(t, seed)
				total.merge(run.figures)
				if len(run.violations) > 0 {
					failed.Add(1)
					t.Errorf("seed %d: %s\n%s\nrepeat it: make soak SEED=%d SEEDS=1", seed, strings.Join(run.violations, "\n"), run.story(), seed)
				}
				if d := done.Add(1); d%25 == 0 {
					fmt.Printf("    %d of %d seeds, %s\n", d, *seeds, time.Since(begun).Round(time.Second))
				}
			}
		})
	}
	t.Cleanup(func() { fmt.Print(total) })
}

func (s *simulation) story() string {
	const lines = 120
	if *full {
		return s.trace.tail(1 << 30)
	}
	return s.trace.tail(lines)
}

// play runs a seed.
func play(t *testing.T, seed uint64) *simulation {
	t.Helper()
	var run *simulation
	synctest.Test(t, func(t *testing.T) {
		s, err := newSimulation(t, seed)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		run = s
		defer s.end()
		s.live()
	})
	return run
}

// live is a run: trouble, calm, changes in peace, and the end of everything.
func (s *simulation) live() {
	s.startManager()
	s.soonSync()
	s.create()
	for range s.setting.deeds {
		s.run(time.Now().Add(s.upTo(40 * time.Second)))
		if s.isViolated() {
			return
		}
		s.act()
	}
	s.run(time.Now().Add(s.upTo(time.Minute)))
	s.calmDown()
	s.quiesce("with the machines that are wanted")
	s.changeInPeace()
	s.quiesce("after they were changed in peace")
	for _, m := range s.living() {
		m.deleted = true
	}
	s.soonSync()
	s.quiesce("after all machines were deleted")
}

// calmDown ends all trouble.
func (s *simulation) calmDown() {
	s.trace.add("seed", "all trouble ends")
	s.calm = true
	for _, undo := range s.heal {
		undo()
	}
	if s.manager == nil {
		s.startManager()
	}
	s.run(time.Now().Add(3 * time.Minute))
	s.repair()
	if slices.ContainsFunc(s.living(), func(m *machine) bool { return m.isMeddled }) {
		s.trace.add("manager", "process %d is replaced, so that the next one sees what was changed by hand", s.manager.number)
		s.kill(s.manager)
		s.startManager()
	}
}

// repair is what an administrator does who reads the conditions: what a worker left that died is unlocked, or removed if it was
// being made, VMs are not protected any more, and a VM whose deletion went half way is deleted.
func (s *simulation) repair() {
	for _, vm := range s.world.VMs() {
		owner := s.ownerOf(vm)
		if owner == nil && vm.Lock != "clone" && vm.Lock != "create" {
			continue
		}
		if vm.HAState == "error" {
			s.admin("PUT", fmt.Sprintf("/cluster/ha/resources/vm:%d", vm.VMID), url.Values{"state": {"disabled"}})
		}
		switch {
		case vm.Lock == "clone" || vm.Lock == "create":
			s.admin("DELETE", vmPath(vm), url.Values{"purge": {"1"}, "skiplock": {"1"}, "destroy-unreferenced-disks": {"1"}})
		case vm.Lock != "":
			s.admin("PUT", vmPath(vm)+"/config", url.Values{"delete": {"lock"}, "skiplock": {"1"}})
		}
		if vm.Config["protection"] == "1" {
			s.admin("PUT", vmPath(vm)+"/config", url.Values{"protection": {"0"}, "skiplock": {"1"}})
		}
		if owner != nil && owner.destroyed {
			s.destroy(vm)
		}
	}
}

// patience is how long everything may take to come right.
const patience = time.Hour

// quiesce goes on until everything is as it has to be, and stays so.
func (s *simulation) quiesce(what string) {
	deadline := time.Now().Add(patience)
	for calm := 0; calm < 3 && !s.isViolated(); {
		s.run(time.Now().Add(15 * time.Second))
		problems := s.unsettled()
		switch {
		case len(problems) == 0:
			calm++
		case time.Now().After(deadline):
			s.violate("an hour was not enough, %s:\n%s", what, strings.Join(problems, "\n"))
		default:
			calm = 0
		}
	}
	s.checkSentinels()
	s.trace.add("seed", "quiet %s", what)
}

// end lets all goroutines end.
func (s *simulation) end() {
	s.figures.seeds, s.figures.virtual, s.figures.violations = 1, time.Since(s.trace.start), len(s.violations)
	if s.manager != nil {
		s.manager.cancel()
	}
	s.settle()
	s.world.Close()
	time.Sleep(time.Hour) //nolint:forbidigo // virtual time, in which the last goroutines end
}

// TestASeedRepeats plays seeds twice. What wakes at the same instant of virtual time, such as the workers of the simulated HA
// manager, may, rarely, run in another order: a seed has a second chance, and one of them may stray.
func TestASeedRepeats(t *testing.T) {
	const mostStray = 1
	var stray []string
	for seed := uint64(1000); seed < 1006; seed++ {
		first := play(t, seed)
		if difference(first, play(t, seed)) == "" {
			continue
		}
		if different := difference(first, play(t, seed)); different != "" {
			stray = append(stray, fmt.Sprintf("seed %d: %s", seed, different))
		}
	}
	if len(stray) > mostStray {
		t.Error(strings.Join(stray, "\n"))
	}
}

// worker is the number of a process in a UPID, which counts workers that leave no trace as well.
var worker = regexp.MustCompile(`UPID:[^:]+:[0-9A-F]{8}:`)

// difference tells where the traces of two runs part; empty when they are the same.
func difference(first, second *simulation) string {
	for i, line := range first.trace.lines {
		other := "nothing"
		if i < len(second.trace.lines) {
			other = second.trace.lines[i]
		}
		if worker.ReplaceAllString(other, "") != worker.ReplaceAllString(line, "") {
			return fmt.Sprintf("after\n%s\nline %d was\n%s\nand is\n%s", strings.Join(first.trace.lines[max(0, i-8):i], "\n"), i, line, other)
		}
	}
	return ""
}
