package act

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/observe"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/network"
)

// Cluster executes an action for a cluster that changes other objects than the ProxmoxCluster.
func (a *Actor) Cluster(ctx context.Context, cluster *v1beta1.ProxmoxCluster, action plan.Action) error {
	us := owner{cluster, clusterKind}
	switch action := action.(type) { // partial: the other actions are a machine's, or the controller's
	case plan.ClaimAddresses:
		return a.claimAddresses(ctx, us, action)
	case plan.HoldAddresses:
		return a.holdAddresses(ctx, us, action)
	case plan.ReleaseAddresses:
		claim := network.EndpointClaim(cluster.Labels[clusterv1.ClusterNameLabel], cluster.Spec.ControlPlaneEndpointPoolRef)
		return a.releaseAddresses(ctx, cluster.Namespace, []network.Claim{claim})
	case plan.ApplyPool:
		return a.applyPool(ctx, us, action)
	default:
		return fmt.Errorf("action %T is not a cluster's", action)
	}
}

// applyPool makes a pool, or changes the parts of it that are ours. Clusterctl moves it for its owner and its label.
func (a *Actor) applyPool(ctx context.Context, owner owner, action plan.ApplyPool) error {
	pool := &unstructured.Unstructured{}
	pool.SetGroupVersionKind(observe.PoolKind())
	err := a.Live.Get(ctx, client.ObjectKey{Namespace: owner.GetNamespace(), Name: action.Name}, pool)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("get InClusterIPPool %s: %w", action.Name, err)
	}
	before := pool.DeepCopy()
	if err := fill(pool, owner, action.Addresses); err != nil {
		return fmt.Errorf("fill InClusterIPPool %s: %w", action.Name, err)
	}
	if apierrors.IsNotFound(err) {
		pool.SetNamespace(owner.GetNamespace())
		pool.SetName(action.Name)
		err = a.Client.Create(ctx, pool)
	} else {
		err = a.Client.Patch(ctx, pool, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	}
	if err != nil {
		return fmt.Errorf("apply InClusterIPPool %s: %w", action.Name, err)
	}
	return nil
}

func fill(pool *unstructured.Unstructured, owner owner, addresses v1beta1.AddressPool) error {
	labels := pool.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[clusterv1.ClusterNameLabel] = owner.GetLabels()[clusterv1.ClusterNameLabel]
	pool.SetLabels(labels)
	pool.SetOwnerReferences([]metav1.OwnerReference{owner.reference()})
	if addresses.Gateway == "" {
		unstructured.RemoveNestedField(pool.Object, "spec", "gateway")
	} else if err := unstructured.SetNestedField(pool.Object, addresses.Gateway, "spec", "gateway"); err != nil {
		return err
	}
	if err := unstructured.SetNestedField(pool.Object, int64(addresses.Prefix), "spec", "prefix"); err != nil {
		return err
	}
	return unstructured.SetNestedStringSlice(pool.Object, addresses.Addresses, "spec", "addresses")
}
