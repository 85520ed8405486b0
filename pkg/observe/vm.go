package observe

import (
	"context"
	"fmt"
	"slices"

	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
)

// vmSight is what the look at one VM needs.
type vmSight struct {
	*Observer
	pve      *pve.Cluster
	subject  MachineSubject
	task     plan.Task
	snapshot pve.Snapshot
	ref      pve.VMRef
	// entry is what the inventory says of the VMID; listed says whether it says anything.
	entry  pve.VM
	listed bool
}

// vm observes the reserved VM, with as few requests as the state allows.
func (o *Observer) vm(ctx context.Context, cluster *pve.Cluster, subject MachineSubject, task plan.Task) (plan.VM, error) {
	sight := &vmSight{Observer: o, pve: cluster, subject: subject, task: task, snapshot: cluster.Inventory.Snapshot()}
	sight.find()
	if host := hostState(sight.snapshot, sight.ref.Node); subject.mayLeaveHost() && host != plan.HostUp {
		return sight.onLostHost(ctx, host)
	}
	switch {
	case subject.isAltered(task):
		return sight.whileAltered(ctx)
	case task.State == plan.TaskRunning && !task.RemovesSeed():
		return plan.VM{}, nil // a task holds the VM; the plan waits for it
	}
	vm, err := sight.look(ctx)
	if err == nil {
		vm, err = sight.unlessElsewhere(ctx, vm)
	}
	if err == nil && sight.runsUnasked(vm) {
		vm.StartedEarly, err = sight.isStartedEarly(ctx)
	}
	vm.Listing, vm.HAState = sight.listing(), sight.entry.HAState
	// Who moves the VM back at once changes nothing that the inventory showed.
	if vm.Power == plan.PowerRunning && (vm.Listing == nil || !vm.Listing.Running) || sight.hasJustMoved() {
		vm.LookAgain = inventoryLag + pve.DefaultPollInterval
	}
	return vm, err
}

// isAltered reports whether a task changes a VM that ran once, which goes on as it did meanwhile.
func (s MachineSubject) isAltered(task plan.Task) bool {
	return task.State == plan.TaskRunning && (task.Type == "resize" || task.Type == "qmconfig") && s.ProxmoxMachine.Spec.ProviderID != ""
}

// whileAltered goes by the inventory alone, so that a machine stays ready while its disk grows. The config is left alone: what
// is read of it now would be believed after the task.
func (s *vmSight) whileAltered(ctx context.Context) (plan.VM, error) {
	node, known := s.snapshot.Node(s.ref.Node)
	isSeen := s.settled() && s.snapshot.Err == nil && (!known || node.Online) && !s.subject.seedInUse() // whether that is gone the config tells
	if !isSeen || !s.isSeenRunning() && !s.staysOff() {
		return plan.VM{}, nil
	}
	return s.withPower(ctx, plan.VM{Presence: plan.PresenceOurs, Node: s.ref.Node})
}

// find says where the VM is, as far as the inventory knows.
func (s *vmSight) find() {
	reservation := s.subject.ProxmoxMachine.Spec.Reservation
	id := proxmox.VMID(reservation.VMID)
	s.entry, s.listed = s.snapshot.VM(id)
	s.ref = pve.VMRef{Node: proxmox.NodeName(reservation.Node), ID: id}
	switch source := proxmox.NodeName(reservation.SourceNode); {
	case s.listed:
		s.ref = s.entry.Ref()
	case source != "" && s.subject.ProxmoxMachine.Spec.ProviderID == "" && hostState(s.snapshot, s.ref.Node) == plan.HostUp && hostState(s.snapshot, source) != plan.HostUp:
		s.ref.Node = source // a clone is there until it is done, and in no pool, so that not every token sees it
	}
}

func (s *vmSight) look(ctx context.Context) (plan.VM, error) {
	reservation, id := s.subject.ProxmoxMachine.Spec.Reservation, s.ref.ID
	if node, known := s.snapshot.Node(s.ref.Node); known && !node.Online {
		return unknown(plan.Unobserved, "node %s of region %s is offline: VM %d is looked for again when it is back", s.ref.Node, reservation.Region, id), nil
	}
	stale, isStale := Unavailable(s.snapshot.Err)
	switch {
	case s.settled() && isStale: // whose the VM is now, the old snapshot does not tell
		return plan.VM{Presence: plan.PresenceUnknown, Why: stale}, nil
	case s.settled():
		return s.fromInventory(ctx)
	case !s.listed && s.Memory.isUntouched(s.subject.uuid()):
		return plan.VM{Presence: plan.PresenceAbsent}, nil
	case s.justDestroyed():
		return s.fromVMID(ctx)
	case s.justStarted():
		return s.fromStart(ctx)
	case s.justEdited():
		return s.fromEdit(ctx)
	}
	return s.fromConfig(ctx)
}

