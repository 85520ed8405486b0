package pvesim

import (
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
}

// newEdit takes the parameters apart and refuses what needs no look at the VM; nil with the refusal then.
func (c *call) newEdit() (*edit, reply) {
	e := &edit{
		set: map[string]string{}, digest: c.params["digest"], force: c.flag("force"),
		remove: schema.SplitList(c.params["delete"]), revert: schema.SplitList(c.params["revert"]),
	}
	known := configParams(c.version)
	for key, value := range c.params {
		if schema.Lookup(known, key) != nil {
			e.set[key] = value
		}
	}
	if len(e.set)+len(e.remove)+len(e.revert) == 0 {
		return nil, fail("no options specified")
	}
	for _, key := range e.remove {
		if _, ok := e.set[key]; ok {
			return nil, invalidParam("delete", "you can't use '-%s' and -delete %s' at the same time", key, key)
		}
		if schema.Lookup(known, key) == nil {
			return nil, invalidParam("delete", "unknown option '%s'", key)
		}
	}
	if !schema.ValidSSHKeys(e.set["sshkeys"]) {
		return nil, fail("SSH public key validation error")
	}
	if name := e.set["hookscript"]; name != "" {
		return nil, invalidParam("hookscript", "script '%s' does not exist\n", name)
	}
	if r := c.mayEdit(e); r.failed() {
		return nil, r
	}
	return e, reply{}
}

// checkEdit refuses an edit of a VM that is missing, locked or changed meanwhile.
func (c *call) checkEdit(e *edit) reply {
	v := c.vm()
	switch {
	case v == nil:
		return missingVM(c.node.Name, c.vmid())
	case v.lock() != "" && !c.flag("skiplock"):
		return fail("VM is locked (%s)", v.lock())
	case e.digest != "" && e.digest != v.digest():
		return fail("checksum mismatch (file change by other user?)")
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
		if r := c.mayChange(e, c.vm().config); r.failed() {
			return r
		}
		if r := c.apply(e, c.vm()); r.failed() {
			return r
		}
		return ok(nil)
	})
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
		t.logf("update VM %d:%s", c.vmid(), e.describe())
		t.lock(lockRequest{id: c.vmid(), timeout: flockTimeout, granted: func() {
			t.after(c.about(configDelay), func() {
				if r := c.checkEdit(e); r.failed() {
					t.end(r.reason)
					return
				}
				if r := c.mayChange(e, c.vm().config); r.failed() {
					t.end(r.failure())
					return
				}
				t.end(c.apply(e, c.vm()).failure())
			})
		}})
	})(c)
}

// failure is the text of a failed reply, for tasks; empty if it did not fail.
func (r reply) failure() string {
	if !r.failed() {
		return ""
	}
	for name, text := range r.errors {
		return fmt.Sprintf("%s: %s", name, strings.TrimSpace(text))
	}
	if r.status == http.StatusForbidden {
		return fmt.Sprintf("%d %s", r.status, r.reason)
	}
	return r.reason
}

func (e *edit) describe() string {
	out := ""
	for _, key := range slices.Sorted(maps.Keys(e.set)) {
		value := e.set[key]
		if key == "cipassword" {
			value = "<hidden>"
		}
		out += fmt.Sprintf(" -%s %s", key, value)
	}
	if len(e.remove) > 0 {
		out += " -delete " + strings.Join(e.remove, ",")
	}
	return out
}
