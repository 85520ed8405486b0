package pvesim

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// load enters all of a state. The error names the object that cannot be.
func (w *World) load(s State) error {
	for _, f := range s.Faults {
		if err := w.addFault(f); err != nil {
			return err
		}
	}
	for _, n := range s.Nodes {
		if err := w.addNode(n); err != nil {
			return err
		}
	}
	for _, st := range s.Storages {
		if err := w.addStorage(st); err != nil {
			return err
		}
	}
	for _, p := range s.Pools {
		w.addPool(p)
	}
	if err := w.loadAccess(s); err != nil {
		return err
	}
	w.loadFirewalls(s)
	w.loadSDN(s.SDN)
	for _, v := range s.Volumes {
		if err := w.seedVolume(v); err != nil {
			return err
		}
	}
	for _, v := range s.VMs {
		if err := w.seedVM(v); err != nil {
			return err
		}
	}
	for _, ct := range s.Containers {
		if err := w.addContainer(ct); err != nil {
			return err
		}
	}
	for _, d := range s.Downloads {
		w.addDownload(d)
	}
	maps.Copy(w.options, s.Options)
	for _, m := range s.PCI {
		w.mappings[m.ID] = &m
	}
	for _, m := range s.USB {
		w.usbMappings[m.ID] = &m
	}
	w.cpuModels = slices.Clone(s.CPUModels)
	for _, t := range s.Tasks {
		if err := w.loadTask(t); err != nil {
			return err
		}
	}
	w.loadHA(s.HA)
	return w.loadDHCP(s.DHCP)
}

// AddNode adds a host.
func (w *World) AddNode(s NodeSpec) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.addNode(s)
}

func (w *World) addNode(s NodeSpec) error {
	if w.node(s.Name) != nil || s.Name == "" {
		return fmt.Errorf("add node %q: want a name that no other node has", s.Name)
	}
	i := len(w.nodes) + 1
	s = s.completed(i)
	s.Daemons, s.BridgeOptions = maps.Clone(s.Daemons), cloneBridgeOptions(s.BridgeOptions)
	n := &node{NodeSpec: s, id: i, online: !s.Offline, booted: w.clock.Now()}
	if !n.broadcasts() {
		w.silence(n)
	}
	w.nodes = append(w.nodes, n)
	return nil
}

// completed fills zero fields with their defaults for the i-th node, counted from 1.
func (s NodeSpec) completed(i int) NodeSpec {
	orDefault(&s.CPUs, 32)
	orDefault(&s.Memory, 128*1024)
	orDefault(&s.Address, fmt.Sprintf("10.10.0.%d", 10+i))
	if s.Sockets == 0 {
		s.Sockets = 1
		if s.CPUs >= 16 && s.CPUs%4 == 0 {
			s.Sockets = 2
		}
	}
	if s.Threads == 0 {
		s.Threads = 1
		if s.CPUs%(2*s.Sockets) == 0 && s.CPUs > s.Sockets*2 {
			s.Threads = 2
		}
	}
	orDefault(&s.NUMANodes, s.Sockets)
	if s.Bridges == nil {
		s.Bridges = []proxmox.BridgeName{"vmbr0"}
	}
	return s
}

// AddStorage adds a storage to storage.cfg.
func (w *World) AddStorage(s StorageSpec) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.addStorage(s)
}

func (w *World) addStorage(s StorageSpec) error {
	typ := storageType(s.Type)
	if !slices.Contains([]storageType{dirStorage, nfsStorage, lvmThinStorage, zfsPoolStorage, rbdStorage}, typ) {
		return fmt.Errorf("add storage %s: type is %q, want dir, nfs, lvmthin, zfspool or rbd", s.ID, s.Type)
	}
	if w.storageByID(s.ID) != nil || s.ID == "" {
		return fmt.Errorf("add storage %q: want an ID that no other storage has", s.ID)
	}
	orDefault(&s.Total, 1<<40)
	out := &storage{
		id: s.ID, typ: typ, path: s.Path, shared: s.Shared || typ == nfsStorage || typ == rbdStorage, disabled: s.Disabled,
		content: slices.Clone(s.Content), total: s.Total, nodes: slices.Clone(s.Nodes), used: map[proxmox.NodeName]proxmox.Bytes{},
		options: maps.Clone(s.Options),
	}
	if out.options == nil {
		out.options = typ.defaultOptions(s.ID)
	}
	if out.path == "" && out.fileBased() {
		out.path = "/mnt/pve/" + string(s.ID)
		if s.ID == "local" {
			out.path = "/var/lib/vz"
		}
	}
	w.storages = append(w.storages, out)
	return nil
}

// AddPool adds an empty resource pool.
func (w *World) AddPool(s PoolSpec) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.addPool(s)
}

func (w *World) addPool(s PoolSpec) {
	p := newPool(s.ID, s.Comment)
	for _, id := range s.Storages {
		p.storages[id] = true
	}
	w.pools[s.ID] = p
}

// AddVolume adds a volume, for example an ISO image. It is an error if the storage is missing on the node.
func (w *World) AddVolume(s VolumeSpec) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seedVolume(s)
}

