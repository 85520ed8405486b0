package pve

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

const (
	// maxMessage bounds, in bytes, each text kept of an answer.
	maxMessage = 4 << 10
	// maxErrorLine bounds, in bytes, the text of an error.
	maxErrorLine = 600
	// maxParams bounds how many parameters an Error names.
	maxParams = 32
)

// errInvalidRequest marks requests that were refused before they were sent.
var errInvalidRequest = errors.New("request refused before sending")

// Error is an answer that is not a success, or the lack of one. It holds no secrets.
type Error struct {
	// Region is the PVE cluster.
	Region proxmox.RegionName
	// Method and Path are of the request, the path without /api2/json.
	Method, Path string
	// Status is the HTTP status; 595 and 596 are pveproxy's own. Zero means there was no answer.
	Status int
	// Reason is the HTTP reason phrase, where PVE puts the first line of its message.
	Reason string
	// Message is the answer's message, of several lines at times; often empty.
	Message string
	// Params tells what is wrong with which parameter.
	Params map[string]string
	// Sent tells, if there was no answer, that the request, or a part of it, left this process.
	Sent bool
	// Cause is the transport's error if there was no answer, or no usable one.
	Cause error
}

// Error returns one line of bounded length that names the object: `PUT /nodes/pve1/qemu/101/config: 500 VM is locked (clone)`.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Method + " " + e.Path + ":")
	if e.Status != 0 {
		b.WriteString(" " + strconv.Itoa(e.Status))
	}
	if text := e.text(); text != "" {
		b.WriteString(" " + text)
	}
	if e.Cause != nil {
		b.WriteString(" " + e.Cause.Error())
	}
	for i, name := range slices.Sorted(maps.Keys(e.Params)) {
		b.WriteString(separator(i) + name + ": " + e.Params[name])
	}
	return oneLine(b.String(), maxErrorLine)
}

// separator stands before the i-th parameter.
func separator(i int) string {
	if i == 0 {
		return " "
	}
	return "; "
}

// text is the message if it says more than the reason phrase, else the reason phrase.
func (e *Error) text() string {
	if strings.HasPrefix(e.Message, e.Reason) {
		return e.Message
	}
	if e.Message == "" {
		return e.Reason
	}
	return e.Reason + ": " + e.Message
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// writes says whether the request could have changed anything. A login changes nothing worth knowing.
func (e *Error) writes() bool {
	return e.Method != http.MethodGet && e.Method != "" && e.Path != ticketPath
}

// TaskError is a task that ended otherwise than OK or with warnings.
type TaskError struct {
	UPID proxmox.UPID
	// ExitStatus is the task's error text.
	ExitStatus string
}

// Error returns one line: `task qmclone 101 on pve1: VM is locked (clone)`.
func (e *TaskError) Error() string {
	name := strconv.Quote(string(e.UPID))
	if id, err := e.UPID.Parse(); err == nil {
		name = strings.TrimSpace(id.Type+" "+id.ID) + " on " + string(id.Node)
	}
	return oneLine("task "+name+": "+e.ExitStatus, maxErrorLine)
}

// oneLine joins the lines of a text and cuts it to a length in bytes, at the border of a character.
func oneLine(text string, limit int) string {
	return clip(strings.Join(strings.Fields(text), " "), limit)
}

// clip cuts a text to a length in bytes and marks the cut.
func clip(text string, limit int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= limit {
		return text
	}
	cut := limit - len("…")
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}
