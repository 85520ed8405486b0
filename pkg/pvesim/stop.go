package pvesim

import (
	"fmt"
	"strings"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// shutdownTimeout is how long a shutdown waits for the guest when no timeout is given.
const shutdownTimeout = 60

// stopRequest is POST …/status/stop. It can end shutdowns that are still waiting for the guest.
func stopRequest(c *call) reply {
	if r := c.rootOnly("keepActive", "migratedfrom"); r.failed() {
		return r
	}
	if c.haManaged(c.vmid()) {
		return c.haStop(0)
	}
	return vmTask("qmstop", func(c *call, t *task) {
		if c.flag("overrule-shutdown") {
			if aborted := c.abortShutdowns(); len(aborted) > 0 {
				t.logf("overruled qmshutdown tasks: %s", strings.Join(aborted, ", "))
			}
		}
		c.stopVM(t, stopJob{node: c.node, id: c.vmid(), skipLock: c.flag("skiplock")})
	})(c)
}

// haStop asks the HA manager to stop the VM; the guest has so much time to shut down.
func (c *call) haStop(patience time.Duration) reply {
	return c.haRequest("hastop", fmt.Sprintf("Requesting HA stop for VM %d", c.vmid()), func() {
		c.haCommand(haID(c.vmid()), haCommand{kind: "stop", patience: patience})
	})
}

// patience is how long a shutdown waits for the guest.
func (c *call) patience() time.Duration {
	return time.Duration(atoi(c.params["timeout"], shutdownTimeout)) * time.Second
}

// abortShutdowns stops the shutdown tasks of the VM that the caller may stop, and returns their UPIDs.
func (c *call) abortShutdowns() []string {
	var out []string
	for _, t := range c.tasks.all {
		mine := c.owns(t.user) || c.mayAny(c.who, "/nodes/"+string(t.node), "Sys.Modify")
		if t.typ == "qmshutdown" && !t.done() && mine && t.id == c.params["vmid"] && t.node == c.node.Name {
			out = append(out, string(t.upid))
			t.stop()
		}
	}
	return out
}

// stopJob is what the worker of a stop or shutdown is to do.
type stopJob struct {
	node     *node
	id       proxmox.VMID
	skipLock bool
	// patience is how long a shutdown waits for the guest.
	patience time.Duration
	// force ends the process when the guest did not react.
	force bool
	// reboot starts the VM again after a shutdown.
	reboot bool
}

// stopVM is the worker of a stop.
func (w *World) stopVM(t *task, j stopJob) {
	t.lock(lockRequest{id: j.id, timeout: flockTimeout, granted: func() {
		v := w.vmOn(j.node.Name, j.id)
		if done := j.alreadyOff(t, v); done {
			return
		}
		t.after(w.about(stopDelay), func() {
			w.powerOff(v, CauseStop)
			t.end("")
		})
	}})
}

// alreadyOff ends the task when there is nothing to power off: an absent or locked VM is an error, a stopped one is not.
func (j stopJob) alreadyOff(t *task, v *vm) bool {
	switch {
	case v == nil:
		t.end(notOnNode(j.node.Name, j.id))
	case !v.running:
		t.end("")
	case v.lock() != "" && !j.skipLock:
		t.end(v.lockRefusal())
	default:
		return false
	}
	return true
}

// notOnNode is how check_running of qemu-server says that there is no such VM.
func notOnNode(name proxmox.NodeName, id proxmox.VMID) string {
	return fmt.Sprintf("unable to find configuration file for VM %d on node '%s'", id, name)
}

// mustRun refuses what only a running VM can do.
func (c *call) mustRun() reply {
	switch v := c.vm(); {
	case v == nil:
		return fail("%s", notOnNode(c.node.Name, c.vmid()))
	case !v.running:
		return fail("VM %d not running", v.id)
	}
	return reply{}
}

// shutdownRequest is POST …/status/shutdown. A paused guest cannot react.
func shutdownRequest(c *call) reply {
	if r := c.rootOnly("keepActive"); r.failed() {
		return r
	}
	paused := c.paused()
	switch {
	case paused && !c.flag("forceStop"):
		return fail("VM is paused - cannot shutdown")
	case c.haManaged(c.vmid()):
		return c.haStop(c.patience())
	}
	return vmTask("qmshutdown", func(c *call, t *task) {
		j := stopJob{
			node: c.node, id: c.vmid(), skipLock: c.flag("skiplock"), force: c.flag("forceStop"), patience: c.patience(),
		}
		if paused {
			t.logf("VM is paused - stop instead of shutdown")
			c.stopVM(t, j)
			return
		}
		c.shutdownVM(t, j)
	})(c)
}

// paused tells whether the VM runs without its CPUs.
func (c *call) paused() bool {
	v := c.vm()
	return v != nil && v.running && (v.qemu == qemuPaused || v.qemu == qemuSuspended)
}

// shutdownVM asks the guest by agent or ACPI, and waits for it.
func (w *World) shutdownVM(t *task, j stopJob) {
	t.lock(lockRequest{id: j.id, timeout: flockTimeout, granted: func() {
		v := w.vmOn(j.node.Name, j.id)
		if done := j.alreadyOff(t, v); done {
			return
		}
		if !v.agentEnabled() {
			w.awaitShutdown(t, v, j)
			return
		}
		answer := w.askAgent(v, AgentCommand{Name: "ping"})
		t.after(answer.Delay, func() {
			if answer.Absent {
				t.logf("QEMU Guest Agent is not running - %s", w.pingFailure(v))
			}
			w.awaitShutdown(t, v, j)
		})
	}})
}

// pingFailure is what qemu-server says of an agent that does not answer.
func (w *World) pingFailure(v *vm) string {
	protocol := "qga"
	if w.version == V84 {
		protocol = "qmp"
	}
	return fmt.Sprintf("VM %d %s command 'guest-ping' failed - got timeout", v.id, protocol)
}

// awaitShutdown gives the guest its time, then gives up or ends the process.
func (w *World) awaitShutdown(t *task, v *vm, j stopJob) {
	reaction, obeys := time.Duration(0), false
	if v.guest != nil && v.qemu == qemuRunning {
		reaction, obeys = v.guest.Shutdown()
	}
	switch {
	case obeys && j.node.StockQEMU:
		w.halt(t, v, j, reaction)
	case obeys && reaction <= j.patience:
		t.after(reaction, func() {
			w.powerOff(v, CauseShutdown)
			w.afterShutdown(t, v, j)
		})
	case j.force:
		t.after(j.patience, func() {
			t.logf("VM still running - terminating now with SIGTERM")
			w.powerOff(v, CauseStop)
			t.end("")
		})
	default:
		t.after(j.patience, func() { t.end("VM quit/powerdown failed - got timeout") })
	}
}

// halt lets the guest go down on a host without qmeventd: nobody ends the process, and the agent cannot confirm the command.
func (w *World) halt(t *task, v *vm, j stopJob, reaction time.Duration) {
	power := v.power
	w.after(reaction, func() {
		if v.power == power {
			v.qemu = qemuShutdown
			w.guestOff(v, CauseShutdown)
		}
	})
	t.after(j.patience, func() {
		if !j.force {
			t.end("VM quit/powerdown failed")
			return
		}
		t.logf("VM quit/powerdown failed - terminating now with SIGTERM")
		w.powerOff(v, CauseStop)
		t.end("")
	})
}

// afterShutdown ends the task, or goes on with the start of a reboot: that brings pending changes into force.
func (w *World) afterShutdown(t *task, v *vm, j stopJob) {
	if !j.reboot || v.running {
		t.end("")
		return
	}
	w.boot(t, v, "")
}

// rebootRequest is POST …/status/reboot: a shutdown and a start.
func rebootRequest(c *call) reply {
	if r := c.mustRun(); r.failed() {
		return r
	}
	if c.paused() {
		return fail("VM is paused - cannot shutdown")
	}
	return vmTask("qmreboot", func(c *call, t *task) {
		c.shutdownVM(t, stopJob{node: c.node, id: c.vmid(), patience: c.patience(), reboot: true})
	})(c)
}

// resetVM is POST …/status/reset: the guest loses its power, the process stays.
func resetVM(c *call) reply {
	v := c.vm()
	if r := c.mustRun(); r.failed() {
		return r
	}
	return vmTask("qmreset", func(c *call, t *task) {
		t.lock(lockRequest{id: v.id, timeout: flockTimeout, granted: func() {
			if v.lock() != "" && !c.flag("skiplock") {
				t.end(v.lockRefusal())
				return
			}
			t.after(100*time.Millisecond, func() {
				if v.running {
					v.qemu = qemuRunning
					c.guestOff(v, CauseReset)
					c.guestOn(v)
				}
				t.end("")
			})
		}})
	})(c)
}
