package pve_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
)

func TestErrorKeepsReasonAndBody(t *testing.T) {
	body := `{"data":null,"message":"Parameter verification failed.\nmore\n","errors":{"cores":"type check ('integer') failed - got 'x'\n","n":7}}`
	client := connect(t, func(w http.ResponseWriter, _ *http.Request) {
		refuse(t, w, 400, "Parameter verification failed.", body)
	})
	err := client.UpdateConfig(t.Context(), pve.ConfigUpdate{VM: vm101, Set: map[string]string{"cores": "x"}})
	want := &pve.Error{
		Region: "test", Method: "PUT", Path: "/nodes/pve1/qemu/101/config", Status: 400, Reason: "Parameter verification failed.",
		Message: "Parameter verification failed.\nmore", Params: map[string]string{"cores": "type check ('integer') failed - got 'x'", "n": "7"},
	}
	if diff := cmp.Diff(error(want), err); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
}

// TestEveryRefusalIsAnError: go-proxmox takes all but five statuses for success.
func TestEveryRefusalIsAnError(t *testing.T) {
	for _, status := range []int{301, 304, 400, 401, 403, 404, 409, 429, 500, 501, 502, 503, 504, 595, 596, 599} {
		for _, body := range []string{"", `{"data":null}`, `{"data":"` + upid + `"}`, "<html>", `{"message":{"a":[1]},"errors":7}`, `[]`} {
			client := connect(t, func(w http.ResponseWriter, _ *http.Request) { refuse(t, w, status, "because", body) })
			for _, r := range requests() {
				if len(r.line)%3 != 0 && body != "" {
					continue // a third of the requests does for the bodies
				}
				_, err := r.send(t.Context(), client)
				failure := (*pve.Error)(nil)
				if !errors.As(err, &failure) || failure.Status != status || failure.Reason != "because" {
					t.Errorf("%s answered %d %s: got %v", r.name, status, body, err)
				}
			}
		}
	}
}

func TestOddSuccess(t *testing.T) {
	for _, body := range []string{"", "null", "{}", `{"data":null}`, `{"data":""}`, `{"data":7}`, `{"data":"UPID:pve1"}`, "<html>", `[]`} {
		client := connect(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, body) })
		if upid, err := client.StartVM(t.Context(), vm101); pve.ClassOf(err) != pve.Ambiguous {
			t.Errorf("start answered %q: %q, %v", body, upid, err)
		}
		if upid, err := client.DestroyVM(t.Context(), pve.DestroyRequest{VM: vm101}); pve.ClassOf(err) != pve.Ambiguous {
			t.Errorf("destroy answered %q: %q, %v", body, upid, err)
		}
		if list, err := client.Resources(t.Context()); err == nil {
			t.Errorf("resources answered %q: %v", body, list)
		}
	}
}

// TestRedirectIsNotFollowed: it would carry the token elsewhere and make a read of a write.
func TestRedirectIsNotFollowed(t *testing.T) {
	other, _ := serve(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("followed to %s", r.URL) })
	client := connect(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, http.StatusFound) })
	if _, err := client.Version(t.Context()); err == nil {
		t.Error("a redirect is a success")
	}
	if _, err := client.StartVM(t.Context(), vm101); err == nil {
		t.Error("a redirect is a success")
	}
}

func TestReadsAreRepeated(t *testing.T) {
	var seen journal
	client := connect(t, func(w http.ResponseWriter, r *http.Request) {
		switch seen.note(r) {
		case 1:
			hangUp(t, w, "")
		case 2:
			refuse(t, w, 596, "Connection timed out", "")
		default:
			answer(w, `{"version":"9.2.11"}`)
		}
	})
	version, err := client.Version(t.Context())
	if err != nil || version.Version != "9.2.11" {
		t.Errorf("got %v, %v after %v", version, err, seen.all())
	}
}

func TestReadsAreNotRepeatedForEver(t *testing.T) {
	cases := []struct {
		status int
		reason string
		sent   int
	}{
		{596, "Connection timed out", 3},
		{595, "Connection refused", 3},
		{595, "No route to host", 1},
		{503, "Busy", 3},
		{500, "VM is locked (clone)", 1},
		{401, "No ticket", 1},
		{403, "Permission check failed", 1},
	}
	for _, c := range cases {
		var seen journal
		client := connect(t, func(w http.ResponseWriter, r *http.Request) {
			seen.note(r)
			refuse(t, w, c.status, c.reason, "")
		})
		if _, err := client.VMConfig(t.Context(), vm101); err == nil || len(seen.all()) != c.sent {
			t.Errorf("%d %s: %v after %d requests, want %d", c.status, c.reason, err, len(seen.all()), c.sent)
		}
	}
}

