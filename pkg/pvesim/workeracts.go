package pvesim

import (
	"sync"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// KillWorker ends the worker process of a running task, as kill -9 or the loss of its host does: the task's exit status is
// «unexpected status» and nothing is cleaned up. A clone leaves its config with lock=clone and its volumes behind.
func (w *World) KillWorker(upid proxmox.UPID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runDue()
	if t := w.tasks.byUPID[upid]; t != nil {
		t.kill()
	}
}

// HoldLock takes the lock file of a VM, /var/lock/qemu-server/lock-<vmid>.conf on its host, as another process does with flock. If a task holds it, the lock is taken when that task ends. The lock is held until release is called.
// For a VM that is not there nothing is done.
func (w *World) HoldLock(id proxmox.VMID) (release func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runDue()
	v := w.vms[id]
	if v == nil {
		return func() {}
	}
	key := flockKey{v.node, id}
	held, done := false, false
	w.acquire(lockRequest{node: key.node, id: id, patient: true, granted: func() {
		if done {
			w.release(key)
			return
		}
		held = true
	}})
	var once sync.Once
	return func() {
		once.Do(func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			if done = true; held {
				w.release(key)
			}
		})
	}
}

// RemoveFile removes a volume behind the back of Proxmox VE: configs that name it go on doing so. The node is ignored for
// volumes on shared storage.
func (w *World) RemoveFile(node proxmox.NodeName, volume proxmox.VolumeID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runDue()
	if v := w.volumeAt(node, volume); v != nil {
		w.removeVolume(v.key)
	}
}
