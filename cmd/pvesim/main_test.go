package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// output can be read while it is written.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// start runs pvesim until stop is called; it returns what was printed once all of it was.
func start(t *testing.T, args ...string) (printed string, stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out := &output{}
	done := make(chan error, 1)
	go func() { done <- run(ctx, args, out) }()
	for deadline := time.Now().Add(10 * time.Second); !strings.Contains(out.String(), "# curl"); <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("printed %q", out.String())
		}
	}
	return out.String(), func() error { cancel(); return <-done }
}

func TestRunPrintsTheEnvironmentAndCleansUp(t *testing.T) {
	t.Parallel()
	printed, stop := start(t, "-nodes", "2", "-pve-version", "8.4", "-templates", "a,b")
	line := regexp.MustCompile(`^export PVE_URL=https://127\.0\.0\.1:\d+ PVE_TOKEN_ID='root@pam!pvesim' PVE_TOKEN_SECRET=\S{36} PVE_CA_FILE=(\S+)\n# pve2: https://127.0.0.1:\d+\n`)
	match := line.FindStringSubmatch(printed)
	if match == nil {
		t.Fatalf("printed %q", printed)
	}
	if pem, err := os.ReadFile(match[1]); err != nil || !strings.Contains(string(pem), "BEGIN CERTIFICATE") {
		t.Errorf("CA file: %v", err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(match[1]); !os.IsNotExist(err) {
		t.Errorf("CA file is left: %v", err)
	}
}

func TestAWorldIsDumpedAndLoadedAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, second := filepath.Join(dir, "first.yaml"), filepath.Join(dir, "second.yaml")
	_, stop := start(t, "-nodes", "2", "-cpus", "8", "-dump", first)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	_, stop = start(t, "-load", first, "-dump", second)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	want, _ := os.ReadFile(first)
	got, _ := os.ReadFile(second)
	if diff := cmp.Diff(string(want), string(got)); diff != "" || !strings.Contains(string(want), "cpus: 8") {
		t.Errorf("the world differs (-dumped +loaded and dumped):\n%s", diff)
	}
}

func TestTheStateIsShownWhileItRuns(t *testing.T) {
	t.Parallel()
	printed, stop := start(t, "-nodes", "1", "-templates", "")
	values := regexp.MustCompile(`PVE_URL=(\S+) .*PVE_CA_FILE=(\S+)`).FindStringSubmatch(printed)
	roots := x509.NewCertPool()
	pem, _ := os.ReadFile(values[2])
	roots.AppendCertsFromPEM(pem)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
	for path, want := range map[string]string{
		"/pvesim/state": "name: pve1", "/pvesim/coverage": `"path":"/nodes/{node}/qemu/{vmid}/clone"`, "/pvesim/check": "[]", "/pvesim/x": "pvesim itself has",
	} {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, values[1]+path, nil)
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if !strings.Contains(string(body), want) {
			t.Errorf("%s is %.200s, want %s in it", path, body, want)
		}
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestBadFlags(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "world.yaml")
	if err := os.WriteFile(file, []byte("nodes: [{name: pve1, cpu: 4}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		`parse Proxmox VE version "7.0"`: {"-pve-version", "7.0"},
		`invalid value "x"`:              {"-nodes", "x"},
		"listen on nowhere":              {"-listen", "nowhere"},
		`unknown argument "pve1"`:        {"pve1"},
		"no such file":                   {"-load", file + "x"},
		`unknown field "cpu"`:            {"-load", file},
	} {
		if err := run(t.Context(), args, &output{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error is %v, want %s", args, err, want)
		}
	}
}
