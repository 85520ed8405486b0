package pvesim

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

const (
	apiBase = "/api2"
	// maxBody is what pveproxy takes of a request that is not an upload.
	maxBody = 512 * 1024
	// maxRequests is how many served requests are remembered; then the older half is forgotten.
	maxRequests = 200_000
	// noRouteDelay is how long a node that is down is waited for.
	noRouteDelay = 3 * time.Second
	// offlineStatus is pveproxy's own status for a node that it cannot reach.
	offlineStatus = 595
	// noAnswerStatus is that for a node or daemon that has taken the request and does not answer. It may still be carried out.
	noAnswerStatus = 596
)

// Request is one request that the world has served.
type Request struct {
	Method string
	// Path is below /api2/json, without the query.
	Path string
	// Status of the answer; 0 if none was given.
	Status int
}

// Requests returns the requests served so far, in order. Of very many only the latest are kept.
func (w *World) Requests() []Request {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]Request{}, w.requests...)
}

// exchange is a request taken off the wire.
type exchange struct {
	ctx    context.Context
	method string
	path   string
	header http.Header
	params map[string]string
	file   *upload
	at     proxmox.NodeName
	// format is json, or extjs, which always answers 200 and says in the body how it went.
	format string
	// version is the release that reads it.
	version Version
	// unreadable is the refusal of a body that cannot be read. It is given after the login is checked.
	unreadable reply
	fault      *Fault
	// dropped exchanges get no answer: the connection is closed.
	dropped bool
}

// answer serves one exchange and waits as long as a real host would.
func (w *World) answer(x *exchange) reply {
	f := w.faultFor(x)
	x.fault = f
	if f != nil && f.When == Before {
		if instead, gone := w.strike(x.ctx, f); instead != nil || gone {
			x.dropped = gone
			return w.record(x, orEmpty(instead))
		}
	}
	r := w.perform(x)
	if f != nil && f.When == AfterEffect {
		if instead, gone := w.strike(x.ctx, f); instead != nil || gone {
			x.dropped = gone
			r = orEmpty(instead)
		}
	}
	if f != nil && f.When == DropReply {
		x.dropped = true
	}
	return w.record(x, r)
}

func orEmpty(r *reply) reply {
	if r == nil {
		return reply{}
	}
	return *r
}

// perform lets the request have its effect, and waits for the reply.
func (w *World) perform(x *exchange) reply {
	w.mu.Lock()
	w.runDue()
	r := w.receive(x)
	w.mu.Unlock()
	for r.later != nil && !x.dropped {
		select {
		case later := <-r.later:
			r = later
		case <-x.ctx.Done():
			x.dropped = true
		case <-w.closed:
			x.dropped = true
		}
	}
	if r.status == 0 || r.delay > 0 && !w.wait(x.ctx, w.scaled(r.delay)) {
		x.dropped = true
	}
	return r
}

// receive is how the pveproxy of the node that is asked takes a request.
func (w *World) receive(x *exchange) reply {
	if n := w.node(x.at); n != nil && n.Daemons[PVEProxy] == DaemonFrozen {
		return reply{later: n.hold(PVEProxy, reply{}, func() reply { return w.dispatch(x) }).answer}
	}
	return w.dispatch(x)
}

func (w *World) record(x *exchange, r reply) reply {
	w.mu.Lock()
	defer w.mu.Unlock()
	status := r.status
	if x.dropped {
		status = 0
	}
	if len(w.requests) >= maxRequests {
		w.requests = append([]Request{}, w.requests[maxRequests/2:]...)
	}
	w.requests = append(w.requests, Request{Method: x.method, Path: x.path, Status: status})
	return r
}

// wait returns false when the request was given up meanwhile.
func (w *World) wait(ctx context.Context, d time.Duration) bool {
	timer := w.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-ctx.Done():
	case <-w.closed:
	}
	return false
}

// dispatch runs a request in the order of pveproxy: authentication, body, route, permissions, the node in the path, parameters.
func (w *World) dispatch(x *exchange) reply {
	who, refused := w.authenticate(x)
	if who == nil {
		return refused
	}
	if x.isUpload() {
		if r := w.mayUpload(x, who); r.failed() {
			return r
		}
	}
	if r := x.unreadable; r.failed() {
		x.dropped = r.unanswered
		return r
	}
	route, vars := w.routes.find(x.method, x.path)
	if route == nil {
		return notImplemented(x.method, x.path)
	}
	c := &call{World: w, route: route, method: x.method, path: x.path, params: vars, who: who, at: w.node(x.at), file: x.file, fault: x.fault}
	for key, value := range x.params {
		if _, ok := vars[key]; ok {
			return invalidParam(key, "duplicate parameter (already defined in URI)")
		}
		vars[key] = value
	}
	if route.ticketOnly && who.token != nil {
		return reply{status: http.StatusForbidden, reason: fmt.Sprintf("Permission check failed (URI '%s' not available with API token, need proper ticket.\n)", x.path)}
	}
	if r := c.allowed(); r.failed() {
		return r
	}
	return c.proceed()
}

// proceed finds the node and passes the request on to it.
func (c *call) proceed() reply {
	c.node = c.at
	if name := c.params["node"]; name != "" && name != "localhost" && (c.route.proxied || strings.Contains(c.route.Path, "{node}")) {
		c.node = c.World.node(proxmox.NodeName(name))
		if c.node == nil {
			return fail("hostname lookup '%s' failed - failed to get address info for: %s: Temporary failure in name resolution", name, name)
		}
	}
	return c.forward(c.run)
}

// run checks the parameters and runs the handler, on the node and in the daemon where the request has arrived.
func (c *call) run() reply {
	errors := c.version.wording().Verify(c.route.params, c.params)
	if msg := c.missingCPUModel(); msg != "" && errors["cpu"] == "" {
		errors = maps.Clone(errors)
		if errors == nil {
			errors = map[string]string{}
		}
		errors["cpu"] = msg
	}
	if len(errors) > 0 {
		return invalid(errors)
	}
	if c.flag("skiplock") && !c.who.isRoot() {
		return invalidParam("skiplock", "Only root may use this option.")
	}
	if r := c.needQuorum(); r.failed() {
		return r
	}
	c.striking = c.fault.forTask()
	defer func() { c.striking = nil }()
	return c.route.handle(c)
}
