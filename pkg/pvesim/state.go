package pvesim

import (
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// State is a Proxmox VE cluster as plain data: what a world is made of with FromState, and what World.State copies out of it.
// As JSON or YAML it is what `pvesim -load` reads and `-dump` writes. Zero fields mean what their comments say.
type State struct {
	// Version to speak as; empty means that of the Model.
	Version Version `json:"version,omitempty"`
	// ClusterName is the name in GET /cluster/status; empty means that of the Model.
	ClusterName string `json:"clusterName,omitempty"`
	// Options are those of datacenter.cfg, for example mac_prefix.
	Options  map[string]string `json:"options,omitempty"`
	Nodes    []NodeSpec        `json:"nodes,omitempty"`
	Storages []StorageSpec     `json:"storages,omitempty"`
	// Volumes beside those that a drive in a guest's config names; those are made with the guest unless they are listed here.
	Volumes    []VolumeSpec    `json:"volumes,omitempty"`
	VMs        []VMSpec        `json:"vms,omitempty"`
	Containers []ContainerSpec `json:"containers,omitempty"`
	Pools      []PoolSpec      `json:"pools,omitempty"`
	Users      []UserSpec      `json:"users,omitempty"`
	// UserGroups are the groups that users can be in.
	UserGroups []UserGroupSpec `json:"userGroups,omitempty"`
	// Roles beside those that Proxmox VE brings.
	Roles    []RoleSpec   `json:"roles,omitempty"`
	Tokens   []TokenSpec  `json:"tokens,omitempty"`
	ACL      []ACLSpec    `json:"acl,omitempty"`
	Firewall FirewallSpec `json:"firewall,omitzero"`
	// StrayFirewalls are firewall files of VMIDs that no VM has: such a file can be written before there is a VM.
	StrayFirewalls map[proxmox.VMID]FirewallSpec `json:"strayFirewalls,omitempty"`
	HA             HASpec                        `json:"ha,omitzero"`
	SDN            SDNSpec                       `json:"sdn,omitzero"`
	PCI            []PCIMappingSpec              `json:"pciMappings,omitempty"`
	USB            []USBMappingSpec              `json:"usbMappings,omitempty"`
	// CPUModels are the names of the custom CPU models, without custom- before them.
	CPUModels []string `json:"cpuModels,omitempty"`
	// DHCP are the DHCP servers in the guests' networks; without one guests get no address but those of their config.
	DHCP []DHCPSpec `json:"dhcp,omitempty"`
	// Downloads are the files on the simulated network.
	Downloads []DownloadSpec `json:"downloads,omitempty"`
	// Tasks that have ended, in the order in which they were started.
	Tasks []TaskSpec `json:"tasks,omitempty"`
	// Faults in force. A world that is made from a copy counts their matches anew.
	Faults []Fault `json:"faults,omitempty"`
}

// NodeSpec describes a host.
type NodeSpec struct {
	Name proxmox.NodeName `json:"name"`
	// Address of the host; empty means one of 10.10.0.0/24.
	Address string `json:"address,omitempty"`
	// CPUs are all threads of the host. Zero means 32.
	CPUs int `json:"cpus,omitempty"`
	// Sockets that the CPUs are on. Zero means 2 for a host of 16 or more CPUs, 1 otherwise.
	Sockets int `json:"sockets,omitempty"`
	// Threads of a core. Zero means 2 if the CPUs can be divided so, 1 otherwise.
	Threads int `json:"threads,omitempty"`
	// NUMANodes of the host. Zero means one for each socket.
	NUMANodes int `json:"numaNodes,omitempty"`
	// Memory of the host. Zero means 128 GiB.
	Memory proxmox.MiB `json:"memory,omitempty"`
	// Load is the host's own share of its CPUs, from 0 to 1, beside that of its guests.
	Load float64 `json:"load,omitempty"`
	// Bridges of the host; nil means vmbr0.
	Bridges []proxmox.BridgeName `json:"bridges,omitempty"`
	// BridgeOptions are further options of bridges, as the host's network configuration has them: mtu, bridge_vlan_aware.
	BridgeOptions map[proxmox.BridgeName]map[string]string `json:"bridgeOptions,omitempty"`
	// StockQEMU hosts have the QEMU of Debian, without Proxmox's patches: it cannot save the memory of a VM or copy a disk
	// in use, so that suspending to disk, snapshots with memory and full clones of running VMs fail. They have no qmeventd either:
	// the process of a guest that powers itself off stays, in the state shutdown.
	StockQEMU bool `json:"stockQEMU,omitempty"`
	// Offline hosts are down.
	Offline bool `json:"offline,omitempty"`
	// NoIfupdown2 hosts make no bridges for vnets and cannot tell the status of zones: the package ifupdown2 is missing.
	NoIfupdown2 bool `json:"noIfupdown2,omitempty"`
	// Firewall are the options and rules of the host itself.
	Firewall FirewallSpec `json:"firewall,omitzero"`
	// CutOff hosts run without a link to the others.
	CutOff bool `json:"cutOff,omitempty"`
	// Daemons that do not run.
	Daemons map[Daemon]DaemonState `json:"daemons,omitempty"`
	// PCI devices of the host.
	PCI []PCIDeviceSpec `json:"pci,omitempty"`
}

// PCIDeviceSpec describes a PCI device of a host.
type PCIDeviceSpec struct {
	// ID is the address, for example 0000:01:00.0.
	ID string `json:"id"`
	// Class, Vendor, Device, SubsystemVendor and SubsystemDevice are numbers like 0x10de.
	Class           string `json:"class,omitempty"`
	Vendor          string `json:"vendor"`
	Device          string `json:"device"`
	SubsystemVendor string `json:"subsystemVendor,omitempty"`
	SubsystemDevice string `json:"subsystemDevice,omitempty"`
	// VendorName and DeviceName say it in words; they may be empty.
	VendorName string `json:"vendorName,omitempty"`
	DeviceName string `json:"deviceName,omitempty"`
	// IOMMUGroup of the device, counted from 1. Zero means none.
	IOMMUGroup int `json:"iommuGroup,omitempty"`
	// Mdev devices can be shared out as mediated devices.
	Mdev bool `json:"mdev,omitempty"`
}

// StorageSpec describes an entry of storage.cfg.
type StorageSpec struct {
	ID proxmox.StorageID `json:"id"`
	// Type is dir, nfs, lvmthin, zfspool or rbd.
	Type string `json:"type"`
	// Path of a file based storage; empty means the usual one.
	Path string `json:"path,omitempty"`
	// Content types, for example images and iso.
	Content []string `json:"content,omitempty"`
	// Shared storages have the same volumes on every node. Of the types nfs and rbd all are.
	Shared bool `json:"shared,omitempty"`
	// Total is the capacity: of every node's own part unless the storage is shared. Zero means 1 TiB.
	Total proxmox.Bytes `json:"total,omitempty"`
	// Nodes that have the storage; nil means all.
	Nodes []proxmox.NodeName `json:"nodes,omitempty"`
	// Disabled storages are configured but not used.
	Disabled bool `json:"disabled,omitempty"`
	// Options are other keys of storage.cfg, for example vgname and thinpool of lvmthin, or pool and sparse of zfspool. Those that
	// a type needs have defaults. Without sparse=1 a zfspool takes the whole size of a volume at once.
	Options map[string]string `json:"options,omitempty"`
}

// DownloadSpec is a file that download-url can get.
type DownloadSpec struct {
	URL string `json:"url"`
	// Type is the MIME type; empty means what the name says.
	Type string `json:"type,omitempty"`
	// Data is the content, base64 in JSON.
	Data []byte `json:"data,omitempty"`
}

// VolumeSpec describes a volume.
type VolumeSpec struct {
	ID proxmox.VolumeID `json:"id"`
	// Node has the volume; empty for shared storages.
	Node proxmox.NodeName `json:"node,omitempty"`
	// Content is the type of its content; empty means what the name says.
	Content string `json:"content,omitempty"`
	// Format is raw, qcow2, iso …; empty means what the name says.
	Format string `json:"format,omitempty"`
	// VMID of the owner; zero means what the name says.
	VMID proxmox.VMID  `json:"vmid,omitempty"`
	Size proxmox.Bytes `json:"size"`
	// Used is what the volume takes of its storage. Zero means a fifth of the size.
	Used proxmox.Bytes `json:"used,omitempty"`
	// Data is the content, base64 in JSON; kept of uploads.
	Data []byte `json:"data,omitempty"`
	// Notes and Protected are what PUT …/content/{volume} sets.
	Notes     string `json:"notes,omitempty"`
	Protected bool   `json:"protected,omitempty"`
}

// VMSpec describes a VM. Every drive in its config that names a volume gets one.
type VMSpec struct {
	VMID   proxmox.VMID      `json:"vmid"`
	Node   proxmox.NodeName  `json:"node"`
	Pool   proxmox.PoolID    `json:"pool,omitempty"`
	Config map[string]string `json:"config,omitempty"`
	// Pending are changes that wait for the next start; PendingDelete are options that it will delete,
	// with ! in front if the volume of a drive is to be freed.
	Pending       map[string]string `json:"pending,omitempty"`
	PendingDelete []string          `json:"pendingDelete,omitempty"`
	// CloudInit are the values that the cloud-init drive has of options that were changed since it was made; an empty one is not on
	// the drive.
	CloudInit map[string]string `json:"cloudInit,omitempty"`
	// State is running, paused or stopped; empty means stopped.
	State     string         `json:"state,omitempty"`
	Snapshots []SnapshotSpec `json:"snapshots,omitempty"`
	// Firewall are the options, rules and sets of …/firewall.
	Firewall FirewallSpec `json:"firewall,omitzero"`
}

// SnapshotSpec describes a snapshot of a VM.
type SnapshotSpec struct {
	Name        string `json:"name"`
	Parent      string `json:"parent,omitempty"`
	Description string `json:"description,omitempty"`
	// Config of the VM at that time; nil means its present one.
	Config map[string]string `json:"config,omitempty"`
	Time   time.Time         `json:"time,omitzero"`
	// RAM tells whether the snapshot holds the VM's memory, in the volume that vmstate in its config names.
	RAM bool `json:"ram,omitempty"`
}

// ContainerSpec describes an LXC container. It takes a VMID, memory and CPUs of its host, and can do nothing.
type ContainerSpec struct {
	VMID   proxmox.VMID     `json:"vmid"`
	Node   proxmox.NodeName `json:"node"`
	Pool   proxmox.PoolID   `json:"pool,omitempty"`
	Name   string           `json:"name,omitempty"`
	Cores  int              `json:"cores,omitempty"`
	Memory proxmox.MiB      `json:"memory,omitempty"`
	Disk   proxmox.Bytes    `json:"disk,omitempty"`
	Tags   string           `json:"tags,omitempty"`
	// State is running or stopped; empty means stopped.
	State string `json:"state,omitempty"`
}

// PoolSpec describes a resource pool. Guests name the pool that they are in.
type PoolSpec struct {
	ID       proxmox.PoolID      `json:"id"`
	Comment  string              `json:"comment,omitempty"`
	Storages []proxmox.StorageID `json:"storages,omitempty"`
}

// UserSpec describes a user.
type UserSpec struct {
	// ID is user@realm.
	ID       string   `json:"id"`
	Groups   []string `json:"groups,omitempty"`
	Password Secret   `json:"-"`
	Disabled bool     `json:"disabled,omitempty"`
	// Expire is when the account ends; zero means never.
	Expire time.Time `json:"expire,omitzero"`
	// Details are firstname, lastname, email, comment and keys.
	Details map[string]string `json:"details,omitempty"`
}

// UserGroupSpec describes a group of users. The users name the groups that they are in.
type UserGroupSpec struct {
	ID      string `json:"id"`
	Comment string `json:"comment,omitempty"`
}

// RoleSpec describes a role.
type RoleSpec struct {
	ID         string   `json:"id"`
	Privileges []string `json:"privileges,omitempty"`
}

// TokenSpec describes an API token, and its user if that is new.
type TokenSpec struct {
	// User is user@realm.
	User string `json:"user"`
	// Name of the token.
	Name string `json:"name"`
	// Unseparated tokens (privsep=0) have all rights of their user; the others only what ACL entries give to both.
	Unseparated bool `json:"unseparated,omitempty"`
	// Expire is when the token ends; zero means never.
	Expire  time.Time `json:"expire,omitzero"`
	Comment string    `json:"comment,omitempty"`
	// Secret of the token; empty means a drawn one.
	Secret Secret `json:"-"`
	// Privileges by ACL path, all propagating, for the token and its user: a role is made for every path.
	Privileges map[string][]string `json:"privileges,omitempty"`
}

// ACLSpec is one entry of the access control list.
type ACLSpec struct {
	// Path is an object, for example /vms/100 or /pool/capi.
	Path string `json:"path"`
	// Role is given to who holds the entry.
	Role string `json:"role"`
	// Type of the holder is user, group or token.
	Type string `json:"type"`
	// Holder is the ID of the user, group or token.
	Holder string `json:"holder"`
	// NoPropagate entries count for the path alone and not for those below it.
	NoPropagate bool `json:"noPropagate,omitempty"`
}

// FirewallSpec is the firewall of the cluster or of one guest. Groups are of the cluster alone.
type FirewallSpec struct {
	Options map[string]string   `json:"options,omitempty"`
	Rules   []map[string]string `json:"rules,omitempty"`
	IPSets  []IPSetSpec         `json:"ipsets,omitempty"`
	Aliases []AliasSpec         `json:"aliases,omitempty"`
	Groups  []GroupSpec         `json:"groups,omitempty"`
}

// GroupSpec is a security group: named rules.
type GroupSpec struct {
	Name    string              `json:"name"`
	Comment string              `json:"comment,omitempty"`
	Rules   []map[string]string `json:"rules,omitempty"`
}

// IPSetSpec is a named set of networks.
type IPSetSpec struct {
	Name    string           `json:"name"`
	Comment string           `json:"comment,omitempty"`
	Entries []IPSetEntrySpec `json:"entries,omitempty"`
}

// IPSetEntrySpec is one network of a set.
type IPSetEntrySpec struct {
	CIDR    string `json:"cidr"`
	Comment string `json:"comment,omitempty"`
	NoMatch bool   `json:"nomatch,omitempty"`
}

// AliasSpec is a name for a network.
type AliasSpec struct {
	Name    string `json:"name"`
	CIDR    string `json:"cidr"`
	Comment string `json:"comment,omitempty"`
}

// HASpec is what the HA manager looks after.
type HASpec struct {
	// Master is the node that is the manager; empty means the first that is up.
	Master proxmox.NodeName `json:"master,omitempty"`
	// Resources by their ID, for example vm:100, with their options, for example state and max_restart.
	Resources map[string]map[string]string `json:"resources,omitempty"`
	// Groups of 8.4, by name.
	Groups map[string]map[string]string `json:"groups,omitempty"`
	// Rules of 9.x, by name.
	Rules map[string]map[string]string `json:"rules,omitempty"`
}

// SDNSpec is the software-defined network as it is in force. Zones, VNets and controllers are by name, with their options.
type SDNSpec struct {
	Zones map[string]map[string]string `json:"zones,omitempty"`
	VNets map[string]map[string]string `json:"vnets,omitempty"`
	// Subnets are by vnet and by ID, for example zone1-10.0.0.0-24.
	Subnets     map[string]map[string]map[string]string `json:"subnets,omitempty"`
	Controllers map[string]map[string]string            `json:"controllers,omitempty"`
	// Configured is the configuration where it is not what is in force; nil if nothing is pending.
	Configured *SDNSpec `json:"configured,omitempty"`
	// IPAMs beside that of Proxmox VE, and DNS servers. They count as soon as they are configured.
	IPAMs map[string]map[string]string `json:"ipams,omitempty"`
	DNS   map[string]map[string]string `json:"dns,omitempty"`
	// Version counts how often the network was put in force. Zero means never, or once if there are zones.
	Version int `json:"version,omitempty"`
	// Firewalls of vnets, by vnet.
	Firewalls map[string]FirewallSpec `json:"firewalls,omitempty"`
}

// PCIMappingSpec is a resource mapping of PCI devices.
type PCIMappingSpec struct {
	ID          string `json:"id"`
	Description string `json:"description,omitempty"`
	// Map has one property string for each device, for example node=pve1,path=0000:01:00.0,id=10de:2204.
	Map []string `json:"map"`
	// Mdev tells that mediated devices are made of the devices, LiveMigration that a guest with one can be migrated.
	Mdev          bool `json:"mdev,omitempty"`
	LiveMigration bool `json:"liveMigration,omitempty"`
}

// USBMappingSpec is a resource mapping of USB devices.
type USBMappingSpec struct {
	ID          string `json:"id"`
	Description string `json:"description,omitempty"`
	// Map has one property string for each host, for example node=pve1,id=046d:c52b.
	Map []string `json:"map"`
}

// TaskSpec is a task that has ended.
type TaskSpec struct {
	UPID proxmox.UPID `json:"upid"`
	// Exit is OK, WARNINGS: n, or the text of the error. Empty means OK.
	Exit string `json:"exit"`
	// Ended is the end; zero means the start, which the UPID tells.
	Ended time.Time `json:"ended,omitzero"`
	Log   []string  `json:"log,omitempty"`
}
