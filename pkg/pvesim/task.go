package pvesim

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// task is one worker of a node.
type task struct {
	world   *World
	upid    proxmox.UPID
	node    proxmox.NodeName
	pid     uint32
	pstart  uint32
	typ     string
	id      string
	user    string
	started time.Time
	ended   time.Time
	exit    string
	log     []string
	// vms are the VMs that the task works on, for the invariant that no VM holds a lock without a task.
	vms []proxmox.VMID
	// undo runs when the task is stopped before its end.
	undo func(reason string)
	// stopped replaces the end of a task that is stopped, for workers that need time to clean up.
	stopped func()
	// then is what comes after the end, whatever that was.
	then func()
	// asked tells that the task was told to stop.
	asked bool
	// fault is the exit status that a fault gives the task in place of OK.
	fault string
	// holds are the lock files to give back at the end.
	holds []flockKey
}

// taskKey is what a request starts a task with.
type taskKey struct {
	node proxmox.NodeName
	typ  string
	id   string
	user string
}

// taskList keeps all tasks, the latest last.
type taskList struct {
	all    []*task
	byUPID map[proxmox.UPID]*task
	active map[*task]bool
	// idle is closed when no task is active any more; nil while nobody waits for that.
	idle chan struct{}
	// recent are the last finished tasks of each node, the latest last.
	recent map[proxmox.NodeName][]*task
}

// recentTasks is how many finished tasks of a node are spread in the cluster (PVE::RESTEnvironment::active_workers).
const recentTasks = 25

func newTaskList() *taskList {
	return &taskList{byUPID: map[proxmox.UPID]*task{}, active: map[*task]bool{}, recent: map[proxmox.NodeName][]*task{}}
}

// add enters a task; one without an exit status is running.
func (l *taskList) add(t *task) {
	l.all = append(l.all, t)
	l.byUPID[t.upid] = t
	if l.active[t] = true; t.done() {
		l.finish(t)
	}
}

func (l *taskList) finish(t *task) {
	delete(l.active, t)
	if len(l.active) == 0 && l.idle != nil {
		close(l.idle)
		l.idle = nil
	}
	l.recent[t.node] = append(l.recent[t.node], t)
	l.recent[t.node] = l.recent[t.node][max(0, len(l.recent[t.node])-recentTasks):]
}

// start begins a task, runs its body, and returns its UPID. The body must end the task, at once or by a later event.
func (w *World) start(k taskKey, body func(*task)) proxmox.UPID {
	w.nextPID += 1 + uint32(w.random.IntN(12))
	now := w.clock.Now()
	t := &task{
		world: w, node: k.node, pid: w.nextPID, typ: k.typ, id: k.id, user: k.user, started: now,
		pstart: uint32(now.Sub(w.born).Milliseconds()/10) + 100_000,
	}
	t.upid = proxmox.UPID(fmt.Sprintf("UPID:%s:%08X:%08X:%08X:%s:%s:%s:", k.node, t.pid, t.pstart, now.Unix(), k.typ, k.id, k.user))
	w.tasks.add(t)
	w.striking.body(body)(t)
	return t.upid
}

func (t *task) done() bool { return t.exit != "" }

func (t *task) logf(format string, args ...any) { t.log = append(t.log, fmt.Sprintf(format, args...)) }

// after continues the task later, unless it has been stopped meanwhile.
func (t *task) after(d time.Duration, do func()) {
	t.world.after(d, func() {
		if !t.done() {
			do()
		}
	})
}

// end finishes the task: with "OK" when the reason is empty, with the reason as its exit status otherwise.
func (t *task) end(reason string) {
	if t.done() {
		return
	}
	t.exit = "OK"
	if reason == "" {
		reason = t.fault
	}
	if reason != "" {
		t.exit = reason
		t.logf("TASK ERROR: %s", reason)
	} else {
		t.logf("TASK OK")
	}
	t.leave()
}

