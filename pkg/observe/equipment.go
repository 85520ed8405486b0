package observe

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/placement"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
)

const (
	// factTTL is how long what a host has is believed, so that many machines cost one request.
	factTTL = 5 * time.Minute
	// lackTTL is how long it is believed that a host lacks something: whoever waits for that finds it soon after it was made.
	lackTTL = 20 * time.Second
)

// equip adds what the hosts have that the machine needs. Proxmox VE is asked about the host that would be chosen alone, and
// about the next one when that lacks something; and only for what was not told lately to another machine with the same
// credentials.
func (o *Observer) equip(ctx context.Context, sights []*regionSight, machine *plan.Machine) error {
	request, hosts := machine.PlacementRequest(), machine.Candidates.Hosts
	looks := map[proxmox.RegionName]*equipmentSight{}
	for _, sight := range sights {
		looks[proxmox.RegionName(sight.region.Name)] = o.equipmentSight(sight.pve, request.Needs)
	}
	for i, host := range hosts {
		hosts[i].Equipment = looks[host.Region].recalled(host.Node)
	}
	for range len(hosts) {
		choice, _, found := placement.Place(request, hosts)
		if !found || len(request.Needs.Unread(choice.Host.Equipment)) == 0 {
			return nil
		}
		at := slices.IndexFunc(hosts, func(h placement.Host) bool { return h.Region == choice.Host.Region && h.Node == choice.Host.Node })
		if err := looks[choice.Host.Region].complete(ctx, choice.Host.Node, &hosts[at].Equipment); err != nil {
			return err
		}
	}
	return nil
}

// addEquipment looks, before the VM is made, whether its host still has what it needs.
func (o *Observer) addEquipment(ctx context.Context, cluster *pve.Cluster, subject MachineSubject, machine *plan.Machine) error {
	isMade := machine.Spec.ProviderID != "" || machine.VM.Presence != plan.PresenceAbsent || machine.Task.State == plan.TaskRunning
	if isMade || machine.Deleting || machine.CloneTrouble.Leave != "" {
		return nil
	}
	node := proxmox.NodeName(machine.Spec.Reservation.Node)
	look := o.equipmentSight(cluster, machine.PlacementRequest().Needs)
	has := look.recalled(node)
	if err := look.complete(ctx, node, &has); err != nil || has.Silent != "" { // the request that makes the VM will tell
		return err
	}
	why := look.needs.Lacking(node, has)
	if why == "" {
		return nil
	}
	machine.CloneTrouble.Leave, machine.CloneTrouble.Unfit = why, true
	return o.addCandidates(ctx, subject, machine)
}

// equipmentSight is what the look at what the hosts of a region have needs.
type equipmentSight struct {
	*Observer
	pve      *pve.Cluster
	snapshot pve.Snapshot
	needs    placement.Needs
	// began is when the look began: what was told since then need not be asked for again.
	began time.Time
}

func (o *Observer) equipmentSight(cluster *pve.Cluster, needs placement.Needs) *equipmentSight {
	return &equipmentSight{Observer: o, pve: cluster, snapshot: cluster.Inventory.Snapshot(), needs: needs, began: o.Clock.Now()}
}

// recalled is what is remembered of a host. What would keep the VM away is remembered for less long.
func (s *equipmentSight) recalled(node proxmox.NodeName) placement.Equipment {
	has := s.recall(node, factTTL)
	if s.needs.Lacking(node, has) != "" {
		return s.recall(node, lackTTL)
	}
	return has
}

func (s *equipmentSight) recall(node proxmox.NodeName, age time.Duration) placement.Equipment {
	has := placement.Equipment{}
	for _, fact := range s.needs.Facts() {
		if told, found := s.Memory.equipment.peek(s.at(node, fact), s.Clock.Now().Add(-age)); found {
			told(&has)
		}
	}
	return has
}

// at is where a fact is remembered: for the credentials, which decide what is seen.
func (s *equipmentSight) at(node proxmox.NodeName, fact placement.Fact) factPlace {
	at := factPlace{credentials: s.pve.Fingerprint(), node: node, fact: fact}
	switch {
	case fact.OfRegion():
		at.node = ""
	case fact == placement.CPUModels && isCustom(s.needs.CPUModel):
		at.name = s.needs.CPUModel
	}
	if fact == placement.Pool {
		at.name = string(s.needs.Pool)
	}
	return at
}

// complete asks for what is not known of a host yet.
func (s *equipmentSight) complete(ctx context.Context, node proxmox.NodeName, has *placement.Equipment) error {
	for _, fact := range s.needs.Unread(*has) {
		told, err := s.Memory.equipment.getSince(ctx, s.at(node, fact), s.began, func() (told, error) { return s.ask(ctx, node, fact) })
		if err != nil {
			return err
		}
		told(has)
	}
	return nil
}

// told enters what was told of a host.
type told func(*placement.Equipment)