// justStarted reports whether the last thing that was done to the VM was to start it, from a config that is remembered.
func (s *vmSight) justStarted() bool {
	config, _ := s.Memory.config(s.subject.uuid())
	return config.BelongsTo(s.subject.uuid()) && config.Lock() == "" && s.task.State == plan.TaskSucceeded && s.task.Type == "qmstart" &&
		s.subject.ProxmoxMachine.DeletionTimestamp.IsZero()
}

// justDestroyed reports whether the last thing that was done to the VM was to destroy it, or then to delete its seed.
func (s *vmSight) justDestroyed() bool {
	isGone := s.task.Type == "qmdestroy" || s.task.RemovesSeed() && !s.listed
	return isGone && s.task.State == plan.TaskSucceeded && s.subject.isDeleted()
}

// fromVMID asks whether the VMID is free, on any node, before it asks for a config that is not there any more.
func (s *vmSight) fromVMID(ctx context.Context) (plan.VM, error) {
	free, err := s.pve.VMIDFree(ctx, s.ref.ID)
	switch {
	case err != nil:
		return plan.VM{}, err
	case free:
		return s.vacant(), nil
	}
	return s.fromConfig(ctx)
}

// justEdited reports whether the last thing that was done to the VM was an edit of its firewall, a moment ago.
func (s *vmSight) justEdited() bool {
	firewall := s.Memory.firewall(s.subject.uuid())
	config, _ := s.Memory.config(s.subject.uuid())
	return firewall.edited && s.Clock.Since(firewall.readAt) < firewallFresh && config != nil && config.Lock() == "" && s.subject.ProxmoxMachine.DeletionTimestamp.IsZero()
}

// fromEdit spares the config of a VM whose firewall is being edited.
func (s *vmSight) fromEdit(ctx context.Context) (plan.VM, error) {
	vm := plan.VM{Presence: plan.PresenceOurs, Node: s.ref.Node}
	vm.Config, vm.Digest = s.Memory.config(s.subject.uuid())
	return s.withPower(ctx, vm)
}

// fromStart spares the config of a VM that was just started, as long as it runs.
func (s *vmSight) fromStart(ctx context.Context) (plan.VM, error) {
	if !s.Memory.ranLately(s.subject.uuid(), s.snapshot.At) {
		status, err := s.pve.VMStatus(ctx, s.ref)
		if err != nil || status.Status != pve.StatusRunning {
			s.Memory.Changed(s.subject.uuid())
			return s.fromConfig(ctx)
		}
		s.Memory.ran(s.subject.uuid())
	}
	vm := plan.VM{Presence: plan.PresenceOurs, Node: s.ref.Node, Power: plan.PowerRunning}
	vm.Config, vm.Digest = s.Memory.config(s.subject.uuid())
	return vm, nil
}

// settled reports whether the inventory says enough: the VM has its tag, once ran, and nothing is being done to it.
func (s *vmSight) settled() bool {
	machine := s.subject.ProxmoxMachine
	return s.listed && s.entry.Lock == "" && machine.DeletionTimestamp.IsZero() && machine.Spec.ProviderID != "" &&
		s.entry.HasTag(vmconfig.IdentityTag(s.subject.uuid())) && s.task.State != plan.TaskFailed
}

// fromInventory spares the requests for a VM that is settled. Its config is needed once, to take its seed away.
func (s *vmSight) fromInventory(ctx context.Context) (plan.VM, error) {
	vm := plan.VM{Presence: plan.PresenceOurs, Node: s.ref.Node}
	vm.Config, vm.Digest = s.Memory.config(s.subject.uuid())
	if vm.Config.Lock() != "" { // of before: the inventory shows none
		vm.Config, vm.Digest = nil, ""
	}
	if vm.Config == nil && s.subject.seedInUse() {
		config, err := s.pve.VMConfig(ctx, s.ref)
		if err != nil {
			return s.unreadable(ctx, err)
		}
		vm.Config, vm.Digest = s.keep(config)
	}
	return s.withPower(ctx, vm)
}

