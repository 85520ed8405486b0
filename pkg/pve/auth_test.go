package pve_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
)

const password = "correct horse battery"

// ticketServer hands out tickets T1, T2 … and accepts the last one only.
type ticketServer struct {
	t *testing.T
	journal
	tickets atomic.Int64
	login   http.HandlerFunc
}

func (s *ticketServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.note(r)
	if r.URL.Path == "/api2/json/access/ticket" {
		s.grant(w, r)
		return
	}
	last := s.tickets.Load()
	switch {
	case r.Header.Get("Authorization") != "":
		s.t.Error("a token was sent as well")
	case r.Header.Get("Cookie") != fmt.Sprintf("PVEAuthCookie=T%d", last):
		refuse(s.t, w, 401, "No ticket", "")
	case r.Method != http.MethodGet && r.Header.Get("CSRFPreventionToken") != fmt.Sprintf("C%d", last):
		refuse(s.t, w, 401, "Permission denied - invalid csrf token", "")
	case r.Method == http.MethodGet:
		answer(w, `{"version":"9.2.11"}`)
	default:
		answer(w, `"`+upid+`"`)
	}
}

func (s *ticketServer) grant(w http.ResponseWriter, r *http.Request) {
	if s.login != nil {
		s.login(w, r)
		return
	}
	if r.FormValue("username") != "root@pam" || r.FormValue("password") != password {
		refuse(s.t, w, 401, "authentication failure", "")
		return
	}
	n := s.tickets.Add(1)
	answer(w, fmt.Sprintf(`{"ticket":"T%d","CSRFPreventionToken":"C%d","username":"root@pam"}`, n, n))
}

func (s *ticketServer) logins() int {
	count := 0
	for _, line := range s.all() {
		if strings.HasSuffix(line, "/access/ticket") {
			count++
		}
	}
	return count
}

func byPassword(t *testing.T) (*ticketServer, *jumpClock, *pve.Client) {
	t.Helper()
	server := &ticketServer{t: t}
	_, config := serve(t, server.ServeHTTP)
	clock := &jumpClock{}
	config.Options.Clock = clock
	config.Credentials = pve.PasswordCredentials{Username: "root@pam", Password: password}
	return server, clock, newClient(t, config)
}

func TestTicket(t *testing.T) {
	server, _, client := byPassword(t)
	if _, err := client.Version(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, r := range writes() {
		if _, err := r.send(t.Context(), client); err != nil {
			t.Errorf("%s: %v", r.name, err)
		}
	}
	if server.logins() != 1 {
		t.Errorf("logged in %d times", server.logins())
	}
}

func TestTicketIsRenewedInTime(t *testing.T) {
	server, clock, client := byPassword(t)
	for _, wait := range []time.Duration{0, 90 * time.Minute, 20 * time.Minute, time.Minute} {
		clock.jump(wait)
		if _, err := client.StartVM(t.Context(), vm101); err != nil {
			t.Fatal(err)
		}
	}
	if server.logins() != 2 {
		t.Errorf("logged in %d times in two hours, want 2", server.logins())
	}
}

// TestTicketRefused: PVE forgets tickets when its key changes. The request was not executed and is sent once more.
func TestTicketRefused(t *testing.T) {
	server, _, client := byPassword(t)
	if _, err := client.Version(t.Context()); err != nil {
		t.Fatal(err)
	}
	server.tickets.Add(1)
	if _, err := client.StartVM(t.Context(), vm101); err != nil {
		t.Fatal(err)
	}
	want := []string{"POST /access/ticket", "GET /version", "POST /nodes/pve1/qemu/101/status/start", "POST /access/ticket", "POST /nodes/pve1/qemu/101/status/start"}
	if diff := cmp.Diff(want, server.all()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestTicketRefusedForUpload(t *testing.T) {
	server, _, client := byPassword(t)
	if _, err := client.Version(t.Context()); err != nil {
		t.Fatal(err)
	}
	server.tickets.Add(1)
	upload := pve.UploadRequest{Node: "pve1", Storage: "local", Filename: "a.iso", Content: []byte("x")}
	if _, err := client.UploadISO(t.Context(), upload); pve.ClassOf(err) != pve.Unauthorized {
		t.Errorf("got %v", err)
	}
	if _, err := client.UploadISO(t.Context(), upload); err != nil {
		t.Errorf("the next upload: %v", err)
	}
}

// TestWrongPassword must not be tried with every request: users get locked out.
func TestWrongPassword(t *testing.T) {
	server, clock, client := byPassword(t)
	server.login = func(w http.ResponseWriter, _ *http.Request) { refuse(t, w, 401, "authentication failure", "") }
	var group sync.WaitGroup
	for range 10 {
		group.Go(func() {
			_, err := client.StartVM(t.Context(), vm101)
			if pve.ClassOf(err) != pve.Unauthorized || strings.Contains(err.Error(), password) {
				t.Errorf("got %v", err)
			}
		})
	}
	group.Wait()
	if server.logins() != 1 {
		t.Errorf("tried %d times", server.logins())
	}
	server.login = nil
	clock.jump(time.Minute)
	if _, err := client.StartVM(t.Context(), vm101); err != nil {
		t.Errorf("after the password was put right: %v", err)
	}
}

// TestLoginThatFails leaves no doubt: the write was not sent.
func TestLoginThatFails(t *testing.T) {
	logins := map[string]http.HandlerFunc{
		"no answer":     func(w http.ResponseWriter, _ *http.Request) { hangUp(t, w, "") },
		"gateway":       func(w http.ResponseWriter, _ *http.Request) { refuse(t, w, 502, "Bad Gateway", "") },
		"second factor": func(w http.ResponseWriter, _ *http.Request) { answer(w, `{"ticket":"PVE:!tfa!x"}`) },
		"no ticket":     func(w http.ResponseWriter, _ *http.Request) { answer(w, `{}`) },
		"no JSON":       func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) },
	}
	for name, login := range logins {
		server, _, client := byPassword(t)
		server.login = login
		_, err := client.StartVM(t.Context(), vm101)
		if class := pve.ClassOf(err); class == pve.None || class == pve.Ambiguous {
			t.Errorf("%s: %v of class %v", name, err, class)
		}
		for _, line := range server.all() {
			if !strings.HasSuffix(line, "/access/ticket") {
				t.Errorf("%s: sent %s", name, line)
			}
		}
	}
}

func TestConcurrentRequestsShareOneLogin(t *testing.T) {
	server, _, client := byPassword(t)
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			if _, err := client.Version(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if server.logins() != 1 {
		t.Errorf("logged in %d times", server.logins())
	}
}
