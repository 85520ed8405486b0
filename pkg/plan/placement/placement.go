// Package placement chooses the host of a new VM. Every filter is hard: when no host passes all of them there is no
// choice, and the refusal says for each host why. Among those that pass, the machines of a group are spread.
package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// Host is a Proxmox VE node as placement sees it.
type Host struct {
	Region proxmox.RegionName
	Node   proxmox.NodeName
	// FailureDomain is the zone's name as Cluster API knows it; empty for a node that is in no zone.
	FailureDomain string
	// ControlPlane says whether control plane machines may go there.
	ControlPlane bool
	Online       bool
	// CPUs is the number of the host's logical CPUs. PVE does not start a VM with more vCPUs.
	CPUs int
	// Memory is all that the host has, Allocated what its guests may use at most, reservations counted.
	Memory, Allocated proxmox.Bytes
	// Group counts the machines of the asking group that are on the host or reserved for it.
	Group int
	// Template is what the VM would be cloned from; the zero Template when none reaches the host, or when none is asked for.
	Template Template
	// SourceRefusal says why what the VM is made from, template or image, does not reach the host; empty when it does.
	SourceRefusal string
	// CloneFailure says that a clone failed on the host lately, and how; empty when none did.
	CloneFailure string
	// Storages are the storages that are usable on the host, by name.
	Storages []Storage
	// Equipment is what else is known that it has.
	Equipment Equipment
}

// Template is a template that a host can clone.
type Template struct {
	Node proxmox.NodeName
	ID   proxmox.VMID
}

// Storage is a storage as a host sees it.
type Storage struct {
	ID     proxmox.StorageID
	Shared bool
	// Type is its kind, as Proxmox VE names it: dir, lvmthin, zfspool and so on.
	Type string
	// Images and ISO say whether it takes disk images and ISO images.
	Images, ISO bool
}

// Request is what a VM needs of its host.
type Request struct {
	// FailureDomain is the zone asked for; empty leaves it open.
	FailureDomain string
	ControlPlane  bool
	AllowedNodes  []proxmox.NodeName
	CPUs          int
	Memory        proxmox.Bytes
	// WithoutTemplate says that the VM is not cloned.
	WithoutTemplate bool
	// DiskStorages and SeedStorage must be on the host; empty leaves them open.
	DiskStorages []proxmox.StorageID
	SeedStorage  proxmox.StorageID
	// DiskFormats are formats that storages have to keep disks in.
	DiskFormats []FormatNeed
	// Needs are what it needs besides.
	Needs Needs
}

// Choice is the host that a VM goes to.
type Choice struct {
	Host Host
	// SeedStorage is where its seed goes.
	SeedStorage proxmox.StorageID
}

// Refusal says why a host does not get the VM.
type Refusal struct {
	Host   proxmox.NodeName
	Reason string
}

// Refusals are the refusals of all hosts, in the order of their names.
type Refusals []Refusal

// String lists the refusals for a condition, hosts with the same reason together: `3 hosts refused: pve1, pve2: offline; …`.
func (r Refusals) String() string {
	if len(r) == 0 {
		return "no hosts known: the Proxmox VE clusters of the regions show none to these credentials"
	}
	var reasons []string
	hosts := map[string][]string{}
	for _, refusal := range r {
		if len(hosts[refusal.Reason]) == 0 {
			reasons = append(reasons, refusal.Reason)
		}
		hosts[refusal.Reason] = append(hosts[refusal.Reason], string(refusal.Host))
	}
	for i, reason := range reasons {
		reasons[i] = fmt.Sprintf("%s: %s", strings.Join(hosts[reason], ", "), reason)
	}
	noun := "hosts"
	if len(r) == 1 {
		noun = "host"
	}
	return fmt.Sprintf("%d %s refused: %s", len(r), noun, strings.Join(reasons, "; "))
}

// Place chooses the host for a request. Without a choice the refusals name every host; with one they are those of the
// hosts that were passed over. The order of the hosts does not matter. A host where a clone failed lately gets the VM only if
// no other can.
func Place(request Request, hosts []Host) (Choice, Refusals, bool) {
	choice, refusals, found := place(request, hosts, append(filters(), refuseFailed))
	if !found {
		return place(request, hosts, filters())
	}
	return choice, refusals, true
}

// filter returns why a host cannot take the VM, and "" when nothing it knows of stands in the way.
type filter func(Request, Host) string

func filters() []filter {
	return []filter{refuseZone, refuseNode, refuseOffline, refuseCPUs, refuseMemory, refuseSource, refuseStorage, refuseSeedStorage, refuseEquipment}
}

func place(request Request, hosts []Host, filters []filter) (Choice, Refusals, bool) {
	var fitting []Host
	var refusals Refusals
	for _, host := range hosts {
		if reason := refuse(request, host, filters); reason != "" {
			refusals = append(refusals, Refusal{Host: host.Node, Reason: reason})
			continue
		}
		fitting = append(fitting, host)
	}
	slices.SortFunc(refusals, func(a, b Refusal) int {
		return cmp.Or(strings.Compare(string(a.Host), string(b.Host)), strings.Compare(a.Reason, b.Reason)) // two regions may have a pve1
	})
	if len(fitting) == 0 {
		return Choice{}, refusals, false
	}
	best := slices.MinFunc(fitting, prefer)
	seed, _ := seedStorage(request, best)
	return Choice{Host: best, SeedStorage: seed}, refusals, true
}

