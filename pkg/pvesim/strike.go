package pvesim

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// strike carries out one moment of a fault: it waits or hangs, and returns the answer to give instead, if any.
func (w *World) strike(ctx context.Context, f *Fault) (instead *reply, gone bool) {
	if f.Hang {
		select {
		case <-ctx.Done():
		case <-w.closed:
		}
		return nil, true
	}
	if f.Delay > 0 && !w.wait(ctx, time.Duration(f.Delay)) {
		return nil, true
	}
	if f.Status == 0 {
		return nil, false
	}
	r := reply{status: f.Status, reason: f.Reason, errors: f.Errors}
	// pveproxy answers these without a body.
	r.bare = r.status == http.StatusUnauthorized || r.status == offlineStatus || r.status == noAnswerStatus
	orDefault(&r.reason, usualReason(f))
	return &r, false
}

func usualReason(f *Fault) string {
	switch {
	case len(f.Errors) > 0:
		return invalid(nil).reason
	case f.Status == offlineStatus:
		return "Connection refused"
	case f.Status == noAnswerStatus:
		return "Connection timed out"
	}
	return http.StatusText(f.Status)
}

// taskFault is what a fault has in store for the task of the request that is being run.
type taskFault struct {
	text string
	// instead of its work, or after it.
	instead bool
}

// forTask is nil for faults, and for no fault, that leave the task alone.
func (f *Fault) forTask() *taskFault {
	if f == nil || f.TaskError == "" {
		return nil
	}
	return &taskFault{text: f.TaskError, instead: f.When == Before}
}

// body is the work of a task under the fault.
func (f *taskFault) body(work func(*task)) func(*task) {
	if f == nil {
		return work
	}
	return func(t *task) {
		t.fault = f.text
		if !f.instead {
			work(t)
			return
		}
		t.after(t.world.about(emptyTaskDelay), func() { t.end("") })
	}
}

// checkFault refuses what can never strike, does nothing, or contradicts itself.
func (w *World) checkFault(f Fault) error {
	if err := w.checkTarget(f); err != nil {
		return err
	}
	if !slices.Contains([]When{"", Before, AfterEffect, DropReply}, f.When) {
		return fmt.Errorf("when is %q: want %s, %s or %s", f.When, Before, AfterEffect, DropReply)
	}
	switch {
	case f.Nth < 0 || f.Count < 0 || f.Delay < 0:
		return errors.New("nth, count and delay cannot be negative")
	case f.Percent < 0 || f.Percent > 100:
		return fmt.Errorf("percent is %d: want 1 to 100", f.Percent)
	case f.Status != 0 && (f.Status < 400 || f.Status > 599):
		return fmt.Errorf("status is %d: want 400 to 599", f.Status)
	case f.Status == 0 && (f.Reason != "" || len(f.Errors) > 0):
		return errors.New("reason and errors need a status, for example 500")
	}
	return f.checkDeeds()
}

// checkDeeds refuses a fault whose deeds exclude each other, or that has none.
func (f Fault) checkDeeds() error {
	drops := f.When == DropReply
	switch {
	case f.Hang && (f.Status != 0 || f.Delay != 0):
		return errors.New("hang never answers: leave out status and delay")
	case drops && (f.Hang || f.Status != 0 || f.Delay != 0):
		return fmt.Errorf("%s gives no answer: leave out hang, status and delay, or use %s", DropReply, AfterEffect)
	case f.TaskError != "" && f.When != AfterEffect && !drops && (f.Hang || f.Status != 0):
		return fmt.Errorf("no task starts when the request is refused: leave out taskError, or use %s", AfterEffect)
	case !drops && !f.Hang && f.Status == 0 && f.Delay == 0 && f.TaskError == "":
		return fmt.Errorf("it does nothing: give status, delay, hang, taskError or when: %s", DropReply)
	}
	return nil
}

// checkTarget refuses a method and path that no route has.
func (w *World) checkTarget(f Fault) error {
	if !slices.Contains([]string{"", "*", "GET", "POST", "PUT", "DELETE"}, f.Method) {
		return fmt.Errorf("method is %q: want GET, POST, PUT or DELETE", f.Method)
	}
	if f.Path == "" || f.Path == "*" {
		return nil
	}
	var methods []string
	for _, r := range w.routes.routes {
		if r.Path == f.Path {
			methods = append(methods, r.Method)
		}
	}
	switch {
	case len(methods) == 0:
		return w.unknownPath(f)
	case f.Method != "" && f.Method != "*" && !slices.Contains(methods, f.Method):
		slices.Sort(methods)
		return fmt.Errorf("%s %s is no route: that path has %s", f.Method, f.Path, strings.Join(methods, ", "))
	}
	return nil
}

// unknownPath tells how to write a path that is no pattern.
func (w *World) unknownPath(f Fault) error {
	for _, method := range []string{"GET", "POST", "PUT", "DELETE"} {
		if r, _ := w.routes.find(method, f.Path); r != nil {
			return fmt.Errorf("path %s is no pattern: write %s, with node and vmid to choose one", f.Path, r.Path)
		}
	}
	return fmt.Errorf("path %s is no route: GET /pvesim/coverage lists them", f.Path)
}
