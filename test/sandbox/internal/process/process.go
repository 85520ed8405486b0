// Package process runs the sandbox's child processes: each in its own process group, so that Ctrl-C in a terminal
// reaches only the sandbox, which then stops them in order; with its output in a log file; and, on Linux, killed by
// the kernel should the sandbox die without stopping it.
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// Command says what to run.
type Command struct {
	// Name is how messages call the process; its log is <LogDir>/<Name>.log.
	Name string
	// Path is the program, Args are its arguments without the program's name.
	Path string
	Args []string
	// Env is added to the sandbox's own environment.
	Env []string
	// LogDir is where the log goes; it must exist.
	LogDir string
}

// Process is a running or ended child process.
type Process struct {
	name string
	log  string
	pid  int
	done chan struct{}
	err  error // valid once done is closed
}

// pollEvery is how often WaitReady looks.
const pollEvery = 50 * time.Millisecond

// logTail is how much of a failed process's log its error quotes.
const logTail = 2000

// Start starts the process. It does not wait until the process is of use: see WaitReady.
func Start(command Command) (*Process, error) {
	log := filepath.Join(command.LogDir, command.Name+".log")
	output, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log of %s: %w", command.Name, err)
	}
	cmd := exec.Command(command.Path, command.Args...)
	cmd.Env = append(os.Environ(), command.Env...)
	cmd.Stdout, cmd.Stderr = output, output
	cmd.SysProcAttr = attributes()

	process := &Process{name: command.Name, log: log, done: make(chan struct{})}
	started := make(chan error, 1)
	go process.run(cmd, output, started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", command.Name, err)
	}
	return process, nil
}

// run owns the process from start to end on one operating system thread: Linux delivers the parent-death signal when
// the *thread* that forked the child ends, not the process.
func (p *Process) run(cmd *exec.Cmd, output *os.File, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer func() { _ = output.Close() }()

	if err := cmd.Start(); err != nil {
		started <- err
		return
	}
	p.pid = cmd.Process.Pid
	started <- nil
	p.err = cmd.Wait()
	close(p.done)
}

// PID is the process's id, which is also its process group's.
func (p *Process) PID() int { return p.pid }

// Log is the path of the process's log file.
func (p *Process) Log() string { return p.log }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// WaitReady waits until check succeeds. It fails when the process ends first, with the end of its log, or when the
// context ends, with the last error of check.
func (p *Process) WaitReady(ctx context.Context, check func(context.Context) error) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return p.ended()
		case <-ctx.Done():
			return fmt.Errorf("wait for %s to be ready (log %s): %w", p.name, p.log, errors.Join(ctx.Err(), err))
		case <-tick.C:
		}
	}
}

// ended describes an end that nobody asked for.
func (p *Process) ended() error {
	return fmt.Errorf("%s ended (%w); its log %s ends with:\n%s", p.name, exitError(p.err), p.log, tail(p.log))
}

// Stop asks the process group to end, and kills it when it has not done so within grace. It returns when the process
// is gone; stopping an ended process does nothing.
func (p *Process) Stop(grace time.Duration) {
	if p == nil {
		return
	}
	p.signal(syscall.SIGTERM)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
	}
	// The group is killed even when its leader is gone: a grandchild must not outlive it.
	p.signal(syscall.SIGKILL)
	<-p.done
}

func (p *Process) signal(signal syscall.Signal) {
	// An error means that the group is gone, which is what we want.
	_ = syscall.Kill(-p.pid, signal)
}

func exitError(err error) error {
	if err == nil {
		return errors.New("exit status 0")
	}
	return err
}

// tail is the last lines of a log, as much as fits an error message.
func tail(path string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	if len(content) > logTail {
		content = content[len(content)-logTail:]
		if _, rest, found := strings.Cut(string(content), "\n"); found {
			content = []byte(rest)
		}
	}
	return string(content)
}
