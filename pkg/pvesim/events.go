package pvesim

import (
	"container/heap"
	"sync"
	"time"
)

// event is something that happens in the world at a time.
type event struct {
	at  time.Time
	seq uint64
	do  func()
}

// eventQueue is a heap of events, those of one instant in the order they were planned.
type eventQueue struct {
	list []event
	seq  uint64
}

func (q *eventQueue) Len() int      { return len(q.list) }
func (q *eventQueue) Swap(i, j int) { q.list[i], q.list[j] = q.list[j], q.list[i] }
func (q *eventQueue) Less(i, j int) bool {
	if q.list[i].at.Equal(q.list[j].at) {
		return q.list[i].seq < q.list[j].seq
	}
	return q.list[i].at.Before(q.list[j].at)
}

// Push takes an event; heap calls it.
func (q *eventQueue) Push(x any) {
	if e, ok := x.(event); ok {
		q.list = append(q.list, e)
	}
}

// Pop gives the event that heap moved to the end.
func (q *eventQueue) Pop() any {
	last := len(q.list) - 1
	e := q.list[last]
	q.list = q.list[:last]
	return e
}

// after plans do for when a real host's duration d, divided by the speed, has passed. The mutex is held when do runs.
func (w *World) after(d time.Duration, do func()) {
	w.events.seq++
	heap.Push(&w.events, event{at: w.clock.Now().Add(w.scaled(d)), seq: w.events.seq, do: do})
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// runDue runs what is due. The mutex is held.
func (w *World) runDue() {
	for len(w.events.list) > 0 && !w.events.list[0].at.After(w.clock.Now()) {
		if e, ok := heap.Pop(&w.events).(event); ok {
			e.do()
		}
	}
}

// runEvents drives the event queue until the world is closed.
func (w *World) runEvents() {
	defer w.running.Done()
	for {
		w.mu.Lock()
		w.runDue()
		wait := time.Hour
		if len(w.events.list) > 0 {
			wait = w.events.list[0].at.Sub(w.clock.Now())
		}
		w.mu.Unlock()
		if !w.sleepUntilWoken(wait) {
			return
		}
	}
}

// sleepUntilWoken returns false when the world is closed.
func (w *World) sleepUntilWoken(d time.Duration) bool {
	timer := w.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-w.closed:
		return false
	case <-w.wake:
	case <-timer.C():
	}
	return true
}

// serial runs functions one after another, in order, in a goroutine that lives only while there is work.
type serial struct {
	world *World
	mu    sync.Mutex
	queue []func()
	busy  bool
}

func (s *serial) do(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, f)
	if !s.busy && !s.world.isClosed() {
		s.busy = true
		s.world.running.Add(1)
		go s.run()
	}
}

func (s *serial) run() {
	defer s.world.running.Done()
	for f := s.next(); f != nil; f = s.next() {
		f()
	}
}

func (s *serial) next() func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 || s.world.isClosed() {
		s.busy = false
		return nil
	}
	f := s.queue[0]
	s.queue = s.queue[1:]
	return f
}

func (w *World) isClosed() bool {
	select {
	case <-w.closed:
		return true
	default:
		return false
	}
}
