package pvesim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

// stopallTimeout is how long stopall waits for a guest, in seconds.
const stopallTimeout = 180

func bulkRoutes(v Version) []Route {
	vms := schema.Text("vms").Format("pve-vmid-list")
	start, stop := []schema.Param{vms, schema.Boolean("force")}, []schema.Param{vms, schema.Boolean("force-stop"), schema.Integer("timeout").Min(0).Max(7200)}
	suspend := []schema.Param{vms}
	migrate := []schema.Param{vms, schema.Text("target").Format("pve-node").Required(), schema.Boolean("with-local-disks")}
	if v == V92 {
		workers := schema.Integer("max-workers").Min(1).Max(64)
		start, stop, suspend = append(start, workers), append(stop, workers), append(suspend, workers)
		migrate = append(migrate, workers, schema.Integer("maxworkers").Min(1).Max(64))
	} else {
		migrate = append(migrate, schema.Integer("maxworkers").Min(1))
	}
	return []Route{
		{Method: "POST", Path: "/nodes/{node}/startall", handle: startAll, params: start},
		{Method: "POST", Path: "/nodes/{node}/stopall", handle: stopAll, params: stop},
		{Method: "POST", Path: "/nodes/{node}/suspendall", handle: suspendAll, params: suspend},
		{Method: "POST", Path: "/nodes/{node}/migrateall", handle: migrateAll, params: migrate},
	}
}

// mayAll checks the privilege on everything or on every VM of the list.
func (c *call) mayAll(privilege string) reply {
	if c.mayAny(c.who, "/", privilege) {
		return reply{}
	}
	list := schema.SplitList(c.params["vms"])
	for _, id := range list {
		if path := "/vms/" + id; !c.mayAny(c.who, path, privilege) {
			return denied(path, privilege)
		}
	}
	if len(list) == 0 {
		return denied("/", privilege)
	}
	return reply{}
}

// bulk is one task that starts a task for every VM, one after another, and waits for each.
type bulk struct {
	*call
	vms []*vm
	// typ and begin are the task of one VM, line what the log says of it.
	typ   string
	line  func(*vm) string
	begin func(*task, *vm)
}

// members are the VMs of the node that the call is about, in the order of their start.
func (c *call) members(wanted func(*vm) bool) []*vm {
	list := schema.SplitList(c.params["vms"])
	var out []*vm
	for _, v := range c.vms {
		if v.node == c.node.Name && !v.isTemplate() && wanted(v) && (len(list) == 0 || slices.Contains(list, v.id.String())) {
			out = append(out, v)
		}
	}
	slices.SortFunc(out, func(a, b *vm) int {
		if x, y := a.startOrder(), b.startOrder(); x != y {
			return x - y
		}
		return int(a.id) - int(b.id)
	})
	return out
}

// startOrder is the order in the option startup; VMs without one come last.
func (v *vm) startOrder() int {
	for _, property := range strings.Split(v.config["startup"], ",") {
		if n, ok := strings.CutPrefix(property, "order="); ok || !strings.Contains(property, "=") {
			if property != "" {
				return atoi(n, 0)
			}
		}
	}
	return int(^uint(0) >> 1)
}

func (b bulk) run(typ string) reply {
	return b.task(typ, "", func(t *task) { b.next(t, b.vms) })
}

func (b bulk) next(t *task, left []*vm) {
	if len(left) == 0 {
		t.end("")
		return
	}
	v := left[0]
	t.logf("%s", b.line(v))
	upid := b.start(taskKey{node: t.node, typ: b.typ, id: v.id.String(), user: t.user}, func(one *task) {
		one.vms = []proxmox.VMID{v.id}
		b.begin(one, v)
	})
	b.await(t, b.tasks.byUPID[upid], left[1:])
}

func (b bulk) await(t, one *task, left []*vm) {
	if one.done() {
		b.next(t, left)
		return
	}
	t.after(time.Second, func() { b.await(t, one, left) })
}

func startAll(c *call) reply {
	if r := c.mayAll("VM.PowerMgmt"); r.failed() {
		return r
	}
	return bulk{
		call: c, typ: "qmstart", vms: c.members(func(v *vm) bool { return !v.running && (c.flag("force") || c.has("vms") || v.config["onboot"] == "1") }),
		line:  func(v *vm) string { return fmt.Sprintf("Starting VM %d", v.id) },
		begin: func(t *task, v *vm) { c.startVM(t, startJob{node: c.node, id: v.id}) },
	}.run("startall")
}

func stopAll(c *call) reply {
	if r := c.mayAll("VM.PowerMgmt"); r.failed() {
		return r
	}
	patience := atoi(c.params["timeout"], stopallTimeout)
	force := !c.has("force-stop") || c.flag("force-stop")
	vms := c.members(func(v *vm) bool { return v.running })
	slices.Reverse(vms)
	return bulk{
		call: c, typ: "qmshutdown", vms: vms,
		line: func(v *vm) string { return fmt.Sprintf("Stopping VM %d (timeout = %d seconds)", v.id, patience) },
		begin: func(t *task, v *vm) {
			c.shutdownVM(t, stopJob{node: c.node, id: v.id, patience: time.Duration(patience) * time.Second, force: force})
		},
	}.run("stopall")
}

func suspendAll(c *call) reply {
	if r := c.mayAll("VM.PowerMgmt"); r.failed() {
		return r
	}
	return bulk{
		call: c, typ: "qmsuspend", vms: c.members(func(v *vm) bool { return v.running }),
		line: func(v *vm) string { return fmt.Sprintf("Suspending VM %d", v.id) },
		begin: func(t *task, v *vm) {
			t.lock(lockRequest{id: v.id, timeout: flockTimeout, granted: func() { c.saveState(t, v, c.stateStorage(v)) }})
		},
	}.run("suspendall")
}

func migrateAll(c *call) reply {
	if r := c.mayAll("VM.Migrate"); r.failed() {
		return r
	}
	name := "max-workers"
	if c.version == V84 {
		name = "maxworkers"
	}
	target := c.World.node(proxmox.NodeName(c.params["target"]))
	switch {
	case c.params["target"] == string(c.node.Name):
		return invalidParam("target", "target is local node.")
	case target == nil:
		return fail("no such cluster node '%s'", c.params["target"])
	case !c.has("max-workers") && !c.has("maxworkers"):
		return fail("either '%s' parameter or max_workers in datacenter.cfg must be set!", name)
	}
	return bulk{
		call: c, typ: "qmigrate", vms: c.members(func(*vm) bool { return true }),
		line: func(v *vm) string { return fmt.Sprintf("Migrating VM %d", v.id) },
		begin: func(t *task, v *vm) {
			c.migrateVM(t, migrateJob{vm: v, target: target, online: v.running, withDisks: c.flag("with-local-disks")})
		},
	}.run("migrateall")
}
