package pvesim

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

// cloneOrder is what a POST …/clone asks for.
type cloneOrder struct {
	*call
	newID   proxmox.VMID
	storage *storage
	// moveTo is the node to leave the clone on; empty for that of its source.
	moveTo proxmox.NodeName
	// running tells whether the source ran when the request came.
	running bool
}

// clonePlan is what a clone's worker does, as far as it follows from the source.
type clonePlan struct {
	source *vm
	// config is that of the source or of its snapshot.
	config map[string]string
	full   bool
}

func cloneRoutes() []Route {
	const vmPath = "/nodes/{node}/qemu/{vmid}"
	snapshot := schema.Text("snapname").Format("pve-configid").MaxLength(40)
	return []Route{
		{Method: "POST", Path: vmPath + "/clone", handle: cloneVM, permission: clonePermission(), params: []schema.Param{
			schema.Integer("bwlimit").Min(0), schema.Text("description"), schema.Choice("format", "raw", "qcow2", "vmdk"), schema.Boolean("full"), schema.Text("name").Format("dns-name"),
			schema.VMID("newid").Required(), schema.Text("pool").Format("pve-poolid"), snapshot,
			schema.Text("storage").Format("pve-storage-id"), schema.Text("target").Format("pve-node"),
		}},
		{Method: "POST", Path: vmPath + "/template", handle: makeTemplate, permission: on("/vms/{vmid}", "VM.Allocate"), params: []schema.Param{
			schema.Choice("disk", diskNames()...),
		}},
		{Method: "GET", Path: vmPath + "/feature", handle: vmFeature, permission: on("/vms/{vmid}", "VM.Audit"), params: []schema.Param{
			schema.Choice("feature", "snapshot", "clone", "copy").Required(), snapshot,
		}},
	}
}

// cloneVM is POST …/clone. What the worker checks under the lock files is checked here already, in the same order, so that
// most refusals come at once.
func cloneVM(c *call) reply {
	v := c.vm()
	if v == nil {
		return fail("%s", notOnNode(c.node.Name, c.vmid()))
	}
	o := &cloneOrder{call: c, newID: toVMID(c.params["newid"]), moveTo: proxmox.NodeName(c.params["target"]), running: v.running}
	if o.moveTo == c.node.Name || o.moveTo == "localhost" {
		o.moveTo = ""
	}
	if _, r := o.check(); r.failed() {
		return r
	}
	return c.task("qmclone", c.params["vmid"], func(t *task) {
		t.vms = []proxmox.VMID{o.newID}
		t.after(forkDelay, func() { o.lock(t) })
	})
}

// check is what qemu-server does before and after it has the lock files ($load_and_check of clone_vm).
func (o *cloneOrder) check() (*clonePlan, reply) {
	if pool := o.params["pool"]; pool != "" && o.pools[proxmox.PoolID(pool)] == nil {
		return nil, missingPool(pool)
	}
	if r := o.checkTarget(); r.failed() {
		return nil, r
	}
	v := o.vm()
	switch {
	case v == nil:
		return nil, missingVM(o.node.Name, o.vmid())
	case v.lock() != "":
		return nil, fail("%s", v.lockRefusal())
	case v.running != o.running:
		return nil, fail("unexpected state change")
	}
	p := &clonePlan{source: v, config: v.config}
	if name := o.params["snapname"]; name != "" {
		s := v.snapshot(name)
		if s == nil {
			return nil, fail("snapshot '%s' does not exist", name)
		}
		if p.config = maps.Clone(s.config); s.description != "" {
			p.config["description"] = s.description
		}
	}
	return p, o.checkPlan(p)
}

func (o *cloneOrder) checkTarget() reply {
	if o.moveTo != "" && o.World.node(o.moveTo) == nil {
		return fail("no such cluster node '%s'", o.moveTo)
	}
	id := proxmox.StorageID(o.params["storage"])
	if id == "" {
		return reply{}
	}
	s, msg := o.storageFor(id, o.node.Name)
	if s == nil {
		return fail("%s", msg)
	}
	if o.moveTo != "" {
		if s, msg = o.storageFor(id, o.moveTo); s == nil {
			return fail("%s", msg)
		}
		if !s.shared {
			return fail("can't clone to non-shared storage '%s'", id)
		}
	}
	o.storage = s
	return reply{}
}

// checkPlan refuses by the kind of clone, the rights on storages and bridges, and the source's disks.
func (o *cloneOrder) checkPlan(p *clonePlan) reply {
	if p.full = !p.source.isTemplate(); o.has("full") {
		p.full = o.flag("full")
	}
	for _, key := range []string{"storage", "format"} {
		if o.has(key) && !p.full {
			return fail("parameter '%s' not allowed for linked clones", key)
		}
	}
	shared, r := o.checkStorages(p)
	if r.failed() {
		return r
	}
	if r := o.mayUseBridges(p.config); r.failed() {
		return r
	}
	switch {
	case o.moveTo != "" && !shared:
		return fail("can't clone VM to node '%s' (VM uses local storage)", o.moveTo)
	case o.vmOn(o.node.Name, o.newID) != nil:
		return fail("unable to create VM %d: config file already exists", o.newID)
	}
	return o.checkDisks(p)
}

