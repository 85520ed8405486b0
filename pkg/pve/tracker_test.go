package pve

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// fakeTasks is a PVE cluster's task list, and what the nodes know.
type fakeTasks struct {
	mu sync.Mutex
	// listed is /cluster/tasks; onNode what a node says of a task, askErr how it fails, and askDelay how long that takes.
	listed   map[proxmox.UPID]TaskStatus
	onNode   map[proxmox.UPID]TaskStatus
	listErr  error
	askErr   map[proxmox.UPID]error
	askDelay map[proxmox.UPID]time.Duration
	lists    int
	asks     map[proxmox.UPID]int
}

func newFakeTasks() *fakeTasks {
	return &fakeTasks{
		listed: map[proxmox.UPID]TaskStatus{}, onNode: map[proxmox.UPID]TaskStatus{}, askErr: map[proxmox.UPID]error{},
		askDelay: map[proxmox.UPID]time.Duration{}, asks: map[proxmox.UPID]int{},
	}
}

func (f *fakeTasks) ClusterTasks(context.Context) ([]TaskStatus, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lists++
	var tasks []TaskStatus
	for _, task := range f.listed {
		tasks = append(tasks, task)
	}
	return tasks, f.listErr
}

func (f *fakeTasks) TaskStatus(ctx context.Context, upid proxmox.UPID) (TaskStatus, error) {
	f.mu.Lock()
	f.asks[upid]++
	status, err, delay := f.onNode[upid], f.askErr[upid], f.askDelay[upid]
	f.mu.Unlock()
	select {
	case <-time.After(delay):
	case <-ctx.Done():
		return TaskStatus{}, ctx.Err()
	}
	return status, err
}

func (f *fakeTasks) list(upid proxmox.UPID, state State, exit string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	status := TaskStatus{UPID: upid, State: state}
	if exit != "" {
		status.end(exit)
	}
	f.listed[upid] = status
}

func (f *fakeTasks) counts(upid proxmox.UPID) (lists, asks int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lists, f.asks[upid]
}

func taskNumber(n int) proxmox.UPID {
	return proxmox.UPID(fmt.Sprintf("UPID:pve1:%08X:000B4419:6B011318:qmclone:%d:root@pam!ci:", n, n))
}

// doneLog collects what a Tracker tells.
type doneLog struct {
	mu   sync.Mutex
	told []finished
}

func (d *doneLog) note(owner Owner, upid proxmox.UPID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.told = append(d.told, finished{owner, upid})
}

func (d *doneLog) all() []finished {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.told)
}

func startTracker(t *testing.T, source taskSource) (*Tracker, *doneLog) {
	t.Helper()
	tracker := newTracker(source, "test", Options{}.withDefaults(), nil)
	log := &doneLog{}
	tracker.OnDone(log.note)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go tracker.run(ctx)
	go tracker.done.run(ctx)
	return tracker, log
}

var owner = Owner{Namespace: "ns", Name: "w1"}

func TestTrackerAsksNothingWhenIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newFakeTasks()
		tracker, _ := startTracker(t, source)
		advance(time.Hour)
		if lists, _ := source.counts(""); lists != 0 {
			t.Errorf("asked %d times without a task", lists)
		}
		source.list(taskNumber(1), Running, "OK")
		tracker.Follow(taskNumber(1), owner)
		advance(time.Hour)
		if lists, _ := source.counts(""); lists > 2 {
			t.Errorf("asked %d times after the task had ended", lists)
		}
	})
}

func TestTrackerAsksOnceForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newFakeTasks()
		tracker, log := startTracker(t, source)
		for i := range 200 {
			source.list(taskNumber(i), Running, "")
			tracker.Follow(taskNumber(i), Owner{Name: fmt.Sprint(i)})
		}
		advance(30*time.Second - time.Millisecond)
		if lists, asks := source.counts(taskNumber(0)); lists != 30 || asks != 0 {
			t.Errorf("200 tasks cost %d lists and %d questions in 30 s", lists, asks)
		}
		if tracker.InFlight() != 200 || len(log.all()) != 0 {
			t.Errorf("%d in flight, told %v", tracker.InFlight(), log.all())
		}
		for i := range 200 {
			source.list(taskNumber(i), Running, "OK")
		}
		advance(2 * time.Second)
		if tracker.InFlight() != 0 || len(log.all()) != 200 {
			t.Errorf("%d in flight, told %d", tracker.InFlight(), len(log.all()))
		}
	})
}

