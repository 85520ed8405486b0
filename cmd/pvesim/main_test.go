package main

import (
	"bytes"
	"context"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
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

func TestRunPrintsTheEnvironmentAndCleansUp(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	out := &output{}
	done := make(chan error, 1)
	go func() { done <- run(ctx, []string{"-nodes", "1", "-pve-version", "8.4", "-templates", "a,b"}, out) }()
	line := regexp.MustCompile(`^export PVE_URL=https://127\.0\.0\.1:\d+ PVE_TOKEN_ID='root@pam!pvesim' PVE_TOKEN_SECRET=\S{36} PVE_CA_FILE=(\S+)\n`)
	for deadline := time.Now().Add(10 * time.Second); !line.MatchString(out.String()); <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("printed %q", out.String())
		}
	}
	file := line.FindStringSubmatch(out.String())[1]
	if pem, err := os.ReadFile(file); err != nil || !strings.Contains(string(pem), "BEGIN CERTIFICATE") {
		t.Errorf("CA file: %v", err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("CA file is left: %v", err)
	}
}

func TestBadFlags(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-pve-version", "7.0"}, {"-nodes", "x"}, {"-listen", "nowhere"}} {
		if err := run(t.Context(), args, &output{}); err == nil {
			t.Errorf("%v is accepted", args)
		}
	}
}
