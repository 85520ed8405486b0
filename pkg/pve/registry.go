package pve

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// DefaultIdleTimeout is how long a Registry keeps a Cluster that nobody uses.
const DefaultIdleTimeout = 30 * time.Minute

// errStopped is the answer of a Registry whose context has ended.
var errStopped = errors.New("registry of PVE clusters is stopped")

// RegistryOptions are what a Registry does for each of its Clusters.
type RegistryOptions struct {
	// OnVMChange and OnTaskDone hear of every Cluster; each may be nil. See Inventory.OnChange and Tracker.OnDone.
	OnVMChange func(*Cluster, []VMChange)
	OnTaskDone func(*Cluster, Owner, proxmox.UPID)
	// IdleTimeout is how long a Cluster without a holder is kept after the last Get.
	IdleTimeout time.Duration
	// Clock is the time source; nil is the real clock.
	Clock clock.Clock
}

// Registry keeps one running Cluster for each set of endpoints, credentials and trust, shared by all who name the same. It
// is a controller-runtime Runnable. It is safe for concurrent use.
type Registry struct {
	options RegistryOptions

	mu       sync.Mutex
	ctx      context.Context //nolint:containedctx // the Runnable's own, under which clusters run
	stopped  bool
	running  sync.WaitGroup
	clusters map[string]*entry
}

// entry is a Cluster of the registry.
type entry struct {
	cluster *Cluster
	cancel  context.CancelFunc
	used    time.Time
	holders map[Owner]bool
}

// NewRegistry returns an empty registry.
func NewRegistry(options RegistryOptions) *Registry {
	setDefault(&options.IdleTimeout, DefaultIdleTimeout)
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	return &Registry{options: options, clusters: map[string]*entry{}}
}

// Get returns the Cluster of a configuration, opened on first use. It runs from then on, or from Start if that comes
// later. Errors and metrics of a shared Cluster show the region's name of whoever got it first. It is closed when it has no holder and was not got for IdleTimeout. Changed credentials are another Cluster.
func (r *Registry) Get(config Config) (*Cluster, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	found, err := r.find(config)
	if err != nil {
		return nil, err
	}
	return found.cluster, nil
}

// Hold is Get, and keeps the Clusters of exactly these configurations for the holder, one for each, in their order; what it
// held before and does not name now is let go. After an error the holder keeps what it had.
func (r *Registry) Hold(holder Owner, configs ...Config) ([]*Cluster, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	held := make([]*Cluster, len(configs))
	keep := map[*entry]bool{}
	for i, config := range configs {
		found, err := r.find(config)
		if err != nil {
			return nil, err
		}
		held[i], keep[found] = found.cluster, true
	}
	r.letGo(holder, keep)
	for found := range keep {
		found.holders[holder] = true
	}
	return held, nil
}

// Release lets go of all that the holder holds. A Cluster without a holder is closed after IdleTimeout.
func (r *Registry) Release(holder Owner) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.letGo(holder, nil)
}

func (r *Registry) letGo(holder Owner, keep map[*entry]bool) {
	for _, one := range r.clusters {
		if one.holders[holder] && !keep[one] {
			delete(one.holders, holder)
			one.used = r.options.Clock.Now()
		}
	}
}

// find returns the entry of a configuration, a new one if need be. The caller holds the lock.
func (r *Registry) find(config Config) (*entry, error) {
	if r.stopped {
		return nil, errStopped
	}
	found, ok := r.clusters[config.Fingerprint()]
	if !ok {
		cluster, err := Open(config)
		if err != nil {
			return nil, err
		}
		found = &entry{cluster: cluster, holders: map[Owner]bool{}}
		r.subscribe(cluster)
		r.clusters[config.Fingerprint()] = found
		r.start(found)
	}
	found.used = r.options.Clock.Now()
	return found, nil
}

func (r *Registry) subscribe(cluster *Cluster) {
	if r.options.OnVMChange != nil {
		cluster.Inventory.OnChange(func(changes []VMChange) { r.options.OnVMChange(cluster, changes) })
	}
	if r.options.OnTaskDone != nil {
		cluster.Tracker.OnDone(func(owner Owner, upid proxmox.UPID) { r.options.OnTaskDone(cluster, owner, upid) })
	}
}

// start runs a cluster if the registry runs. The caller holds the lock.
func (r *Registry) start(one *entry) {
	if r.ctx == nil || one.cancel != nil {
		return
	}
	ctx, cancel := context.WithCancel(r.ctx)
	one.cancel = cancel
	r.running.Go(func() { _ = one.cluster.Run(ctx) })
}

// Start runs all Clusters, those of now and of later, until the context ends, and waits for them to end.
func (r *Registry) Start(ctx context.Context) error {
	r.mu.Lock()
	r.ctx = ctx
	for one := range maps.Values(r.clusters) {
		r.start(one)
	}
	r.mu.Unlock()
	for sleep(ctx, r.options.Clock, r.options.IdleTimeout/4) {
		r.closeIdle()
	}
	r.mu.Lock()
	r.stopped = true
	r.mu.Unlock()
	r.running.Wait()
	return nil
}

// NeedLeaderElection tells controller-runtime that only the leader polls PVE.
func (r *Registry) NeedLeaderElection() bool { return true }

// closeIdle ends the Clusters that nobody uses.
func (r *Registry) closeIdle() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for fingerprint, one := range r.clusters {
		if len(one.holders) > 0 || r.options.Clock.Since(one.used) < r.options.IdleTimeout || one.cluster.Tracker.InFlight() > 0 {
			continue
		}
		if one.cancel != nil {
			one.cancel()
		}
		delete(r.clusters, fingerprint)
	}
}

// Len returns how many Clusters are open.
func (r *Registry) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.clusters)
}
