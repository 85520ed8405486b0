package pve

import (
	"strconv"
	"strings"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// State is how far a task has come.
type State string

// The states of a task.
const (
	// Running: the task has not ended, as far as is known.
	Running State = "Running"
	// Succeeded: it ended OK or with warnings.
	Succeeded State = "Succeeded"
	// Failed: it ended with an error.
	Failed State = "Failed"
	// Unknown: its node does not know the task any more, or could not be asked for an hour. What it did must be found out
	// by looking.
	Unknown State = "Unknown"
)

// TaskStatus is what PVE says of a task.
type TaskStatus struct {
	UPID proxmox.UPID
	Node proxmox.NodeName
	// Type is the worker type, for example qmclone; ID what it works on, mostly a VMID; User who started it.
	Type, ID, User string
	State          State
	// ExitStatus is OK, `WARNINGS: n` or the error's text; empty while the task runs.
	ExitStatus string
	// Warnings counts those of a successful task.
	Warnings   int
	Start, End time.Time
}

// Err returns a *TaskError if the task failed.
func (t TaskStatus) Err() error {
	if t.State != Failed {
		return nil
	}
	return &TaskError{UPID: t.UPID, ExitStatus: t.ExitStatus}
}

// taskStatus reads the answer of /nodes/{node}/tasks/{upid}/status.
func (f fields) taskStatus(upid proxmox.UPID) TaskStatus {
	status := f.task()
	status.UPID = upid
	if f["status"] == "stopped" {
		status.end(string(f["exitstatus"]))
	}
	return status
}

// clusterTask reads an entry of /cluster/tasks, where `status` is the exit status and absent while the task runs.
func (f fields) clusterTask() TaskStatus {
	status := f.task()
	if f["endtime"] != "" && f["status"] != "" {
		status.end(string(f["status"]))
	}
	return status
}

func (f fields) task() TaskStatus {
	user := string(f["user"])
	if token := string(f["tokenid"]); token != "" {
		user += "!" + token
	}
	return TaskStatus{
		UPID: proxmox.UPID(f["upid"]), Node: proxmox.NodeName(f["node"]), Type: string(f["type"]), ID: string(f["id"]),
		User: user, State: Running, Start: f["starttime"].time(), End: f["endtime"].time(),
	}
}

// end judges an exit status (PVE::Tools::upid_status_is_error). None at all means that PVE lost it.
func (t *TaskStatus) end(exit string) {
	t.ExitStatus = clip(strings.TrimSpace(exit), maxMessage)
	count, warned := strings.CutPrefix(t.ExitStatus, "WARNINGS: ")
	switch {
	case t.ExitStatus == "OK":
		t.State = Succeeded
	case warned:
		t.State = Succeeded
		t.Warnings, _ = strconv.Atoi(count)
	case t.ExitStatus == "":
		t.State = Unknown
	default:
		t.State = Failed
	}
}

// time reads seconds since 1970; zero is no time.
func (s scalar) time() time.Time {
	if seconds := s.integer(); seconds > 0 && seconds < 1<<40 {
		return time.Unix(seconds, 0).UTC()
	}
	return time.Time{}
}
