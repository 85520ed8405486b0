package pve

import (
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// ResourceType is what an entry of /cluster/resources is about.
type ResourceType string

// The types CAPVE looks at. There are others: sdn, network.
const (
	NodeResource      ResourceType = "node"
	VMResource        ResourceType = "qemu"
	ContainerResource ResourceType = "lxc"
	StorageResource   ResourceType = "storage"
	PoolResource      ResourceType = "pool"
)

// The power states of a guest.
const (
	StatusRunning = "running"
	StatusStopped = "stopped"
	// StatusUnknown is shown for a guest that pvestatd has not reported yet, up to 10 s after its creation, and for all
	// guests of a node that is down.
	StatusUnknown = "unknown"
)

// Resource is one entry of /cluster/resources. Fields that do not apply to its type are zero.
type Resource struct {
	Type ResourceType
	// ID is type/name, for example qemu/101 or storage/pve1/local.
	ID   string
	Node proxmox.NodeName
	VMID proxmox.VMID
	Name string
	// Status is running, stopped, paused or unknown for a guest, online, offline or unknown for a node, available or
	// unknown for a storage.
	Status   string
	Lock     string
	Tags     []string
	Pool     proxmox.PoolID
	Template bool
	HAState  string
	// CPU is the used share of MaxCPU; both may be fractions.
	CPU, MaxCPU float64
	// Memory and Disk are in use; of a stopped guest, 0. MaxDisk of a VM is its boot disk only.
	Memory, MaxMemory, Disk, MaxDisk proxmox.Bytes
	Uptime                           time.Duration
	Storage                          proxmox.StorageID
	Shared                           bool
	// Content lists what a storage may hold: images, iso, snippets and so on. PluginType is its kind: dir, lvmthin, rbd.
	Content    []string
	PluginType string
}

// resource reads an entry; odd values become zero.
func (f fields) resource() Resource {
	return Resource{
		Type: ResourceType(f["type"]), ID: string(f["id"]), Node: proxmox.NodeName(f["node"]), VMID: f["vmid"].vmid(),
		Name: string(f["name"]), Status: string(f["status"]), Lock: string(f["lock"]), Tags: f["tags"].list(),
		Pool: proxmox.PoolID(f["pool"]), Template: f["template"].flag(), HAState: string(f["hastate"]),
		CPU: f["cpu"].number(), MaxCPU: f["maxcpu"].number(),
		Memory: f["mem"].bytes(), MaxMemory: f["maxmem"].bytes(), Disk: f["disk"].bytes(), MaxDisk: f["maxdisk"].bytes(),
		Uptime: f["uptime"].seconds(), Storage: proxmox.StorageID(f["storage"]), Shared: f["shared"].flag(),
		Content: f["content"].list(), PluginType: string(f["plugintype"]),
	}
}

// vmid returns the VMID, or zero if it is none.
func (s scalar) vmid() proxmox.VMID {
	id := s.integer()
	if id < int64(proxmox.MinVMID) || id > int64(proxmox.MaxVMID) {
		return 0
	}
	return proxmox.VMID(id)
}

// bytes returns a size, never negative.
func (s scalar) bytes() proxmox.Bytes { return proxmox.Bytes(max(s.integer(), 0)) }

// seconds returns a duration within what one can hold, never negative.
func (s scalar) seconds() time.Duration {
	const most = int64(1<<63-1) / int64(time.Second)
	return time.Duration(min(max(s.integer(), 0), most)) * time.Second
}
