package pvesim_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// api speaks to a simulated Proxmox VE over HTTPS, as any client would.
type api struct {
	t      *testing.T
	server *pvesim.Server
	client *http.Client
	// patience is how long to wait for the end of a task, looking every so often.
	patience, every time.Duration
}

// result is an answer: the reason phrase is where Proxmox VE puts its messages.
type result struct {
	status int
	reason string
	body   string
	data   any
	errors map[string]string
}

func newAPI(t *testing.T, opts ...pvesim.Option) *api {
	t.Helper()
	s := pvesim.Run(t, append([]pvesim.Option{pvesim.WithSpeed(200)}, opts...)...)
	return &api{t: t, server: s, client: s.Client(), patience: patience, every: moment}
}

// virtually runs a test in a bubble, with a world and root's api to it. What takes minutes there takes no time, and is the same in every
// run; so tests that look at what is under way belong here.
func virtually(t *testing.T, test func(*testing.T, *api), opts ...pvesim.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, opts...)
		token := w.AddToken(pvesim.TokenSpec{User: "root@pam", Name: "pvesim", Unseparated: true})
		test(t, &api{
			t: t, server: &pvesim.Server{URL: "https://pve", World: w, Token: token},
			client: &http.Client{Transport: signed{w.Transport("pve1"), token}}, patience: time.Hour, every: time.Second / 10,
		})
	})
}

func form(pairs ...string) url.Values {
	v := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		v.Add(pairs[i], pairs[i+1])
	}
	return v
}

// do makes a request; params go into the query of GET and DELETE, into the form of others.
func (a *api) do(method, path string, pairs ...string) result {
	a.t.Helper()
	address, body := a.server.URL+"/api2/json"+path, ""
	if values := form(pairs...).Encode(); method == http.MethodGet || method == http.MethodDelete {
		address += "?" + values
	} else {
		body = values
	}
	req, err := http.NewRequestWithContext(a.t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return a.send(req)
}

func (a *api) send(req *http.Request) result {
	a.t.Helper()
	resp, err := a.client.Do(req)
	if err != nil {
		return result{reason: err.Error()}
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		a.t.Fatalf("read answer of %s %s: %v", req.Method, req.URL.Path, err)
	}
	_, reason, _ := strings.Cut(resp.Status, " ")
	out := result{status: resp.StatusCode, reason: reason, body: string(raw)}
	var parsed struct {
		Data   any               `json:"data"`
		Errors map[string]string `json:"errors"`
	}
	if json.Unmarshal(raw, &parsed) == nil {
		out.data, out.errors = parsed.Data, parsed.Errors
	}
	return out
}

// must makes a request that has to succeed and returns its data.
func (a *api) must(method, path string, pairs ...string) any {
	a.t.Helper()
	r := a.do(method, path, pairs...)
	if r.status != http.StatusOK {
		a.t.Fatalf("%s %s %v: %d %s %s", method, path, pairs, r.status, r.reason, r.body)
	}
	return r.data
}

func (a *api) object(path string, pairs ...string) map[string]any {
	a.t.Helper()
	out, ok := a.must(http.MethodGet, path, pairs...).(map[string]any)
	if !ok {
		a.t.Fatalf("GET %s gave no object", path)
	}
	return out
}

// exit waits for the task that a request started and returns its exit status.
func (a *api) exit(method, path string, pairs ...string) string {
	a.t.Helper()
	return a.wait(a.must(method, path, pairs...))
}

func (a *api) wait(upid any) string {
	a.t.Helper()
	node := strings.Split(fmt.Sprint(upid), ":")[1]
	deadline := time.Now().Add(a.patience)
	for time.Now().Before(deadline) {
		status := a.object(fmt.Sprintf("/nodes/%s/tasks/%s/status", node, upid))
		if status["status"] == "stopped" {
			return fmt.Sprint(status["exitstatus"])
		}
		<-time.After(a.every)
	}
	a.t.Fatalf("task %s does not end", upid)
	return ""
}

// patience is how long tests wait on real clocks for what must come: a machine may be loaded.
const patience = time.Minute

const moment = 2 * time.Millisecond

// poll waits a moment between two looks.
func poll() { <-time.After(moment) }

// eventually waits for a condition.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); poll() {
		if is() {
			return
		}
	}
	t.Fatalf("%s: never", what)
}

// ok fails the test unless the task that a request starts ends well.
func (a *api) ok(method, path string, pairs ...string) {
	a.t.Helper()
	if exit := a.exit(method, path, pairs...); exit != "OK" {
		a.t.Fatalf("%s %s %v: task ended with %q", method, path, pairs, exit)
	}
}

type field struct{ name, value string }

// upload sends a multipart request with the fields in the given order and the file last.
func (a *api) upload(path, name string, content []byte, fields ...field) result {
	a.t.Helper()
	body := &bytes.Buffer{}
	w := multipart.NewWriter(body)
	for _, f := range fields {
		_ = w.WriteField(f.name, f.value)
	}
	part, err := w.CreateFormFile("filename", name)
	if err != nil {
		a.t.Fatal(err)
	}
	_, _ = part.Write(content)
	_ = w.Close()
	req, err := http.NewRequestWithContext(a.t.Context(), http.MethodPost, a.server.URL+"/api2/json"+path, body)
	if err != nil {
		a.t.Fatal(err)
	}
	req.Header.Set("Content-Type", w.FormDataContentType())
	return a.send(req)
}

// uploadISO uploads with a checksum and waits.
func (a *api) uploadISO(node, storage, name string, content []byte) {
	a.t.Helper()
	sum := sha256.Sum256(content)
	r := a.upload("/nodes/"+node+"/storage/"+storage+"/upload", name, content,
		field{"content", "iso"}, field{"checksum-algorithm", "sha256"}, field{"checksum", hex.EncodeToString(sum[:])})
	if r.status != http.StatusOK {
		a.t.Fatalf("upload %s: %d %s", name, r.status, r.reason)
	}
	if exit := a.wait(r.data); exit != "OK" {
		a.t.Fatalf("upload %s: task ended with %q", name, exit)
	}
}
