// Package instance knows the sandboxes of this user by name: where each keeps its data, whether it runs, and in which
// process. A file lock held by the running process is the truth; a record left by one that was killed is stale.
package instance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"time"
)

// ErrNotRunning says that no sandbox of that name runs.
var ErrNotRunning = errors.New("not running")

// stopEvery is how often Stop looks whether the sandbox is gone.
const stopEvery = 100 * time.Millisecond

// Instance is a sandbox by name.
type Instance struct {
	name string
	dir  string
	lock *os.File // held while this process runs it
}

// Record is what a running sandbox tells others.
type Record struct {
	PID        int       `json:"pid"`
	Started    time.Time `json:"started"`
	Kubeconfig string    `json:"kubeconfig"`
	ProxmoxURL string    `json:"proxmoxURL"`
	Logs       string    `json:"logs"`
}

// Named finds the instance of that name, running or not.
func Named(name string) (*Instance, error) {
	if !regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?$`).MatchString(name) {
		return nil, fmt.Errorf("sandbox name %q: use up to 32 lower-case letters, digits and dashes", name)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("find the user's cache directory: %w", err)
	}
	return &Instance{name: name, dir: filepath.Join(cache, "capve", "run", name)}, nil
}

// Dir is where the sandbox keeps its data.
func (i *Instance) Dir() string { return filepath.Join(i.dir, "data") }

func (i *Instance) lockFile() string   { return filepath.Join(i.dir, "lock") }
func (i *Instance) recordFile() string { return filepath.Join(i.dir, "record.json") }

// Acquire makes this process the one that runs the sandbox, and removes what a killed predecessor left.
func (i *Instance) Acquire() error {
	if err := os.MkdirAll(i.dir, 0o700); err != nil {
		return fmt.Errorf("make directory of sandbox %s: %w", i.name, err)
	}
	lock, err := os.OpenFile(i.lockFile(), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("open lock of sandbox %s: %w", i.name, err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = lock.Close()
		return fmt.Errorf("sandbox %q runs already: stop it with `capve sandbox down --name %s`, or give this one another --name", i.name, i.name)
	}
	if err := errors.Join(os.RemoveAll(i.Dir()), os.RemoveAll(i.recordFile())); err != nil {
		_ = lock.Close()
		return fmt.Errorf("clear sandbox %s: %w", i.name, err)
	}
	i.lock = lock
	return nil
}

// Publish tells others about the running sandbox.
func (i *Instance) Publish(record Record) error {
	content, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("write record of sandbox %s: %w", i.name, err)
	}
	if err := os.WriteFile(i.recordFile(), content, 0o600); err != nil {
		return fmt.Errorf("write record of sandbox %s: %w", i.name, err)
	}
	return nil
}

// Release ends what Acquire began, and leaves nothing behind.
func (i *Instance) Release() {
	if i.lock == nil {
		return
	}
	// The directory goes before the lock is dropped, or it could be a successor's.
	_ = os.RemoveAll(i.dir)
	_ = i.lock.Close()
	i.lock = nil
}

// clear removes what a killed sandbox left.
func (i *Instance) clear() error {
	if _, err := os.Stat(i.dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err := i.Acquire(); err != nil {
		return err
	}
	i.Release()
	return nil
}

// Running returns the record of the running sandbox, or ErrNotRunning.
func (i *Instance) Running() (Record, error) {
	lock, err := os.Open(i.lockFile())
	if errors.Is(err, os.ErrNotExist) {
		return Record{}, fmt.Errorf("sandbox %q: %w", i.name, ErrNotRunning)
	}
	if err != nil {
		return Record{}, fmt.Errorf("open lock of sandbox %s: %w", i.name, err)
	}
	defer func() { _ = lock.Close() }()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); err == nil {
		return Record{}, fmt.Errorf("sandbox %q: %w", i.name, ErrNotRunning)
	}
	content, err := os.ReadFile(i.recordFile())
	if err != nil {
		return Record{}, fmt.Errorf("sandbox %q is starting: try again when it is up", i.name)
	}
	var record Record
	if err := json.Unmarshal(content, &record); err != nil {
		return Record{}, fmt.Errorf("read record of sandbox %s: %w", i.name, err)
	}
	return record, nil
}

// Stop asks the running sandbox to stop and waits until it has. If none runs it removes what a killed one left, and
// returns ErrNotRunning.
func (i *Instance) Stop(ctx context.Context) error {
	record, err := i.Running()
	if errors.Is(err, ErrNotRunning) {
		return errors.Join(err, i.clear())
	}
	if err != nil {
		return err
	}
	if err := syscall.Kill(record.PID, syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop sandbox %s (process %d): %w", i.name, record.PID, err)
	}
	tick := time.NewTicker(stopEvery)
	defer tick.Stop()
	for {
		if _, err := i.Running(); errors.Is(err, ErrNotRunning) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for sandbox %s (process %d) to stop: %w", i.name, record.PID, ctx.Err())
		case <-tick.C:
		}
	}
}
