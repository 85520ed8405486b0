package pvesim

import (
	"fmt"
	"slices"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// flockTimeout is how long qemu-server waits for a VM's lock file (PVE::AbstractConfig::lock_config).
const flockTimeout = 10 * time.Second

// cloneFlockTimeout is what a clone waits for the lock file of its source, and of its target.
const cloneFlockTimeout = time.Second

// flockKey names a lock file: every node has its own.
type flockKey struct {
	node proxmox.NodeName
	id   proxmox.VMID
}

// flock is the lock file /var/lock/qemu-server/lock-<vmid>.conf of a node.
type flock struct {
	exclusive bool
	shared    int
	waiting   []*flockWaiter
}

type flockWaiter struct {
	shared  bool
	granted func()
	gone    bool
}

func flockTimedOut(id proxmox.VMID) string {
	return fmt.Sprintf("can't lock file '/var/lock/qemu-server/lock-%d.conf' - got timeout", id)
}

// lockRequest says what to do with a VM's lock file.
type lockRequest struct {
	// node whose lock file it is; a task's is that of its own node.
	node    proxmox.NodeName
	id      proxmox.VMID
	shared  bool
	timeout time.Duration
	// patient requests wait without end, and refused is not called.
	patient bool
	granted func()
	refused func(reason string)
}

// acquire calls granted as soon as the lock is free (perhaps at once), or refused after the timeout. Who was granted the
// lock must release it.
func (w *World) acquire(r lockRequest) {
	key := flockKey{r.node, r.id}
	l := w.flocks[key]
	if l == nil {
		l = &flock{}
		w.flocks[key] = l
	}
	waiter := &flockWaiter{shared: r.shared, granted: r.granted}
	l.waiting = append(l.waiting, waiter)
	w.grant(key)
	if waiter.gone || r.patient {
		return
	}
	w.after(r.timeout, func() {
		if waiter.gone {
			return
		}
		waiter.gone = true
		l.waiting = slices.DeleteFunc(l.waiting, func(x *flockWaiter) bool { return x == waiter })
		r.refused(flockTimedOut(r.id))
	})
}

// grant gives the lock to those at the head of the queue that can have it.
func (w *World) grant(key flockKey) {
	for l := w.flocks[key]; l != nil && len(l.waiting) > 0; l = w.flocks[key] {
		first := l.waiting[0]
		if l.exclusive || (!first.shared && l.shared > 0) {
			return
		}
		if first.shared {
			l.shared++
		} else {
			l.exclusive = true
		}
		first.gone = true
		l.waiting = l.waiting[1:]
		first.granted()
	}
}

// release gives back one hold of the lock.
func (w *World) release(key flockKey) {
	l := w.flocks[key]
	if l == nil {
		return
	}
	if l.exclusive {
		l.exclusive = false
	} else if l.shared > 0 {
		l.shared--
	}
	w.grant(key)
	if l.shared == 0 && !l.exclusive && len(l.waiting) == 0 {
		delete(w.flocks, key)
	}
}
