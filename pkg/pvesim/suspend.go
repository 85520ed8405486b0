package pvesim

import (
	"fmt"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// suspendRequest is POST …/status/suspend: it stops the CPUs or, with todisk, saves the VM's memory and ends the process.
func suspendRequest(c *call) reply {
	v := c.vm()
	if r := c.mustRun(); r.failed() {
		return r
	}
	if c.flag("todisk") {
		return c.suspendToDisk(v)
	}
	return c.pauseTask("qmpause", v, qemuPaused)
}

// resumeRequest is POST …/status/resume. Resuming a running VM does nothing.
func resumeRequest(c *call) reply {
	v := c.vm()
	if v != nil && v.lock() == "suspended" && !v.running {
		return vmTask("qmresume", func(c *call, t *task) { c.startVM(t, startJob{node: c.node, id: v.id}) })(c)
	}
	if r := c.mustRun(); r.failed() {
		return r
	}
	return c.pauseTask("qmresume", v, qemuRunning)
}

// pauseTask brings QEMU into another state.
func (c *call) pauseTask(typ string, v *vm, state string) reply {
	return vmTask(typ, func(c *call, t *task) {
		t.lock(lockRequest{id: v.id, timeout: flockTimeout, granted: func() {
			switch {
			case v.lock() != "" && v.lock() != "backup" && !c.flag("skiplock"):
				t.end(v.lockRefusal())
				return
			case v.running:
				v.qemu = state
			}
			t.after(50*time.Millisecond, func() { t.end("") })
		}})
	})(c)
}

func (c *call) suspendToDisk(v *vm) reply {
	if c.haManaged(v.id) {
		return fail("Cannot suspend HA managed VM to disk")
	}
	if path := "/vms/" + v.id.String(); !c.mayAny(c.who, path, "VM.Config.Disk") {
		return denied(path, "VM.Config.Disk")
	}
	for key := range v.config {
		if unnumbered(key) == "hostpci" {
			return fail("cannot suspend VM to disk due to passed-through PCI device(s), which lack the possibility to save/restore their internal state")
		}
	}
	s := c.stateStorage(v)
	if path := "/storage/" + string(s); !c.mayAny(c.who, path, "Datastore.AllocateSpace") {
		return denied(path, "Datastore.AllocateSpace")
	}
	return vmTask("qmsuspend", func(c *call, t *task) {
		t.lock(lockRequest{id: v.id, timeout: flockTimeout, granted: func() { c.saveState(t, v, s) }})
	})(c)
}

// stateStorage is where the VM's memory is saved: as asked, as configured, or with its first disk (find_vmstate_storage).
func (c *call) stateStorage(v *vm) proxmox.StorageID {
	for _, id := range []string{c.params["statestorage"], v.config["vmstatestorage"]} {
		if id != "" {
			return proxmox.StorageID(id)
		}
	}
	for _, shared := range []bool{true, false} {
		for _, name := range v.drives() {
			d := parseDrive(v.config[name])
			if s := c.storageByID(d.storageID()); s != nil && !d.cdrom() && s.shared == shared {
				return s.id
			}
		}
	}
	return "local"
}

// saveState writes the VM's memory to a volume under lock: suspending, then ends the process and leaves lock: suspended.
func (c *call) saveState(t *task, v *vm, id proxmox.StorageID) {
	if v.lock() != "" && !c.flag("skiplock") {
		t.end(v.lockRefusal())
		return
	}
	s, msg := c.storageFor(id, v.node)
	if s == nil {
		t.end(msg)
		return
	}
	if t.cannotWrite(v) {
		return
	}
	v.config["lock"] = "suspending"
	c.changed(v)
	size := 2*v.memory() + 500<<20
	name := s.volumeName(v.id, fmt.Sprintf("vm-%d-state-suspend-%s", v.id, c.clock.Now().UTC().Format(time.DateOnly)), "raw")
	vol := &volume{key: volumeKey{s.scope(v.node), name}, storage: s, content: "images", format: "raw", vmid: v.id, size: size, used: v.memory() / 8}
	c.addVolume(vol)
	if c.node.StockQEMU {
		t.logf("VM %d qmp command 'savevm-end' failed - The command savevm-end has not been found", v.id)
		c.removeVolume(vol.key)
		t.end(fmt.Sprintf("VM %d qmp command 'savevm-start' failed - The command savevm-start has not been found", v.id))
		return
	}
	t.logf("State saved, quitting")
	t.after(c.about(suspendDelay), func() {
		v.config["lock"], v.config["vmstate"] = "suspended", string(name)
		c.powerOff(v, CauseShutdown)
		t.end("")
	})
}

// resumeFromDisk takes a suspended VM's saved memory, which is not kept.
func (w *World) resumeFromDisk(t *task, v *vm) {
	if v.lock() != "suspended" {
		return
	}
	t.logf("Resuming suspended VM")
	if vol := w.volumeAt(v.node, proxmox.VolumeID(v.config["vmstate"])); vol != nil {
		w.removeVolume(vol.key)
	}
	delete(v.config, "lock")
	delete(v.config, "vmstate")
	t.logf("Resumed VM, removing state")
}
