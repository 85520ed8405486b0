package pvesim

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

// edit is an update of a VM's config: what PUT and POST …/config ask for.
type edit struct {
	set    map[string]string
	remove []string
	revert []string
	digest string
	force  bool
	// line is the update as the task's log shows it.
	line string
}

// newEdit takes the parameters apart and refuses what needs no look at the VM; nil with the refusal then. The order of the checks
// is that of update_vm_api in qemu-server.
func (c *call) newEdit() (*edit, reply) {
	e := &edit{
		set: c.vmOptions(), digest: c.params["digest"], force: c.flag("force"),
		remove: schema.SplitList(c.params["delete"]), revert: schema.SplitList(c.params["revert"]),
	}
	e.line = c.describeEdit(e)
	if !schema.ValidSSHKeys(e.set["sshkeys"]) {
		return nil, fail("SSH public key validation error")
	}
	if len(e.set)+len(c.params["delete"])+len(c.params["revert"]) == 0 {
		return nil, fail("no options specified")
	}
	normalOptions(e.set)
	if r := c.checkLists(e); r.failed() {
		return nil, r
	}
	if r := c.checkDrives(e.set); r.failed() {
		return nil, r
	}
	if id, given := e.set["hookscript"]; given && c.volumeAt(c.node.Name, proxmox.VolumeID(id)) == nil {
		return nil, invalidParam("hookscript", "script '%s' does not exist\n", id)
	}
	if r := c.mayEdit(e); r.failed() {
		return nil, r
	}
	if r := c.checkVolumes(e.set); r.failed() {
		return nil, r
	}
	return e, reply{}
}

// vmOptions are the parameters of the request that are options of a VM.
func (c *call) vmOptions() map[string]string {
	out := map[string]string{}
	for key, value := range c.params {
		if schema.Lookup(c.routes.options, key) != nil {
			out[key] = value
		}
	}
	return out
}

// maxCPUUnits is where cgroup v2 clamps the weight.
const maxCPUUnits = 10000

// normalOptions writes some options as qemu-server does before it looks at anything else.
func normalOptions(set map[string]string) {
	if value, given := set["cdrom"]; given {
		set["ide2"] = value
		delete(set, "cdrom")
	}
	if n := atoi(set["cpuunits"], 0); n > maxCPUUnits {
		set["cpuunits"] = fmt.Sprint(maxCPUUnits)
	}
	if password := set["cipassword"]; password != "" {
		set["cipassword"] = cryptPassword(password)
	}
}

// checkLists checks what is to be deleted or reverted.
func (c *call) checkLists(e *edit) reply {
	for _, key := range e.revert {
		if schema.Lookup(c.routes.options, key) == nil {
			return invalidParam("revert", "unknown option '%s'", key)
		}
		if _, given := e.set[key]; given {
			return invalidParam("delete", "you can't use '-%s' and '-revert %s' at the same time", key, key)
		}
	}
	for i, key := range e.remove {
		if key == "cdrom" {
			e.remove[i] = "ide2"
			key = "ide2"
		}
		if _, given := e.set[key]; given {
			return invalidParam("delete", "you can't use '-%s' and -delete %s' at the same time", key, key)
		}
		if slices.Contains(e.revert, key) {
			return invalidParam("revert", "you can't use '-delete %s' and '-revert %s' at the same time", key, key)
		}
		if schema.Lookup(c.routes.options, key) == nil {
			return invalidParam("delete", "unknown option '%s'", key)
		}
	}
	return reply{}
}

// describeEdit lists the parameters in the order of their names, as the task's log does.
func (c *call) describeEdit(e *edit) string {
	out := fmt.Sprintf("update VM %d:", c.vmid())
	given := maps.Clone(e.set)
	for _, name := range []string{"delete", "revert", "force", "skiplock"} {
		if c.has(name) {
			given[name] = c.params[name]
		}
	}
	for _, key := range slices.Sorted(maps.Keys(given)) {
		value := given[key]
		if key == "cipassword" {
			value = "<hidden>"
		}
		out += fmt.Sprintf(" -%s %s", key, value)
	}
	return out
}

// wrongDigest refuses a request that was made for another config of the VM, as qemu-server words it.
const wrongDigest = "checksum mismatch (file change by other user?)"

