package pve

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// ErrNoSnapshot is a Snapshot's Err until the first one was taken.
var ErrNoSnapshot = errors.New("inventory has no snapshot yet")

// maxBackoff bounds the time between polls while PVE does not answer.
const maxBackoff = 15 * time.Second

// resourceLister is the one request an Inventory makes.
type resourceLister interface {
	Resources(context.Context) ([]Resource, error)
}

// Inventory keeps the latest snapshot of a PVE cluster, as an informer does for Kubernetes. It is safe for concurrent use.
type Inventory struct {
	source   resourceLister
	region   proxmox.RegionName
	interval time.Duration
	jitter   func(time.Duration) time.Duration
	clock    clock.Clock
	log      logr.Logger
	metrics  *metrics
	changes  *mailbox[proxmox.VMID, VMChange]

	mu       sync.Mutex
	snapshot Snapshot
	flight   *flight
}

// flight is a request under way, which several callers may wait for.
type flight struct {
	sent   time.Time
	done   chan struct{}
	cancel context.CancelFunc
	err    error
}

func newInventory(source resourceLister, region proxmox.RegionName, options Options, metrics *metrics) *Inventory {
	return &Inventory{
		source: source, region: region, interval: options.PollInterval, jitter: options.jitter, clock: options.Clock, log: options.Logger, metrics: metrics,
		changes: newMailbox[proxmox.VMID](mergeChanges), snapshot: Snapshot{Err: ErrNoSnapshot, index: newIndex(nil)},
	}
}

// Snapshot returns the latest snapshot. It costs nothing and never blocks on a request.
func (i *Inventory) Snapshot() Snapshot {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.snapshot
}

// OnChange calls back with the guests that appeared, changed or vanished. Calls come one after the other from a goroutine
// of their own, so that a slow listener delays no poll; what happens meanwhile to the same guest is merged. Register before
// Run.
func (i *Inventory) OnChange(listener func([]VMChange)) { i.changes.listen(listener) }

// Refresh returns when there is a snapshot that was requested at `after` or later. Callers at the same time share one
// request. The error is that of the request, or the context's.
func (i *Inventory) Refresh(ctx context.Context, after time.Time) error {
	for {
		i.mu.Lock()
		if i.snapshot.fresh(after) {
			i.mu.Unlock()
			return nil
		}
		current := i.board(ctx)
		i.mu.Unlock()
		select {
		case <-current.done:
		case <-ctx.Done():
			return ctx.Err()
		}
		if !current.sent.Before(after) {
			return current.err
		}
	}
}

// fresh says that the snapshot was requested at a time or later.
func (s Snapshot) fresh(after time.Time) bool { return !s.At.IsZero() && !s.At.Before(after) }

// board joins the request under way or starts one. The caller holds the lock. The request outlives the caller's context,
// because others may wait for it; it is bounded by the client's timeouts and by close.
func (i *Inventory) board(ctx context.Context) *flight {
	if i.flight != nil {
		return i.flight
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	i.flight = &flight{sent: i.clock.Now(), done: make(chan struct{}), cancel: cancel}
	go i.fly(ctx, i.flight)
	return i.flight
}

// fly makes the request and lands it.
func (i *Inventory) fly(ctx context.Context, f *flight) {
	defer f.cancel()
	resources, err := i.source.Resources(ctx)
	i.land(f, resources, err)
	close(f.done)
}

// land replaces the snapshot. After an error the old one stays, with the error on it.
func (i *Inventory) land(f *flight, resources []Resource, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.flight = nil
	f.err = err
	if err != nil {
		i.snapshot.Err = err
		return
	}
	before := i.snapshot
	i.snapshot = Snapshot{At: f.sent, index: newIndex(resources)}
	i.metrics.snapshotAt(i.region, f.sent)
	for _, change := range before.diff(i.snapshot) {
		i.changes.put(change.ID, change)
	}
}

// run polls until the context ends, and leaves no goroutine behind.
func (i *Inventory) run(ctx context.Context) {
	defer i.close()
	delay := newPace(i.interval, maxBackoff, i.jitter)
	for {
		err := i.Refresh(ctx, i.clock.Now())
		if ctx.Err() != nil {
			return
		}
		if err != nil && delay.failures == 0 {
			i.log.Error(err, "inventory request failed, keeping the last snapshot", "region", i.region)
		}
		if !sleep(ctx, i.clock, delay.next(err)) {
			return
		}
	}
}

// close ends a request under way and waits for it.
func (i *Inventory) close() {
	i.mu.Lock()
	current := i.flight
	i.mu.Unlock()
	if current != nil {
		current.cancel()
		<-current.done
	}
}