// leave takes a task that has ended off the running ones and gives back its lock files.
func (t *task) leave() {
	t.ended, t.undo, t.stopped = t.world.clock.Now(), nil, nil
	t.world.tasks.finish(t)
	holds := t.holds
	t.holds = nil
	for _, key := range holds {
		t.world.release(key)
	}
	if t.then != nil {
		t.then()
	}
}

// lock waits for the VM's lock file and goes on under it; the lock is given back when the task ends.
func (t *task) lock(r lockRequest) {
	r.node = t.node
	granted := r.granted
	granting, waited := true, false
	r.granted = func() {
		granting = false
		if waited && !t.done() {
			t.logf(" OK")
		}
		if t.done() {
			t.world.release(flockKey{r.node, r.id})
			return
		}
		t.holds = append(t.holds, flockKey{r.node, r.id})
		granted()
	}
	if r.refused == nil {
		r.refused = t.end
	}
	t.world.acquire(r)
	if granting && !t.done() {
		waited = true
		t.logf("trying to acquire lock...")
	}
}

// unlock gives a lock file back before the end of the task.
func (t *task) unlock(id proxmox.VMID) {
	key := flockKey{t.node, id}
	if i := slices.Index(t.holds, key); i >= 0 {
		t.holds = slices.Delete(t.holds, i, i+1)
		t.world.release(key)
	}
}

// stop aborts a running task, as DELETE on it does.
func (t *task) stop() {
	if t.done() || t.asked {
		return
	}
	t.asked = true
	if t.stopped != nil {
		t.stopped()
		return
	}
	undo := t.undo
	if undo != nil {
		undo("interrupted by signal")
	}
	t.end("received interrupt")
}

// kill ends the task as a dead worker does: nothing is cleaned up.
func (t *task) kill() {
	if t.done() {
		return
	}
	t.exit = "unexpected status"
	t.leave()
}

// owner splits the user of a task into the user and the token's name.
func (t *task) owner() (user, tokenID string) {
	user, tokenID, _ = strings.Cut(t.user, "!")
	return user, tokenID
}

// runningOn tells whether a task that has not ended works on the VM.
func (l *taskList) runningOn(id proxmox.VMID) bool {
	for t := range l.active {
		if slices.Contains(t.vms, id) {
			return true
		}
	}
	return false
}

// RunningTasks returns how many tasks have not ended.
func (w *World) RunningTasks() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runDue()
	return len(w.tasks.active)
}

// AwaitTasks returns when no task runs. The error is that of the context, whose end it does not outlive.
func (w *World) AwaitTasks(ctx context.Context) error {
	for {
		idle := w.whenIdle()
		if idle == nil {
			return nil
		}
		select {
		case <-idle:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// whenIdle returns a channel that is closed when no task runs any more; nil if none does now.
func (w *World) whenIdle() chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runDue()
	if len(w.tasks.active) == 0 {
		return nil
	}
	if w.tasks.idle == nil {
		w.tasks.idle = make(chan struct{})
	}
	return w.tasks.idle
}

// loadTask enters a task that has ended. The error quotes a UPID that is none or that is taken.
func (w *World) loadTask(s TaskSpec) error {
	id, err := s.UPID.Parse()
	switch {
	case err != nil:
		return fmt.Errorf("add task: %w", err)
	case w.tasks.byUPID[s.UPID] != nil:
		return fmt.Errorf("add task %s: there is one", s.UPID)
	}
	orDefault(&s.Exit, "OK")
	if s.Ended.IsZero() {
		s.Ended = id.Started
	}
	w.tasks.add(&task{
		world: w, upid: s.UPID, node: id.Node, pid: uint32(id.PID), pstart: uint32(id.PStart), typ: id.Type, id: id.ID, user: id.User,
		started: id.Started, ended: s.Ended, exit: s.Exit, log: slices.Clone(s.Log),
	})
	return nil
}

// dumpTasks adds the tasks that have ended.
func (w *World) dumpTasks(s *State) {
	for _, t := range w.tasks.all {
		if t.done() {
			s.Tasks = append(s.Tasks, TaskSpec{UPID: t.upid, Exit: t.exit, Ended: t.ended, Log: slices.Clone(t.log)})
		}
	}
}
