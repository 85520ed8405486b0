package pvesim

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

func migrateRoutes(v Version) []Route {
	const path = "/nodes/{node}/qemu/{vmid}/migrate"
	right := on("/vms/{vmid}", "VM.Migrate")
	return []Route{
		{Method: "GET", Path: path, handle: migratePreconditions, permission: right, params: []schema.Param{schema.Text("target").Format("pve-node")}},
		{Method: "POST", Path: path, handle: migrateRequest, permission: right, params: migrateParams(v)},
	}
}

func migrateParams(v Version) []schema.Param {
	out := []schema.Param{
		schema.Text("target").Format("pve-node").Required(), schema.Integer("bwlimit").Min(0), schema.Boolean("force"),
		schema.Text("migration_network").Format("CIDR"), schema.Choice("migration_type", "secure", "insecure"), schema.Boolean("online"),
		schema.Text("targetstorage").Format("storage-pair-list"), schema.Boolean("with-local-disks"),
	}
	if v == V92 {
		out = append(out, schema.Boolean("with-conntrack-state"))
	}
	return out
}

// migratePreconditions is GET …/migrate: where the VM can go, and what it would have to take along.
func migratePreconditions(c *call) reply {
	v := c.vm()
	if v == nil {
		return missingVM(c.node.Name, c.vmid())
	}
	allowed, refused := []proxmox.NodeName{}, map[string]any{}
	for _, n := range c.nodes {
		if n.Name == v.node || !n.online {
			continue
		}
		missing := c.missingStorages(v, n)
		refused[string(n.Name)] = map[string]any{}
		if len(missing) > 0 {
			refused[string(n.Name)] = map[string]any{"unavailable_storages": missing}
			continue
		}
		allowed = append(allowed, n.Name)
	}
	out := map[string]any{
		"running": pveBool(v.running), "allowed_nodes": allowed, "not_allowed_nodes": refused, "local_disks": c.localDisks(v),
		"local_resources": []string{}, "mapped-resources": []string{}, "mapped-resource-info": map[string]any{},
	}
	if c.version == V92 {
		out["has-dbus-vmstate"] = 1
	}
	return ok(out)
}

// missingStorages are the storages of the VM's drives that the node has not.
func (w *World) missingStorages(v *vm, n *node) []proxmox.StorageID {
	var out []proxmox.StorageID
	seen := map[proxmox.StorageID]bool{}
	for _, name := range v.drives() {
		id := parseDrive(v.config[name]).storageID()
		if s := w.storageByID(id); s != nil && !seen[id] && !s.onNode(n.Name) {
			out = append(out, id)
		}
		seen[id] = true
	}
	return out
}

// localDisks are the volumes that are on storage of the VM's node alone.
func (c *call) localDisks(v *vm) []map[string]any {
	out := []map[string]any{}
	for _, l := range c.localVolumes(v) {
		entry := map[string]any{
			"drivename": l.drive, "volid": l.volume.key.id, "size": l.size, "cdrom": pveBool(l.cdrom), "shared": 0, "replicate": 1,
			"is_attached": 1, "is_unused": 0, "is_vmstate": 0, "is_tpmstate": pveBool(l.drive == "tpmstate0"),
		}
		if strings.HasPrefix(l.drive, "unused") {
			entry["is_attached"], entry["is_unused"] = 0, 1
		}
		if c.version == V92 {
			entry["is_cloudinit"] = pveBool(l.cloudInit)
		}
		out = append(out, entry)
	}
	return out
}

// localVolume is a volume of a VM that other nodes cannot reach.
type localVolume struct {
	drive  string
	volume *volume
	// size is that in the config.
	size      proxmox.Bytes
	cdrom     bool
	cloudInit bool
}

func (w *World) localVolumes(v *vm) []localVolume {
	var out []localVolume
	for _, name := range v.drives() {
		d := parseDrive(v.config[name])
		vol := w.volumeAt(v.node, d.volume)
		if vol == nil || vol.storage.shared {
			continue
		}
		out = append(out, localVolume{drive: name, volume: vol, size: cmp.Or(d.size(), vol.size), cdrom: d.cdrom(), cloudInit: d.cloudInit()})
	}
	return out
}

