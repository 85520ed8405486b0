package pvesim

import (
	"fmt"
	"strings"
)

// destroyVM is DELETE on a VM.
func destroyVM(c *call) reply {
	if msg := c.destroyEarly(); msg != "" {
		return fail("%s", msg)
	}
	return vmTask("qmdestroy", func(c *call, t *task) {
		t.lock(lockRequest{id: c.vmid(), timeout: flockTimeout, granted: func() {
			if msg := c.destroyRefusal(); msg != "" {
				t.end(msg)
				return
			}
			t.after(c.about(destroyDelay), func() { c.destroy(t) })
		}})
	})(c)
}

// destroyEarly are the checks that come before the task, and again in it.
func (c *call) destroyEarly() string {
	v := c.vm()
	switch {
	case v == nil:
		return noConfig(c.node.Name, c.vmid())
	case v.config["protection"] == "1":
		return fmt.Sprintf("can't remove VM %d - protection mode enabled", v.id)
	case !c.flag("purge") && c.haConfigured(v.id):
		return fmt.Sprintf("unable to remove VM %d - used in HA resources and purge parameter not set.", v.id)
	case v.running:
		return fmt.Sprintf("VM %d is running - destroy failed", v.id)
	}
	return ""
}

func (c *call) destroyRefusal() string {
	if msg := c.destroyEarly(); msg != "" {
		return msg
	}
	v := c.vm()
	if v.lock() != "" && v.lock() != "suspended" && !c.flag("skiplock") {
		return v.lockRefusal()
	}
	if base := c.usedAsBase(v); base != nil {
		return fmt.Sprintf("base volume '%s' is still in use by linked cloned", base.key.id)
	}
	return ""
}

// destroy removes the VM with the volumes that are its own.
func (c *call) destroy(t *task) {
	if msg := c.destroyRefusal(); msg != "" {
		t.end(msg)
		return
	}
	v := c.vm()
	c.removeDisks(v)
	for _, s := range v.snapshots {
		c.dropMemory(v, s)
	}
	if c.flag("destroy-unreferenced-disks") {
		for key, vol := range c.volumes {
			if vol.vmid == v.id && vol.content == "images" && (key.node == "" || key.node == v.node) {
				c.removeVolume(key)
			}
		}
	}
	if t.cannotWrite(v) {
		return
	}
	c.dropVM(v)
	delete(c.acl, "/vms/"+v.id.String())
	if c.flag("purge") {
		t.logf("purging VM %d from related configurations..", v.id)
		if c.haPurge(v.id) {
			t.logf("NOTE: removed VM %d from HA resource configuration.", v.id)
		}
	}
	t.end("")
}

// removeDisks frees the volumes that the config names, those of pending changes included.
func (c *call) removeDisks(v *vm) {
	values := []string{v.config["vmstate"]}
	for _, name := range v.drives() {
		values = append(values, v.config[name])
	}
	for _, p := range v.pending {
		values = append(values, p.value)
	}
	for _, value := range values {
		if !strings.Contains(value, ":") {
			continue
		}
		if vol := c.volumeAt(v.node, parseDrive(value).volume); vol != nil && vol.vmid == v.id {
			c.removeVolume(vol.key)
		}
	}
}