// checkStorages tells whether all volumes are on shared storage, and checks the rights on the storages of the new disks.
func (o *cloneOrder) checkStorages(p *clonePlan) (shared bool, r reply) {
	shared = true
	for _, name := range clonedDrives(p.config, anyDrive) {
		d := parseDrive(p.config[name])
		s := o.storageByID(d.storageID())
		if d.storageID() == "" {
			continue
		}
		if s == nil {
			return false, fail("storage '%s' does not exist", d.storageID())
		}
		shared = shared && s.shared
		if o.storage != nil {
			s = o.storage
		}
		if d.cdrom() {
			continue
		}
		if r := o.need("/storage/"+string(s.id), "Datastore.AllocateSpace"); r.failed() {
			return false, r
		}
	}
	if id := p.config["vmstatestorage"]; id != "" {
		return shared, o.need("/storage/"+id, "Datastore.AllocateSpace")
	}
	return shared, reply{}
}

func (o *cloneOrder) checkDisks(p *clonePlan) reply {
	what, feature := "Linked", cloneFeature
	if p.full {
		what, feature = "Full", copyFeature
	}
	for _, name := range clonedDrives(p.config, withData) {
		if p.full && o.running && !o.has("snapname") && name == "tpmstate0" {
			return fail("cannot clone TPM state while VM is running")
		}
		d := parseDrive(p.config[name])
		s := o.storageByID(d.storageID())
		if s == nil || d.cloudInit() || s.offers(feature, d.volume, o.has("snapname")) {
			continue
		}
		if o.has("snapname") {
			return fail("%s clone feature is not supported for a snapshot of '%s' (%s)", what, d.volume, name)
		}
		return fail("%s clone feature is not supported for '%s' (%s)", what, d.volume, name)
	}
	return reply{}
}

// The drives of a config that a clone cares for.
type driveChoice int

const (
	// anyDrive is all but unused volumes.
	anyDrive driveChoice = iota
	// withData are those whose volumes are cloned: disks and the cloud-init drive, not other CD-ROMs.
	withData
)

// clonedDrives are names of drives in the order of qemu-server, which sorts them as texts.
func clonedDrives(config map[string]string, choice driveChoice) []string {
	out := slices.DeleteFunc(drivesOf(config), func(name string) bool {
		d := parseDrive(config[name])
		return strings.HasPrefix(name, "unused") || (choice == withData && (d.storageID() == "" || (d.cdrom() && !d.cloudInit())))
	})
	slices.Sort(out)
	return out
}

// newConfig is the clone's config but for the drives that have yet to be copied: everything is copied, identities are new.
func (o *cloneOrder) newConfig(p *clonePlan) map[string]string {
	out := maps.Clone(p.config)
	for _, name := range clonedDrives(p.config, withData) {
		delete(out, name)
	}
	for key, value := range p.config {
		switch unnumbered(key) {
		case "template", "lock", "unused", "parent":
			delete(out, key)
		case "net":
			out[key] = o.renewMAC(value)
		}
	}
	smbios := schema.Properties{}
	if format := smbiosFormat(); out["smbios1"] != "" {
		smbios, _ = format.Parse(out["smbios1"])
	}
	smbios["uuid"] = o.newUUID()
	out["smbios1"] = smbios.Print("")
	if out["vmgenid"] != "" {
		out["vmgenid"] = o.newUUID()
	}
	name := p.config["name"]
	orDefault(&name, o.params["vmid"])
	if out["name"] = o.params["name"]; out["name"] == "" {
		out["name"] = "Copy-of-VM-" + name
	}
	if text := o.params["description"]; text != "" {
		out["description"] = strings.TrimSuffix(text, "\n")
	}
	return out
}

func (w *World) renewMAC(value string) string {
	format := netFormat()
	p, _ := format.Parse(value)
	delete(p, "macaddr")
	p["model"] += "=" + w.newMAC()
	return p.Print("model")
}

// lock takes the lock files of the source and of the target. A stopped source is locked shared, so that it can be cloned many
// times at once; 8.4 gives that lock back before the disks are copied.
func (o *cloneOrder) lock(t *task) {
	source := lockRequest{id: o.vmid(), shared: !o.running, timeout: cloneFlockTimeout}
	target := lockRequest{id: o.newID, timeout: cloneFlockTimeout}
	source.granted = func() { t.lock(target) }
	target.granted = func() {
		if o.version == V84 && !o.running {
			t.unlock(o.vmid())
		}
		o.begin(t)
	}
	t.lock(source)
}

// begin makes the config that holds the VMID while the disks are copied.
func (o *cloneOrder) begin(t *task) {
	p, r := o.check()
	if r.failed() {
		t.end(r.failure())
		return
	}
	if o.version == V92 {
		t.logf("creating a clone of VM %d with ID %d", p.source.id, o.newID)
	}
	if o.hasGuest(o.newID) {
		t.end(fmt.Sprintf("close (rename) atomic file '/etc/pve/nodes/%s/qemu-server/%d.conf' failed: File exists", o.node.Name, o.newID))
		return
	}
	j := &cloneJob{cloneOrder: o, clonePlan: p, task: t, fresh: o.newConfig(p), left: clonedDrives(p.config, withData)}
	j.target = o.addVM(o.newID, o.node.Name, map[string]string{"lock": "clone", "description": " qmclone temporary file"})
	o.firewalls.copyGuest(p.source.id, o.newID)
	t.stopped = func() { j.fail(j.interrupted()) }
	if missing := j.missingVolume(); missing != "" {
		j.fail(fmt.Sprintf("volume '%s' does not exist", missing))
		return
	}
	j.next()
}