// migrateRequest is POST …/migrate, with the checks of the API call in their order.
func migrateRequest(c *call) reply {
	v, target := c.vm(), c.World.node(proxmox.NodeName(c.params["target"]))
	switch {
	case c.params["target"] == string(c.node.Name):
		return invalidParam("target", "target is local node.")
	case target == nil:
		return fail("no such cluster node '%s'", c.params["target"])
	}
	if r := c.rootOnly("force", "migration_type", "migration_network"); r.failed() {
		return r
	}
	switch {
	case v == nil:
		return missingVM(c.node.Name, c.vmid())
	case v.lock() != "":
		return fail("%s", v.lockRefusal())
	case v.running && !c.flag("online"):
		return fail("can't migrate running VM without --online")
	}
	j := migrateJob{vm: v, target: target, online: v.running, withDisks: c.flag("with-local-disks"), storages: storagePairs(c.params["targetstorage"])}
	if msg := c.targetStorageFailure(j); msg != "" {
		return fail("%s", msg)
	}
	if c.haManaged(v.id) {
		return c.haRequest("hamigrate", fmt.Sprintf("Requesting HA migration for VM %d to node %s", v.id, target.Name), func() {
			c.haCommand(haID(v.id), haCommand{kind: "migrate", node: string(target.Name)})
		})
	}
	return vmTask("qmigrate", func(c *call, t *task) { c.migrateVM(t, j) })(c)
}

// storagePairs reads targetstorage: from:to pairs, and under "" the storage for all others. It is empty for "1", each its own.
func storagePairs(list string) map[proxmox.StorageID]proxmox.StorageID {
	out := map[proxmox.StorageID]proxmox.StorageID{}
	for _, pair := range schema.SplitList(list) {
		from, to, isPair := strings.Cut(pair, ":")
		switch {
		case isPair:
			out[proxmox.StorageID(from)] = proxmox.StorageID(to)
		case pair != "1":
			out[""] = proxmox.StorageID(pair)
		}
	}
	return out
}

// targetStorageFailure looks for the storages on the target node (check_storage_availability).
func (c *call) targetStorageFailure(j migrateJob) string {
	for _, name := range j.vm.drives() {
		id := parseDrive(j.vm.config[name]).storageID()
		if id == "" {
			continue
		}
		if s, msg := c.storageFor(j.storageFor(id), j.target.Name); s == nil {
			return msg
		}
	}
	return ""
}

// migrateJob is what the worker of a migration is to do.
type migrateJob struct {
	vm     *vm
	target *node
	online bool
	// withDisks allows to take local disks of a running VM along.
	withDisks bool
	// storages are where volumes go, by where they are; see storagePairs.
	storages map[proxmox.StorageID]proxmox.StorageID
	began    time.Time
}

// storageFor is the storage on the target for what is on the given one.
func (j migrateJob) storageFor(id proxmox.StorageID) proxmox.StorageID {
	if to := j.storages[id]; to != "" {
		return to
	}
	if to := j.storages[""]; to != "" {
		return to
	}
	return id
}

// migrateVM is the worker of a migration.
func (w *World) migrateVM(t *task, j migrateJob) {
	v := j.vm
	t.lock(lockRequest{id: v.id, timeout: flockTimeout, granted: func() {
		if v.destroyed || v.lock() != "" {
			t.end(v.lockRefusal())
			return
		}
		j.began = w.clock.Now()
		if !w.node(v.node).sees(j.target) {
			w.refuseConnection(t, j)
			return
		}
		w.migrateLog(t, "starting migration of VM %d to node '%s' (%s)", v.id, j.target.Name, j.target.Address)
		if problem := w.scanVolumes(t, j); problem != "" {
			w.abortMigration(t, j, problem)
			return
		}
		w.beginMigration(t, j)
	}})
}

// refuseConnection ends a migration whose target does not answer: qemu-server tries ssh before anything else.
func (w *World) refuseConnection(t *task, j migrateJob) {
	w.migrateLog(t, "# /usr/bin/ssh -e none -o 'BatchMode=yes' -o 'HostKeyAlias=%[1]s' -o 'UserKnownHostsFile=/etc/pve/nodes/%[1]s/ssh_known_hosts' "+
		"-o 'GlobalKnownHostsFile=none' root@%[2]s /bin/true", j.target.Name, j.target.Address)
	t.after(noRouteDelay, func() {
		w.migrateLog(t, "ssh: connect to host %s port 22: No route to host", j.target.Address)
		w.migrateLog(t, "ERROR: migration aborted (duration %s): Can't connect to destination address using public key", w.duration(j.began))
		t.end("migration aborted")
	})
}

// migrateLog writes a line with the time, as PVE::AbstractMigrate does.
func (w *World) migrateLog(t *task, format string, args ...any) {
	t.logf("%s %s", w.clock.Now().UTC().Format(time.DateTime), fmt.Sprintf(format, args...))
}

func (w *World) duration(since time.Time) string {
	seconds := int(w.clock.Since(since).Seconds() * w.speed)
	return fmt.Sprintf("%02d:%02d:%02d", seconds/3600, seconds/60%60, seconds%60)
}

