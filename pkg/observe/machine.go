package observe

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/cloudinit"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/network"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
)

// Machine takes the snapshot of a machine. An error says that it could not be taken now; a region that does not answer is
// not an error but part of the snapshot.
func (o *Observer) Machine(ctx context.Context, subject MachineSubject) (plan.Machine, error) {
	machine := o.known(subject)
	var err error
	if machine.Addresses, err = o.addresses(ctx, subject.ProxmoxMachine, subject.Claims()); err != nil {
		return machine, err
	}
	refuseEndpoint(&machine.Addresses, subject)
	machine.Addresses.Unreported = untold(subject, machine)
	if machine.Bootstrap, err = o.bootstrap(ctx, subject); err != nil {
		return machine, err
	}
	if machine.Cards, err = o.cards(ctx, subject.ProxmoxMachine); err != nil {
		return machine, err
	}
	if machine.Spec.Reservation.UUID == "" {
		return machine, o.addCandidates(ctx, subject, &machine)
	}
	return machine, o.addVM(ctx, subject, &machine)
}

// Claims are the claims of the machine's addresses.
func (s MachineSubject) Claims() []network.Claim {
	machine := s.ProxmoxMachine
	return network.Claims(machine.Name, machine.Labels[clusterv1.ClusterNameLabel], machine.Spec.Network)
}

// known is the part of the snapshot that the objects at hand tell.
func (o *Observer) known(subject MachineSubject) plan.Machine {
	object := subject.ProxmoxMachine
	machine := plan.Machine{
		Name: object.Name, Namespace: object.Namespace, Spec: object.Spec, Deleting: !object.DeletionTimestamp.IsZero(),
		SeedRemoved: ptr.Deref(object.Status.SeedRemoved, false), Bootstrapped: bootstrapped(subject),
		HostGone:   proxmox.NodeName(object.Annotations[v1beta1.HostGoneAnnotation]),
		RegionGone: proxmox.RegionName(object.Annotations[v1beta1.RegionGoneAnnotation]),
		Firewall:   plan.Firewall{Before: firewallBefore(object)},
		Upkeep:     plan.Upkeep{Applied: object.Annotations[v1beta1.AppliedSpecAnnotation]},

		HighAvailability: plan.HighAvailability{Record: highAvailabilityRecord(object)},
	}
	if machine.Deleting && object.Spec.Reservation.UUID != "" {
		machine.Unanswered = o.Memory.unansweredOf(subject.uuid(), object.DeletionTimestamp.Time)
	}
	if subject.Machine != nil {
		machine.ControlPlane = util.IsControlPlaneMachine(subject.Machine)
		machine.FailureDomain = subject.Machine.Spec.FailureDomain
	}
	if subject.Cluster != nil {
		machine.Cluster = subject.Cluster.Name
		machine.ClusterReady = ptr.Deref(subject.Cluster.Status.Initialization.InfrastructureProvisioned, false)
	}
	return machine
}

// bootstrapped reports whether the machine has its Node.
func bootstrapped(subject MachineSubject) bool {
	return subject.Machine != nil && subject.Machine.Status.NodeRef.Name != ""
}

// Keys of a bootstrap data Secret, and the one format that is understood.
const (
	bootstrapDataKey   = "value"
	bootstrapFormatKey = "format"
	cloudConfigFormat  = "cloud-config"
)

