package pvesim_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// caller makes requests to pve1 of a world without a network, with headers of its own.
type caller struct {
	tb     testing.TB
	client *http.Client
	header map[string]string
}

// callers are the root token, and tokens of a world's users by their ID.
type callers struct {
	tb    testing.TB
	world *pvesim.World
	root  caller
}

func newCallers(tb testing.TB, opts ...pvesim.Option) callers {
	tb.Helper()
	w := newWorld(tb, append([]pvesim.Option{pvesim.WithSpeed(1000)}, opts...)...)
	root := w.AddToken(pvesim.TokenSpec{User: "root@pam", Name: "ci", Unseparated: true})
	c := callers{tb: tb, world: w}
	c.root = c.with("Authorization", root.Header())
	return c
}

func (c callers) with(pairs ...string) caller {
	header := map[string]string{}
	for i := 0; i+1 < len(pairs); i += 2 {
		header[pairs[i]] = pairs[i+1]
	}
	return caller{tb: c.tb, client: &http.Client{Transport: c.world.Transport("pve1")}, header: header}
}

// token adds a token with the rights of its user.
func (c callers) token(user, name string) caller {
	k := c.world.AddToken(pvesim.TokenSpec{User: user, Name: name, Unseparated: true})
	return c.with("Authorization", k.Header())
}

// separated adds a token that has only the rights given to it.
func (c callers) separated(user, name string) caller {
	k := c.world.AddToken(pvesim.TokenSpec{User: user, Name: name})
	return c.with("Authorization", k.Header())
}

func (c caller) do(method, path string, pairs ...string) result {
	c.tb.Helper()
	return c.send(method, "/api2/json"+path, "application/x-www-form-urlencoded", form(pairs...).Encode())
}

// send makes a request; of GET and DELETE the body is the query.
func (c caller) send(method, path, contentType, body string) result {
	c.tb.Helper()
	if (method == http.MethodGet || method == http.MethodDelete) && body != "" {
		path, body = path+"?"+body, ""
	}
	req, err := http.NewRequestWithContext(c.tb.Context(), method, "http://pve1"+path, strings.NewReader(body))
	must(c.tb, err)
	if body != "" && contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	return c.request(req)
}

func (c caller) request(req *http.Request) result {
	c.tb.Helper()
	for name, value := range c.header {
		req.Header.Set(name, value)
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return result{reason: err.Error()}
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	must(c.tb, err)
	out := result{status: resp.StatusCode, reason: strings.TrimPrefix(resp.Status, fmt.Sprint(resp.StatusCode, " ")), body: string(raw)}
	var parsed struct {
		Data   any               `json:"data"`
		Errors map[string]string `json:"errors"`
	}
	if json.Unmarshal(raw, &parsed) == nil {
		out.data, out.errors = parsed.Data, parsed.Errors
	}
	return out
}

// wants makes a request and compares status and reason; a reason of OK stands for 200.
func (c caller) wants(want, method, path string, pairs ...string) result {
	c.tb.Helper()
	r := c.do(method, path, pairs...)
	got := fmt.Sprint(r.status, " ", r.reason)
	if len(r.errors) == 1 {
		for name, text := range r.errors {
			got = fmt.Sprint(r.status, " ", name, ": ", strings.TrimSpace(text))
		}
	}
	if want == "OK" {
		want = "200 OK"
	}
	if got != want {
		c.tb.Errorf("%s %s %v: %s, want %s", method, path, pairs, got, want)
	}
	return r
}

// shows makes a GET and compares its data.
func (c caller) shows(want any, path string, pairs ...string) {
	c.tb.Helper()
	r := c.wants("OK", http.MethodGet, path, pairs...)
	raw, err := json.Marshal(want)
	must(c.tb, err)
	var wanted any
	must(c.tb, json.Unmarshal(raw, &wanted))
	if diff := cmp.Diff(wanted, r.data); diff != "" {
		c.tb.Errorf("GET %s (-want +got):\n%s", path, diff)
	}
}

type (
	object = map[string]any
	list   = []any
)