// TestWritesAreSentOnce: whatever happens after a write was sent, it is not sent again, nor to another endpoint.
func TestWritesAreSentOnce(t *testing.T) {
	fates := map[string]func(*testing.T, http.ResponseWriter){
		"no answer": func(t *testing.T, w http.ResponseWriter) { t.Helper(); hangUp(t, w, "") },
		"half an answer": func(t *testing.T, w http.ResponseWriter) {
			t.Helper()
			hangUp(t, w, "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{")
		},
		"596":     func(t *testing.T, w http.ResponseWriter) { t.Helper(); refuse(t, w, 596, "Connection timed out", "") },
		"gateway": func(t *testing.T, w http.ResponseWriter) { t.Helper(); refuse(t, w, 504, "Gateway Timeout", "") },
	}
	for name, fate := range fates {
		t.Run(name, func(t *testing.T) {
			var seen journal
			_, config := serve(t, func(w http.ResponseWriter, r *http.Request) {
				seen.note(r)
				fate(t, w)
			})
			second, _ := serve(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s was sent again", r.URL) })
			config.Endpoints = append(config.Endpoints, second.URL)
			for _, r := range writes() {
				client := newClient(t, config) // a new one each: a failed endpoint is left
				before := len(seen.all())
				_, err := r.send(t.Context(), client)
				if pve.ClassOf(err) != pve.Ambiguous || len(seen.all()) != before+1 {
					t.Errorf("%s: %v of class %v after %d requests", r.name, err, pve.ClassOf(err), len(seen.all())-before)
				}
			}
		})
	}
}

func TestUnsentWritesGoToTheNextEndpoint(t *testing.T) {
	var seen journal
	server, config := serve(t, func(w http.ResponseWriter, r *http.Request) {
		seen.note(r)
		if err := r.ParseMultipartForm(1 << 20); err != nil && r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "upload") {
			t.Error(err)
		}
		answer(w, `"`+upid+`"`)
	})
	config.Endpoints = []string{closedServer(t), server.URL}
	for _, r := range writes() {
		client := newClient(t, config)
		if _, err := r.send(t.Context(), client); err != nil {
			t.Errorf("%s: %v", r.name, err)
		}
	}
	if len(seen.all()) != len(writes()) {
		t.Errorf("sent %v", seen.all())
	}
}

// TestNodeDaemonAway: pveproxy's 595 proves that nothing happened, and the node's own endpoint may do.
func TestNodeDaemonAway(t *testing.T) {
	first, config := serve(t, func(w http.ResponseWriter, _ *http.Request) { refuse(t, w, 595, "Connection refused", "") })
	second, other := serve(t, func(w http.ResponseWriter, _ *http.Request) { answer(w, `"`+upid+`"`) })
	config.Endpoints = []string{first.URL, second.URL}
	config.TLS.CABundle = append(config.TLS.CABundle, other.TLS.CABundle...)
	if _, err := newClient(t, config).StartVM(t.Context(), vm101); err != nil {
		t.Error(err)
	}
	config.Endpoints = []string{first.URL, closedServer(t)}
	_, err := newClient(t, config).StartVM(t.Context(), vm101)
	if failure := (*pve.Error)(nil); pve.ClassOf(err) != pve.Unreachable || !errors.As(err, &failure) || failure.Status != 595 {
		t.Errorf("got %v: the 595 tells more than the endpoint that is away", err)
	}
}

func TestAllEndpointsDown(t *testing.T) {
	config := pve.Config{
		Region: "test", Endpoints: []string{closedServer(t), closedServer(t)}, Credentials: token, Options: pve.Options{Clock: &jumpClock{}},
	}
	client := newClient(t, config)
	for _, r := range requests() {
		if _, err := r.send(t.Context(), client); pve.ClassOf(err) != pve.Unreachable {
			t.Errorf("%s: %v of class %v", r.name, err, pve.ClassOf(err))
		}
	}
}

