package controllers

import (
	"context"
	"fmt"

	kerrors "k8s.io/apimachinery/pkg/util/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/cluster-api/util/finalizers"
	"sigs.k8s.io/cluster-api/util/patch"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/act"
	"github.com/capve/cluster-api-provider-proxmox/pkg/observe"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/status"
)

// ClusterReconciler reconciles ProxmoxClusters.
type ClusterReconciler struct {
	Client   client.Client
	Observer *observe.Observer
	Events   EventRecorder
}

// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=proxmoxclusters,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=proxmoxclusters/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=proxmoxclusters/finalizers,verbs=update
// +kubebuilder:rbac:groups=ipam.cluster.x-k8s.io,resources=inclusterippools,verbs=get;create;patch
// +kubebuilder:rbac:groups=ipam.cluster.x-k8s.io,resources=globalinclusterippools,verbs=get

// Reconcile takes one pass over a cluster.
func (r *ClusterReconciler) Reconcile(ctx context.Context, req ctrl.Request) (result ctrl.Result, reterr error) {
	cluster := &v1beta1.ProxmoxCluster{}
	if err := r.Client.Get(ctx, req.NamespacedName, cluster); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	owner, err := util.GetOwnerCluster(ctx, r.Client, cluster.ObjectMeta)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("get the Cluster that owns ProxmoxCluster %s: %w", cluster.Name, err)
	}
	unowned := owner == nil && cluster.DeletionTimestamp.IsZero() // nothing may be written yet
	if unowned || annotations.IsExternallyManaged(cluster) || owner != nil && isMoved(owner, cluster) {
		return ctrl.Result{}, nil
	}
	if _, err := finalizers.EnsureFinalizer(ctx, r.Client, cluster, v1beta1.ClusterFinalizer); err != nil {
		return ctrl.Result{}, err
	}
	ends, unwritten := isPaused(ctx, r.Client, owner, cluster)
	if ends {
		return ctrl.Result{}, unwritten
	}
	helper, err := patch.NewHelper(cluster, r.Client)
	if err != nil {
		return ctrl.Result{}, err
	}
	pass := status.ClusterPass{}
	defer func() {
		result, reterr = unlessConflict(ctx, result, kerrors.NewAggregate([]error{unwritten, r.report(ctx, helper, cluster, pass, reterr)}))
	}()
	return r.run(ctx, cluster, owner, &pass)
}

// run takes steps until one has to wait: observe, plan, act.
func (r *ClusterReconciler) run(ctx context.Context, cluster *v1beta1.ProxmoxCluster, owner *clusterv1.Cluster, pass *status.ClusterPass) (ctrl.Result, error) {
	for range mostSteps {
		observed, err := r.Observer.Cluster(ctx, cluster, owner)
		if err != nil {
			pass.Failure = observe.Explain(err)
			return ctrl.Result{}, fmt.Errorf("observe ProxmoxCluster %s: %w", cluster.Name, err)
		}
		pass.Observed, pass.Decision = observed, plan.ClusterStep(observed)
		switch decision := pass.Decision.(type) {
		case plan.Do:
			if err := r.do(ctx, cluster, decision); err != nil {
				pass.Failure = observe.Explain(err)
				return ctrl.Result{}, err
			}
			if _, last := decision.Action.(plan.RemoveFinalizer); last {
				return ctrl.Result{}, nil
			}
			if wait := untilCached(decision.Action); wait > 0 {
				return ctrl.Result{RequeueAfter: wait}, nil
			}
		case plan.Wait:
			return ctrl.Result{RequeueAfter: decision.After}, nil
		case plan.Stalled:
			r.Events.Warning(cluster, decision.Reason)
			return ctrl.Result{}, nil
		case plan.Done:
			return ctrl.Result{RequeueAfter: regionCheck}, nil
		}
	}
	return ctrl.Result{RequeueAfter: tryAgain}, nil
}

// do executes a cluster's actions. Those on the object itself change it in memory; the patch at the end of the pass writes
// them.
func (r *ClusterReconciler) do(ctx context.Context, cluster *v1beta1.ProxmoxCluster, decision plan.Do) error {
	switch action := decision.Action.(type) { // partial: the other actions are the actor's
	case plan.SetEndpoint:
		cluster.Spec.ControlPlaneEndpoint = action.Endpoint
	case plan.RemoveFinalizer:
		controllerutil.RemoveFinalizer(cluster, v1beta1.ClusterFinalizer)
		r.Observer.Regions.Forget(cluster)
		r.Events.Normal(cluster, decision.Reason)
	default:
		if err := act.New(r.Client, r.Observer).Cluster(ctx, cluster, action); err != nil {
			return fmt.Errorf("%s: %w", decision.Reason.Message, err)
		}
		if _, applied := action.(plan.ApplyPool); applied {
			r.Events.Normal(cluster, decision.Reason)
		}
	}
	return nil
}

// report writes the status, once, at the end of a pass.
func (r *ClusterReconciler) report(ctx context.Context, helper *patch.Helper, cluster *v1beta1.ProxmoxCluster, pass status.ClusterPass, reterr error) error {
	if err := status.Cluster(cluster, pass); err != nil {
		reterr = kerrors.NewAggregate([]error{reterr, err})
	}
	err := write(ctx, helper, cluster, status.ClusterConditions())
	return kerrors.NewAggregate([]error{reterr, err})
}
