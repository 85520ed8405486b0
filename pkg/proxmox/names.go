// Package proxmox holds the nouns of Proxmox VE as Go types: VM identifiers, node, storage, pool and bridge names, task
// identifiers and memory sizes. It knows no client and no Kubernetes, so that planners, the API client and the simulator
// can speak of the same things without knowing each other.
package proxmox

import "strconv"

// VMID is the number of a guest, unique in one PVE cluster at one moment. It is an address, not an identity: PVE gives
// the number of a destroyed guest to the next one that asks.
type VMID int32

// The bounds PVE sets for a VMID (qemu-server, JSONSchema pve-vmid). Zero means no VMID.
const (
	MinVMID VMID = 100
	MaxVMID VMID = 999_999_999
)

// String returns the decimal form that PVE uses in paths and forms.
func (id VMID) String() string { return strconv.FormatInt(int64(id), 10) }

// RegionName names one PVE cluster as a ProxmoxCluster does.
type RegionName string

// ZoneName names a set of nodes of one region.
type ZoneName string

// NodeName is the name of a host in a PVE cluster.
type NodeName string

// StorageID is the name of a storage in a PVE cluster. Node-local storages share one StorageID over all nodes.
type StorageID string

// PoolID is the name of a PVE resource pool.
type PoolID string

// BridgeName is a Linux or OVS bridge, or an SDN vnet, that a network device is plugged into.
type BridgeName string

// VolumeID names a volume, `storage:path`, for example `local:iso/debian.iso` or `local-lvm:vm-100-disk-0`.
type VolumeID string

// SMBIOSUUID is the identity that CAPVE gives a VM: drawn once, kept in the ProxmoxMachine's spec, written into the
// VM's description, tags and SMBIOS. It is lower-case, in the 8-4-4-4-12 form.
type SMBIOSUUID string

// Digest is PVE's checksum of a config file. A write that carries it is refused when the file has changed since.
type Digest string

// MiB is a size in units of 2^20 bytes, as PVE counts memory.
type MiB int64

// GiB is a size in units of 2^30 bytes, as PVE's disk sizes are usually given.
type GiB int64

// Bytes is a size in bytes.
type Bytes int64

// Bytes returns the size in bytes.
func (m MiB) Bytes() Bytes { return Bytes(m) << 20 }

// Bytes returns the size in bytes.
func (g GiB) Bytes() Bytes { return Bytes(g) << 30 }

// MiB returns the size in whole MiB, rounded down.
func (b Bytes) MiB() MiB { return MiB(b >> 20) }