func TestOutcomes(t *testing.T) {
	cases := []struct {
		exit     string
		state    State
		warnings int
		class    Class
	}{
		{"OK", Succeeded, 0, None},
		{"WARNINGS: 1", Succeeded, 1, None},
		{"WARNINGS: many", Succeeded, 0, None},
		{"VM is locked (clone)", Failed, 0, Locked},
		{"unexpected status", Failed, 0, Interrupted},
	}
	synctest.Test(t, func(t *testing.T) {
		source := newFakeTasks()
		tracker, log := startTracker(t, source)
		for i, c := range cases {
			source.list(taskNumber(i), Running, c.exit)
			tracker.Follow(taskNumber(i), owner)
		}
		advance(2 * time.Second)
		for i, c := range cases {
			got, known := tracker.Outcome(taskNumber(i))
			if !known || !got.Ended() || got.State != c.state || got.Warnings != c.warnings || got.ExitStatus != c.exit || ClassOf(got.Err) != c.class {
				t.Errorf("%s: got %+v, %v", c.exit, got, known)
			}
		}
		if len(log.all()) != len(cases) {
			t.Errorf("told %v", log.all())
		}
	})
}

func TestEveryOwnerIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newFakeTasks()
		tracker, log := startTracker(t, source)
		source.list(taskNumber(1), Running, "")
		for _, name := range []string{"a", "b", "a"} {
			tracker.Follow(taskNumber(1), Owner{Name: name})
		}
		if got, known := tracker.Outcome(taskNumber(1)); !known || got.State != Running || got.Ended() {
			t.Errorf("got %+v, %v", got, known)
		}
		advance(3 * time.Second)
		source.list(taskNumber(1), Running, "OK")
		advance(2 * time.Second)
		tracker.Follow(taskNumber(1), Owner{Name: "late"})
		synctest.Wait()
		var names []string
		for _, one := range log.all() {
			names = append(names, one.owner.Name)
		}
		slices.Sort(names)
		if !slices.Equal(names, []string{"a", "b", "late"}) {
			t.Errorf("told %v", names)
		}
	})
}

// TestMissedTask: the cluster's list is short and may have dropped the task; its node knows.
func TestMissedTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newFakeTasks()
		source.onNode[taskNumber(1)] = TaskStatus{State: Running}
		tracker, log := startTracker(t, source)
		tracker.Follow(taskNumber(1), owner)
		advance(30 * time.Second)
		if _, asks := source.counts(taskNumber(1)); asks < 7 || asks > 10 {
			t.Errorf("asked the node %d times in 30 s, want every third tick", asks)
		}
		source.mu.Lock()
		source.onNode[taskNumber(1)] = TaskStatus{State: Failed, ExitStatus: "unexpected status"}
		source.mu.Unlock()
		advance(5 * time.Second)
		if got, _ := tracker.Outcome(taskNumber(1)); got.State != Failed || len(log.all()) != 1 {
			t.Errorf("got %+v, told %v", got, log.all())
		}
	})
}

func TestForgottenTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newFakeTasks()
		source.askErr[taskNumber(1)] = &Error{Method: "GET", Status: 400, Params: map[string]string{"upid": "no such task"}}
		tracker, log := startTracker(t, source)
		tracker.Follow(taskNumber(1), owner)
		tracker.Follow("nonsense", owner)
		if got, _ := tracker.Outcome("nonsense"); got.State != Unknown {
			t.Errorf("a malformed task: %+v", got)
		}
		advance(10 * time.Second)
		if got, _ := tracker.Outcome(taskNumber(1)); got.State != Unknown || !got.Ended() || got.Err == nil || len(log.all()) != 2 {
			t.Errorf("got %+v, told %v", got, log.all())
		}
	})
}

