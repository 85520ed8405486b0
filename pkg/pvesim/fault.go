package pvesim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// When says at what point of a request a fault strikes.
type When string

// The moments of a fault. AfterEffect and DropReply let the request do its work first: DropReply closes the connection then.
const (
	Before      When = "before"
	AfterEffect When = "after-effect"
	DropReply   When = "drop-reply"
)

// Duration is a time.Duration that reads and writes as text, for example 5s or 1m30s.
type Duration time.Duration

// String formats the duration as time.Duration does.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText writes the duration, for example 5s.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads a duration with its unit; the error shows how it is written.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("read duration %q: want a number with its unit, for example 5s", text)
	}
	*d = Duration(parsed)
	return nil
}

// Fault makes requests go wrong. The fields up to Node say which requests match, and empty ones match all; Nth, Count and Percent
// choose among those that match; the rest says what happens to them. Where several faults strike one request, the first that was
// added does it, but all of them count the request.
type Fault struct {
	// Method is GET, POST, PUT or DELETE.
	Method string `json:"method,omitempty"`
	// Path is a route's pattern as GET /pvesim/coverage lists it, for example /nodes/{node}/qemu/{vmid}/clone.
	Path string `json:"path,omitempty"`
	// VMID is that of the path, or a clone's newid.
	VMID proxmox.VMID `json:"vmid,omitempty"`
	// Node is the one that the path names.
	Node proxmox.NodeName `json:"node,omitempty"`

	// Nth is the first match to strike, counted from 1. Zero strikes from the first on.
	Nth int `json:"nth,omitempty"`
	// Count is how many to strike. Zero means one if Nth is given, and otherwise all.
	Count int `json:"count,omitempty"`
	// Percent strikes each of them with that probability, drawn from the world's seed. Zero means always.
	Percent int `json:"percent,omitempty"`

	// When the fault strikes; empty means Before.
	When When `json:"when,omitempty"`
	// Status, from 400 to 599, of the answer that is given instead of the true one. Zero means the true one.
	Status int `json:"status,omitempty"`
	// Reason of that answer, where Proxmox VE puts its message. Empty means the usual one.
	Reason string `json:"reason,omitempty"`
	// Errors of that answer: the refused parameters of a 400.
	Errors map[string]string `json:"errors,omitempty"`
	// Delay holds the request back before its effect, or the answer after it. Unlike the delays of hosts it is not divided by the
	// world's speed, so that it can be compared with a client's timeout.
	Delay Duration `json:"delay,omitempty"`
	// Hang keeps the connection open and never answers.
	Hang bool `json:"hang,omitempty"`
	// TaskError is the exit status that the task of the request gets. With Before the task does nothing else, with AfterEffect it
	// does its work first. Requests that start no task are not changed.
	TaskError string `json:"taskError,omitempty"`
}

// FaultReport is a fault in force and what has come of it.
type FaultReport struct {
	Fault
	// Matched counts the requests that the fault is for, and Struck those that it has struck.
	Matched int `json:"matched"`
	Struck  int `json:"struck"`
}

type faultState struct {
	FaultReport
	draws *rand.Rand
}

// AddFault adds a fault. The error names the field that cannot be, and what to write instead.
func (w *World) AddFault(f Fault) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.addFault(f)
}

func (w *World) addFault(f Fault) error {
	if err := w.checkFault(f); err != nil {
		return fmt.Errorf("add fault: %w", err)
	}
	orDefault(&f.When, Before)
	w.faultsAdded++
	w.faults = append(w.faults, &faultState{
		FaultReport: FaultReport{Fault: f},
		// Draws of its own keep a fault repeatable, whatever else the world draws meanwhile.
		draws: rand.New(rand.NewPCG(w.seed, w.faultsAdded)),
	})
	return nil
}

// Faults returns the faults in force, in the order in which they were added.
func (w *World) Faults() []FaultReport {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make([]FaultReport, 0, len(w.faults))
	for _, f := range w.faults {
		out = append(out, f.FaultReport)
	}
	return out
}

// ClearFaults removes all faults. Requests that hang go on hanging.
func (w *World) ClearFaults() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults = nil
}

// faultFor counts the request at all faults that match, and returns the first that strikes, or nil.
func (w *World) faultFor(x *exchange) *Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.faults) == 0 {
		return nil
	}
	route, vars := w.routes.find(x.method, x.path)
	var out *Fault
	for _, f := range w.faults {
		if f.matches(x, route, vars) && f.strikes() && out == nil {
			f.Struck++
			out = &f.Fault
		}
	}
	return out
}

func (f *faultState) matches(x *exchange, route *Route, vars map[string]string) bool {
	path := x.path
	if route != nil {
		path = route.Path
	}
	return (f.Method == "" || f.Method == "*" || f.Method == x.method) &&
		(f.Path == "" || f.Path == "*" || f.Path == path) &&
		(f.VMID == 0 || f.VMID == toVMID(vars["vmid"]) || f.VMID == toVMID(x.params["newid"])) &&
		(f.Node == "" || string(f.Node) == vars["node"])
}

// strikes counts one more match, and tells whether it is to be struck.
func (f *faultState) strikes() bool {
	f.Matched++
	count := f.Count
	if count == 0 && f.Nth > 0 {
		count = 1
	}
	if f.Matched < f.Nth || count > 0 && f.Struck >= count {
		return false
	}
	return f.Percent == 0 || f.draws.IntN(100) < f.Percent
}