// seedInUse reports whether the machine is past its bootstrap and its seed is not known to be gone.
func (s MachineSubject) seedInUse() bool {
	removed := s.ProxmoxMachine.Status.SeedRemoved
	return bootstrapped(s) && (removed == nil || !*removed)
}

// fromConfig asks the node for the VM's config, which proves whose the VM is.
func (s *vmSight) fromConfig(ctx context.Context) (plan.VM, error) {
	config, err := s.pve.VMConfig(ctx, s.ref)
	if err != nil {
		return s.unreadable(ctx, err)
	}
	values := vmconfig.Config(config.Values)
	if !values.BelongsTo(s.subject.uuid()) {
		s.Memory.Changed(s.subject.uuid()) // what is remembered is not what is there
	}
	switch lock := values.Lock(); {
	case values.BelongsTo(s.subject.uuid()):
		_, digest := s.keep(config)
		return s.withPower(ctx, plan.VM{Presence: plan.PresenceOurs, Node: s.ref.Node, Config: values, Digest: digest})
	case lock == "destroyed":
		return unknown(plan.Destroying, "VM %d on %s is being destroyed by another (lock: %s); %s", s.ref.ID, s.ref.Node, lock, plan.LockRemedy(lock, s.ref.ID)), nil
	case lock == "clone" || lock == "create":
		return unknown(s.subject.making(), "VM %d on %s is being made (lock: %s); %s", s.ref.ID, s.ref.Node, lock, plan.LockRemedy(lock, s.ref.ID)), nil
	case s.mayBeUnmarked(values):
		return unknown(plan.Unmarked, "VM %d on %s has the machine's name, but not the line %q in its notes: was that edited? Put it back, or remove the VM",
			s.ref.ID, s.ref.Node, vmconfig.Marker(s.subject.uuid())), nil
	}
	return plan.VM{Presence: plan.PresenceForeign, Node: s.ref.Node}, nil
}

// runsUnasked reports whether the VM runs for the first time, and not by a start of ours.
func (s *vmSight) runsUnasked(vm plan.VM) bool {
	machine := s.subject.ProxmoxMachine
	return vm.Presence == plan.PresenceOurs && vm.Power == plan.PowerRunning && machine.Spec.ProviderID == "" && machine.DeletionTimestamp.IsZero() && !s.justStarted()
}

// isStartedEarly reports whether a VM that runs for the first time was started by somebody while it was configured: what we set then
// waits for the next start, its identity among it, and the guest has no seed. The config shows what waits as if it were set.
func (s *vmSight) isStartedEarly(ctx context.Context) (bool, error) {
	config, err := s.pve.PendingVMConfig(ctx, s.ref)
	if err != nil {
		return false, fmt.Errorf("read what VM %d was started with: %w", s.ref.ID, err)
	}
	return slices.Contains(config.Waiting, "smbios1"), nil
}

// making is the reason of a machine whose VM is being made.
func (s MachineSubject) making() string {
	if s.ProxmoxMachine.Spec.Source.UsesTemplate() {
		return plan.Cloning
	}
	return plan.Creating
}

// mayBeUnmarked reports whether a VM may be ours although it carries no marker: until it is configured it has one in its
// notes alone, and people edit notes. A name proves nothing, but it is reason enough not to make a second VM.
func (s *vmSight) mayBeUnmarked(config vmconfig.Config) bool {
	machine := s.subject.ProxmoxMachine
	return machine.Spec.ProviderID == "" && config["name"] == s.subject.vmName() && !vmconfig.IsMarked(config)
}

// vmName is the name that the VM is given.
func (s MachineSubject) vmName() string {
	desired := vmconfig.Desired{Machine: s.ProxmoxMachine.Name, Namespace: s.ProxmoxMachine.Namespace, Spec: s.ProxmoxMachine.Spec}
	if s.Cluster != nil {
		desired.Cluster = s.Cluster.Name
	}
	name, err := desired.Name()
	if err != nil { // it was not made with such a name
		return s.ProxmoxMachine.Name
	}
	return name
}

func (s *vmSight) keep(config pve.VMConfig) (vmconfig.Config, proxmox.Digest) {
	values := vmconfig.Config(config.Values)
	s.Memory.keepConfig(s.subject.uuid(), values, config.Digest)
	return values, config.Digest
}