// bootstrap reads the bootstrap data of a machine whose VM has not run yet.
func (o *Observer) bootstrap(ctx context.Context, subject MachineSubject) (plan.Bootstrap, error) {
	if subject.Machine == nil || subject.ProxmoxMachine.Spec.ProviderID != "" || !subject.ProxmoxMachine.DeletionTimestamp.IsZero() {
		return plan.Bootstrap{}, nil
	}
	name := ptr.Deref(subject.Machine.Spec.Bootstrap.DataSecretName, "")
	if name == "" {
		return noBootstrap("waiting for the bootstrap provider to make the bootstrap data"), nil
	}
	secret := &corev1.Secret{}
	err := o.Live.Get(ctx, client.ObjectKey{Namespace: subject.Machine.Namespace, Name: name}, secret)
	switch {
	case apierrors.IsNotFound(err):
		return noBootstrap(fmt.Sprintf("Secret %s with the bootstrap data does not exist: was it deleted? Delete the Machine to have it made anew", name)), nil
	case err != nil:
		return plan.Bootstrap{}, fmt.Errorf("get Secret %s with the bootstrap data: %w", name, err)
	case len(secret.Data[bootstrapDataKey]) == 0:
		return noBootstrap(fmt.Sprintf("Secret %s has no key %q with bootstrap data", name, bootstrapDataKey)), nil
	}
	if format := string(secret.Data[bootstrapFormatKey]); format != "" && format != cloudConfigFormat {
		return noBootstrap(fmt.Sprintf("Secret %s has bootstrap data in format %q: use format %s in the bootstrap config", name, format, cloudConfigFormat)), nil
	}
	return plan.Bootstrap{UserData: cloudinit.UserData(secret.Data[bootstrapDataKey])}, nil
}

func noBootstrap(message string) plan.Bootstrap {
	return plan.Bootstrap{Missing: plan.Reason{Code: plan.WaitingForBootstrapData, Message: message}}
}

// addVM adds what Proxmox VE says of the reserved VM and of the last task.
func (o *Observer) addVM(ctx context.Context, subject MachineSubject, machine *plan.Machine) error {
	cluster, remark, err := o.Regions.Of(ctx, subject)
	if remark != "" {
		machine.Remarks = append(machine.Remarks, remark)
	}
	if err == nil {
		err = addAll(ctx, cluster, subject, machine, o.addTask, o.addPresence, o.addSeed, o.addSettings, o.addCloning, o.addEquipment)
	}
	if reason, unavailable := Unavailable(err); unavailable {
		machine.VM, machine.Task, machine.RegionDown = plan.VM{Presence: plan.PresenceUnknown, Why: reason}, plan.Task{}, true
		return nil
	}
	if err != nil || machine.VM.Presence != plan.PresenceForeign {
		return err
	}
	return o.addCandidates(ctx, subject, machine) // another VMID is needed
}

// addAll adds one thing after the other, each with a view to those before it.
func addAll(ctx context.Context, cluster *pve.Cluster, subject MachineSubject, machine *plan.Machine, things ...addition) error {
	for _, add := range things {
		if err := add(ctx, cluster, subject, machine); err != nil {
			return err
		}
	}
	return nil
}

// addition adds something that Proxmox VE says.
type addition func(ctx context.Context, cluster *pve.Cluster, subject MachineSubject, machine *plan.Machine) error

// addTask adds the task that was started last and what tasks have led to, once the region accepts the credentials.
func (o *Observer) addTask(_ context.Context, cluster *pve.Cluster, subject MachineSubject, machine *plan.Machine) (err error) {
	if err := refused(cluster, machine); err != nil {
		return err
	}
	o.Waker.watch(cluster, proxmox.VMID(machine.Spec.Reservation.VMID), subject.Key())
	machine.SeedNode, machine.SeedHost = seedHost(cluster.Inventory.Snapshot(), machine.Spec.Reservation)
	machine.Task, err = o.task(cluster, subject)
	machine.Grown = o.Memory.grown(subject.uuid()) // by that task, too
	return err
}

// addPresence adds the VM itself, and what its guest says.
func (o *Observer) addPresence(ctx context.Context, cluster *pve.Cluster, subject MachineSubject, machine *plan.Machine) (err error) {
	if machine.VM, err = o.vm(ctx, cluster, subject, machine.Task); err != nil {
		return err
	}
	if err := o.believed(ctx, cluster, subject, machine.VM); err != nil {
		return err
	}
	o.askGuest(ctx, cluster, subject, machine)
	return nil
}

// addSettings adds how the VM is set up, and what is set up for it. While a task changes that, it tells nothing.
func (o *Observer) addSettings(ctx context.Context, cluster *pve.Cluster, subject MachineSubject, machine *plan.Machine) error {
	if subject.isAltered(machine.Task) {
		return nil
	}
	return addAll(ctx, cluster, subject, machine, o.addFirewall, o.addHighAvailability, o.addUpkeep)
}