// TestEndpointThatWorksIsKept: the first endpoint is not tried with every request while it is down, but again after a while.
func TestEndpointThatWorksIsKept(t *testing.T) {
	var first, second journal
	var down atomic.Bool
	down.Store(true)
	preferred, config := serve(t, func(w http.ResponseWriter, r *http.Request) {
		first.note(r)
		if down.Load() {
			hangUp(t, w, "")
			return
		}
		answer(w, `{}`)
	})
	spare, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		second.note(r)
		answer(w, `{}`)
	})
	clock := &jumpClock{}
	config.Endpoints, config.Options.Clock = []string{preferred.URL, spare.URL}, clock
	client := newClient(t, config)
	ask := func(times int) {
		t.Helper()
		for range times {
			if _, err := client.Version(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	expect := func(wantFirst, wantSecond int) {
		t.Helper()
		if len(first.all()) != wantFirst || len(second.all()) != wantSecond {
			t.Fatalf("asked %d and %d times, want %d and %d", len(first.all()), len(second.all()), wantFirst, wantSecond)
		}
	}
	ask(5)
	expect(1, 5)
	clock.jump(2 * time.Minute)
	ask(5) // one probe
	expect(2, 10)
	down.Store(false)
	clock.jump(2 * time.Minute)
	ask(1)
	expect(3, 10)
	ask(5)
	if len(first.all()) != 8 {
		t.Errorf("after it came back the first endpoint was asked %d times, want 8", len(first.all()))
	}
}

func TestRequestsPerNodeAreLimited(t *testing.T) {
	g := NewWithT(t)
	var mu sync.Mutex
	now := map[string]int{}
	most := map[string]int{}
	release := make(chan struct{})
	_, config := serve(t, func(w http.ResponseWriter, r *http.Request) {
		node := strings.Split(r.URL.Path, "/")[4]
		mu.Lock()
		now[node]++
		most[node] = max(most[node], now[node])
		mu.Unlock()
		<-release
		mu.Lock()
		now[node]--
		mu.Unlock()
		answer(w, `{}`)
	})
	config.Options.MaxRequestsPerNode = 2
	client := newClient(t, config)
	var group sync.WaitGroup
	for i := range 12 {
		group.Go(func() {
			node := proxmox.NodeName([]string{"pve1", "pve2"}[i%2])
			if _, err := client.VMConfig(t.Context(), pve.VMRef{Node: node, ID: 101}); err != nil {
				t.Error(err)
			}
		})
	}
	g.Eventually(func() int { mu.Lock(); defer mu.Unlock(); return now["pve1"] + now["pve2"] }, "5s").Should(Equal(4))
	// A third one for a busy node waits, and stops waiting when its context ends.
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := client.StartVM(ctx, vm101); pve.ClassOf(err) != pve.Unreachable || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a request that never got its turn: %v of class %v", err, pve.ClassOf(err))
	}
	close(release)
	group.Wait()
	if diff := cmp.Diff(map[string]int{"pve1": 2, "pve2": 2}, most); diff != "" {
		t.Errorf("requests under way at a time (-want +got):\n%s", diff)
	}
}

func TestCanceledWriteIsAmbiguous(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	client := connect(t, func(http.ResponseWriter, *http.Request) { close(arrived); <-release })
	defer close(release)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-arrived; cancel() }()
	_, err := client.StartVM(ctx, vm101)
	if pve.ClassOf(err) != pve.Ambiguous || !pve.IsCanceled(err) {
		t.Errorf("got %v of class %v", err, pve.ClassOf(err))
	}
}

// TestImpatientCallerDoesNotMoveTheEndpoint: that a caller's time is up says nothing about the server.
func TestImpatientCallerDoesNotMoveTheEndpoint(t *testing.T) {
	release := make(chan struct{})
	var first journal
	_, config := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if first.note(r) == 1 {
			<-release
		}
		answer(w, `{}`)
	})
	second, _ := serve(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("went elsewhere with %s", r.URL) })
	config.Endpoints = append(config.Endpoints, second.URL)
	client := newClient(t, config)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if _, err := client.Version(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	close(release)
	if _, err := client.Version(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestTimeoutOfWriteIsAmbiguous(t *testing.T) {
	release := make(chan struct{})
	_, config := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			answer(w, `{}`)
			return
		}
		<-release
	})
	defer close(release)
	config.Options.RequestTimeout = time.Second
	client := newClient(t, config)
	for connected := false; !connected; { // first: who has no connection in time has sent nothing
		_, err := client.Version(t.Context())
		connected = err == nil
	}
	_, err := client.StartVM(t.Context(), vm101)
	if pve.ClassOf(err) != pve.Ambiguous || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v of class %v", err, pve.ClassOf(err))
	}
}

func TestEndlessAnswerIsCut(t *testing.T) {
	if testing.Short() {
		t.Skip("moves 64 MiB")
	}
	client := connect(t, func(w http.ResponseWriter, _ *http.Request) {
		block := make([]byte, 1<<20)
		for range 70 {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	})
	_, err := client.StartVM(t.Context(), vm101)
	if pve.ClassOf(err) != pve.Ambiguous || !strings.Contains(err.Error(), "too long") {
		t.Errorf("got %v", err)
	}
}
