package pvesim

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

const (
	apiPrefix = "/api2/json"
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
	// Path is below /api2/json, without query.
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
	// dropped exchanges get no answer: the connection is closed.
	dropped bool
}

// answer serves one exchange and waits as long as a real host would.
func (w *World) answer(x *exchange) reply {
	f := w.faultFor(x)
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
	if n := w.node(x.at); n != nil && n.daemons[PVEProxy] == daemonFrozen {
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

// dispatch runs a request in the order of pveproxy: authentication, route, permissions, the node in the path, parameters.
func (w *World) dispatch(x *exchange) reply {
	route, vars := w.routes.find(x.method, x.path)
	who := &identity{}
	if x.path != "/access/ticket" || x.method != http.MethodPost {
		var refused reply
		if who, refused = w.authenticate(x.header, x.method); who == nil {
			return refused
		}
	}
	if route == nil {
		return notImplemented(x.method, x.path)
	}
	c := &call{World: w, route: route, method: x.method, path: x.path, params: vars, who: who, at: w.node(x.at), file: x.file}
	for key, value := range x.params {
		if _, ok := vars[key]; ok {
			return invalidParam(key, "duplicate parameter (already defined in URI)")
		}
		vars[key] = value
	}
	if route.permission != nil {
		if path, privileges := route.permission(c); privileges != "" {
			return denied(path, privileges)
		}
	}
	return c.proceed()
}

// proceed finds the node and passes the request on to it.
func (c *call) proceed() reply {
	c.node = c.at
	if name := c.params["node"]; name != "" && name != "localhost" && strings.Contains(c.route.Path, "{node}") {
		c.node = c.World.node(proxmox.NodeName(name))
		if c.node == nil {
			return fail("hostname lookup '%s' failed - failed to get address info for: %s: Temporary failure in name resolution", name, name)
		}
	}
	return c.forward(c.run)
}

// run checks the parameters and runs the handler, on the node and in the daemon where the request has arrived.
func (c *call) run() reply {
	if errors := schema.Verify(c.route.params, c.params); len(errors) > 0 {
		return invalid(errors)
	}
	if c.flag("skiplock") && !c.who.isRoot() {
		return invalidParam("skiplock", "Only root may use this option.")
	}
	if r := c.needQuorum(); r.failed() {
		return r
	}
	return c.route.handle(c)
}

// decode reads a request off the wire. Bodies are forms, JSON objects or, for uploads, multipart.
func decode(r *http.Request, at proxmox.NodeName) (*exchange, *reply) {
	x := &exchange{ctx: r.Context(), method: r.Method, path: strings.TrimPrefix(r.URL.Path, apiPrefix), header: r.Header, params: map[string]string{}, at: at}
	addValues(x.params, r.URL.Query())
	kind, args, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if kind == "multipart/form-data" {
		return x, x.readUpload(r.Body, args["boundary"])
	}
	if len(r.TransferEncoding) > 0 {
		return x, &reply{status: http.StatusNotImplemented, reason: "chunked transfer encoding not supported", bare: true}
	}
	raw, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return x, &reply{status: http.StatusBadRequest, reason: "Bad Request", bare: true}
	}
	if len(raw) > maxBody {
		return x, &reply{status: http.StatusNotImplemented, reason: "for data too large", bare: true}
	}
	return x, x.readParams(kind, raw)
}

func (x *exchange) readParams(kind string, raw []byte) *reply {
	if len(raw) == 0 {
		return nil
	}
	if kind == "application/json" {
		return x.readJSON(raw)
	}
	form, err := url.ParseQuery(string(raw))
	if err != nil {
		return &reply{status: http.StatusBadRequest, reason: "Bad Request", bare: true}
	}
	addValues(x.params, form)
	return nil
}

func (x *exchange) readJSON(raw []byte) *reply {
	var body map[string]any
	decoder := json.NewDecoder(strings.NewReader(string(raw)))
	decoder.UseNumber()
	if err := decoder.Decode(&body); err != nil {
		return &reply{status: http.StatusBadRequest, reason: "Bad Request", bare: true}
	}
	for key, value := range body {
		x.params[key] = jsonParam(value)
	}
	return nil
}

// jsonParam turns a JSON value into the form value that means the same.
func jsonParam(value any) string {
	switch v := value.(type) {
	case bool:
		return fmt.Sprint(pveBool(v))
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = jsonParam(v[i])
		}
		return strings.Join(parts, ",")
	case nil:
		return ""
	}
	return fmt.Sprint(value)
}

// addValues takes a form; a repeated key is a list.
func addValues(into map[string]string, form url.Values) {
	for key, values := range form {
		into[key] = strings.Join(values, "\x00")
	}
}