// scanVolumes lists what must be taken along. The problem is why that cannot be.
func (w *World) scanVolumes(t *task, j migrateJob) (problem string) {
	for _, l := range w.localVolumes(j.vm) {
		kind := "attached"
		if strings.HasPrefix(l.drive, "unused") {
			kind = "unused"
		}
		w.migrateLog(t, "found local disk '%s' (%s)", l.volume.key.id, kind)
	}
	for _, l := range w.localVolumes(j.vm) {
		reason := ""
		switch {
		case l.cdrom && !l.cloudInit:
			reason = "local cdrom image"
		case l.volume.parent != "":
			reason = fmt.Sprintf("clone of '%s'", l.volume.parent)
		case j.online && !j.withDisks && !l.cloudInit:
			reason = "can't live migrate attached local disks without with-local-disks option"
		default:
			continue
		}
		w.migrateLog(t, "can't migrate local disk '%s': %s", l.volume.key.id, reason)
		problem = "Problem found while scanning volumes - can't migrate VM - check log"
	}
	return problem
}

func (w *World) abortMigration(t *task, j migrateJob, problem string) {
	w.migrateLog(t, "ERROR: %s", problem)
	w.migrateLog(t, "aborting phase 1 - cleanup resources")
	w.migrateLog(t, "ERROR: migration aborted (duration %s): %s", w.duration(j.began), problem)
	t.end("migration aborted")
}

// beginMigration copies under lock: migrate, then moves the config: from then on the VM is the target's.
func (w *World) beginMigration(t *task, j migrateJob) {
	v := j.vm
	v.config["lock"] = "migrate"
	w.changed(v)
	t.undo = func(string) { delete(v.config, "lock"); w.changed(v) }
	local := w.localVolumes(v)
	took := w.about(migrateDelay)
	if len(local) > 0 {
		w.migrateLog(t, "copying local disk images")
		took += time.Duration(len(local)) * migrateDiskDelay
	}
	if j.online {
		w.liveLog(t, v)
		took += w.about(migrateMemoryDelay)
	}
	t.after(took, func() {
		t.undo = nil
		for _, l := range local {
			w.carry(t, j, l)
		}
		if j.online {
			w.migrateLog(t, "migration status: completed")
		}
		delete(v.config, "lock")
		v.node = j.target.Name
		w.changed(v)
		w.migrateLog(t, "migration finished successfully (duration %s)", w.duration(j.began))
		t.end("")
	})
}

// liveLog is what a live migration says of itself before the memory is over.
func (w *World) liveLog(t *task, v *vm) {
	mib := int(v.memory() >> 20)
	cache := 1
	for cache < mib/10 {
		cache *= 2
	}
	socket := fmt.Sprintf("unix:/run/qemu-server/%d.migrate", v.id)
	for _, line := range []string{
		fmt.Sprintf("starting VM %d on remote node", v.id), "start remote tunnel", "ssh tunnel ver 1", "starting online/live migration on " + socket,
		"set migration capabilities", "migration downtime limit: 100 ms", fmt.Sprintf("migration cachesize: %d.0 MiB", cache), "set migration parameters",
		"start migrate command to " + socket, fmt.Sprintf("average migration speed: %.1f MiB/s - downtime 12 ms", float64(mib)+16.6),
		fmt.Sprintf("migration completed, transferred %.1f MiB VM-state", float64(mib)/64+0.1),
	} {
		w.migrateLog(t, "%s", line)
	}
}

// carry moves a local volume to the target, to another storage if that is asked for.
func (w *World) carry(t *task, j migrateJob, l localVolume) {
	v, vol := j.vm, l.volume
	from := vol.key.id
	w.removeVolume(vol.key)
	if s := w.storageByID(j.storageFor(vol.storage.id)); s != nil {
		w.rename(vol, s, j)
	}
	w.addVolume(vol)
	d := parseDrive(v.config[l.drive])
	d.volume = vol.key.id
	v.config[l.drive] = d.String()
	w.migrateLog(t, "successfully imported '%s'", vol.key.id)
	w.migrateLog(t, "volume '%s' is '%s' on the target", from, vol.key.id)
}

// rename gives a volume its storage, node and name on the target. It keeps its name unless that is taken there.
func (w *World) rename(vol *volume, s *storage, j migrateJob) {
	if s != vol.storage {
		name := string(vol.key.id)[strings.LastIndexAny(string(vol.key.id), ":/")+1:]
		if dot := strings.LastIndex(name, "."); dot > 0 && vol.storage.fileBased() {
			name = name[:dot]
		}
		if !s.fileBased() {
			vol.format = "raw"
		}
		vol.storage, vol.key.id = s, s.volumeName(j.vm.id, name, vol.format)
	}
	vol.key.node = s.scope(j.target.Name)
	if w.volumes[vol.key] != nil {
		vol.key.id = s.freeName(w, j.target.Name, j.vm.id, vol.format)
	}
}
