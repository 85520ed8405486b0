package pvesim

import (
	"slices"
	"strings"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

const (
	// agentPatience is how long qemu-server waits for an agent to answer guest-ping.
	agentPatience = 3 * time.Second
	// brokenAnswer is how long pveproxy takes to give up an answer that it cannot write.
	brokenAnswer = 5 * time.Second
	// brokenStatus is pveproxy's own status for it.
	brokenStatus = 596
)

// agentEndpoint is a command that has an endpoint of its own.
type agentEndpoint struct {
	name   string
	method string
	// privileges of 9.x beside VM.GuestAgent.Unrestricted; 8.4 has VM.Monitor for all.
	privileges []string
}

// agentEndpoints are the commands without parameters, which POST …/agent takes, too (PVE::API2::Qemu::Agent).
func agentEndpoints() []agentEndpoint {
	audit, files, power := []string{"VM.GuestAgent.Audit"}, []string{"VM.GuestAgent.FileSystemMgmt"}, []string{"VM.PowerMgmt"}
	return []agentEndpoint{
		{"fsfreeze-freeze", "POST", files},
		{"fsfreeze-status", "POST", append(slices.Clone(audit), files...)},
		{"fsfreeze-thaw", "POST", files},
		{"fstrim", "POST", files},
		{"get-fsinfo", "GET", audit},
		{"get-host-name", "GET", audit},
		{"get-memory-block-info", "GET", audit},
		{"get-memory-blocks", "GET", audit},
		{"get-osinfo", "GET", audit},
		{"get-time", "GET", audit},
		{"get-timezone", "GET", audit},
		{"get-users", "GET", audit},
		{"get-vcpus", "GET", audit},
		{"info", "GET", audit},
		{"network-get-interfaces", "GET", audit},
		{"ping", "POST", audit},
		{"shutdown", "POST", power},
		{"suspend-disk", "POST", power},
		{"suspend-hybrid", "POST", power},
		{"suspend-ram", "POST", power},
	}
}

// agentRight is the privilege for a command, which 9.x split off VM.Monitor.
func agentRight(v Version, privileges ...string) permission {
	if v == V84 {
		return on("/vms/{vmid}", "VM.Monitor")
	}
	return on("/vms/{vmid}", append(slices.Clone(privileges), "VM.GuestAgent.Unrestricted")...)
}

func agentRoutes(v Version) []Route {
	const path = "/nodes/{node}/qemu/{vmid}/agent"
	read := []schema.Param{schema.Text("file").Required()}
	if v == V92 {
		read = append(read, schema.Integer("offset").Min(0), schema.Integer("count").Min(1).Max(16<<20), schema.Boolean("decode"))
	}
	var names []string
	out := []Route{{Method: "GET", Path: path, handle: agentIndex}}
	for _, e := range agentEndpoints() {
		names = append(names, e.name)
		out = append(out, Route{Method: e.method, Path: path + "/" + e.name, handle: agentSimple(e.name), permission: agentRight(v, e.privileges...)})
	}
	unrestricted := agentRight(v)
	return append(out,
		// Proxmox VE asks for this privilege twice.
		Route{Method: "POST", Path: path, handle: agentAny, permission: agentRight(v, "VM.GuestAgent.Unrestricted"), params: []schema.Param{schema.Choice("command", names...).Required()}},
		Route{Method: "POST", Path: path + "/exec", handle: agentExec, permission: unrestricted, params: []schema.Param{
			schema.List("command").Required(), schema.Text("input-data").MaxLength(64 << 10),
		}},
		Route{Method: "GET", Path: path + "/exec-status", handle: agentExecStatus, permission: unrestricted, params: []schema.Param{schema.Integer("pid").Required()}},
		Route{Method: "GET", Path: path + "/file-read", handle: agentFileRead, permission: agentRight(v, "VM.GuestAgent.FileRead"), params: read},
		Route{Method: "POST", Path: path + "/file-write", handle: agentFileWrite, permission: agentRight(v, "VM.GuestAgent.FileWrite"), params: []schema.Param{
			schema.Text("file").Required(), schema.Text("content").MaxLength(60 << 10).Required(), schema.Boolean("encode"),
		}},
		Route{Method: "POST", Path: path + "/set-user-password", handle: agentPassword, permission: unrestricted, params: []schema.Param{
			schema.Text("username").Required(), schema.Text("password").MaxLength(1024).Required(), schema.Boolean("crypted"),
		}},
	)
}

// agentIndex lists the endpoints below …/agent.
func agentIndex(*call) reply {
	out := []map[string]string{}
	for _, e := range agentEndpoints() {
		out = append(out, map[string]string{"name": e.name})
	}
	for _, name := range []string{"exec", "exec-status", "file-read", "file-write", "set-user-password"} {
		out = append(out, map[string]string{"name": name})
	}
	return ok(out)
}

// askAgent passes a command to the guest. Who is slower than qemu-server's patience is as good as absent.
func (w *World) askAgent(v *vm, cmd AgentCommand) AgentAnswer {
	if !v.agent {
		return AgentAnswer{Absent: true}
	}
	absent := AgentAnswer{Absent: true, Delay: agentPatience}
	if v.guest == nil || v.qemu != qemuRunning {
		return absent
	}
	cmd.Now, cmd.Uptime = w.clock.Now(), time.Duration(float64(w.clock.Since(v.started))*w.speed)
	answer := v.guest.Agent(cmd)
	if answer.Absent || answer.Delay > agentPatience {
		return absent
	}
	return answer
}

// withAgent runs a command in the guest of the path's VM and makes the reply of its result, after the checks of
// assert_agent_available in qemu-server.
func (c *call) withAgent(cmd AgentCommand, then func(result any) reply) reply {
	v := c.vm()
	switch {
	case v == nil:
		return missingVM(c.node.Name, c.vmid())
	case v.config["agent"] == "":
		return fail("No QEMU guest agent configured")
	case !v.running:
		return fail("VM %d is not running", v.id)
	}
	answer := c.askAgent(v, cmd)
	var r reply
	switch {
	case answer.Absent:
		r = fail("QEMU guest agent is not running")
	case answer.Err != "":
		r = agentFailure(answer.Err)
	default:
		r = then(answer.Result)
	}
	r.delay += answer.Delay
	return r
}

// agentFailure is the answer to an error of the agent. pveproxy cannot write texts that are not ASCII into the reason.
func agentFailure(msg string) reply {
	if strings.IndexFunc(msg, func(r rune) bool { return r > 127 }) >= 0 {
		return reply{status: brokenStatus, reason: "Broken pipe", bare: true, delay: brokenAnswer}
	}
	return fail("Agent error: %s", msg)
}

func agentResult(result any) reply { return ok(map[string]any{"result": result}) }

// agentSimple is a command without parameters. Errors of the agent are part of its result.
func agentSimple(name string) func(*call) reply {
	return func(c *call) reply { return c.agentPlain(name) }
}

func agentAny(c *call) reply { return c.agentPlain(c.params["command"]) }

func (c *call) agentPlain(name string) reply {
	r := c.withAgent(AgentCommand{Name: name}, agentResult)
	if v := c.vm(); !r.failed() {
		c.guestPower(v, name)
	}
	return r
}

// guestPower lets the guest do what it was told about its power.
func (c *call) guestPower(v *vm, name string) {
	power := v.power
	switch name {
	case "shutdown", "suspend-disk":
		if reaction, obeys := v.guest.Shutdown(); obeys {
			c.after(reaction, func() {
				if v.power == power {
					c.powerOff(v, CauseShutdown)
				}
			})
		}
	case "suspend-ram", "suspend-hybrid":
		v.qemu = qemuSuspended
	}
}

// agentExec starts a program in the guest; its words are the parts of the list.
func agentExec(c *call) reply {
	words := strings.Split(c.params["command"], "\x00")
	cmd := AgentCommand{Name: "exec", Path: words[0], Arguments: words[1:], Input: []byte(c.params["input-data"])}
	return c.withAgent(cmd, func(result any) reply { return ok(map[string]any{"pid": result}) })
}

// agentExecStatus tells what became of a program. Of one that has ended it does so only once.
func agentExecStatus(c *call) reply {
	return c.withAgent(AgentCommand{Name: "exec-status", PID: atoi(c.params["pid"], -1)}, func(result any) reply {
		p, _ := result.(AgentProcess)
		return ok(p.entry())
	})
}

func (p AgentProcess) entry() map[string]any {
	out := map[string]any{"exited": pveBool(p.Exited)}
	if !p.Exited {
		return out
	}
	out["exitcode"] = p.Code
	if len(p.Output) > 0 {
		out["out-data"], out["out-truncated"] = string(p.Output), 0
	}
	if len(p.Errors) > 0 {
		out["err-data"], out["err-truncated"] = string(p.Errors), 0
	}
	return out
}

// fileReadLimit is what one call reads of a file.
const fileReadLimit = 16 << 20

func agentFileRead(c *call) reply {
	return c.withAgent(AgentCommand{Name: "file-read", Path: c.params["file"]}, func(result any) reply {
		content, _ := result.([]byte)
		content = content[min(len(content), atoi(c.params["offset"], 0)):]
		count := atoi(c.params["count"], fileReadLimit)
		out := map[string]any{"content": string(content[:min(len(content), count)]), "bytes-read": min(len(content), count)}
		if len(content) > count {
			out["truncated"] = 1
		}
		return ok(out)
	})
}

func agentFileWrite(c *call) reply {
	cmd := AgentCommand{Name: "file-write", Path: c.params["file"], Input: []byte(c.params["content"])}
	return c.withAgent(cmd, func(any) reply { return ok(nil) })
}

func agentPassword(c *call) reply {
	cmd := AgentCommand{Name: "set-user-password", Path: c.params["username"], Input: []byte(c.params["password"])}
	return c.withAgent(cmd, agentResult)
}
