package observe

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/placement"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
)

// templateFinder finds, for each node, the template that a VM there is cloned from: one of its own or, where it has none, one
// on shared storage.
type templateFinder struct {
	*regionSight
	source v1beta1.TemplateSource
	// local are the templates of each node that fit best: more than one is an error.
	local map[proxmox.NodeName][]pve.VM
	// shared are those of them that any node with their storages can be the target of.
	shared []sharedTemplate
	// refused says of nodes with a template why it cannot be cloned.
	refused map[proxmox.NodeName]string
	// machines are the VMIDs of the VMs of machines.
	machines map[proxmox.VMID]bool
}

// sharedTemplate is a template on shared storage.
type sharedTemplate struct {
	pve.VM
	// storages are those that a clone of it has disks on.
	storages []proxmox.StorageID
}

func (f *templateFinder) find(ctx context.Context) error {
	f.local, f.refused, f.machines = map[proxmox.NodeName][]pve.VM{}, map[proxmox.NodeName]string{}, map[proxmox.VMID]bool{}
	for _, entry := range f.entries {
		f.machines[entry.VMID] = f.machines[entry.VMID] || entry.PVE == f.id
	}
	for vm := range f.snapshot.VMs() {
		if node, _ := f.snapshot.Node(vm.Node); f.matches(vm) && node.Online { // its node does the cloning
			f.local[vm.Node] = append(f.local[vm.Node], vm)
		}
	}
	for _, node := range slices.Sorted(maps.Keys(f.local)) {
		f.local[node] = f.mostSpecific(f.local[node])
		for _, vm := range f.local[node] {
			if err := f.examine(ctx, vm); err != nil {
				return err
			}
		}
	}
	return nil
}

// matches reports whether a VM is one that is asked for.
func (f *templateFinder) matches(vm pve.VM) bool {
	switch {
	case vm.Type != pve.VMResource || vm.Template != (f.source.Snapshot == ""):
		return false // templates have no snapshots
	case f.source.VMID != 0:
		return vm.ID == proxmox.VMID(f.source.VMID)
	case f.isMachine(vm):
		return false // it has the tags of what it was cloned from
	case f.source.Name != "":
		return vm.Name == f.source.Name
	}
	return !slices.ContainsFunc(f.source.Tags, func(tag string) bool { return !vm.HasTag(tag) })
}

// isMachine reports whether a VM is that of a machine.
func (f *templateFinder) isMachine(vm pve.VM) bool {
	return f.machines[vm.ID] || slices.ContainsFunc(vm.Tags, func(tag string) bool { return strings.HasPrefix(tag, vmconfig.TagPrefix) })
}

// mostSpecific returns those with the fewest tags besides the ones asked for; with a name, all.
func (f *templateFinder) mostSpecific(vms []pve.VM) []pve.VM {
	if len(f.source.Tags) == 0 || len(vms) == 0 {
		return vms
	}
	fewest := len(slices.MinFunc(vms, func(a, b pve.VM) int { return len(a.Tags) - len(b.Tags) }).Tags)
	return slices.DeleteFunc(slices.Clone(vms), func(vm pve.VM) bool { return len(vm.Tags) > fewest })
}

// examine finds out whether a template can be cloned to other nodes: when all its disks, its cloud-init drive among them, are
// on shared storage, and the storage that the clone goes to is shared too (PVE::API2::Qemu, clone_vm); and whether a snapshot
// is there. Only where a node has none of its own, or for a snapshot, does it have to be asked.
func (f *templateFinder) examine(ctx context.Context, vm pve.VM) error {
	mayBeShared := len(f.local) < len(f.snapshot.Nodes()) && f.isSharedStorage(vm.Node, proxmox.StorageID(f.source.Storage))
	if !mayBeShared && f.source.Snapshot == "" {
		return nil
	}
	config, err := f.template(ctx, f.pve, place{f.id, vm.Ref(), f.source.Snapshot})
	switch {
	case err != nil && f.source.Snapshot != "" && wasRefused(err):
		f.refused[vm.Node] = fmt.Sprintf("snapshot %s of VM %d cannot be cloned: %v: make it, or correct source.template.snapshot", f.source.Snapshot, vm.ID, err)
		return nil
	case err != nil:
		return err
	case !mayBeShared:
		return nil
	}
	shared := sharedTemplate{VM: vm}
	for _, volume := range config.DiskVolumes() {
		storage := vmconfig.Storage(volume)
		if !f.isSharedStorage(vm.Node, storage) {
			return nil
		}
		if f.source.Storage == "" && !slices.Contains(shared.storages, storage) {
			shared.storages = append(shared.storages, storage)
		}
	}
	f.shared = append(f.shared, shared)
	return nil
}