// checkEdit refuses an edit of a VM that is missing, locked or changed meanwhile, or that does not fit its config.
func (c *call) checkEdit(e *edit) reply {
	v := c.vm()
	switch {
	case v == nil:
		return missingVM(c.node.Name, c.vmid())
	case e.digest != "" && e.digest != v.digest():
		return fail(wrongDigest)
	case v.lock() != "" && !c.flag("skiplock"):
		return fail("%s", v.lockRefusal())
	}
	return v.checkBalloon(e)
}

// checkBalloon refuses a balloon larger than the memory.
func (v *vm) checkBalloon(e *edit) reply {
	if e.set["memory"] == "" && e.set["balloon"] == "" {
		return reply{}
	}
	memory := cmp.Or(e.set["memory"], v.pending["memory"].value, v.config["memory"])
	balloon := cmp.Or(e.set["balloon"], v.pending["balloon"].value, v.config["balloon"])
	if atoi(balloon, 0) > atoi(propertyOr(memory, "current", firstProperty(memory)), 512) {
		return fail("balloon value too large (must be smaller than assigned memory)")
	}
	return reply{}
}

// underLock runs do when the VM's lock file is free; a PUT waits for it.
func (c *call) underLock(id proxmox.VMID, do func() reply) reply {
	done := make(chan reply, 1)
	c.acquire(lockRequest{
		node: c.node.Name, id: id, timeout: flockTimeout,
		granted: func() { defer c.release(flockKey{c.node.Name, id}); done <- do() },
		refused: func(reason string) { done <- fail("%s", reason) },
	})
	select {
	case r := <-done:
		return r
	default:
		return reply{later: done}
	}
}

// refuseEarly checks before the lock file is taken. Only 9.x looks at the config lock that early: 8.4 waits for the file.
func (c *call) refuseEarly(e *edit) reply {
	if v := c.vm(); v != nil && c.version == V84 && v.lock() == "clone" {
		return reply{}
	}
	return c.checkEdit(e)
}

// putConfig changes the config before it answers.
func putConfig(c *call) reply {
	e, refused := c.newEdit()
	if e == nil {
		return refused
	}
	if r := c.refuseEarly(e); r.failed() {
		return r
	}
	return c.underLock(c.vmid(), func() reply {
		if r := c.checkEdit(e); r.failed() {
			return r
		}
		return c.applyChecked(e, nil)
	})
}

// applyChecked asks for the rights that depend on the VM's config, and carries the edit out.
func (c *call) applyChecked(e *edit, log *task) reply {
	v := c.vm()
	if r := c.mayChange(e, v.config); r.failed() {
		return r
	}
	for _, key := range e.remove {
		d := parseDrive(v.config[key])
		if free := strings.HasPrefix(key, "unused") || (isDrive(key) && e.force && !d.cdrom()); !free || d.storageID() == "" {
			continue
		}
		if r := c.need("/storage/"+string(d.storageID()), "Datastore.AllocateSpace"); r.failed() {
			return r
		}
	}
	return c.apply(e, v, log)
}

// unlinkDisks is PUT …/unlink: an update that deletes.
func unlinkDisks(c *call) reply {
	c.params["delete"] = c.params["idlist"]
	delete(c.params, "idlist")
	return putConfig(c)
}

// postConfig answers with a task that changes the config.
func postConfig(c *call) reply {
	e, refused := c.newEdit()
	if e == nil {
		return refused
	}
	if r := c.refuseEarly(e); r.failed() {
		return r
	}
	return vmTask("qmconfig", func(c *call, t *task) {
		t.logf("%s", e.line)
		t.lock(lockRequest{id: c.vmid(), timeout: flockTimeout, granted: func() {
			t.after(c.about(configDelay), func() {
				r := c.checkEdit(e)
				if !r.failed() {
					r = c.applyChecked(e, t)
				}
				t.end(r.failure())
			})
		}})
	})(c)
}

// failure is the text of a failed reply, for tasks, as Perl writes an exception on one line; empty if it did not fail.
func (r reply) failure() string {
	switch {
	case !r.failed():
		return ""
	case r.status == http.StatusInternalServerError:
		return r.reason
	}
	out := fmt.Sprintf("%d %s", r.status, r.reason)
	for _, name := range slices.Sorted(maps.Keys(r.errors)) {
		out += fmt.Sprintf(" %s: %s", name, strings.TrimSpace(r.errors[name]))
	}
	return out
}
