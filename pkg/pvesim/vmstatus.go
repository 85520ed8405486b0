package pvesim

import (
	"fmt"
	"maps"
	"strings"
)

// The states of QEMU that the API shows as qmpstatus while the process runs.
const (
	qemuRunning   = "running"
	qemuPaused    = "paused"
	qemuSuspended = "suspended"
	qemuShutdown  = "shutdown"
)

// qmpStatus is the state of QEMU, or stopped without a process.
func (v *vm) qmpStatus() string {
	if v.running {
		return v.qemu
	}
	return v.status()
}

// vmStatus is what vmstatus of qemu-server says of a VM now.
func (w *World) vmStatus(v *vm) map[string]any {
	out := map[string]any{
		"vmid": v.id, "name": v.name(), "status": v.status(), "qmpstatus": v.qmpStatus(), "cpus": w.shownCPUs(v), "maxmem": v.memory(),
		"maxdisk": v.diskSize(), "cpu": 0, "mem": 0, "disk": 0, "netin": 0, "netout": 0, "uptime": 0, "ha": w.haStatus(v.id),
	}
	if w.version == V92 {
		out["memhost"] = 0
	}
	if tags := strings.TrimSpace(v.config["tags"]); tags != "" {
		out["tags"] = tags
	}
	if v.lock() != "" {
		out["lock"] = v.lock()
	}
	if v.isTemplate() {
		out["template"] = 1
	}
	v.deviceStatus(out)
	if v.running {
		maps.Copy(out, map[string]any{"pid": v.pid, "uptime": int64(w.clock.Since(v.started).Seconds()), "cpu": 0.02, "mem": v.memory() / 2})
	}
	return out
}

// deviceStatus adds what the API says of the agent, the serial ports and the display.
func (v *vm) deviceStatus(out map[string]any) {
	if v.agentEnabled() {
		out["agent"] = 1
	}
	for i := range 4 {
		if v.config[fmt.Sprintf("serial%d", i)] != "" {
			out["serial"] = 1
		}
	}
	display := v.config["vga"]
	if display == "" {
		return
	}
	format := vgaFormat()
	p, _ := format.Parse(display)
	out["clipboard"] = nil
	if p["clipboard"] != "" {
		out["clipboard"] = p["clipboard"]
	}
	if strings.HasPrefix(p["type"], "qxl") {
		out["spice"] = 1
	}
}

// agentEnabled tells whether the config has the guest agent on.
func (v *vm) agentEnabled() bool { return firstProperty(v.config["agent"]) == "1" }

// shownCPUs is the number of CPUs that the API shows: no more than the host has.
func (w *World) shownCPUs(v *vm) int {
	count := v.cpus()
	if n := w.node(v.node); n != nil {
		count = min(count, n.CPUs)
	}
	return atoi(v.config["vcpus"], count)
}

// currentStatus is GET …/status/current.
func currentStatus(c *call) reply {
	v := c.vm()
	if v == nil {
		return missingVM(c.node.Name, c.vmid())
	}
	out := c.vmStatus(v)
	if v.running {
		c.runningStatus(v, out)
	}
	return ok(out)
}

func (c *call) runningStatus(v *vm, out map[string]any) {
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
