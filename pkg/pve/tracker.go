package pve

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

const (
	// missedTicks is how many looks at /cluster/tasks may miss a task before its node is asked. PVE keeps 25 ended tasks per
	// node there, and shows a new one with a delay.
	missedTicks = 3
	// maxAsks is how many nodes are asked at the same time.
	maxAsks = 4
	// maxAskDelay bounds the ticks between two questions to a node that does not answer.
	maxAskDelay = 30
	// lostAfter is for how long a task may be seen nowhere before its outcome is Unknown.
	lostAfter = time.Hour
	// outcomeAge and maxOutcomes bound how long ended tasks are remembered.
	outcomeAge  = time.Hour
	maxOutcomes = 10_000
)

// Owner is who wants to know of a task's end: the namespace and name of an object.
type Owner struct{ Namespace, Name string }

// Outcome is what is known of a task.
type Outcome struct {
	State State
	// Warnings counts those of a task that succeeded.
	Warnings int
	// ExitStatus is PVE's text; empty while the task runs.
	ExitStatus string
	// Err is a *TaskError for a failed task. For a running one it is why its state could not be read lately, nil mostly.
	Err error
}

// Ended says that the outcome will not change any more.
func (o Outcome) Ended() bool { return o.State != Running && o.State != "" }

// taskSource are the two requests a Tracker makes.
type taskSource interface {
	ClusterTasks(context.Context) ([]TaskStatus, error)
	TaskStatus(context.Context, proxmox.UPID) (TaskStatus, error)
}

// Tracker follows all tasks in flight of a PVE cluster with one request per tick, and none while there are none. It is
// safe for concurrent use.
type Tracker struct {
	source   taskSource
	region   proxmox.RegionName
	interval time.Duration
	jitter   func(time.Duration) time.Duration
	clock    clock.Clock
	log      logr.Logger
	metrics  *metrics
	done     *mailbox[finished, finished]
	// work wakes the loop when a task begins to be followed.
	work chan struct{}
	// asks are the questions to nodes under way; they must not hold up the tasks of other nodes.
	asks sync.WaitGroup

	mu      sync.Mutex
	asking  int
	listErr error
	running map[proxmox.UPID]*followed
	ended   map[proxmox.UPID]outcomeAt
	// order lists ended tasks, the oldest first.
	order []proxmox.UPID
}

// followed is a task in flight.
type followed struct {
	owners map[Owner]bool
	// missed counts the looks since it was last seen; askAt is at how many its node is asked, askDelay what is added then.
	missed, askAt, askDelay int
	asked                   bool
	seenAt                  time.Time
	err                     error
}

// outcomeAt is an outcome and when it became known.
type outcomeAt struct {
	Outcome
	at time.Time
}

// finished is news for one owner.
type finished struct {
	owner Owner
	upid  proxmox.UPID
}

func newTracker(source taskSource, region proxmox.RegionName, options Options, metrics *metrics) *Tracker {
	return &Tracker{
		source: source, region: region, interval: options.TaskInterval, jitter: options.jitter, clock: options.Clock, log: options.Logger, metrics: metrics,
		done: newMailbox[finished](func(_, newer finished) finished { return newer }), work: make(chan struct{}, 1),
		running: map[proxmox.UPID]*followed{}, ended: map[proxmox.UPID]outcomeAt{},
	}
}

// OnDone calls back for each owner of a task that ended. Calls come one after the other from a goroutine of their own.
// Register before Run.
func (t *Tracker) OnDone(listener func(Owner, proxmox.UPID)) {
	t.done.listen(func(all []finished) {
		for _, one := range all {
			listener(one.owner, one.upid)
		}
	})
}

// Follow begins to follow a task for an owner, also one that began long ago or in another process. Following twice is once.
// A malformed identifier has the outcome Unknown at once.
func (t *Tracker) Follow(upid proxmox.UPID, owner Owner) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, known := t.ended[upid]; known {
		t.done.put(finished{owner, upid}, finished{owner, upid})
		return
	}
	task, known := t.running[upid]
	if !known {
		task = &followed{owners: map[Owner]bool{}, askAt: missedTicks, askDelay: missedTicks, seenAt: t.clock.Now()}
		t.running[upid] = task
	}
	task.owners[owner] = true
	if _, err := upid.Parse(); err != nil {
		t.end(upid, task, Outcome{State: Unknown, Err: err})
	}
	t.metrics.tasksInFlight(t.region, len(t.running))
	select {
	case t.work <- struct{}{}:
	default:
	}
}

// Outcome returns what is known of a task; false if it is not followed, or ended too long ago.
func (t *Tracker) Outcome(upid proxmox.UPID) (Outcome, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if outcome, ok := t.ended[upid]; ok {
		return outcome.Outcome, true
	}
	if task, ok := t.running[upid]; ok {
		return Outcome{State: Running, Err: cmp.Or(task.err, t.listErr)}, true
	}
	return Outcome{}, false
}