func (w *World) seedVolume(s VolumeSpec) error {
	storageID, name, ok := strings.Cut(string(s.ID), ":")
	st := w.storageByID(proxmox.StorageID(storageID))
	if !ok || st == nil {
		return fmt.Errorf("add volume %s: no storage %q", s.ID, storageID)
	}
	if !st.shared && w.node(s.Node) == nil {
		return fmt.Errorf("add volume %s: no node %q", s.ID, s.Node)
	}
	guess := guessVolume(st, name)
	orDefault(&s.Content, guess.Content)
	orDefault(&s.Format, guess.Format)
	orDefault(&s.VMID, guess.VMID)
	orDefault(&s.Size, proxmox.Bytes(len(s.Data)))
	orDefault(&s.Used, s.Size/5)
	w.addVolume(&volume{
		key: volumeKey{st.scope(s.Node), s.ID}, storage: st, content: s.Content, format: s.Format, vmid: s.VMID, size: s.Size, used: s.Used,
		parent: baseOf(st, s.ID), data: slices.Clone(s.Data), notes: s.Notes, protected: s.Protected,
	})
	return nil
}

// guessVolume tells content, format and owner by the name of a volume.
func guessVolume(s *storage, name string) VolumeSpec {
	p, msg := s.parseVolume(name)
	if msg != "" {
		return VolumeSpec{Content: "images", Format: "raw"}
	}
	return VolumeSpec{Content: p.content, Format: p.listedFormat(), VMID: p.vmid}
}

// AddVM adds a VM with its volumes. It is an error if the VMID is taken, the node or a storage missing.
func (w *World) AddVM(s VMSpec) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seedVM(s)
}

func (w *World) seedVM(s VMSpec) error {
	if err := w.canHold(s.VMID, s.Node); err != nil {
		return fmt.Errorf("add VM %d: %w", s.VMID, err)
	}
	v := &vm{id: s.VMID, node: s.Node, config: maps.Clone(s.Config), queue: &serial{world: w}}
	if v.config == nil {
		v.config = map[string]string{}
	}
	if err := w.seedDrives(v); err != nil {
		return fmt.Errorf("add VM %d: %w", s.VMID, err)
	}
	for key, value := range v.config {
		if unnumbered(key) == "net" {
			v.config[key] = w.normalNet(value)
		}
	}
	w.complete(v)
	if !s.Firewall.isZero() {
		w.firewalls.guests[v.id] = s.Firewall.config()
	}
	v.seedPending(s)
	if err := v.loadSnapshots(s.Snapshots); err != nil {
		return fmt.Errorf("add VM %d: %w", s.VMID, err)
	}
	w.vms[v.id] = v
	w.joinPool(s.Pool, v.id)
	if s.State == "running" || s.State == qemuPaused {
		w.powerOn(v)
		v.qemu = s.State
	}
	v.stats = w.currentStats(v)
	return nil
}

// canHold says why no guest can be added with a VMID on a node; nil when one can.
func (w *World) canHold(id proxmox.VMID, node proxmox.NodeName) error {
	switch {
	case w.hasGuest(id):
		return errors.New("VMID is taken")
	case w.node(node) == nil:
		return fmt.Errorf("no node %q", node)
	}
	return nil
}

// joinPool puts a guest into a pool, if there is such a pool.
func (w *World) joinPool(pool proxmox.PoolID, id proxmox.VMID) {
	if p := w.pools[pool]; p != nil {
		p.members[id] = true
	}
}

func (v *vm) seedPending(s VMSpec) {
	for key, value := range s.CloudInit {
		if v.cloudInit == nil {
			v.cloudInit = map[string]staleValue{}
		}
		v.cloudInit[key] = staleValue{value: value, added: value == ""}
	}
	if len(s.Pending)+len(s.PendingDelete) == 0 {
		return
	}
	v.pending = map[string]pendingValue{}
	for key, value := range s.Pending {
		v.pending[key] = pendingValue{value: value}
	}
	for _, key := range s.PendingDelete {
		name, force := strings.CutPrefix(key, "!")
		v.pending[name] = pendingValue{delete: true, force: force}
	}
}

// seedDrives makes the volumes that the VM's drives name and that are not there yet.
func (w *World) seedDrives(v *vm) error {
	for _, name := range v.drives() {
		d := parseDrive(v.config[name])
		if d.storageID() == "" || w.volumeAt(v.node, d.volume) != nil {
			continue
		}
		if s, msg := w.storageFor(d.storageID(), v.node); s == nil {
			return fmt.Errorf("%s: %s", name, msg)
		}
		size := d.size()
		if d.cloudInit() {
			size = cloudInitSize
		}
		if err := w.seedVolume(VolumeSpec{ID: d.volume, Node: v.node, Size: size}); err != nil {
			return err
		}
	}
	return nil
}

// baseOf is the base volume in the name of a linked clone, local:100/base-100-disk-0.qcow2/110/vm-110-disk-0.qcow2 or
// zfs:base-100-disk-0/vm-110-disk-0; or "".
func baseOf(s *storage, id proxmox.VolumeID) proxmox.VolumeID {
	_, own, _ := strings.Cut(string(s.ownName(id)), ":")
	if base, linked := strings.CutSuffix(string(id), "/"+own); linked {
		return proxmox.VolumeID(base)
	}
	return ""
}
