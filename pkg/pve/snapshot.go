package pve

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// Snapshot is a PVE cluster at one moment. It never changes; take a new one instead.
type Snapshot struct {
	// At is when the snapshot was requested: what happened before is in it, as far as PVE knew. Zero means there is none.
	At time.Time
	// Err is why the snapshot could not be renewed since; nil if it is the latest.
	Err   error
	index *index
}

// Node is a PVE host.
type Node struct {
	Name proxmox.NodeName
	// Online says that the node is part of the quorate cluster and reports.
	Online bool
	// CPU is the used share of MaxCPU hardware threads.
	CPU, MaxCPU       float64
	Memory, MaxMemory proxmox.Bytes
	Uptime            time.Duration
}

// VM is a guest as the inventory sees it: a QEMU VM, or a container, which takes a VMID and memory as well.
type VM struct {
	ID   proxmox.VMID
	Node proxmox.NodeName
	// Type is VMResource or ContainerResource.
	Type ResourceType
	// Name and Status lag by up to 10 s; Name is empty for a VM that was just made.
	Name, Status string
	Lock         string
	Tags         []string
	Pool         proxmox.PoolID
	Template     bool
	HAState      string
	MaxCPU       float64
	MaxMemory    proxmox.Bytes
	MaxDisk      proxmox.Bytes
	// Uptime is since when QEMU runs, up to 10 s late: it starts anew when the guest is stopped and started, not when its system is.
	Uptime time.Duration
}

// Ref is where the guest is.
func (v VM) Ref() VMRef { return VMRef{Node: v.Node, ID: v.ID} }

// HasTag says whether the guest has a tag. PVE stores tags in lower case.
func (v VM) HasTag(tag string) bool { return slices.Contains(v.Tags, tag) }

// sameAs compares what listeners are told of.
func (v VM) sameAs(other VM) bool {
	return v.Node == other.Node && v.Type == other.Type && v.Name == other.Name && v.Status == other.Status &&
		v.Lock == other.Lock && v.Pool == other.Pool && v.Template == other.Template && v.HAState == other.HAState &&
		v.MaxCPU == other.MaxCPU && v.MaxMemory == other.MaxMemory && v.MaxDisk == other.MaxDisk &&
		slices.Equal(v.Tags, other.Tags) && !v.RestartedBy(other)
}

// RestartedBy says whether the guest was stopped and started, or moved, between this sight of it and a later one.
func (v VM) RestartedBy(later VM) bool { return later.Uptime < v.Uptime }

// Storage is a storage on one node. A shared one appears once for each node.
type Storage struct {
	Node proxmox.NodeName
	ID   proxmox.StorageID
	// Available says that the node reports it as usable.
	Available bool
	Shared    bool
	// Content lists what it may hold: images, iso, snippets and so on.
	Content    []string
	PluginType string
	Used, Size proxmox.Bytes
}

// Holds says whether the storage may hold a kind of content.
func (s Storage) Holds(content string) bool { return slices.Contains(s.Content, content) }

// storageKey names a storage of a node.
type storageKey struct {
	node proxmox.NodeName
	id   proxmox.StorageID
}

// index finds things of a snapshot.
type index struct {
	nodes    []Node
	nodeAt   map[proxmox.NodeName]int
	vms      []VM
	vmAt     map[proxmox.VMID]int
	storages []Storage
	storeAt  map[storageKey]int
	pools    map[proxmox.PoolID]bool
}

func newIndex(resources []Resource) *index {
	x := &index{nodeAt: map[proxmox.NodeName]int{}, vmAt: map[proxmox.VMID]int{}, storeAt: map[storageKey]int{}, pools: map[proxmox.PoolID]bool{}}
	for _, r := range resources {
		x.add(r)
	}
	slices.SortFunc(x.nodes, func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(x.vms, func(a, b VM) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(x.storages, func(a, b Storage) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.ID, b.ID))
	})
	for at, node := range x.nodes {
		x.nodeAt[node.Name] = at
	}
	for at, vm := range x.vms {
		x.vmAt[vm.ID] = at
	}
	for at, storage := range x.storages {
		x.storeAt[storageKey{storage.Node, storage.ID}] = at
	}
	return x
}

