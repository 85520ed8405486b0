package process

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func start(t *testing.T, script string) *Process {
	t.Helper()
	process, err := Start(Command{
		Name: "child", Path: "/bin/sh", Args: []string{"-c", script}, Env: []string{"GREETING=hello"}, LogDir: t.TempDir(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { process.Stop(0) })
	return process
}

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

// deadline is far more than anything here takes.
const deadline = 20 * time.Second

// logs waits until the process's log contains the text, and returns the log.
func logs(t *testing.T, process *Process, text string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	var content []byte
	err := process.WaitReady(ctx, func(context.Context) (err error) {
		if content, err = os.ReadFile(process.Log()); err == nil && !strings.Contains(string(content), text) {
			err = errors.New("not yet")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestOutputGoesToTheLog(t *testing.T) {
	process := start(t, `echo $GREETING; echo trouble >&2; exec sleep 60`)
	if content := logs(t, process, "trouble"); !strings.Contains(content, "hello") {
		t.Errorf("got log %q", content)
	}
	info, err := os.Stat(process.Log())
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the log has mode %v: logs hold secrets", info.Mode())
	}
}

func TestStopEndsTheProcess(t *testing.T) {
	process := start(t, `trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done`)
	logs(t, process, "up")
	process.Stop(deadline)
	if alive(process.PID()) {
		t.Error("the process lives")
	}
	if content, err := os.ReadFile(process.Log()); err != nil || !strings.Contains(string(content), "bye") {
		t.Errorf("it was not asked first: log %q, %v", content, err)
	}
	process.Stop(deadline) // again, of no effect
}

func TestStopKillsWhatDoesNotEnd(t *testing.T) {
	process := start(t, `trap '' TERM; echo up; while :; do sleep 0.05; done`)
	logs(t, process, "up")
	process.Stop(100 * time.Millisecond)
	if alive(process.PID()) {
		t.Error("the process lives")
	}
}

func TestStopKillsGrandchildren(t *testing.T) {
	process := start(t, `sleep 300 & echo "grandchild $! end"; wait`)
	_, rest, _ := strings.Cut(logs(t, process, " end"), "grandchild ")
	grandchild, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	process.Stop(deadline)
	for end := time.Now().Add(deadline); alive(grandchild) && time.Now().Before(end); {
		// It is killed, and gone when its adoptive parent has noticed.
		if zombie(grandchild) {
			return
		}
	}
	if alive(grandchild) {
		t.Error("the grandchild lives")
	}
}

func zombie(pid int) bool {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && strings.Contains(string(status), ") Z ")
}

// Ctrl-C in a terminal goes to its process group: the sandbox stops its children in order, so they must be in others.
func TestProcessHasAGroupOfItsOwn(t *testing.T) {
	process := start(t, `exec sleep 60`)
	group, err := syscall.Getpgid(process.PID())
	if err != nil {
		t.Fatal(err)
	}
	if group != process.PID() || group == syscall.Getpgrp() {
		t.Errorf("process %d is in group %d, we in %d", process.PID(), group, syscall.Getpgrp())
	}
}

func TestWaitReadyFailsWhenTheProcessEnds(t *testing.T) {
	process := start(t, `echo "bind: address already in use"; exit 3`)
	err := process.WaitReady(t.Context(), func(context.Context) error { return errors.New("connection refused") })
	if err == nil || !strings.Contains(err.Error(), "address already in use") || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("got %v, want the log and the exit status", err)
	}
}

func TestWaitReadyEndsWithTheContext(t *testing.T) {
	process := start(t, `exec sleep 60`)
	ctx, cancel := context.WithTimeout(t.Context(), 120*time.Millisecond)
	defer cancel()
	refused := errors.New("connection refused")
	err := process.WaitReady(ctx, func(context.Context) error { return refused })
	if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, refused) {
		t.Errorf("got %v, want the deadline and what was wrong", err)
	}
}

func TestStartSaysWhatCannotStart(t *testing.T) {
	_, err := Start(Command{Name: "etcd", Path: "/does/not/exist", LogDir: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "start etcd") {
		t.Errorf("got %v", err)
	}
	if _, err := Start(Command{Name: "etcd", Path: "/bin/true", LogDir: "/does/not/exist"}); err == nil {
		t.Error("started without a place for its log")
	}
}

func TestStopOfNothing(*testing.T) {
	var none *Process
	none.Stop(time.Second)
}

func TestTailKeepsTheEnd(t *testing.T) {
	path := t.TempDir() + "/log"
	if err := os.WriteFile(path, []byte(strings.Repeat("an early line\n", 1000)+"the last line\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := tail(path)
	if len(got) > logTail || !strings.HasSuffix(got, "the last line\n") || !strings.HasPrefix(got, "an early line\n") {
		t.Errorf("got %d bytes: %q", len(got), got)
	}
}
