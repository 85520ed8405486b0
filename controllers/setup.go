package controllers

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	capicontroller "sigs.k8s.io/cluster-api/util/controller"
	"sigs.k8s.io/cluster-api/util/predicates"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
)

// SetupOptions are what the controllers share.
type SetupOptions struct {
	// WatchFilter is the value of Cluster API's watch label that objects must have; empty for all.
	WatchFilter string
	// Concurrency is how many objects of the kind are reconciled at a time.
	Concurrency int
}

// The pauses after an error, of Kubernetes for the most part: they double from the first to the last. The last is short, so
// that what was mended goes on soon; controller-runtime would let it grow to a quarter of an hour.
const (
	firstPause = 5 * time.Millisecond
	lastPause  = 16 * time.Second
)

func (o SetupOptions) controller() controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: o.Concurrency,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstPause, lastPause),
	}
}

// SetupWithManager registers the controller of ProxmoxMachines.
func (r *MachineReconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, options SetupOptions) error {
	log := ctrl.LoggerFrom(ctx).WithValues("controller", "proxmoxmachine")
	clusterToMachines, err := util.ClusterToTypedObjectsMapper(mgr.GetClient(), &v1beta1.ProxmoxMachineList{}, mgr.GetScheme())
	if err != nil {
		return fmt.Errorf("map Clusters to ProxmoxMachines: %w", err)
	}
	err = capicontroller.NewControllerManagedBy(mgr, log).
		For(&v1beta1.ProxmoxMachine{}).
		WithOptions(options.controller()).
		WithEventFilter(predicates.ResourceHasFilterLabel(mgr.GetScheme(), log, options.WatchFilter)).
		Watches(&clusterv1.Machine{},
			handler.EnqueueRequestsFromMapFunc(util.MachineToInfrastructureMapFunc(v1beta1.GroupVersion.WithKind("ProxmoxMachine")))).
		Watches(&v1beta1.ProxmoxCluster{}, handler.EnqueueRequestsFromMapFunc(r.machinesOf)).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(clusterToMachines),
			predicates.ClusterPausedTransitionsOrInfrastructureProvisioned(mgr.GetScheme(), log)).
		Owns(&ipamv1.IPAddressClaim{}).
		Watches(&ipamv1.IPAddress{}, handler.EnqueueRequestsFromMapFunc(ownerOfAddress(r.Client, "ProxmoxMachine"))).
		WatchesRawSource(r.Observer.Waker).
		Complete(ctx, r)
	if err != nil {
		return fmt.Errorf("set up the controller of ProxmoxMachines: %w", err)
	}
	return nil
}

// machinesOf maps a ProxmoxCluster to its machines: its regions may have changed.
func (r *MachineReconciler) machinesOf(ctx context.Context, object client.Object) []reconcile.Request {
	name, labelled := object.GetLabels()[clusterv1.ClusterNameLabel]
	var machines v1beta1.ProxmoxMachineList
	inCluster := client.MatchingLabels{clusterv1.ClusterNameLabel: name}
	if !labelled || r.Client.List(ctx, &machines, client.InNamespace(object.GetNamespace()), inCluster) != nil {
		return nil // the resync comes to them
	}
	requests := make([]reconcile.Request, len(machines.Items))
	for i := range machines.Items {
		requests[i].NamespacedName = client.ObjectKeyFromObject(&machines.Items[i])
	}
	return requests
}

// ownerOfAddress maps an IPAddress to what claimed it, if it is of the kind: the cache may show the address after the claim.
func ownerOfAddress(reader client.Reader, kind string) handler.MapFunc {
	return func(ctx context.Context, object client.Object) []reconcile.Request {
		address, ok := object.(*ipamv1.IPAddress)
		if !ok {
			return nil
		}
		claim := &ipamv1.IPAddressClaim{}
		key := client.ObjectKey{Namespace: address.Namespace, Name: address.Spec.ClaimRef.Name}
		if reader.Get(ctx, key, claim) != nil {
			return nil // without its claim it is of no use
		}
		owner := metav1.GetControllerOf(claim)
		if owner == nil || owner.Kind != kind {
			return nil
		}
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: claim.Namespace, Name: owner.Name}}}
	}
}

// SetupWithManager registers the controller of ProxmoxClusters.
func (r *ClusterReconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, options SetupOptions) error {
	log := ctrl.LoggerFrom(ctx).WithValues("controller", "proxmoxcluster")
	kind := v1beta1.GroupVersion.WithKind("ProxmoxCluster")
	err := capicontroller.NewControllerManagedBy(mgr, log).
		For(&v1beta1.ProxmoxCluster{}).
		WithOptions(options.controller()).
		WithEventFilter(predicates.ResourceHasFilterLabel(mgr.GetScheme(), log, options.WatchFilter)).
		WithEventFilter(predicates.ResourceIsNotExternallyManaged(mgr.GetScheme(), log)).
		Watches(&clusterv1.Cluster{},
			handler.EnqueueRequestsFromMapFunc(util.ClusterToInfrastructureMapFunc(ctx, kind, mgr.GetClient(), &v1beta1.ProxmoxCluster{}))).
		Watches(&v1beta1.ProxmoxMachine{}, handler.EnqueueRequestsFromMapFunc(r.clusterOf), gone()).
		Owns(&ipamv1.IPAddressClaim{}).
		Watches(&ipamv1.IPAddress{}, handler.EnqueueRequestsFromMapFunc(ownerOfAddress(r.Client, "ProxmoxCluster"))).
		Complete(ctx, r)
	if err != nil {
		return fmt.Errorf("set up the controller of ProxmoxClusters: %w", err)
	}
	return nil
}

// clusterOf maps a ProxmoxMachine to the ProxmoxCluster of its cluster.
func (r *ClusterReconciler) clusterOf(ctx context.Context, object client.Object) []reconcile.Request {
	cluster, err := util.GetClusterByName(ctx, r.Client, object.GetNamespace(), object.GetLabels()[clusterv1.ClusterNameLabel])
	if err != nil {
		return nil // the resync comes to it
	}
	key := client.ObjectKey{Namespace: object.GetNamespace(), Name: cluster.Spec.InfrastructureRef.Name}
	return []reconcile.Request{{NamespacedName: key}}
}

// gone lets only deletions through: a cluster that is deleted waits for its machines to go.
func gone() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		UpdateFunc:  func(event.UpdateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}
