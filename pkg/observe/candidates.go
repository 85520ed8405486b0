package observe

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/placement"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
)

// addCandidates adds the hosts of all regions, and a VMID for each region. It is skipped while the machine waits for
// something else than a host.
func (o *Observer) addCandidates(ctx context.Context, subject MachineSubject, machine *plan.Machine) error {
	waits := !machine.ClusterReady || machine.Bootstrap.Missing.Code != "" || !machine.Addresses.Ready()
	if subject.ProxmoxCluster == nil || machine.Deleting || waits {
		return nil
	}
	entries, version, err := o.Ledger.Entries(ctx)
	if err != nil {
		return err
	}
	candidates := plan.Candidates{LedgerVersion: version, FreeVMIDs: map[proxmox.RegionName]proxmox.VMID{}, VMIDs: map[proxmox.RegionName]plan.VMIDs{}, Authorities: map[proxmox.RegionName]string{}}
	var missing []string
	var sights []*regionSight
	for _, region := range subject.ProxmoxCluster.Spec.Regions {
		sight := &regionSight{Observer: o, subject: subject, region: region, entries: entries, id: o.Ledger.PVE(region)}
		err := sight.look(ctx, &candidates)
		if reason, unavailable := Unavailable(err); unavailable {
			missing = append(missing, reason.Message)
			continue
		}
		if err != nil {
			return err
		}
		sights = append(sights, sight)
	}
	candidates.Unavailable = strings.Join(missing, "; ")
	machine.Candidates = candidates
	return o.equip(ctx, sights, machine)
}

// regionSight is what the look at one region's hosts needs.
type regionSight struct {
	*Observer
	subject MachineSubject
	region  v1beta1.Region
	entries map[types.NamespacedName]Entry

	// id tells which Proxmox VE cluster it is.
	id       PVECluster
	pve      *pve.Cluster
	snapshot pve.Snapshot
}

func (s *regionSight) look(ctx context.Context, candidates *plan.Candidates) error {
	name := proxmox.RegionName(s.region.Name)
	var err error
	if s.pve, err = s.Regions.Open(ctx, s.subject.ProxmoxCluster, name); err != nil {
		return err
	}
	if s.snapshot, err = firstSnapshot(ctx, s.pve); err != nil {
		return err
	}
	if candidates.Authorities[name], err = s.authorityFor(ctx, s.pve, s.subject.ProxmoxCluster, s.region.Name); err != nil {
		return err
	}
	hosts, err := s.hosts(ctx)
	if err != nil {
		return err
	}
	bounds := plan.VMIDsFor(s.subject.ProxmoxMachine.Spec, s.subject.ProxmoxCluster.Spec, s.region)
	id, found, err := s.freeVMID(ctx, bounds)
	if err != nil {
		return err
	}
	candidates.VMIDs[name] = bounds
	candidates.Hosts = append(candidates.Hosts, hosts...)
	if found {
		candidates.FreeVMIDs[name] = id
	}
	return nil
}

// firstSnapshot returns the inventory's snapshot, and waits for the first one of a region that was just opened. A snapshot
// that could not be renewed is none: what happened since is not in it.
func firstSnapshot(ctx context.Context, cluster *pve.Cluster) (pve.Snapshot, error) {
	snapshot := cluster.Inventory.Snapshot()
	if snapshot.At.IsZero() && snapshot.Err == nil {
		if err := cluster.Inventory.Refresh(ctx, snapshot.At); err != nil {
			return snapshot, err
		}
		snapshot = cluster.Inventory.Snapshot()
	}
	return snapshot, snapshot.Err
}

// hosts describes the nodes of the region to placement.
func (s *regionSight) hosts(ctx context.Context) ([]placement.Host, error) {
	sources, err := s.sources(ctx)
	if err != nil {
		return nil, err
	}
	allocated, grouped := s.load()
	var hosts []placement.Host
	for _, node := range s.snapshot.Nodes() {
		host := placement.Host{
			Region: proxmox.RegionName(s.region.Name), Node: node.Name, Online: node.Online,
			CPUs: int(node.MaxCPU), Memory: node.MaxMemory, Allocated: allocated[node.Name], Group: grouped[node.Name],
			Storages: s.storages(node.Name), CloneFailure: s.Memory.hostTrouble(hostPlace{s.id, node.Name}),
		}
		if zone, found := plan.ZoneOf(s.region, string(node.Name)); found {
			host.FailureDomain = plan.FailureDomain(s.subject.ProxmoxCluster.Spec, s.region.Name, zone.Name)
			host.ControlPlane = ptr.Deref(zone.ControlPlane, true)
		}
		host.Template, host.SourceRefusal = sources.on(node.Name)
		hosts = append(hosts, host)
	}
	return hosts, nil
}

func (s *regionSight) storages(node proxmox.NodeName) []placement.Storage {
	var storages []placement.Storage
	for _, storage := range s.snapshot.Storages(node) {
		if storage.Available {
			storages = append(storages, placement.Storage{
				ID: storage.ID, Shared: storage.Shared, Type: storage.PluginType, Images: storage.Holds("images"), ISO: storage.Holds("iso"),
			})
		}
	}
	return storages
}

// load sums up, by node, the memory that guests may use at most, running or not, and counts the machines of the group.
// Machines count as reserved, wherever their VM is by now; a VM in the making has no memory in the inventory yet.
func (s *regionSight) load() (map[proxmox.NodeName]proxmox.Bytes, map[proxmox.NodeName]int) {
	allocated, grouped := map[proxmox.NodeName]proxmox.Bytes{}, map[proxmox.NodeName]int{}
	own := group(s.subject.ProxmoxMachine)
	counted := map[proxmox.VMID]bool{}
	for machine, entry := range s.entries {
		if entry.PVE != s.id || machine == s.subject.Key() {
			continue
		}
		node := entry.Node
		if vm, listed := s.snapshot.VM(entry.VMID); listed {
			node = vm.Node
		}
		counted[entry.VMID] = true
		allocated[node] += entry.Memory
		if entry.Group == own {
			grouped[node]++
		}
	}
	for vm := range s.snapshot.VMs() {
		if !vm.Template && !counted[vm.ID] {
			allocated[vm.Node] += vm.MaxMemory
		}
	}
	return allocated, grouped
}

// freeVMID finds a VMID that is free: in no reservation, not in the inventory, and not taken by a guest that the credentials
// cannot see.
func (s *regionSight) freeVMID(ctx context.Context, bounds plan.VMIDs) (proxmox.VMID, bool, error) {
	reserved := map[proxmox.VMID]bool{}
	for _, entry := range s.entries {
		reserved[entry.VMID] = reserved[entry.VMID] || entry.PVE == s.id
	}
	return s.Allocator.find(ctx, search{
		pve: s.id, machine: s.subject.Key(), bounds: bounds, isFree: s.pve.VMIDFree,
		inUse: func(id proxmox.VMID) bool {
			_, listed := s.snapshot.VM(id)
			return listed || reserved[id]
		},
	})
}
