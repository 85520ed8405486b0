package controllers

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/finalizers"
	capilog "sigs.k8s.io/cluster-api/util/log"
	"sigs.k8s.io/cluster-api/util/patch"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/act"
	"github.com/capve/cluster-api-provider-proxmox/pkg/observe"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/status"
)

// MachineReconciler reconciles ProxmoxMachines.
type MachineReconciler struct {
	Client   client.Client
	Observer *observe.Observer
	Actor    *act.Actor
	Events   EventRecorder

	writes writes
}

// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=proxmoxmachines,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=proxmoxmachines/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=proxmoxmachines/finalizers,verbs=update
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters;machines,verbs=get;list;watch
// +kubebuilder:rbac:groups=ipam.cluster.x-k8s.io,resources=ipaddressclaims,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups=ipam.cluster.x-k8s.io,resources=ipaddresses,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get
// +kubebuilder:rbac:groups="";events.k8s.io,resources=events,verbs=create;patch;update

// Reconcile takes one pass over a machine.
func (r *MachineReconciler) Reconcile(ctx context.Context, req ctrl.Request) (result ctrl.Result, reterr error) {
	machine := &v1beta1.ProxmoxMachine{}
	if err := r.Client.Get(ctx, req.NamespacedName, machine); err != nil {
		if apierrors.IsNotFound(err) {
			r.Observer.Forget(req.NamespacedName)
			r.writes.forget(req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if r.writes.isBehind(machine) {
		return ctrl.Result{RequeueAfter: tryAgain}, nil // the cache's next event comes before that, mostly
	}
	subject, err := r.subject(ctx, machine)
	if err != nil || subject.Machine == nil && machine.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, err // without its owner nothing may be written yet
	}
	if isMoved(subject.Cluster, machine) {
		return leave(ctx, r.Client, subject.Cluster, machine)
	}
	ctx, _, err = capilog.AddOwners(ctx, r.Client, machine)
	if err != nil {
		return ctrl.Result{}, err
	}
	if _, err := finalizers.EnsureFinalizer(ctx, r.Client, machine, v1beta1.MachineFinalizer); err != nil {
		return ctrl.Result{}, err
	}
	ends, unwritten := isPaused(ctx, r.Client, subject.Cluster, machine)
	if ends {
		return ctrl.Result{}, unwritten
	}
	writer := &witness{Client: r.Client}
	helper, err := patch.NewHelper(machine, writer)
	if err != nil {
		return ctrl.Result{}, err
	}
	pass, before := status.MachinePass{}, machine.DeepCopy()
	defer func() {
		result, reterr = unlessConflict(ctx, result, kerrors.NewAggregate([]error{unwritten, r.report(ctx, helper, subject, pass, reterr)}))
		r.Events.All(machine, status.MachineEvents(before, machine, pass))
		r.writes.note(before, machine.ResourceVersion)
		r.writes.note(machine, writer.version)
	}()
	return r.run(ctx, subject, &pass)
}

// subject gathers the objects around a machine. Deletion goes on without those that are gone.
func (r *MachineReconciler) subject(ctx context.Context, machine *v1beta1.ProxmoxMachine) (observe.MachineSubject, error) {
	subject := observe.MachineSubject{ProxmoxMachine: machine}
	var err error
	if subject.Machine, err = util.GetOwnerMachine(ctx, r.Client, machine.ObjectMeta); client.IgnoreNotFound(err) != nil {
		return subject, fmt.Errorf("get the Machine that owns ProxmoxMachine %s: %w", machine.Name, err)
	}
	subject.Cluster, err = util.GetClusterFromMetadata(ctx, r.Client, machine.ObjectMeta)
	switch {
	case apierrors.IsNotFound(err) || errors.Is(err, util.ErrNoCluster):
		subject.Cluster = nil
		subject.ProxmoxCluster, err = r.orphaned(ctx, machine)
		return subject, err
	case err != nil:
		return subject, fmt.Errorf("get the Cluster of ProxmoxMachine %s: %w", machine.Name, err)
	}
	infrastructure := &v1beta1.ProxmoxCluster{}
	key := client.ObjectKey{Namespace: machine.Namespace, Name: subject.Cluster.Spec.InfrastructureRef.Name}
	switch err := r.Client.Get(ctx, key, infrastructure); {
	case apierrors.IsNotFound(err):
	case err != nil:
		return subject, fmt.Errorf("get ProxmoxCluster %s: %w", key.Name, err)
	default:
		subject.ProxmoxCluster = infrastructure
	}
	return subject, nil
}

// orphaned finds the ProxmoxCluster of a machine whose Cluster is gone: it waits for its machines, and the way to Proxmox VE
// is through it. There may be none.
func (r *MachineReconciler) orphaned(ctx context.Context, machine *v1beta1.ProxmoxMachine) (*v1beta1.ProxmoxCluster, error) {
	name, labelled := machine.Labels[clusterv1.ClusterNameLabel]
	if !labelled {
		return nil, nil
	}
	var list v1beta1.ProxmoxClusterList
	if err := r.Client.List(ctx, &list, client.InNamespace(machine.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: name}); err != nil {
		return nil, fmt.Errorf("look for the ProxmoxCluster of ProxmoxMachine %s: %w", machine.Name, err)
	}
	if len(list.Items) != 1 {
		return nil, nil
	}
	return &list.Items[0], nil
}

// mostSteps bounds the steps of one pass. The longest way without a Proxmox VE task to wait for has four.
const mostSteps = 8

// run takes steps until one has to wait: observe, plan, act.
func (r *MachineReconciler) run(ctx context.Context, subject observe.MachineSubject, pass *status.MachinePass) (ctrl.Result, error) {
	for range mostSteps {
		observed, err := r.Observer.Machine(ctx, subject)
		if err != nil {
			if observed.VM.Presence == plan.PresenceOurs { // what was seen before the error holds: the VM runs, or does not
				pass.Observed = observed
			}
			return r.failed(ctx, subject, pass, fmt.Errorf("observe ProxmoxMachine %s: %w", subject.ProxmoxMachine.Name, err))
		}
		pass.Observed, pass.Decision = observed, plan.MachineStep(observed)
		r.Events.Warned(subject.ProxmoxMachine, observed.Task)
		if r.queue(subject, observed, pass.Decision) {
			continue
		}
		switch decision := pass.Decision.(type) {
		case plan.Do:
			more, err := r.do(ctx, subject, decision, pass)
			if errors.Is(err, observe.ErrBehind) || apierrors.IsConflict(err) { // an address that its provider has just changed
				return ctrl.Result{RequeueAfter: tryAgain}, nil
			}
			if err != nil {
				return r.failed(ctx, subject, pass, err)
			}
			r.Observer.Memory.Went(proxmox.SMBIOSUUID(subject.ProxmoxMachine.Spec.Reservation.UUID))
			if wait := untilCached(decision.Action); !more || wait > 0 {
				return ctrl.Result{RequeueAfter: wait}, nil
			}
		case plan.Wait:
			return ctrl.Result{RequeueAfter: decision.After}, nil
		case plan.Stalled:
			return ctrl.Result{}, nil
		case plan.Done:
			return ctrl.Result{RequeueAfter: observed.LookAgain()}, nil
		}
	}
	return ctrl.Result{RequeueAfter: tryAgain}, nil
}

// queue enters a machine that waits for its VM to be made among the others, and takes out one that does not wait any more. It reports
// whether the wait is over already.
func (r *MachineReconciler) queue(subject observe.MachineSubject, observed plan.Machine, decision plan.Decision) bool {
	if wait, waits := decision.(plan.Wait); waits && wait.Reason.Code == plan.WaitingForCloneSlot {
		return r.Observer.Slots.Await(subject.Key(), observed.CloneSlot.Place)
	}
	if do, acts := decision.(plan.Do); acts {
		switch do.Action.(type) { // partial: the others take no slot
		case plan.Clone, plan.Create:
			return false // it is its turn
		}
	}
	r.Observer.Slots.Leave(subject.Key())
	return false
}

// do executes the action of a decision, notes it in the pass, and says whether the pass goes on.
func (r *MachineReconciler) do(ctx context.Context, subject observe.MachineSubject, decision plan.Do, pass *status.MachinePass) (bool, error) {
	machine := subject.ProxmoxMachine
	if _, last := decision.Action.(plan.RemoveFinalizer); last {
		controllerutil.RemoveFinalizer(machine, v1beta1.MachineFinalizer)
		r.Observer.Memory.Forget(proxmox.SMBIOSUUID(machine.Spec.Reservation.UUID))
		r.Observer.Forget(subject.Key())
		pass.Done = append(pass.Done, decision)
		return false, nil
	}
	outcome, err := r.Actor.Machine(ctx, subject, decision.Action)
	if act.IsStale(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("%s: %w", decision.Reason.Message, err)
	}
	r.note(machine, decision.Action, outcome)
	pass.Done = append(pass.Done, decision)
	return outcome.Task == "", nil
}

// untilCached is how long the cache may take to show what an action wrote to other objects than the machine. Their events
// wake the machine before that, mostly.
func untilCached(action plan.Action) time.Duration {
	switch action.(type) { // partial: the other actions write the machine, or nothing to Kubernetes
	case plan.ClaimAddresses, plan.HoldAddresses, plan.ReleaseAddresses:
		return tryAgain
	default:
		return 0
	}
}

// note keeps what an action came to in the status: the task to follow, and that the seed is gone.
func (r *MachineReconciler) note(machine *v1beta1.ProxmoxMachine, action plan.Action, outcome act.Outcome) {
	if outcome.SeedRemoved {
		machine.Status.SeedRemoved = &outcome.SeedRemoved
	}
	switch action.(type) { // partial: what another host's tasks did is nothing to this one
	case plan.Reserve, plan.Follow:
		machine.Status.TaskID = ""
	}
	if outcome.Task != "" {
		machine.Status.TaskID = string(outcome.Task)
	}
}

// failed notes the error that ended a pass. What Proxmox VE refuses is asked again after a pause that stays short: a person
// who mends it wants to see it go on.
func (r *MachineReconciler) failed(ctx context.Context, subject observe.MachineSubject, pass *status.MachinePass, err error) (ctrl.Result, error) {
	pass.Failure = observe.Explain(err)
	if errors.Is(err, act.ErrNotOurs) {
		pass.Failure.Code = v1beta1.RefusedEvent
	}
	if !observe.IsOfProxmox(err) {
		return ctrl.Result{}, err
	}
	pause := r.Observer.Memory.Pause(proxmox.SMBIOSUUID(subject.ProxmoxMachine.Spec.Reservation.UUID))
	ctrl.LoggerFrom(ctx).Error(err, "Proxmox VE did not do as asked, trying again", "after", pause)
	return ctrl.Result{RequeueAfter: pause}, nil
}

// report writes the status, once, at the end of a pass.
func (r *MachineReconciler) report(ctx context.Context, helper *patch.Helper, subject observe.MachineSubject, pass status.MachinePass, reterr error) error {
	machine := subject.ProxmoxMachine
	pass.Machine, pass.ProxmoxCluster = subject.Machine, subject.ProxmoxCluster
	if err := status.Machine(machine, pass); err != nil {
		reterr = kerrors.NewAggregate([]error{reterr, err})
	}
	err := write(ctx, helper, machine, status.MachineConditions())
	return kerrors.NewAggregate([]error{reterr, err})
}