// unreadable finds out what it means that a config could not be read. Proxmox VE says the same for a VM that is gone and
// for one that is on another node, and a token that has rights on a pool only is forbidden to see what has left the pool.
// Whether the VMID is taken, any login may ask.
func (s *vmSight) unreadable(ctx context.Context, err error) (plan.VM, error) {
	class := pve.ClassOf(err)
	if class != pve.NotFound && class != pve.Forbidden && class != pve.Missing { // a node that was removed is missing
		return plan.VM{}, err
	}
	free, err := s.pve.VMIDFree(ctx, s.ref.ID)
	switch {
	case err != nil:
		return plan.VM{}, err
	case free:
		return s.vacant(), nil
	case s.Memory.isAnothers(s.subject.uuid()) || s.listed && s.entry.Type == pve.ContainerResource:
		return plan.VM{Presence: plan.PresenceForeign, Node: s.ref.Node}, nil
	case class == pve.Forbidden:
		return unknown(plan.Unobserved, "the credentials of region %s may not see VM %d: grant VM.Audit on it, or on the pool it is in",
			s.subject.ProxmoxMachine.Spec.Reservation.Region, s.ref.ID), nil
	}
	return s.elsewhere(ctx)
}

// vacant is what it means that the VMID is free: there is no VM, on no node.
func (s *vmSight) vacant() plan.VM {
	if s.subject.isDeleted() && s.Memory.cloneTrouble(s.subject.uuid()).MayComeLate {
		return unknown(plan.Unobserved, "VM %d is not there, but a request whose answer was lost, or that was sent before the manager was restarted, may still make it: for two minutes Proxmox VE may", s.ref.ID)
	}
	s.Memory.Changed(s.subject.uuid())
	return plan.VM{Presence: plan.PresenceAbsent}
}

// elsewhere looks for a VM that is not where it was: the next inventory shows on which node it is.
func (s *vmSight) elsewhere(ctx context.Context) (plan.VM, error) {
	if err := s.pve.Inventory.Refresh(ctx, s.Clock.Now()); err != nil {
		return plan.VM{}, err
	}
	return unknown(plan.Unobserved, "VM %d is not on %s any more and is looked for on the other nodes", s.ref.ID, s.ref.Node), nil
}

// withPower adds whether the VM runs. The inventory lags by up to 10 s, so it is believed when it says what can only have
// come about by itself; while we start or stop the VM, the node is asked.
func (s *vmSight) withPower(ctx context.Context, vm plan.VM) (plan.VM, error) {
	switch {
	case s.isSeenRunning() && s.subject.ProxmoxMachine.DeletionTimestamp.IsZero():
		vm.Power = plan.PowerRunning
		return vm, nil
	case s.justMade() || s.staysOff():
		vm.Power = plan.PowerStopped
		return vm, nil
	}
	status, err := s.pve.VMStatus(ctx, s.ref)
	if err != nil {
		return plan.VM{}, err
	}
	switch status.Status {
	case pve.StatusRunning:
		vm.Power = plan.PowerRunning
		s.Memory.ran(s.subject.uuid())
		if status.Uptime >= s.Memory.late {
			s.Memory.isOld(s.subject.uuid())
		}
	case pve.StatusStopped:
		vm.Power = plan.PowerStopped
	}
	return vm, nil
}

// isSeenRunning reports whether the inventory shows the VM as running, or cannot know yet that it is. It may not know yet
// that we have turned the VM off.
func (s *vmSight) isSeenRunning() bool {
	return s.listed && s.entry.Status == pve.StatusRunning && !s.task.TurnsOff() || s.Memory.ranLately(s.subject.uuid(), s.snapshot.At)
}

// justMade reports whether the last thing that was done to the VM was a step before its first start.
func (s *vmSight) justMade() bool {
	machine := s.subject.ProxmoxMachine
	if s.task.State != plan.TaskSucceeded || machine.Spec.ProviderID != "" || !machine.DeletionTimestamp.IsZero() {
		return false
	}
	return s.task.Makes() || s.task.Type == "imgcopy" || s.task.Type == "resize"
}

func unknown(code, format string, args ...any) plan.VM {
	return plan.VM{Presence: plan.PresenceUnknown, Why: plan.Reason{Code: code, Message: fmt.Sprintf(format, args...)}}
}
