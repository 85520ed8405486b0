package observe

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
)

// Waker puts machines into the controller's queue when Proxmox VE did something about them: a task ended, or their VM
// changed. It is a controller-runtime source.
type Waker struct {
	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
	// machines says whose the VMs are that were looked at.
	machines map[watchedVM]types.NamespacedName
}

// watchedVM is a VMID in the Proxmox VE cluster behind an endpoint, whatever the credentials: those may change while the
// machine sleeps.
type watchedVM struct {
	endpoint string
	id       proxmox.VMID
}

// NewWaker returns a Waker that knows no machine yet.
func NewWaker() *Waker {
	return &Waker{machines: map[watchedVM]types.NamespacedName{}}
}

// Start implements source.Source.
func (w *Waker) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = queue
	return nil
}

// VMChanged wakes the machines of VMs that changed.
func (w *Waker) VMChanged(cluster *pve.Cluster, changes []pve.VMChange) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, change := range changes {
		if machine, watched := w.machines[watchedVM{cluster.Endpoint(), change.ID}]; watched {
			w.wake(machine)
		}
	}
}

// TaskDone wakes the machine that a task was started for.
func (w *Waker) TaskDone(_ *pve.Cluster, owner pve.Owner, _ proxmox.UPID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wake(types.NamespacedName(owner))
}

// Wake wakes a machine.
func (w *Waker) Wake(machine types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wake(machine)
}

func (w *Waker) wake(machine types.NamespacedName) {
	if w.queue != nil {
		w.queue.Add(reconcile.Request{NamespacedName: machine})
	}
}

// watch notes whose a VM is.
func (w *Waker) watch(cluster *pve.Cluster, id proxmox.VMID, machine types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.machines[watchedVM{cluster.Endpoint(), id}] = machine
}

// Forget drops all VMs of a machine that is gone.
func (w *Waker) Forget(machine types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for vm, owner := range w.machines {
		if owner == machine {
			delete(w.machines, vm)
		}
	}
}