// ask asks Proxmox VE for a fact. What it does not tell these credentials stays unknown; a host that does not answer gets no
// VM. The error says that the credentials are no good, or that the pass was given up.
func (s *equipmentSight) ask(ctx context.Context, node proxmox.NodeName, fact placement.Fact) (told, error) {
	fill, err := s.read(ctx, node, fact)
	switch class := pve.ClassOf(err); {
	case err == nil:
		return func(has *placement.Equipment) {
			has.Known = append(has.Known, fact)
			fill(has)
		}, nil
	case pve.IsCanceled(err), class == pve.Unauthorized:
		return nil, err
	case class == pve.Forbidden, class == pve.Unimplemented, class == pve.Invalid: // Proxmox VE 9 has no HA groups and says so
		return func(has *placement.Equipment) { has.Unknown = append(has.Unknown, fact) }, nil
	}
	silent := fmt.Sprintf("it does not tell what it has: %v", err)
	return func(has *placement.Equipment) {
		has.Unknown, has.Silent = append(has.Unknown, fact), silent
	}, nil
}

func (s *equipmentSight) read(ctx context.Context, node proxmox.NodeName, fact placement.Fact) (told, error) {
	switch fact {
	case placement.Bridges:
		list, err := s.pve.Bridges(ctx, node)
		return func(has *placement.Equipment) { has.Bridges = bridges(list) }, err
	case placement.CPUModels:
		return s.readCPUModels(ctx, node)
	case placement.MachineTypes:
		types, err := s.pve.MachineTypes(ctx, node)
		return func(has *placement.Equipment) { has.MachineTypes = types }, err
	case placement.CPUFlags:
		return s.readCPUFlags(ctx, node)
	case placement.PCIMappings:
		list, err := s.pve.PCIMappings(ctx)
		return func(has *placement.Equipment) { has.PCI = mappings(list) }, err
	case placement.USBMappings:
		list, err := s.pve.USBMappings(ctx)
		return func(has *placement.Equipment) { has.USB = mappings(list) }, err
	case placement.Pool:
		return s.readPool(ctx)
	case placement.HAGroup:
		groups, err := s.haGroups(ctx, s.pve)
		return func(has *placement.Equipment) { has.HAGroups = groups }, err
	}
	return nil, fmt.Errorf("no such fact: %d", fact)
}

// readCPUModels reads the models, and whether custom ones that are not seen are not there: only who may audit all nodes sees
// them all (PVE::API2::Qemu::CPU).
func (s *equipmentSight) readCPUModels(ctx context.Context, node proxmox.NodeName) (told, error) {
	models, err := s.pve.CPUModels(ctx, node)
	hides := false
	if err == nil && isCustom(s.needs.CPUModel) && !slices.Contains(models, s.needs.CPUModel) {
		var permissions pve.Permissions
		permissions, err = s.pve.Permissions(ctx)
		hides = !permissions.Allows("/nodes", "Sys.Audit")
	}
	return func(has *placement.Equipment) { has.CPUModels, has.HidesCustom = models, hides }, err
}

// readCPUFlags reads which flags a VM may switch, where Proxmox VE tells. What it was before 9 does not change any more.
func (s *equipmentSight) readCPUFlags(ctx context.Context, node proxmox.NodeName) (told, error) {
	release, err := s.release(ctx, s.pve)
	var flags []string
	if err == nil && release.AtLeast(9, 0) {
		flags, err = s.pve.CPUFlags(ctx, node)
	}
	if pve.ClassOf(err) == pve.Unimplemented {
		err = nil
	}
	return func(has *placement.Equipment) { has.CPUFlags = flags }, err
}

func isCustom(model string) bool { return strings.HasPrefix(model, "custom-") }

// readPool looks for the pool in the inventory, which costs nothing, and asks when it is not there.
func (s *equipmentSight) readPool(ctx context.Context) (told, error) {
	if s.snapshot.HasPool(s.needs.Pool) {
		return func(has *placement.Equipment) { has.HasPool = true }, nil
	}
	err := s.pve.Pool(ctx, s.needs.Pool)
	if pve.ClassOf(err) == pve.Missing {
		return func(*placement.Equipment) {}, nil
	}
	return func(has *placement.Equipment) { has.HasPool = true }, err
}

func bridges(list []pve.BridgeInterface) []placement.Bridge {
	found := make([]placement.Bridge, len(list))
	for i, bridge := range list {
		found[i] = placement.Bridge{Name: bridge.Name, Vnet: bridge.Type == "vnet", VLANAware: bridge.VLANAware, MTU: bridge.MTU}
	}
	return found
}

func mappings(list []pve.Mapping) []placement.Mapping {
	found := make([]placement.Mapping, len(list))
	for i, mapping := range list {
		found[i] = placement.Mapping(mapping)
	}
	return found
}

// factPlace names a fact, as it is told to some credentials.
type factPlace struct {
	credentials string
	// node is empty for what is the same for all nodes.
	node proxmox.NodeName
	fact placement.Fact
	// name is what was asked for by name.
	name string
}