// refused returns the inventory's error when Proxmox VE does not accept the credentials, so that not every machine asks
// with them: hosts ban who keeps on trying. For a machine whose region was declared gone it counts, whatever it is.
func refused(cluster *pve.Cluster, machine *plan.Machine) error {
	err := cluster.Inventory.Snapshot().Err
	if pve.ClassOf(err) == pve.Unauthorized || machine.Deleting && string(machine.RegionGone) == machine.Spec.Reservation.Region {
		return err
	}
	return nil
}

// task observes the task that was started last. One that the tracker does not know, after a restart, is followed again. The
// error says that the region does not tell how far the task is.
func (o *Observer) task(cluster *pve.Cluster, subject MachineSubject) (plan.Task, error) {
	upid := cmp.Or(o.Memory.lastTask(subject.uuid()), proxmox.UPID(subject.ProxmoxMachine.Status.TaskID))
	id, err := upid.Parse()
	if upid == "" || err != nil || isOfAnotherHost(cluster.Inventory.Snapshot(), id, subject.ProxmoxMachine.Spec.Reservation) {
		return plan.Task{}, nil
	}
	task := plan.Task{UPID: upid, Type: id.Type, State: plan.TaskRunning}
	if task.RemovesSeed() && o.Memory.isUploadLostSince(subject.uuid()) {
		return plan.Task{}, nil // it may be there again
	}
	if age, ended := o.Memory.endedAgo(subject.uuid(), upid); ended {
		task.State, task.Age = plan.TaskSucceeded, age
		return task, nil
	}
	if isLost(cluster.Inventory.Snapshot(), id) {
		return plan.Task{}, nil
	}
	outcome, followed := cluster.Tracker.Outcome(upid)
	if !followed {
		cluster.Tracker.Follow(upid, pve.Owner(subject.Key()))
		return task, nil
	}
	return o.withOutcome(subject, task, outcome)
}

// withOutcome adds what became of a task, and remembers what it tells of the VM.
func (o *Observer) withOutcome(subject MachineSubject, task plan.Task, outcome pve.Outcome) (plan.Task, error) {
	switch outcome.State {
	case pve.Running:
		if _, unavailable := Unavailable(outcome.Err); unavailable {
			return task, outcome.Err
		}
	case pve.Succeeded:
		if task.RemovesSeed() && o.Memory.lastTask(subject.uuid()) == "" {
			return plan.Task{}, nil // an earlier process may have uploaded another since and died before it wrote that down
		}
		task.State, task.Warnings = plan.TaskSucceeded, outcome.Warnings
		o.Memory.taskEnded(subject.uuid(), task.UPID)
	case pve.Unknown: // Proxmox VE has forgotten it: what it did is seen in the VM
		return plan.Task{}, nil
	case pve.Failed:
		task.State, task.Failure = plan.TaskFailed, failureText(outcome.ExitStatus, outcome.Err)
		if task.Makes() {
			o.Memory.CloneFailed(subject.uuid(), o.Ledger.FailureOf(subject, task.UPID, outcome.Err))
		}
		task.RetryAfter = o.Memory.retryAfter(subject.uuid(), task.UPID)
	}
	return task, nil
}

// failureText is a task's error text, and what is behind it where Proxmox VE's words, of a file that cannot be written, do not
// tell.
func failureText(text string, err error) string {
	if pve.ClassOf(err) == pve.NoQuorum {
		return text + ": " + withoutQuorum
	}
	return text
}

// isOfAnotherHost reports whether a task deleted the seed from a host that the reservation has left since. Other tasks may
// run on another node than they are for, and so may this one while the host is down.
func isOfAnotherHost(snapshot pve.Snapshot, id proxmox.TaskID, reservation v1beta1.Reservation) bool {
	through, _ := seedHost(snapshot, reservation)
	return id.Type == "imgdel" && string(id.Node) != reservation.Node && id.Node != through
}
