package pvesim

import (
	"slices"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

func powerRoutes(v Version) []Route {
	const path = "/nodes/{node}/qemu/{vmid}/status"
	manage := on("/vms/{vmid}", "VM.PowerMgmt")
	skip, timeout := schema.Boolean("skiplock"), schema.Integer("timeout").Min(0)
	keep, from := schema.Boolean("keepActive"), schema.Text("migratedfrom").Format("pve-node")
	return []Route{
		{Method: "GET", Path: "/nodes/{node}/qemu/{vmid}", handle: index("subdir", vmIndex(v)...)},
		{Method: "GET", Path: path, handle: statusIndex},
		{Method: "GET", Path: path + "/current", handle: currentStatus, permission: on("/vms/{vmid}", "VM.Audit")},
		{Method: "POST", Path: path + "/start", handle: startRequest, permission: manage, params: startParams(v)},
		{Method: "POST", Path: path + "/stop", handle: stopRequest, permission: manage, params: []schema.Param{
			skip, timeout, keep, from, schema.Boolean("overrule-shutdown"),
		}},
		{Method: "POST", Path: path + "/shutdown", handle: shutdownRequest, permission: manage, params: []schema.Param{
			skip, timeout, schema.Boolean("forceStop"), keep,
		}},
		{Method: "POST", Path: path + "/reboot", handle: rebootRequest, permission: manage, params: []schema.Param{timeout}},
		{Method: "POST", Path: path + "/reset", handle: resetVM, permission: manage, params: []schema.Param{skip}},
		{Method: "POST", Path: path + "/suspend", handle: suspendRequest, permission: manage, params: []schema.Param{
			skip, schema.Text("statestorage").Format("pve-storage-id").Requires("todisk"), schema.Boolean("todisk"),
		}},
		{Method: "POST", Path: path + "/resume", handle: resumeRequest, permission: manage, params: []schema.Param{skip, schema.Boolean("nocheck")}},
	}
}

// vmIndex is what is below a VM, as vmdiridx of qemu-server lists it.
func vmIndex(v Version) []string {
	names := strings.Fields(`config cloudinit pending status unlink vncproxy termproxy migrate resize move rrd rrddata monitor agent snapshot
		spiceproxy sendkey firewall mtunnel remote-migrate`)
	if v != V84 {
		names = append(names, "dbus-vmstate")
	}
	return names
}

func startParams(v Version) []schema.Param {
	out := []schema.Param{
		schema.Boolean("skiplock"), schema.Integer("timeout").Min(0), schema.Text("machine").Of(machineFormat(v)), schema.Text("force-cpu"),
		schema.Text("migratedfrom").Format("pve-node"), schema.Text("migration_network").Format("CIDR"),
		schema.Choice("migration_type", "secure", "insecure"), schema.Text("nets-host-mtu").Pattern(`net\d+=\d+(,net\d+=\d+)*`),
		schema.Text("stateuri").MaxLength(128), schema.Text("targetstorage").Format("storage-pair-list"),
	}
	if v == V92 {
		out = append(out, schema.Boolean("with-conntrack-state"))
	}
	return out
}

// statusIndex lists what is below …/status.
func statusIndex(*call) reply {
	out := []map[string]string{}
	for _, name := range []string{"current", "start", "stop", "reset", "shutdown", "suspend", "reboot"} {
		out = append(out, map[string]string{"subdir": name})
	}
	return ok(out)
}

// rootOnly refuses parameters that only a ticket of root@pam may give.
func (c *call) rootOnly(names ...string) reply {
	i := slices.IndexFunc(names, c.has)
	if i < 0 || c.who.isRoot() {
		return reply{}
	}
	return invalidParam(names[i], "Only root may use this option.")
}

// powerOn starts the VM's process and its guest.
func (w *World) powerOn(v *vm) {
	w.nextPID++
	v.running, v.qemu, v.pid, v.started = true, qemuRunning, w.nextPID, w.clock.Now()
	v.agent = v.agentEnabled()
	w.changed(v)
	w.guestOn(v)
}

// powerOff ends the VM's process. What waited for that becomes real when Proxmox VE itself ended it.
func (w *World) powerOff(v *vm, cause PowerOffCause) {
	if !v.running {
		return
	}
	v.running, v.pid, v.agent = false, 0, false
	if cause == CauseStop || cause == CauseShutdown {
		w.applyPending(v)
	}
	w.changed(v)
	w.guestOff(v, cause)
	w.haTouchVM(v.id)
}
