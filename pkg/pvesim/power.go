package pvesim

import (
	"fmt"
	"strings"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

// shutdownTimeout is how long a shutdown waits for the guest when no timeout is given.
const shutdownTimeout = 60

func powerRoutes(v Version) []Route {
	const path = "/nodes/{node}/qemu/{vmid}/status"
	manage := on("/vms/{vmid}", "VM.PowerMgmt")
	skip, timeout := schema.Boolean("skiplock"), schema.Integer("timeout").Min(0)
	start := []schema.Param{
		skip, timeout, schema.Text("machine"), schema.Text("force-cpu"), schema.Text("migratedfrom").Format("pve-node"), schema.Text("migration_network"),
		schema.Choice("migration_type", "secure", "insecure"), schema.Text("nets-host-mtu").Pattern(`net\d+=\d+(,net\d+=\d+)*`), schema.Text("stateuri").MaxLength(128), schema.Text("targetstorage"),
	}
	if v == V92 {
		start = append(start, schema.Boolean("with-conntrack-state"))
	}
	return []Route{
		{Method: "GET", Path: path + "/current", handle: currentStatus, permission: on("/vms/{vmid}", "VM.Audit")},
		{Method: "POST", Path: path + "/start", handle: startRequest, permission: manage, params: start},
		{Method: "POST", Path: path + "/stop", handle: stopVM, permission: manage, params: []schema.Param{
			skip, timeout, schema.Boolean("keepActive"), schema.Text("migratedfrom").Format("pve-node"), schema.Boolean("overrule-shutdown"),
		}},
		{Method: "POST", Path: path + "/shutdown", handle: vmTask("qmshutdown", shutdownVM), permission: manage, params: []schema.Param{
			skip, timeout, schema.Boolean("forceStop"), schema.Boolean("keepActive"),
		}},
		{Method: "POST", Path: path + "/reset", handle: resetVM, permission: manage, params: []schema.Param{skip}},
	}
}

func currentStatus(c *call) reply {
	v := c.vm()
	if v == nil {
		return missingVM(c.node.Name, c.vmid())
	}
	out := c.vmStatus(v)
	if v.running {
		nics := map[string]any{}
		for key := range v.config {
			if index, is := strings.CutPrefix(key, "net"); is {
				nics[fmt.Sprintf("tap%di%s", v.id, index)] = map[string]int{"netin": 0, "netout": 0}
			}
		}
		if len(nics) > 0 {
			out["nics"] = nics
		}
		if c.version == V92 {
			for _, key := range []string{"cpusome", "cpufull", "iosome", "iofull", "memorysome", "memoryfull"} {
				out["pressure"+key] = 0
			}
		}
	}
	return ok(out)
}

func startRequest(c *call) reply {
	if r := c.rootOnlyStart(); r.failed() {
		return r
	}
	return vmTask("qmstart", startVM)(c)
}

// startVM is the worker of a start.
func startVM(c *call, t *task) {
	t.lock(lockRequest{id: c.vmid(), timeout: flockTimeout, granted: func() {
		v := c.vm()
		if msg := c.startRefusal(v); msg != "" {
			t.end(msg)
			return
		}
		if msg := c.startFailure(v); msg != "" {
			t.after(c.between(300*time.Millisecond, 800*time.Millisecond), func() { t.end(msg) })
			return
		}
		for _, name := range v.drives() {
			if parseDrive(v.config[name]).cloudInit() {
				t.logf("generating cloud-init ISO")
			}
		}
		t.after(c.between(time.Second, 2*time.Second), func() {
			c.powerOn(v)
			t.end("")
		})
	}})
}

// rootOnlyStart are parameters of a start that only migration uses.
func (c *call) rootOnlyStart() reply {
	for _, name := range []string{"stateuri", "migratedfrom", "migration_type", "migration_network", "targetstorage", "force-cpu"} {
		if c.has(name) && !c.who.isRoot() {
			return invalidParam(name, "Only root may use this option.")
		}
	}
	return reply{}
}

func (c *call) startRefusal(v *vm) string {
	switch {
	case v == nil:
		return noConfig(c.node.Name, c.vmid())
	case v.lock() != "" && !c.flag("skiplock"):
		return fmt.Sprintf("VM is locked (%s)", v.lock())
	case v.isTemplate():
		return "you can't start a vm if it's a template"
	case v.running:
		return fmt.Sprintf("VM %d already running", v.id)
	}
	c.applyPending(v)
	return ""
}

// startFailure is why the VM's hardware cannot be set up on its node.
func (c *call) startFailure(v *vm) string {
	for key, value := range v.config {
		switch strings.TrimRight(key, "0123456789") {
		case "net":
			format := netFormat()
			if p, _ := format.Parse(value); p["bridge"] != "" && !c.node.hasBridge(proxmox.BridgeName(p["bridge"])) {
				return fmt.Sprintf("bridge '%s' does not exist", p["bridge"])
			}
		case "ide", "sata", "scsi", "virtio":
			if d := parseDrive(value); isDrive(key) && d.storageID() != "" && c.volumeAt(v.node, d.volume) == nil {
				return fmt.Sprintf("volume '%s' does not exist", d.volume)
			}
		}
	}
	if v.cpus() > c.node.CPUs {
		return fmt.Sprintf("MAX %d vcpus allowed per VM on this node", c.node.CPUs)
	}
	if set := v.config["affinity"]; set != "" && lastCPU(set) >= c.node.CPUs {
		return "start failed: QEMU exited with code 1"
	}
	return v.numaFailure(c.node)
}

// lastCPU is the highest number in a cpuset such as 0-3,8 or 0-1;4-5.
func lastCPU(set string) int {
	last := 0
	for _, s := range strings.FieldsFunc(set, func(r rune) bool { return r < '0' || r > '9' }) {
		last = max(last, atoi(s, 0))
	}
	return last
}

// numaFailure checks the NUMA nodes of the config, which are looked at only when the VM is started.
func (v *vm) numaFailure(n *node) string {
	if v.config["numa"] != "1" {
		return ""
	}
	total, found, beyond := 0, false, false
	format := numaFormat()
	for i := range 8 {
		value := v.config[fmt.Sprintf("numa%d", i)]
		if value == "" {
			continue
		}
		p, _ := format.Parse(value)
		total, found = total+atoi(p["memory"], 0), true
		beyond = beyond || lastCPU(p["cpus"]) >= v.cpus()
		if host := lastCPU(p["hostnodes"]); p["hostnodes"] != "" && host >= n.NUMANodes {
			return fmt.Sprintf("host NUMA node%d doesn't exist", host)
		}
	}
	switch {
	case found && proxmox.MiB(total).Bytes() != v.memory():
		return "total memory for NUMA nodes must be equal to vm static memory"
	case beyond:
		return "start failed: QEMU exited with code 1"
	}
	return ""
}

func (n *node) hasBridge(name proxmox.BridgeName) bool {
	for _, b := range n.Bridges {
		if b == name {
			return true
		}
	}
	return false
}

// powerOn starts the VM's process and its guest.
func (w *World) powerOn(v *vm) {
	w.nextPID++
	v.running, v.pid, v.started = true, w.nextPID, w.clock.Now()
	v.agent = firstProperty(v.config["agent"]) == "1"
	w.changed(v)
	w.guestOn(v)
}

// powerOff ends the VM's process.
func (w *World) powerOff(v *vm, cause PowerOffCause) {
	if !v.running {
		return
	}
	v.running, v.pid, v.agent = false, 0, false
	w.changed(v)
	w.guestOff(v, cause)
}

// stopVM is POST …/status/stop. It can end shutdowns that are still waiting for the guest.
func stopVM(c *call) reply {
	if c.flag("overrule-shutdown") {
		for t := range c.tasks.active {
			if t.typ == "qmshutdown" && t.id == c.params["vmid"] && t.node == c.node.Name {
				t.stop()
			}
		}
	}
	return vmTask("qmstop", func(c *call, t *task) {
		t.lock(lockRequest{id: c.vmid(), timeout: flockTimeout, granted: func() {
			v := c.vm()
			if done := c.alreadyOff(t, v); done {
				return
			}
			t.after(c.between(300*time.Millisecond, time.Second), func() {
				c.powerOff(v, CauseStop)
				t.end("")
			})
		}})
	})(c)
}

// alreadyOff ends the task when there is nothing to power off: an absent or locked VM is an error, a stopped one is not.
func (c *call) alreadyOff(t *task, v *vm) bool {
	switch {
	case v == nil:
		t.end(fmt.Sprintf("unable to find configuration file for VM %d on node '%s'", c.vmid(), c.node.Name))
	case !v.running:
		t.end("")
	case v.lock() != "" && !c.flag("skiplock"):
		t.end(fmt.Sprintf("VM is locked (%s)", v.lock()))
	default:
		return false
	}
	return true
}

// shutdownVM asks the guest, and waits for it.
func shutdownVM(c *call, t *task) {
	t.lock(lockRequest{id: c.vmid(), timeout: flockTimeout, granted: func() {
		v := c.vm()
		if done := c.alreadyOff(t, v); done {
			return
		}
		patience := time.Duration(atoi(c.params["timeout"], shutdownTimeout)) * time.Second
		reaction, obeys := time.Duration(0), false
		if v.guest != nil {
			reaction, obeys = v.guest.Shutdown()
		}
		switch {
		case obeys && reaction <= patience:
			t.after(reaction, func() {
				c.powerOff(v, CauseShutdown)
				t.end("")
			})
		case c.flag("forceStop"):
			t.after(patience, func() {
				t.logf("VM still running - terminating now with SIGTERM")
				c.powerOff(v, CauseStop)
				t.end("")
			})
		default:
			t.after(patience, func() { t.end("VM quit/powerdown failed - got timeout") })
		}
	}})
}

func resetVM(c *call) reply {
	v := c.vm()
	switch {
	case v == nil:
		return missingVM(c.node.Name, c.vmid())
	case !v.running:
		return fail("VM %d not running", v.id)
	}
	return vmTask("qmreset", func(c *call, t *task) {
		t.after(100*time.Millisecond, func() {
			if v.running {
				c.guestOff(v, CauseReset)
				c.guestOn(v)
			}
			t.end("")
		})
	})(c)
}