// InFlight returns how many tasks are followed and have not ended.
func (t *Tracker) InFlight() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.running)
}

// run follows until the context ends.
func (t *Tracker) run(ctx context.Context) {
	defer t.asks.Wait()
	delay := newPace(t.interval, maxBackoff/2, t.jitter)
	for {
		if t.InFlight() == 0 {
			select {
			case <-t.work:
			case <-ctx.Done():
				return
			}
		}
		if !sleep(ctx, t.clock, delay.next(t.tick(ctx))) {
			return
		}
	}
}

// tick looks at all tasks once, and asks after those that were missed too often.
func (t *Tracker) tick(ctx context.Context) error {
	if t.InFlight() == 0 {
		return nil
	}
	tasks, err := t.source.ClusterTasks(ctx)
	for _, upid := range t.look(tasks, err) {
		t.asks.Go(func() {
			status, err := t.source.TaskStatus(ctx, upid)
			t.answer(upid, status, err)
		})
	}
	return err
}

// look takes in the list of tasks and returns those whose nodes must be asked.
func (t *Tracker) look(tasks []TaskStatus, err error) []proxmox.UPID {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, status := range tasks {
		if task, ok := t.running[status.UPID]; ok {
			t.seen(status, task)
		}
	}
	t.listErr = err
	t.giveUp()
	if err != nil {
		return nil // without a list nothing was missed
	}
	return t.overdue()
}

// giveUp ends tasks that were seen nowhere for too long, such as those of a node that was taken out of the PVE cluster. The
// caller holds the lock.
func (t *Tracker) giveUp() {
	for upid, task := range t.running {
		if t.clock.Since(task.seenAt) >= lostAfter {
			t.end(upid, task, Outcome{State: Unknown, Err: cmp.Or(task.err, t.listErr)})
		}
	}
}

// overdue counts the look for every task and returns those to ask for now, the longest overdue first. The caller holds the
// lock.
func (t *Tracker) overdue() []proxmox.UPID {
	var ask []proxmox.UPID
	for upid, task := range t.running {
		task.missed++
		if task.missed >= task.askAt && !task.asked {
			ask = append(ask, upid)
		}
	}
	slices.SortFunc(ask, func(a, b proxmox.UPID) int {
		return cmp.Or(cmp.Compare(t.running[b].late(), t.running[a].late()), cmp.Compare(a, b))
	})
	ask = ask[:min(len(ask), maxAsks-t.asking)]
	for _, upid := range ask {
		t.running[upid].asked = true
	}
	t.asking += len(ask)
	return ask
}

// late is how many looks ago the task's node should have been asked.
func (f *followed) late() int { return f.missed - f.askAt }

// seen takes in the state of a task. The caller holds the lock.
func (t *Tracker) seen(status TaskStatus, task *followed) {
	if status.State != Running {
		t.end(status.UPID, task, Outcome{
			State: status.State, Warnings: status.Warnings, ExitStatus: status.ExitStatus, Err: status.Err(),
		})
		return
	}
	// The look that found it counts as missed next, hence -1.
	task.missed, task.askAt, task.askDelay, task.err = -1, missedTicks, missedTicks, nil
	task.seenAt = t.clock.Now()
}

// answer takes in what the node of a missed task said.
func (t *Tracker) answer(upid proxmox.UPID, status TaskStatus, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asking--
	task, ok := t.running[upid]
	if ok {
		task.asked = false
	}
	switch {
	case !ok:
	case ClassOf(err) == NotFound, ClassOf(err) == Forbidden: // of other credentials: these will never be told
		t.end(upid, task, Outcome{State: Unknown, Err: err})
	case err != nil:
		task.err = err
		task.askDelay = min(2*task.askDelay, maxAskDelay)
		task.askAt = task.missed + task.askDelay
	default:
		status.UPID = upid
		t.seen(status, task)
	}
}

// end remembers the outcome and tells the owners. The caller holds the lock.
func (t *Tracker) end(upid proxmox.UPID, task *followed, outcome Outcome) {
	delete(t.running, upid)
	t.metrics.tasksInFlight(t.region, len(t.running))
	t.ended[upid] = outcomeAt{outcome, t.clock.Now()}
	t.order = append(t.order, upid)
	t.forget()
	for owner := range task.owners {
		t.done.put(finished{owner, upid}, finished{owner, upid})
	}
}

// forget drops the oldest outcomes beyond the bounds. The caller holds the lock.
func (t *Tracker) forget() {
	for len(t.order) > 0 {
		oldest := t.order[0]
		if len(t.order) <= maxOutcomes && t.clock.Since(t.ended[oldest].at) < outcomeAge {
			return
		}
		delete(t.ended, oldest)
		t.order = t.order[1:]
	}
}
