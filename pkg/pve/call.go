package pve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// apiPrefix is where PVE's API begins.
const apiPrefix = "/api2/json"

// ticketPath is where a login goes.
const ticketPath = "/access/ticket"

// call is one request as the chain of round-trippers needs to know it. It travels in the request's context, so that it
// also passes through go-proxmox.
type call struct {
	method string
	// route is the path with its parameters named, for metrics; path has them filled in and escaped.
	route, path string
	// node is the PVE node in the path, if any.
	node proxmox.NodeName
	// params are sent as query or form.
	params url.Values
	// file is set for an upload.
	file *fileSum
	// wantTask says that an answer without a task identifier is no success.
	wantTask bool
	// timeout bounds one attempt.
	timeout time.Duration
}

type callKey struct{}

// withCall attaches the call for the round-trippers.
func withCall(ctx context.Context, c *call) context.Context {
	return context.WithValue(ctx, callKey{}, c)
}

// callOf finds the call; a request that was not made by this package gets one that names what it can.
func callOf(req *http.Request) *call {
	if c, ok := req.Context().Value(callKey{}).(*call); ok {
		return c
	}
	path := strings.TrimPrefix(req.URL.EscapedPath(), apiPrefix)
	return &call{method: req.Method, route: "other", path: path, timeout: DefaultRequestTimeout}
}

// newCall fills the {parameters} of the route with the arguments, in order. An argument that would change the meaning of
// the path is refused.
func newCall(method, route string, args ...string) (*call, error) {
	c := &call{method: method, route: route, params: url.Values{}}
	pieces := strings.Split(route, "/")
	next := 0
	for i, piece := range pieces {
		if !strings.HasPrefix(piece, "{") {
			continue
		}
		if next == len(args) {
			return nil, c.refuse(fmt.Sprintf("no value for %s", piece))
		}
		if args[next] == "" || args[next] == "." || args[next] == ".." {
			return nil, c.refuse(fmt.Sprintf("%s is %q", piece, args[next]))
		}
		if piece == "{node}" {
			c.node = proxmox.NodeName(args[next])
		}
		pieces[i] = url.PathEscape(args[next])
		next++
	}
	c.path = strings.Join(pieces, "/")
	return c, nil
}

// refuse is the error of a request that is not sent because it makes no sense.
func (c *call) refuse(why string) error {
	path := c.path
	if path == "" {
		path = c.route
	}
	return &Error{Method: c.method, Path: path, Cause: fmt.Errorf("%w: %s", errInvalidRequest, why)}
}

// set adds a parameter unless it is empty.
func (c *call) set(name, value string) *call {
	if value != "" {
		c.params.Set(name, value)
	}
	return c
}

// setAll adds all parameters as they are, empty ones, too: PVE is to refuse what makes no sense.
func (c *call) setAll(params map[string]string) *call {
	for name, value := range params {
		c.params.Set(name, value)
	}
	return c
}

// change adds the parameters of a change: options to set, others to delete, and the digest of what is changed.
func (c *call) change(set map[string]string, remove []string, digest proxmox.Digest) {
	c.setAll(set).set("delete", strings.Join(remove, ",")).set("digest", string(digest))
}

// target is the path with the query, for requests whose parameters travel there.
func (c *call) target() string {
	if len(c.params) == 0 || c.method == http.MethodPost || c.method == http.MethodPut {
		return c.path
	}
	return c.path + "?" + c.params.Encode()
}

// failure starts the error of this call.
func (c *call) failure(region proxmox.RegionName) *Error {
	return &Error{Region: region, Method: c.method, Path: c.path}
}

// asError unwraps what http.Client and go-proxmox put around the chain's error.
func (c *call) asError(region proxmox.RegionName, err error) error {
	if answer := (*Error)(nil); errors.As(err, &answer) {
		return answer
	}
	failure := c.failure(region)
	failure.Cause = err
	// Only a body that is no JSON, or an answer of another shape, gets here: something did answer.
	failure.Status = http.StatusOK
	return failure
}
