package pve

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
	"pgregory.net/rapid"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// hurriedClock lets no one wait.
type hurriedClock struct{ clock.RealClock }

func (hurriedClock) NewTimer(time.Duration) clock.Timer { return clock.RealClock{}.NewTimer(0) }

// fate is what becomes of one attempt.
type fate struct {
	name string
	err  func() *Error
	// executed says that the server may have done what was asked.
	executed bool
}

func fates() []fate {
	status := func(status int, reason string) func() *Error {
		return func() *Error { return &Error{Status: status, Reason: reason} }
	}
	return []fate{
		{"answered", nil, true},
		{"no connection", func() *Error { return &Error{Cause: errors.New("connection refused")} }, false},
		{"connection lost", func() *Error { return &Error{Sent: true, Cause: errors.New("EOF")} }, true},
		{"daemon away", status(595, "Connection refused"), false},
		{"node away", status(595, "No route to host"), false},
		{"node silent", status(595, "Connection timed out"), false},
		{"answer lost", status(596, "Connection timed out"), true},
		{"gateway", status(502, "Bad Gateway"), true},
		{"locked", status(500, "VM is locked (clone)"), false},
		{"forbidden", status(403, "Permission check failed"), false},
	}
}

// fatedTransport lets each attempt meet the next fate.
type fatedTransport struct {
	fates []fate
	met   []fate
	hosts []string
}

func (f *fatedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	next := f.fates[len(f.met)%len(f.fates)]
	f.met = append(f.met, next)
	f.hosts = append(f.hosts, req.URL.Host)
	if next.err == nil {
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	}
	err := next.err()
	err.Method, err.Path = req.Method, req.URL.Path
	return nil, err
}

// TestAttemptsLaw: a write is never sent again once it may have been executed; its error is Ambiguous exactly if it may
// have been; nothing is sent without end.
func TestAttemptsLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		below := &fatedTransport{fates: rapid.SliceOfN(rapid.SampledFrom(fates()), 1, 8).Draw(t, "fates")}
		endpoints := make([]*url.URL, rapid.IntRange(1, 3).Draw(t, "endpoints"))
		for i := range endpoints {
			endpoints[i] = &url.URL{Scheme: "https", Host: fmt.Sprintf("pve%d:8006", i)}
		}
		chain := &retrier{clock: hurriedClock{}, jitter: Options{}.jitter, next: newFailover(endpoints, hurriedClock{}, logr.Discard(), below)}
		method := rapid.SampledFrom([]string{"GET", "POST", "PUT", "DELETE"}).Draw(t, "method")
		req, err := http.NewRequest(method, "https://pve/api2/json/x", strings.NewReader("a=b"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = chain.RoundTrip(req)
		checkAttempts(t, method, below, len(endpoints), err)
	})
}

func checkAttempts(t *rapid.T, method string, below *fatedTransport, endpoints int, err error) {
	executed := false
	for i, met := range below.met {
		if executed && method != "GET" {
			t.Errorf("%s sent again after %q: attempt %d", method, below.met[i-1].name, i+1)
		}
		executed = executed || met.executed
	}
	most := endpoints
	if method == "GET" {
		most *= readAttempts
	}
	if len(below.met) > most {
		t.Errorf("%s was sent %d times to %d endpoints", method, len(below.met), endpoints)
	}
	if ambiguous := ClassOf(err) == Ambiguous; method == "GET" && ambiguous || method != "GET" && ambiguous != (executed && err != nil) {
		t.Errorf("%s met %v and is of class %v", method, below.met, ClassOf(err))
	}
	if last := below.met[len(below.met)-1]; last.err == nil && err != nil {
		t.Errorf("%s was answered and failed: %v", method, err)
	}
}

// TestTrackerLaw: whatever lists and nodes do meanwhile, every owner is told exactly once, and not before the end.
func TestTrackerLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tracker := newTracker(newFakeTasks(), "test", Options{}.withDefaults(), nil)
		tasks := rapid.IntRange(1, 6).Draw(t, "tasks")
		for i := range tasks {
			tracker.Follow(taskNumber(i), owner)
		}
		ended := map[proxmox.UPID]bool{}
		for range rapid.IntRange(0, 30).Draw(t, "ticks") {
			drawTick(t, tracker, tasks, ended)
			if told := len(tracker.done.order); told > len(ended) {
				t.Fatalf("told of %d ends, %d happened", told, len(ended))
			}
		}
		var all []TaskStatus
		for i := range tasks {
			all = append(all, TaskStatus{UPID: taskNumber(i), State: Succeeded, ExitStatus: "OK"})
		}
		tracker.look(all, nil)
		if told := len(tracker.done.order); told != tasks || tracker.InFlight() != 0 {
			t.Errorf("told of %d of %d ends, %d still in flight", told, tasks, tracker.InFlight())
		}
		for i := range tasks {
			if got, known := tracker.Outcome(taskNumber(i)); !known || got.State != Succeeded {
				t.Errorf("task %d: %+v, %v", i, got, known)
			}
		}
	})
}

// drawTick lets tasks end, be listed or missed, and lists and nodes fail.
func drawTick(t *rapid.T, tracker *Tracker, tasks int, ended map[proxmox.UPID]bool) {
	if rapid.Bool().Draw(t, "list fails") {
		if ask := tracker.look(nil, errAway); len(ask) > 0 {
			t.Error("asks nodes when the list fails")
		}
		return
	}
	var listed []TaskStatus
	for i := range tasks {
		switch rapid.IntRange(0, 9).Draw(t, "listed") {
		case 0:
			ended[taskNumber(i)] = true
			listed = append(listed, TaskStatus{UPID: taskNumber(i), State: Succeeded, ExitStatus: "OK"})
		case 1, 2, 3:
			if !ended[taskNumber(i)] {
				listed = append(listed, TaskStatus{UPID: taskNumber(i), State: Running})
			}
		}
	}
	ask := tracker.look(listed, nil)
	if len(ask) > maxAsks {
		t.Errorf("asks for %d tasks at a time", len(ask))
	}
	for _, upid := range ask {
		if rapid.Bool().Draw(t, "node answers") {
			tracker.answer(upid, TaskStatus{State: Running}, nil)
		} else {
			tracker.answer(upid, TaskStatus{}, errAway)
		}
	}
}