// TestDeadNode: tasks of a node that does not answer must not hold up those of others, nor be asked for all the time.
func TestDeadNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newFakeTasks()
		tracker, log := startTracker(t, source)
		for i := range 20 {
			source.askErr[taskNumber(i)], source.askDelay[taskNumber(i)] = errAway, 30*time.Second
			tracker.Follow(taskNumber(i), owner)
		}
		advance(10 * time.Second)
		source.list(taskNumber(99), Running, "OK")
		tracker.Follow(taskNumber(99), owner)
		advance(2 * time.Second)
		if len(log.all()) != 1 {
			t.Errorf("told %v", log.all())
		}
		advance(10 * time.Minute)
		total := 0
		for i := range 20 {
			_, asks := source.counts(taskNumber(i))
			total += asks
			if asks < 2 {
				t.Errorf("asked %d times only for task %d: others were preferred", asks, i)
			}
		}
		if total > 90 {
			t.Errorf("asked a dead node %d times in 10 minutes", total)
		}
		if got, _ := tracker.Outcome(taskNumber(0)); got.State != Running || ClassOf(got.Err) != Unreachable {
			t.Errorf("got %+v", got)
		}
	})
}

func TestLostTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newFakeTasks()
		source.askErr[taskNumber(1)] = errAway
		tracker, log := startTracker(t, source)
		tracker.Follow(taskNumber(1), owner)
		source.list(taskNumber(2), Running, "")
		tracker.Follow(taskNumber(2), owner)
		advance(lostAfter + time.Minute)
		if got, _ := tracker.Outcome(taskNumber(1)); got.State != Unknown || ClassOf(got.Err) != Unreachable || len(log.all()) != 1 {
			t.Errorf("got %+v, told %v", got, log.all())
		}
		if got, _ := tracker.Outcome(taskNumber(2)); got.State != Running {
			t.Errorf("a task that runs for long: %+v", got)
		}
	})
}

func TestListThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newFakeTasks()
		source.listErr = errAway
		tracker, log := startTracker(t, source)
		tracker.Follow(taskNumber(1), owner)
		advance(10 * time.Minute)
		lists, asks := source.counts(taskNumber(1))
		if lists < 60 || lists > 200 || asks != 0 {
			t.Errorf("asked %d times, and the node %d times, in 10 minutes without an answer", lists, asks)
		}
		if got, _ := tracker.Outcome(taskNumber(1)); got.State != Running || ClassOf(got.Err) != Unreachable {
			t.Errorf("got %+v", got)
		}
		source.mu.Lock()
		source.listErr = nil
		source.mu.Unlock()
		source.list(taskNumber(1), Running, "OK")
		advance(time.Minute)
		if got, _ := tracker.Outcome(taskNumber(1)); got.State != Succeeded || got.Err != nil || len(log.all()) != 1 {
			t.Errorf("got %+v, told %v", got, log.all())
		}
	})
}

func TestOutcomesAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newFakeTasks()
		tracker, _ := startTracker(t, source)
		finish := func(n int) {
			source.list(taskNumber(n), Running, "OK")
			tracker.Follow(taskNumber(n), owner)
			advance(5 * time.Second)
		}
		finish(1)
		advance(outcomeAge / 2)
		if _, known := tracker.Outcome(taskNumber(1)); !known {
			t.Error("forgotten too early")
		}
		advance(outcomeAge)
		finish(2)
		if _, known := tracker.Outcome(taskNumber(1)); known {
			t.Error("not forgotten")
		}
		if _, known := tracker.Outcome(taskNumber(3)); known {
			t.Error("knows a task it never heard of")
		}
		for i := range maxOutcomes + 10 {
			tracker.Follow(proxmox.UPID(fmt.Sprint("nonsense", i)), owner)
		}
		if len(tracker.ended) != maxOutcomes || len(tracker.order) != maxOutcomes {
			t.Errorf("remembers %d outcomes", len(tracker.ended))
		}
	})
}

// TestTrackerGivesUpTasksItMayNotSee follows a task of earlier credentials, of which the node tells the new ones nothing.
func TestTrackerGivesUpTasksItMayNotSee(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newFakeTasks()
		source.askErr[taskNumber(7)] = &Error{Method: "GET", Status: 403, Reason: "Permission check failed (/nodes/pve1, Sys.Audit)"}
		tracker, _ := startTracker(t, source)
		tracker.Follow(taskNumber(7), owner)
		advance(time.Minute)
		if outcome, _ := tracker.Outcome(taskNumber(7)); outcome.State != Unknown {
			t.Errorf("state %q, want unknown", outcome.State)
		}
	})
}
