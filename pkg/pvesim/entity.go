package pvesim

import (
	"fmt"
	"slices"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// node is one host.
type node struct {
	NodeSpec
	id     int
	online bool
	booted time.Time
	// madeByHand are bridges that no file names.
	madeByHand []proxmox.BridgeName
	// held are the requests that frozen daemons have taken.
	held []*held
	// silent is what the host broadcast last, nil while it broadcasts.
	silent *silence
	// load is what pvestatd broadcast in the cycle loadCycle, counted from 1.
	load      usage
	loadCycle int64
}

// storageType is the plugin of a storage.
type storageType string

// The storage plugins that are simulated.
const (
	dirStorage     storageType = "dir"
	nfsStorage     storageType = "nfs"
	lvmThinStorage storageType = "lvmthin"
	zfsPoolStorage storageType = "zfspool"
	rbdStorage     storageType = "rbd"
)

// storage is one entry of storage.cfg. A storage that is not shared exists on every node with its own volumes.
type storage struct {
	id       proxmox.StorageID
	typ      storageType
	path     string
	shared   bool
	disabled bool
	content  []string
	total    proxmox.Bytes
	nodes    []proxmox.NodeName
	// options are the other keys of storage.cfg.
	options map[string]string
	used    map[proxmox.NodeName]proxmox.Bytes
}

func (s *storage) holds(content string) bool { return slices.Contains(s.content, content) }

func (s *storage) onNode(name proxmox.NodeName) bool {
	return len(s.nodes) == 0 || slices.Contains(s.nodes, name)
}

// scope is the node that a volume of this storage is kept under: empty for shared storages.
func (s *storage) scope(name proxmox.NodeName) proxmox.NodeName {
	if s.shared {
		return ""
	}
	return name
}

func (s *storage) free(name proxmox.NodeName) proxmox.Bytes {
	return max(0, s.total-s.used[s.scope(name)])
}

// fileBased tells whether volumes are files with a format in their name.
func (s *storage) fileBased() bool { return s.typ == dirStorage || s.typ == nfsStorage }

// keepsBase tells whether a linked clone has its base volume in its name, by which the base is known to be in use. LVM forgets it.
func (s *storage) keepsBase() bool { return s.typ != lvmThinStorage }

// volumeKey names a volume in the whole cluster: node-local storages use the same VolumeID on every node.
type volumeKey struct {
	node proxmox.NodeName
	id   proxmox.VolumeID
}

type volume struct {
	key     volumeKey
	storage *storage
	content string
	format  string
	vmid    proxmox.VMID
	size    proxmox.Bytes
	used    proxmox.Bytes
	parent  proxmox.VolumeID
	created time.Time
	data    []byte
	// notes and protected are attributes of content; a protected volume cannot be deleted.
	notes     string
	protected bool
}

// vm is one QEMU guest.
type vm struct {
	id      proxmox.VMID
	node    proxmox.NodeName
	config  map[string]string
	pending map[string]pendingValue
	// snapshots in the order in which they were taken.
	snapshots []*snapshot
	// cloudInit are the options whose values on the cloud-init drive are not those of the config.
	cloudInit map[string]staleValue
	running   bool
	// qemu is the state of QEMU while the process runs, for example qemuPaused.
	qemu    string
	pid     uint32
	started time.Time
	// agent tells whether the guest agent's device was configured when the VM was started.
	agent bool
	stats *vmStats
	// entry is that of cluster/resources as last written.
	entry cachedEntry
	guest Guest
	queue *serial
	// power counts power-ons, so that timers of an earlier power-on can be told from those of the present one.
	power int
	// destroyed is set when the VM is gone, for callbacks that still hold it.
	destroyed bool
}

// pendingValue is a change that waits for the next start.
type pendingValue struct {
	value  string
	delete bool
	// force deletions free the volume of a drive.
	force bool
}

// staleValue is what a cloud-init drive has of an option that was changed since the drive was made.
type staleValue struct {
	value string
	// added options are not on the drive at all.
	added bool
}

// vmStats is what pvestatd last broadcast of a VM.
type vmStats struct {
	name    string
	status  string
	maxMem  proxmox.Bytes
	maxDisk proxmox.Bytes
	maxCPU  int
	running bool
	started time.Time
	// template is whether it was one.
	template bool
}

func (v *vm) lock() string     { return v.config["lock"] }
func (v *vm) isTemplate() bool { return v.config["template"] == "1" }

// lockRefusal is what is said to those who need the VM unlocked (PVE::AbstractConfig::check_lock).
func (v *vm) lockRefusal() string { return fmt.Sprintf("VM is locked (%s)", v.lock()) }

func (v *vm) status() string {
	if v.running {
		return "running"
	}
	return "stopped"
}

// name is what qemu-server reports for a VM: its name or "VM <id>".
func (v *vm) name() string {
	if n := v.config["name"]; n != "" {
		return n
	}
	return "VM " + v.id.String()
}

type pool struct {
	id       proxmox.PoolID
	comment  string
	members  map[proxmox.VMID]bool
	storages map[proxmox.StorageID]bool
}

// pveBool is how Proxmox VE writes booleans in JSON.
func pveBool(b bool) int {
	if b {
		return 1
	}
	return 0
}
