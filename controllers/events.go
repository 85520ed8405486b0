package controllers

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/status"
)

// tryAgain is when a pass that took all its steps goes on.
const tryAgain = time.Second

// regionCheck is how often a cluster's regions are looked at again. It costs no request: the inventory knows.
const regionCheck = 30 * time.Second

// EventRecorder tells a person what is done for an object, and why it waits.
type EventRecorder struct {
	Recorder events.EventRecorder
}

// Warning records something that a person may have to see to.
func (e EventRecorder) Warning(object client.Object, reason plan.Reason) {
	e.record(object, corev1.EventTypeWarning, reason)
}

// Normal records something that was done.
func (e EventRecorder) Normal(object client.Object, reason plan.Reason) {
	e.record(object, corev1.EventTypeNormal, reason)
}

// All records what happened to an object.
func (e EventRecorder) All(object client.Object, happened []status.Event) {
	for _, event := range happened {
		if event.Warning {
			e.Warning(object, event.Reason)
			continue
		}
		e.Normal(object, event.Reason)
	}
}

// Warned records that a task did its work with warnings, and where these are read.
func (e EventRecorder) Warned(object client.Object, task plan.Task) {
	if task.Warnings == 0 {
		return
	}
	where := ""
	if id, err := task.UPID.Parse(); err == nil {
		where = " on " + string(id.Node)
	}
	e.Warning(object, plan.Reason{Code: plan.TaskWarnings, Message: fmt.Sprintf(
		"task %s%s succeeded with warnings (%d): read its log with `pvenode task log '%s'`%s", task.Type, where, task.Warnings, task.UPID, where)})
}

// maxNote is the most that an event's note may hold.
const maxNote = 1024

func (e EventRecorder) record(object client.Object, eventType string, reason plan.Reason) {
	note := reason.Message
	if len(note) > maxNote {
		note = strings.ToValidUTF8(note[:maxNote-3], "") + "..." // the cut may go through a character
	}
	e.Recorder.Eventf(object, nil, eventType, reason.Code, reason.Code, "%s", note)
}
