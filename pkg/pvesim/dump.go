package pvesim

import (
	"maps"
	"slices"
)

// State copies the world's present state. It holds no passwords and no secrets of tokens: a world that is made from it draws
// new ones. Tasks under way are not in it; what they have done so far is.
func (w *World) State() State {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runDue()
	return w.state()
}

func (w *World) state() State {
	s := State{Version: w.version, ClusterName: w.name}
	for _, n := range w.nodes {
		spec := n.NodeSpec
		spec.Offline, spec.Bridges, spec.Daemons = !n.online, slices.Clone(n.Bridges), maps.Clone(n.Daemons)
		spec.PCI, spec.BridgeOptions = slices.Clone(n.PCI), cloneBridgeOptions(n.BridgeOptions)
		if len(spec.Daemons) == 0 {
			spec.Daemons = nil
		}
		s.Nodes = append(s.Nodes, spec)
	}
	for _, st := range w.storages {
		s.Storages = append(s.Storages, st.spec())
	}
	for _, v := range w.sortedVolumes() {
		s.Volumes = append(s.Volumes, v.spec())
	}
	for _, id := range slices.Sorted(maps.Keys(w.pools)) {
		s.Pools = append(s.Pools, w.pools[id].spec())
	}
	for _, id := range slices.Sorted(maps.Keys(w.vms)) {
		s.VMs = append(s.VMs, w.vmSpec(w.vms[id]))
	}
	w.dumpContainers(&s)
	w.dumpCluster(&s)
	s.HA, s.DHCP = w.dumpHA(), w.dumpDHCP()
	w.dumpAccess(&s)
	for _, f := range w.faults {
		s.Faults = append(s.Faults, f.Fault)
	}
	w.dumpFirewalls(&s)
	w.dumpSDN(&s)
	w.dumpTasks(&s)
	return s
}

// dumpCluster copies what is of no node and no guest.
func (w *World) dumpCluster(s *State) {
	if len(w.options) > 0 {
		s.Options = maps.Clone(w.options)
	}
	for _, address := range slices.Sorted(maps.Keys(w.downloads)) {
		d := *w.downloads[address]
		d.Data = slices.Clone(d.Data)
		s.Downloads = append(s.Downloads, d)
	}
	for _, id := range slices.Sorted(maps.Keys(w.mappings)) {
		m := *w.mappings[id]
		m.Map = slices.Clone(m.Map)
		s.PCI = append(s.PCI, m)
	}
	for _, id := range slices.Sorted(maps.Keys(w.usbMappings)) {
		m := *w.usbMappings[id]
		m.Map = slices.Clone(m.Map)
		s.USB = append(s.USB, m)
	}
	s.CPUModels = slices.Clone(w.cpuModels)
}

func (s *storage) spec() StorageSpec {
	return StorageSpec{
		ID: s.id, Type: string(s.typ), Path: s.path, Content: slices.Clone(s.content), Shared: s.shared, Total: s.total,
		Nodes: slices.Clone(s.nodes), Disabled: s.disabled, Options: maps.Clone(s.options),
	}
}

func (v *volume) spec() VolumeSpec {
	return VolumeSpec{
		ID: v.key.id, Node: v.key.node, Content: v.content, Format: v.format, VMID: v.vmid, Size: v.size, Used: v.used,
		Data: slices.Clone(v.data), Notes: v.notes, Protected: v.protected,
	}
}

func (p *pool) spec() PoolSpec {
	out := PoolSpec{ID: p.id, Comment: p.comment}
	if len(p.storages) > 0 {
		out.Storages = slices.Sorted(maps.Keys(p.storages))
	}
	return out
}

// mark is what a pending deletion has in front of its option.
func (p pendingValue) mark() string {
	if p.force {
		return "!"
	}
	return ""
}

// cloudInitSpec are the options that the cloud-init drive has otherwise.
func (v *vm) cloudInitSpec() map[string]string {
	if len(v.cloudInit) == 0 {
		return nil
	}
	out := map[string]string{}
	for key, stale := range v.cloudInit {
		out[key] = stale.value
	}
	return out
}

func (w *World) vmSpec(v *vm) VMSpec {
	out := VMSpec{VMID: v.id, Node: v.node, Pool: w.poolOf(v.id), Config: maps.Clone(v.config), State: v.status(), Snapshots: v.snapshotSpecs(), CloudInit: v.cloudInitSpec()}
	if v.running && v.qemu == qemuPaused {
		out.State = qemuPaused
	}
	for _, key := range slices.Sorted(maps.Keys(v.pending)) {
		if p := v.pending[key]; p.delete {
			out.PendingDelete = append(out.PendingDelete, p.mark()+key)
			continue
		}
		if out.Pending == nil {
			out.Pending = map[string]string{}
		}
		out.Pending[key] = v.pending[key].value
	}
	return out
}

func (w *World) dumpAccess(s *State) {
	for _, id := range slices.Sorted(maps.Keys(w.users)) {
		u := w.users[id]
		s.Users = append(s.Users, u.spec())
	}
	for _, id := range slices.Sorted(maps.Keys(w.groups)) {
		s.UserGroups = append(s.UserGroups, UserGroupSpec{ID: id, Comment: w.groups[id].comment})
	}
	special := specialRoles(w.version)
	for _, id := range slices.Sorted(maps.Keys(w.roles)) {
		if special[id] == nil {
			s.Roles = append(s.Roles, RoleSpec{ID: id, Privileges: slices.Clone(w.roles[id])})
		}
	}
	for _, id := range slices.Sorted(maps.Keys(w.tokens)) {
		t := w.tokens[id]
		s.Tokens = append(s.Tokens, TokenSpec{User: t.user.id, Name: t.name(), Unseparated: !t.separated, Expire: t.expire, Comment: t.comment})
	}
	for _, path := range slices.Sorted(maps.Keys(w.acl)) {
		s.ACL = append(s.ACL, w.acl[path]...)
	}
}

func (u *user) spec() UserSpec {
	out := UserSpec{ID: u.id, Groups: slices.Clone(u.groups), Disabled: u.disabled, Expire: u.expire}
	if len(u.details) > 0 {
		out.Details = maps.Clone(u.details)
	}
	return out
}
