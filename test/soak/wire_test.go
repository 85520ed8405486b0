package soak_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"regexp"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// wire carries a manager's requests to the simulated Proxmox VE, through the gate there and back.
type wire struct {
	sim *simulation
}

// errGaveUp is what becomes of a request whose endpoint cannot be reached.
var errGaveUp = errors.New("connect: no route to host")

// RoundTrip implements http.RoundTripper.
func (w *wire) RoundTrip(request *http.Request) (*http.Response, error) {
	body, err := read(request.Body)
	if err != nil {
		return nil, err
	}
	path := strings.TrimPrefix(request.URL.Path, "/api2/json")
	call := call{who: whoOf(request.Context()), method: request.Method, path: path, query: request.URL.RawQuery, body: body}
	if path == "/cluster/resources" || path == "/cluster/tasks" || strings.Contains(path, "/tasks/") || strings.HasSuffix(path, "/certificates/info") {
		call.who = "poller"
	}
	node := proxmox.NodeName(request.URL.Hostname())
	send := func(ctx context.Context) (*http.Response, error) {
		w.sim.witness(call)
		if w.sim.isLost(node) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errGaveUp}
		}
		attempt := request.Clone(ctx)
		attempt.Body = http.NoBody
		if len(body) > 0 {
			attempt.Body = io.NopCloser(bytes.NewReader(body))
		}
		return w.sim.world.Transport(node).RoundTrip(attempt)
	}
	asked := &ticket{kind: pveRequest, method: call.method, path: path, what: call.endpoint(), label: call.String(), resend: func() {
		answer, err := send(w.sim.ctx)
		if err == nil {
			_ = answer.Body.Close()
		}
	}}
	if _, err := w.sim.gate.pass(request.Context(), asked); err != nil {
		return nil, err
	}
	answer, err := send(request.Context())
	dialed := (*net.OpError)(nil)
	if traced := httptrace.ContextClientTrace(request.Context()); traced != nil && traced.WroteHeaders != nil && !errors.As(err, &dialed) {
		traced.WroteHeaders()
	}
	if _, stopped := w.sim.gate.pass(request.Context(), &ticket{kind: pveReply, method: call.method, path: path, what: "the answer to " + call.endpoint(), label: call.String() + " → " + told(answer, err)}); stopped != nil {
		return nil, stopped
	}
	return answer, err
}

func read(body io.ReadCloser) ([]byte, error) {
	if body == nil {
		return nil, nil
	}
	defer func() { _ = body.Close() }()
	return io.ReadAll(body)
}

func told(answer *http.Response, err error) string {
	if err != nil {
		return err.Error()
	}
	if answer.StatusCode >= http.StatusBadRequest {
		return answer.Status
	}
	body, err := read(answer.Body)
	if err != nil {
		return err.Error()
	}
	answer.Body = io.NopCloser(bytes.NewReader(body))
	const most = 90
	return fmt.Sprintf("%d %s", answer.StatusCode, body[:min(len(body), most)])
}

// call is a request as the trace shows it.
type call struct {
	who, method, path, query string
	body                     []byte
}

// String names the call, with what it sends but for uploads.
func (c call) String() string {
	sent := c.query
	if c.method != http.MethodGet && !c.uploads() {
		sent = strings.TrimSpace(sent + " " + string(c.body))
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s %s %s", c.who, c.method, c.path, sent))
}

func (c call) uploads() bool { return strings.HasSuffix(c.path, "/upload") }

// patterns replace what differs between calls to one endpoint.
var patterns = []struct {
	in *regexp.Regexp
	by string
}{
	{regexp.MustCompile(`^/nodes/[^/]+`), "/nodes/{node}"},
	{regexp.MustCompile(`/qemu/\d+`), "/qemu/{vmid}"},
	{regexp.MustCompile(`/rules/[^/]+`), "/rules/{rule}"},
	{regexp.MustCompile(`/ipset/[^/]+`), "/ipset/{name}"},
	{regexp.MustCompile(`(/ipset/[^/]+)/.+`), "$1/{cidr}"},
	{regexp.MustCompile(`/vm:\d+`), "/{sid}"},
	{regexp.MustCompile(`/tasks/.*`), "/tasks/{upid}/status"},
	{regexp.MustCompile(`/storage/[^/]+`), "/storage/{storage}"},
	{regexp.MustCompile(`/content/.*`), "/content/{volume}"},
}

// endpoint is the pattern of the call's path.
func (c call) endpoint() string {
	path := c.path
	for _, pattern := range patterns {
		path = pattern.in.ReplaceAllString(path, pattern.by)
	}
	return c.method + " " + path
}