// prefer puts the host first that has the fewest machines of the group, then the most memory free, then the lower name.
func prefer(a, b Host) int {
	return cmp.Or(
		cmp.Compare(a.Group, b.Group),
		cmp.Compare(b.Memory-b.Allocated, a.Memory-a.Allocated),
		strings.Compare(string(a.Region), string(b.Region)),
		strings.Compare(string(a.Node), string(b.Node)),
	)
}

// refuse returns the first reason why the host cannot take the VM, and "" when it can.
func refuse(request Request, host Host, filters []filter) string {
	for _, filter := range filters {
		if reason := filter(request, host); reason != "" {
			return reason
		}
	}
	return ""
}

func refuseFailed(_ Request, host Host) string { return host.CloneFailure }

func refuseZone(request Request, host Host) string {
	switch {
	case host.FailureDomain == "":
		return "in no zone of the ProxmoxCluster"
	case request.FailureDomain != "" && request.FailureDomain != host.FailureDomain:
		return fmt.Sprintf("in failure domain %s, not %s", host.FailureDomain, request.FailureDomain)
	case request.FailureDomain == "" && request.ControlPlane && !host.ControlPlane:
		return fmt.Sprintf("failure domain %s is not for control planes", host.FailureDomain)
	}
	return ""
}

func refuseNode(request Request, host Host) string {
	if len(request.AllowedNodes) > 0 && !slices.Contains(request.AllowedNodes, host.Node) {
		return "not in placement.allowedNodes"
	}
	return ""
}

func refuseOffline(_ Request, host Host) string {
	if !host.Online {
		return "offline"
	}
	return ""
}

func refuseCPUs(request Request, host Host) string {
	if host.CPUs == 0 && host.Memory == 0 { // Proxmox VE leaves both out for those who may not audit the node
		return fmt.Sprintf("its size cannot be seen: grant Sys.Audit on /nodes/%s to the token, and to its user, of the region's credentials", host.Node)
	}
	if request.CPUs > host.CPUs {
		return fmt.Sprintf("has %d CPUs, the VM asks for %d", host.CPUs, request.CPUs)
	}
	return ""
}

func refuseMemory(request Request, host Host) string {
	if free := host.Memory - host.Allocated; request.Memory > free {
		return fmt.Sprintf("%d MiB of memory free of %d asked", max(free, 0).MiB(), request.Memory.MiB())
	}
	return ""
}

func refuseSource(request Request, host Host) string {
	switch {
	case request.WithoutTemplate:
		return host.SourceRefusal
	case host.Template.ID != 0:
		return ""
	}
	return cmp.Or(host.SourceRefusal, "no template")
}

func refuseStorage(request Request, host Host) string {
	for _, wanted := range request.DiskStorages {
		if !slices.ContainsFunc(host.Storages, func(s Storage) bool { return s.ID == wanted && s.Images }) {
			return fmt.Sprintf("storage %s is not there, cannot be seen (Datastore.Audit) or does not take images", wanted)
		}
	}
	for _, need := range request.DiskFormats {
		if at := slices.IndexFunc(host.Storages, func(s Storage) bool { return s.ID == need.Storage }); at >= 0 && need.Format != "raw" && host.Storages[at].hasRawAlone() {
			return fmt.Sprintf("storage %s is of type %s, which keeps disks as raw alone and not as %s, which %s names: leave the format out, or name another storage",
				need.Storage, host.Storages[at].Type, need.Format, need.Field)
		}
	}
	return ""
}

// FormatNeed is a format that a disk is to have on a storage.
type FormatNeed struct {
	// Field is the field that names the format.
	Field   string
	Storage proxmox.StorageID
	Format  string
}

// hasRawAlone reports whether a storage keeps disks as block devices and knows no other format (PVE::Storage, the plugins'
// plugindata). Of lvm it depends on the version and on how it is set up.
func (s Storage) hasRawAlone() bool {
	return slices.Contains([]string{"lvmthin", "zfspool", "zfs", "rbd", "iscsi", "iscsidirect"}, s.Type)
}

func refuseSeedStorage(request Request, host Host) string {
	if _, found := seedStorage(request, host); found {
		return ""
	}
	if request.SeedStorage != "" {
		return fmt.Sprintf("storage %s is not there, cannot be seen (Datastore.Audit) or does not take ISO images: set bootstrap.storage to one that does", request.SeedStorage)
	}
	return "no storage takes ISO images: add the content type iso to one, and let the token see it (Datastore.Audit)"
}

// seedStorage chooses where a host keeps a seed: where asked, else on the first local storage by name, which costs no
// copy over the network, else on the first shared one.
func seedStorage(request Request, host Host) (proxmox.StorageID, bool) {
	var fitting []Storage
	for _, storage := range host.Storages {
		if storage.ISO && (request.SeedStorage == "" || request.SeedStorage == storage.ID) {
			fitting = append(fitting, storage)
		}
	}
	if len(fitting) == 0 {
		return "", false
	}
	return slices.MinFunc(fitting, func(a, b Storage) int {
		return cmp.Or(compareBool(a.Shared, b.Shared), strings.Compare(string(a.ID), string(b.ID)))
	}).ID, true
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
