package contract

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// findTask makes ready for an exchange about a task: it learns which UPID stands for the recorded one, and waits for the
// task's end if the recorder had. It returns why that cannot be.
func (r *replay) findTask(ctx context.Context, e Exchange) string {
	if e.TaskOf == 0 {
		return ""
	}
	upid, ok := r.upids[e.TaskOf]
	if !ok {
		return fmt.Sprintf("call %d started no task here", e.TaskOf)
	}
	plain, err := url.PathUnescape(e.Path)
	if err != nil {
		return err.Error()
	}
	for _, x := range pieces(plain) {
		if _, known := r.pairs.Here(x.kind, x.text); x.kind == "upid" && !known {
			r.pairs.Learn(x.kind, x.text, string(upid))
		}
	}
	if strings.HasSuffix(e.Path, "/status") && taskStatus(e.Body) == "stopped" {
		r.waitFor(ctx, upid)
	}
	return ""
}

// waited tells whether the recorder waited for the task of an exchange, which it did unless it went on with something else.
// Where the next exchange is missing it is taken to have been about the task.
func (r *replay) waited(i int) bool {
	e := r.recording.Exchanges[i]
	if i+1 == len(r.recording.Exchanges) {
		return true
	}
	next := r.recording.Exchanges[i+1]
	if next.Seq == e.Seq+1 || e.Concurrent {
		return false
	}
	for _, x := range r.recording.Exchanges[i+1:] {
		if x.TaskOf == e.Seq && strings.HasSuffix(x.Path, "/status") {
			return taskStatus(x.Body) != "running"
		}
	}
	return true
}

// waitFor waits until the task has ended and returns its exit status.
func (r *replay) waitFor(ctx context.Context, upid proxmox.UPID) string {
	parts := strings.Split(string(upid), ":")
	if len(parts) < 2 {
		return ""
	}
	status := Exchange{As: "root-token", Method: "GET", Path: "/nodes/" + parts[1] + "/tasks/" + string(upid) + "/status"}
	for end := r.target.Clock.Now().Add(maxTask); r.target.Clock.Now().Before(end) && ctx.Err() == nil; r.target.sleep(pollTask) {
		answer, err := r.send(ctx, status)
		if err != nil || taskStatus(answer.Body) != "running" {
			return exitOf(answer.Body)
		}
	}
	return "still running"
}

// exitOf is the exit status that an answer of …/tasks/{upid}/status names.
func exitOf(body any) string {
	o, _ := body.(map[string]any)
	data, _ := o["data"].(map[string]any)
	exit, _ := data["exitstatus"].(string)
	return exit
}