// add sorts a resource in; one without a name is of no use.
func (x *index) add(r Resource) {
	switch {
	case r.Type == PoolResource:
		x.pools[r.Pool] = true
	case r.Node == "":
	case r.Type == NodeResource:
		x.nodes = append(x.nodes, Node{
			Name: r.Node, Online: r.Status == "online", CPU: r.CPU, MaxCPU: r.MaxCPU, Memory: r.Memory, MaxMemory: r.MaxMemory, Uptime: r.Uptime,
		})
	case (r.Type == VMResource || r.Type == ContainerResource) && r.VMID != 0:
		x.vms = append(x.vms, VM{
			ID: r.VMID, Node: r.Node, Type: r.Type, Name: r.Name, Status: r.Status, Lock: r.Lock, Tags: r.Tags, Pool: r.Pool,
			Template: r.Template, HAState: r.HAState, MaxCPU: r.MaxCPU, MaxMemory: r.MaxMemory, MaxDisk: r.MaxDisk,
			Uptime: r.Uptime,
		})
	case r.Type == StorageResource && r.Storage != "":
		x.storages = append(x.storages, Storage{
			Node: r.Node, ID: r.Storage, Available: r.Status == "available", Shared: r.Shared, Content: r.Content,
			PluginType: r.PluginType, Used: r.Disk, Size: r.MaxDisk,
		})
	}
}

// Node finds a host by name.
func (s Snapshot) Node(name proxmox.NodeName) (Node, bool) {
	if s.index == nil {
		return Node{}, false
	}
	at, ok := s.index.nodeAt[name]
	if !ok {
		return Node{}, false
	}
	return s.index.nodes[at], true
}

// Nodes returns all hosts, by name.
func (s Snapshot) Nodes() []Node {
	if s.index == nil {
		return nil
	}
	return slices.Clone(s.index.nodes)
}

// VM finds a guest by VMID, on whatever node.
func (s Snapshot) VM(id proxmox.VMID) (VM, bool) {
	if s.index == nil {
		return VM{}, false
	}
	at, ok := s.index.vmAt[id]
	if !ok {
		return VM{}, false
	}
	return s.index.vms[at], true
}

// VMs yields all guests, by VMID, templates and containers among them.
func (s Snapshot) VMs() iter.Seq[VM] {
	if s.index == nil {
		return slices.Values([]VM(nil))
	}
	return slices.Values(s.index.vms)
}

// Templates yields the VM templates, by VMID.
func (s Snapshot) Templates() iter.Seq[VM] {
	return func(yield func(VM) bool) {
		for vm := range s.VMs() {
			if vm.Template && vm.Type == VMResource && !yield(vm) {
				return
			}
		}
	}
}

// Storage finds a storage of a node.
func (s Snapshot) Storage(node proxmox.NodeName, id proxmox.StorageID) (Storage, bool) {
	if s.index == nil {
		return Storage{}, false
	}
	at, ok := s.index.storeAt[storageKey{node, id}]
	if !ok {
		return Storage{}, false
	}
	return s.index.storages[at], true
}

// HasPool says whether the credentials see a resource pool of that name.
func (s Snapshot) HasPool(pool proxmox.PoolID) bool { return s.index != nil && s.index.pools[pool] }

// Storages returns the storages of a node, by name.
func (s Snapshot) Storages(node proxmox.NodeName) []Storage {
	if s.index == nil {
		return nil
	}
	var found []Storage
	for _, storage := range s.index.storages {
		if storage.Node == node {
			found = append(found, storage)
		}
	}
	return found
}
