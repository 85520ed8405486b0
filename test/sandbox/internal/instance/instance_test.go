package instance

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func named(t *testing.T, name string) *Instance {
	t.Helper()
	found, err := Named(name)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func acquire(t *testing.T, name string) *Instance {
	t.Helper()
	acquired := named(t, name)
	if err := acquired.Acquire(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(acquired.Release)
	return acquired
}

// isolate gives the test a cache directory of its own.
func isolate(t *testing.T) (cache string) {
	t.Helper()
	cache = t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv("HOME", cache)
	return cache
}

func TestNames(t *testing.T) {
	isolate(t)
	for _, good := range []string{"default", "a", "a-1", strings.Repeat("x", 32)} {
		if _, err := Named(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{"", "A", "-a", "a-", "../../etc", "a/b", "a b", strings.Repeat("x", 33)} {
		if _, err := Named(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func TestLife(t *testing.T) {
	cache := isolate(t)
	if _, err := named(t, "demo").Running(); !errors.Is(err, ErrNotRunning) {
		t.Errorf("before: got %v", err)
	}
	running := acquire(t, "demo")
	if _, err := named(t, "demo").Running(); err == nil || !strings.Contains(err.Error(), "starting") {
		t.Errorf("while it starts: got %v", err)
	}
	want := Record{PID: 1234, Started: time.Now().Round(0).UTC(), Kubeconfig: "/k", ProxmoxURL: "https://127.0.0.1:1", Logs: "/l"}
	if err := running.Publish(want); err != nil {
		t.Fatal(err)
	}
	if got, err := named(t, "demo").Running(); err != nil || got != want {
		t.Errorf("while it runs: got %+v, %v", got, err)
	}
	running.Release()
	if _, err := named(t, "demo").Running(); !errors.Is(err, ErrNotRunning) {
		t.Errorf("after: got %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(cache, "capve", "run", "*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestOneOfAName(t *testing.T) {
	isolate(t)
	acquire(t, "demo")
	if err := named(t, "demo").Acquire(); err == nil || !strings.Contains(err.Error(), "capve sandbox down --name demo") {
		t.Errorf("got %v, want what to do about it", err)
	}
	acquire(t, "other")
}

// A sandbox that was killed leaves its files; the lock went with it.
func TestStaleFilesAreCleared(t *testing.T) {
	isolate(t)
	stale := named(t, "demo")
	if err := os.MkdirAll(stale.Dir(), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{stale.lockFile(), stale.recordFile(), filepath.Join(stale.Dir(), "old")} {
		if err := os.WriteFile(file, []byte(`{"pid":1}`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := named(t, "demo").Running(); !errors.Is(err, ErrNotRunning) {
		t.Errorf("got %v", err)
	}
	if err := named(t, "demo").Stop(t.Context()); !errors.Is(err, ErrNotRunning) {
		t.Errorf("stop: got %v", err)
	}
	if _, err := os.Stat(stale.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("stop left the files of a killed sandbox: %v", err)
	}
	acquire(t, "demo")
	if _, err := os.Stat(filepath.Join(stale.Dir(), "old")); !errors.Is(err, os.ErrNotExist) {
		t.Error("the killed sandbox's data is there for its successor")
	}
}
