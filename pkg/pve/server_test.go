package pve_test

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
)

// upid is a task identifier as PVE 9.2 gave it.
const upid = "UPID:pve1:00004A26:000B4419:6B011318:qmclone:1200:root@pam!ci:"

var token = pve.TokenCredentials{ID: "capi@pve!t1", Secret: "5ec4e700-0000-4000-8000-000000000000"}

// jumpClock lets no one wait, and can be moved ahead.
type jumpClock struct {
	clock.RealClock
	ahead atomic.Int64
}

func (c *jumpClock) Now() time.Time                       { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *jumpClock) Since(t time.Time) time.Duration      { return c.Now().Sub(t) }
func (c *jumpClock) NewTimer(d time.Duration) clock.Timer { return c.RealClock.NewTimer(d / 1000) }
func (c *jumpClock) jump(d time.Duration)                 { c.ahead.Add(int64(d)) }

// serve runs a TLS server for the test and returns how to reach it.
func serve(t *testing.T, handler http.HandlerFunc) (*httptest.Server, pve.Config) {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // handshakes that fail on purpose
	server.StartTLS()
	t.Cleanup(server.Close)
	return server, pve.Config{
		Region: "test", Endpoints: []string{server.URL}, Credentials: token,
		TLS: pve.TLSConfig{CABundle: certificate(server)}, Options: pve.Options{Clock: &jumpClock{}},
	}
}

func certificate(server *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

// connect returns a client of a server that the handler makes up.
func connect(t *testing.T, handler http.HandlerFunc) *pve.Client {
	t.Helper()
	_, config := serve(t, handler)
	return newClient(t, config)
}

func newClient(t *testing.T, config pve.Config) *pve.Client {
	t.Helper()
	client, err := pve.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	return client
}

// answer writes {"data": …}.
func answer(w http.ResponseWriter, data string) { _, _ = fmt.Fprintf(w, `{"data":%s}`, data) }

// refuse answers with a reason phrase of PVE's, which net/http cannot, and closes the connection, as PVE does.
func refuse(t *testing.T, w http.ResponseWriter, status int, reason, body string) {
	t.Helper()
	text := fmt.Sprintf("HTTP/1.1 %d %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", status, reason, len(body), body)
	hangUp(t, w, text)
}

// hangUp writes something raw, or nothing, and closes the connection.
func hangUp(t *testing.T, w http.ResponseWriter, text string) {
	t.Helper()
	connection, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		t.Error(err)
		return
	}
	_, _ = io.WriteString(connection, text)
	_ = connection.Close()
}

// closedServer returns the address of a server that is not there any more.
func closedServer(t *testing.T) string {
	t.Helper()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	return server.URL
}

// journal counts what a server was asked.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) note(r *http.Request) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, r.Method+" "+strings.TrimPrefix(r.URL.Path, "/api2/json"))
	return len(j.lines)
}

func (j *journal) all() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]string(nil), j.lines...)
}

// syncBuffer is a buffer that several goroutines may write.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
