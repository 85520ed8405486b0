package pvesim

import (
	"context"
	"net/http"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// When says at what point of a request a fault strikes.
type When string

// The moments of a fault. AfterEffect and DropReply let the request do its work first.
const (
	Before      When = "before"
	AfterEffect When = "after-effect"
	DropReply   When = "drop-reply"
)

// Fault makes requests go wrong. Empty fields match everything.
type Fault struct {
	// Method is GET, POST, PUT or DELETE.
	Method string `json:"method,omitempty"`
	// Path is a route's pattern, for example /nodes/{node}/qemu/{vmid}/clone.
	Path string `json:"path,omitempty"`
	// VMID is that of the path, or a clone's newid.
	VMID proxmox.VMID     `json:"vmid,omitempty"`
	Node proxmox.NodeName `json:"node,omitempty"`
	// Nth strikes only the n-th request that matches, counted from 1; 0 strikes all.
	Nth int `json:"nth,omitempty"`
	// When the fault strikes; empty means Before.
	When When `json:"when,omitempty"`
	// Status and Reason of the answer given instead of the true one; 0 means the true one.
	Status int    `json:"status,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Delay holds the request back before its effect, or the answer after it. It is not divided by the world's speed.
	Delay time.Duration `json:"delay,omitempty"`
	// Hang "yes" never answers.
	Hang string `json:"hang,omitempty"`
}

type faultState struct {
	Fault
	seen int
}

// AddFault adds a fault.
func (w *World) AddFault(f Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	orDefault(&f.When, Before)
	w.faults = append(w.faults, &faultState{Fault: f})
}

// Faults returns the faults in force.
func (w *World) Faults() []Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make([]Fault, 0, len(w.faults))
	for _, f := range w.faults {
		out = append(out, f.Fault)
	}
	return out
}

// ClearFaults removes all faults.
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
		if !f.matches(x, route, vars) {
			continue
		}
		f.seen++
		if strikes := f.Nth == 0 || f.seen == f.Nth; strikes && out == nil {
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

// strike carries out one moment of a fault: it waits or hangs, and returns the answer to give instead, if any.
func (w *World) strike(ctx context.Context, f *Fault) (instead *reply, gone bool) {
	if f.Hang != "" {
		select {
		case <-ctx.Done():
		case <-w.closed:
		}
		return nil, true
	}
	if f.Delay > 0 && !w.wait(ctx, f.Delay) {
		return nil, true
	}
	if f.Status == 0 {
		return nil, false
	}
	reason := f.Reason
	orDefault(&reason, http.StatusText(f.Status))
	return &reply{status: f.Status, reason: reason, bare: f.Status == offlineStatus || f.Status == offlineStatus+1}, false
}
