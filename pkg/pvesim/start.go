package pvesim

import (
	"fmt"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// startRequest is POST …/status/start. Of an HA-managed VM it is only a request to the HA manager.
func startRequest(c *call) reply {
	if r := c.rootOnly("stateuri", "migratedfrom", "migration_type", "migration_network", "targetstorage", "force-cpu"); r.failed() {
		return r
	}
	if c.haManaged(c.vmid()) {
		return c.haRequest("hastart", fmt.Sprintf("Requesting HA start for VM %d", c.vmid()), func() { c.haSet(c.vmid(), haStarted) })
	}
	return vmTask("qmstart", func(c *call, t *task) {
		c.startVM(t, startJob{node: c.node, id: c.vmid(), skipLock: c.flag("skiplock"), machine: c.params["machine"]})
	})(c)
}

// startJob is what the worker of a start is to do.
type startJob struct {
	node     *node
	id       proxmox.VMID
	skipLock bool
	// machine is the machine type to start with; empty for that of the config.
	machine string
}

// startVM is the worker of a start.
func (w *World) startVM(t *task, j startJob) {
	t.lock(lockRequest{id: j.id, timeout: flockTimeout, granted: func() {
		v := w.vmOn(j.node.Name, j.id)
		if msg := w.startRefusal(v, j); msg != "" {
			t.end(msg)
			return
		}
		w.boot(t, v, j.machine)
	}})
}

// startRefusal are the checks of vm_start in qemu-server, in its order.
func (w *World) startRefusal(v *vm, j startJob) string {
	switch {
	case v == nil:
		return noConfig(j.node.Name, j.id)
	case v.isTemplate():
		return "you can't start a vm if it's a template"
	case v.lock() != "" && v.lock() != "suspended" && !j.skipLock:
		return v.lockRefusal()
	case v.running:
		return fmt.Sprintf("VM %d already running", v.id)
	}
	return ""
}

// boot applies what was pending, sets up the hardware and starts the process. It ends the task.
func (w *World) boot(t *task, v *vm, machine string) {
	w.applyPending(v)
	for _, name := range v.drives() {
		if parseDrive(v.config[name]).cloudInit() {
			t.logf("generating cloud-init ISO")
		}
	}
	if lines, msg := w.startFailure(v, machine); msg != "" {
		t.after(w.about(failedStartDelay), func() {
			for _, line := range lines {
				t.logf("%s", line)
			}
			t.end(msg)
		})
		return
	}
	t.after(w.about(startDelay), func() {
		w.resumeFromDisk(t, v)
		w.powerOn(v)
		t.end("")
	})
}
