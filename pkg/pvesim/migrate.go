package pvesim

import (
	"fmt"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

func migrateParams(v Version) []schema.Param {
	out := []schema.Param{
		schema.Text("target").Format("pve-node").Required(), schema.Integer("bwlimit").Min(0), schema.Boolean("force"), schema.Text("migration_network"),
		schema.Choice("migration_type", "secure", "insecure"), schema.Boolean("online"), schema.Text("targetstorage"), schema.Boolean("with-local-disks"),
	}
	if v == V92 {
		out = append(out, schema.Boolean("with-conntrack-state"))
	}
	return out
}

// migrateVM moves a VM to another node. Only VMs whose volumes are on shared storage can go.
func migrateVM(c *call) reply {
	v, target := c.vm(), proxmox.NodeName(c.params["target"])
	switch {
	case target == c.node.Name:
		return invalidParam("target", "target is local node.")
	case c.World.node(target) == nil:
		return fail("no such cluster node '%s'", target)
	case v == nil:
		return missingVM(c.node.Name, c.vmid())
	case v.lock() != "":
		return fail("VM is locked (%s)", v.lock())
	case v.running && !c.flag("online"):
		return invalidParam("online", "can't migrate running VM without --online")
	}
	return vmTask("qmigrate", func(c *call, t *task) {
		t.logf("starting migration of VM %d to node '%s' (%s)", v.id, target, c.World.node(target).Address)
		t.lock(lockRequest{id: v.id, timeout: flockTimeout, granted: func() { c.migrate(t, v, target) }})
	})(c)
}

func (c *call) migrate(t *task, v *vm, target proxmox.NodeName) {
	for _, name := range v.drives() {
		d := parseDrive(v.config[name])
		if s := c.storageByID(d.storageID()); s != nil && !s.shared {
			t.end(fmt.Sprintf("migration aborted: can't migrate local disk '%s'", d.volume))
			return
		}
	}
	if !c.node.sees(c.World.node(target)) {
		t.after(noRouteDelay, func() { t.end("migration aborted") })
		return
	}
	v.config["lock"] = "migrate"
	unlock := func() { delete(v.config, "lock") }
	t.undo = func(string) { unlock() }
	t.after(c.between(2*time.Second, 4*time.Second), func() {
		unlock()
		v.node = target
		c.changed(v)
		t.logf("migration finished successfully")
		t.end("")
	})
}