// isSharedStorage reports whether a storage is shared; an unnamed one does not stand in the way.
func (f *templateFinder) isSharedStorage(node proxmox.NodeName, id proxmox.StorageID) bool {
	storage, found := f.snapshot.Storage(node, id)
	return id == "" || found && storage.Shared
}

// on returns the template for a node, and otherwise why there is none.
func (f *templateFinder) on(node proxmox.NodeName) (placement.Template, string) {
	own := f.local[node]
	switch {
	case len(own) > 1:
		return placement.Template{}, f.ambiguous(own, "on the node")
	case f.refused[node] != "":
		return placement.Template{}, f.refused[node]
	case len(own) == 1:
		return template(own[0]), ""
	}
	switch reachable := f.mostSpecific(f.reachable(node)); len(reachable) {
	case 1:
		return template(reachable[0]), ""
	case 0:
		return placement.Template{}, f.missing()
	default:
		return placement.Template{}, f.ambiguous(reachable, "on shared storage")
	}
}

func template(vm pve.VM) placement.Template { return placement.Template{Node: vm.Node, ID: vm.ID} }

// reachable are the templates on shared storage that a node has.
func (f *templateFinder) reachable(node proxmox.NodeName) []pve.VM {
	var found []pve.VM
	for _, shared := range f.shared {
		isMissing := func(id proxmox.StorageID) bool {
			storage, found := f.snapshot.Storage(node, id)
			return !found || !storage.Available
		}
		if f.refused[shared.Node] == "" && !slices.ContainsFunc(shared.storages, isMissing) {
			found = append(found, shared.VM)
		}
	}
	slices.SortFunc(found, func(a, b pve.VM) int { return int(a.ID - b.ID) })
	return found
}

// ambiguous names templates of which none is the one to take.
func (f *templateFinder) ambiguous(vms []pve.VM, where string) string {
	ids := make([]string, len(vms))
	for i, vm := range vms {
		ids[i] = vm.ID.String()
	}
	last := len(ids) - 1
	text := fmt.Sprintf("%s %s and %s %s all %s", f.kind()+"s", strings.Join(ids[:last], ", "), ids[last], where, f.wanted("have"))
	if f.source.Name != "" {
		return text + ": rename all but one"
	}
	return text + ", and equally few others: give all but one of them another tag, or ask for a tag that only one has in source.template.tags"
}

// missing says that there is no template for a node.
func (f *templateFinder) missing() string {
	id := proxmox.VMID(f.source.VMID)
	vm, listed := f.snapshot.VM(id)
	switch {
	case listed && f.source.Snapshot == "" && !vm.Template:
		return fmt.Sprintf("guest %d of %s is no template: make it one (`qm template %d`), name another one, or a snapshot of it in source.template.snapshot", id, vm.Node, id)
	case listed && vm.Template && f.source.Snapshot != "":
		return fmt.Sprintf("VM %d of %s is a template, which has no snapshots: leave out source.template.snapshot", id, vm.Node)
	}
	text := fmt.Sprintf("no %s that %s is here or on shared storage", f.kind(), f.wanted("has"))
	if other := f.elsewhere(); other != "" {
		text += fmt.Sprintf(" (%s has local disks)", other)
	}
	return text + ": make one, or grant the token VM.Audit and VM.Clone on it"
}

// elsewhere names a template that fits and is on local storage of another node.
func (f *templateFinder) elsewhere() string {
	for _, node := range slices.Sorted(maps.Keys(f.local)) {
		for _, vm := range f.local[node] {
			if !slices.ContainsFunc(f.shared, func(shared sharedTemplate) bool { return shared.ID == vm.ID }) {
				return fmt.Sprintf("%d of %s", vm.ID, vm.Node)
			}
		}
	}
	return ""
}

// kind is what is looked for.
func (f *templateFinder) kind() string {
	if f.source.Snapshot != "" {
		return "VM"
	}
	return "template"
}

func (f *templateFinder) wanted(verb string) string {
	switch {
	case f.source.Name != "":
		return fmt.Sprintf("%s the name %q", verb, f.source.Name)
	case f.source.VMID != 0:
		return fmt.Sprintf("%s the VMID %d", verb, f.source.VMID)
	}
	return fmt.Sprintf("%s the tags %s", verb, strings.Join(f.source.Tags, ", "))
}

// place names a template, or a snapshot of a VM, in a Proxmox VE cluster.
type place struct {
	cluster  PVECluster
	ref      pve.VMRef
	snapshot string
}

// template returns the config of a template, or of a snapshot, which is read once for all machines that are made from it.
func (o *Observer) template(ctx context.Context, cluster *pve.Cluster, at place) (vmconfig.Config, error) {
	return o.Memory.templates.get(ctx, at, func() (vmconfig.Config, error) {
		read, err := cluster.SnapshotConfig(ctx, at.ref, at.snapshot)
		return read.Values, err
	})
}
