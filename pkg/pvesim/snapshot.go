package pvesim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

// snapshot is a section of a VM's config file and the state of its disks at that time.
type snapshot struct {
	name        string
	parent      string
	description string
	config      map[string]string
	taken       time.Time
	// ram is the volume with the VM's memory; empty for none.
	ram proxmox.VolumeID
	// state is prepare or delete while a task works on it (snapstate).
	state string
}

func snapshotRoutes() []Route {
	const list = "/nodes/{node}/qemu/{vmid}/snapshot"
	const one = list + "/{snapname}"
	name := schema.Text("snapname").Format("pve-configid").MaxLength(40).Required()
	take, text := on("/vms/{vmid}", "VM.Snapshot"), schema.Text("description")
	return []Route{
		{Method: "GET", Path: list, handle: listSnapshots, permission: on("/vms/{vmid}", "VM.Audit")},
		{Method: "POST", Path: list, handle: takeSnapshot, permission: take, params: []schema.Param{name, text, schema.Boolean("vmstate")}},
		{Method: "GET", Path: one, handle: snapshotIndex, params: []schema.Param{name}},
		{Method: "DELETE", Path: one, handle: deleteSnapshot(), permission: take, params: []schema.Param{name, schema.Boolean("force")}},
		{
			Method: "GET", Path: one + "/config", handle: snapshotConfig, params: []schema.Param{name},
			permission: on("/vms/{vmid}", "VM.Snapshot", "VM.Snapshot.Rollback", "VM.Audit"),
		},
		{Method: "PUT", Path: one + "/config", handle: describeSnapshot, permission: take, params: []schema.Param{name, text}},
		{
			Method: "POST", Path: one + "/rollback", handle: rollback(), params: []schema.Param{name, schema.Boolean("start")},
			permission: on("/vms/{vmid}", "VM.Snapshot", "VM.Snapshot.Rollback"),
		},
	}
}

// snapshot returns the named snapshot of the VM, or nil.
func (v *vm) snapshot(name string) *snapshot {
	if i := slices.IndexFunc(v.snapshots, func(s *snapshot) bool { return s.name == name }); i >= 0 {
		return v.snapshots[i]
	}
	return nil
}

// section is the snapshot as its part of the config file has it.
func (s *snapshot) section() map[string]string {
	out := maps.Clone(s.config)
	out["snaptime"] = fmt.Sprint(s.taken.Unix())
	for key, value := range map[string]string{"description": s.description, "parent": s.parent, "vmstate": string(s.ram), "snapstate": s.state} {
		if delete(out, key); value != "" {
			out[key] = value
		}
	}
	return out
}

func listSnapshots(c *call) reply {
	v := c.vm()
	if v == nil {
		return missingVM(c.node.Name, c.vmid())
	}
	out := []map[string]any{}
	for _, s := range v.snapshots {
		entry := map[string]any{"name": s.name, "snaptime": s.taken.Unix(), "vmstate": pveBool(s.ram != ""), "description": s.description}
		if s.parent != "" {
			entry["parent"] = s.parent
		}
		if s.state != "" {
			entry["snapstate"] = s.state
		}
		out = append(out, entry)
	}
	current := map[string]any{"name": "current", "digest": v.digest(), "running": pveBool(v.running), "description": "You are here!"}
	if parent := v.config["parent"]; parent != "" {
		current["parent"] = parent
	}
	return ok(append(out, current))
}

func snapshotIndex(*call) reply {
	return ok([]map[string]string{{"cmd": "rollback"}, {"cmd": "config"}})
}

// namedSnapshot is the {snapname} of the path, or the refusal.
func (c *call) namedSnapshot() (*vm, *snapshot, reply) {
	v := c.vm()
	if v == nil {
		return nil, nil, missingVM(c.node.Name, c.vmid())
	}
	s := v.snapshot(c.params["snapname"])
	if s == nil {
		return v, nil, fail("snapshot '%s' does not exist", c.params["snapname"])
	}
	return v, s, reply{}
}

func snapshotConfig(c *call) reply {
	_, s, r := c.namedSnapshot()
	if r.failed() {
		return r
	}
	return ok(c.showSnapshot(s))
}

func (c *call) showSnapshot(s *snapshot) map[string]any {
	out := map[string]any{}
	for key, value := range s.section() {
		out[key] = c.routes.jsonValue(key, value)
	}
	out["snaptime"] = s.taken.Unix()
	return out
}

// configAt is GET …/config with a snapshot: its section with the digest of the whole file.
func (c *call) configAt(v *vm, name string) reply {
	s := v.snapshot(name)
	if s == nil {
		return fail("snapshot '%s' does not exist", name)
	}
	out := c.showSnapshot(s)
	out["digest"] = v.digest()
	return ok(out)
}

// describeSnapshot is PUT …/snapshot/{snapname}/config.
func describeSnapshot(c *call) reply {
	return c.underLock(c.vmid(), func() reply {
		v, s, r := c.namedSnapshot()
		switch {
		case r.failed():
			return r
		case v.lock() != "":
			return fail("%s", v.lockRefusal())
		}
		if c.has("description") {
			s.description = strings.TrimSuffix(c.params["description"], "\n")
		}
		return ok(nil)
	})
}

// loadSnapshots enters the snapshots of a VM that is built from a state.
func (v *vm) loadSnapshots(list []SnapshotSpec) error {
	for _, s := range list {
		if v.snapshot(s.Name) != nil || s.Name == "" {
			return fmt.Errorf("snapshot %q: want a name that no other snapshot has", s.Name)
		}
		config := maps.Clone(s.Config)
		if config == nil {
			config = v.snapshotConfig()
		}
		delete(config, "parent")
		out := &snapshot{name: s.Name, parent: s.Parent, description: s.Description, config: config, taken: s.Time}
		if s.RAM {
			out.ram = proxmox.VolumeID(config["vmstate"])
		}
		delete(config, "vmstate")
		v.snapshots = append(v.snapshots, out)
	}
	return nil
}

func (v *vm) snapshotSpecs() []SnapshotSpec {
	var out []SnapshotSpec
	for _, s := range v.snapshots {
		config := maps.Clone(s.config)
		if s.ram != "" {
			config["vmstate"] = string(s.ram)
		}
		out = append(out, SnapshotSpec{Name: s.name, Parent: s.parent, Description: s.description, Config: config, Time: s.taken, RAM: s.ram != ""})
	}
	return out
}
