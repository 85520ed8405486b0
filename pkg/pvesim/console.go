package pvesim

import (
	"fmt"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

const (
	// firstConsolePort is where vncproxy and termproxy begin to look for a free port.
	firstConsolePort = 5900
	// consoleWait is how long a proxy waits for its client.
	consoleWait = 10 * time.Second
)

func consoleRoutes(v Version) []Route {
	const path = "/nodes/{node}/qemu/{vmid}"
	monitor := on("/vms/{vmid}", "VM.Monitor")
	if v == V92 {
		monitor = on("/vms/{vmid}", "Sys.Audit", "Sys.Modify")
	}
	console := on("/vms/{vmid}", "VM.Console")
	return []Route{
		{Method: "POST", Path: path + "/monitor", handle: monitorCommand, permission: monitor, params: []schema.Param{schema.Text("command").Required()}},
		{Method: "POST", Path: path + "/vncproxy", handle: vncProxy, permission: console, params: []schema.Param{
			schema.Boolean("generate-password"), schema.Boolean("websocket"),
		}},
		{Method: "POST", Path: path + "/termproxy", handle: termProxy, permission: console, params: []schema.Param{
			schema.Choice("serial", "serial0", "serial1", "serial2", "serial3"),
		}},
		{Method: "PUT", Path: path + "/sendkey", handle: sendKey, permission: console, params: []schema.Param{
			schema.Text("key").Required(), schema.Boolean("skiplock"),
		}},
	}
}

// monitorCommand is POST …/monitor: QEMU's monitor for people. It knows a few commands.
func monitorCommand(c *call) reply {
	v := c.vm()
	switch {
	case v == nil:
		return missingVM(c.node.Name, c.vmid())
	case !v.running:
		return ok(fmt.Sprintf("ERROR: VM %d not running\n", v.id))
	}
	switch command := c.params["command"]; command {
	case "info version":
		return ok(fmt.Sprintf("%spve-qemu-kvm_%s-1\r\n", c.qemuVersion(), c.qemuVersion()))
	case "info status":
		return ok(fmt.Sprintf("VM status: %s\r\n", v.qemu))
	case "info name":
		return ok(v.name() + "\r\n")
	case "info uuid":
		return ok(string(v.uuid()) + "\r\n")
	default:
		return ok(fmt.Sprintf("unknown command: '%s'\r\n", command))
	}
}

// consoleTicket answers with a ticket for a console. Nothing listens there: the proxy waits for its client and gives up.
func (c *call) consoleTicket(typ string) map[string]any {
	v := c.vm()
	upid := c.start(taskKey{node: c.node.Name, typ: typ, id: v.id.String(), user: c.who.name()}, func(t *task) {
		t.after(consoleWait, func() { t.end("connection timed out") })
	})
	return map[string]any{
		"user": c.who.name(), "ticket": fmt.Sprintf("PVEVNC:%08X::%s", c.clock.Now().Unix(), checksum("sha256", []byte(upid))),
		"port": firstConsolePort + c.random.IntN(100), "upid": upid,
	}
}

func vncProxy(c *call) reply {
	if c.vm() == nil {
		return missingVM(c.node.Name, c.vmid())
	}
	out := c.consoleTicket("vncproxy")
	out["cert"] = "-----BEGIN CERTIFICATE-----\n" + checksum("sha512", []byte(c.node.Name)) + "\n-----END CERTIFICATE-----\n"
	if c.flag("generate-password") {
		out["password"] = checksum("sha1", []byte(c.newUUID()))[:8]
	}
	return ok(out)
}

func termProxy(c *call) reply {
	v := c.vm()
	if v == nil {
		return missingVM(c.node.Name, c.vmid())
	}
	serial := c.params["serial"]
	if serial == "" {
		serial = "serial0"
	}
	switch {
	case v.config[serial] == "" && !c.has("serial"):
		return fail("unable to find a serial interface")
	case v.config[serial] == "":
		return fail("serial interface '%s' is not configured", serial)
	}
	return ok(c.consoleTicket("vncproxy"))
}

func sendKey(c *call) reply {
	v := c.vm()
	switch {
	case v == nil:
		return missingVM(c.node.Name, c.vmid())
	case !v.running:
		return fail("VM %d not running", v.id)
	}
	return ok(nil)
}
