package observe

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/network"
)

// virtualIP observes the claim for the control plane endpoint.
func (o *Observer) virtualIP(ctx context.Context, object *v1beta1.ProxmoxCluster, cluster string) (plan.Addresses, error) {
	if object.Spec.ControlPlaneEndpointPoolRef.Name == "" || cluster == "" {
		return plan.Addresses{}, nil
	}
	return o.addresses(ctx, object, []network.Claim{network.EndpointClaim(cluster, object.Spec.ControlPlaneEndpointPoolRef)})
}

// PoolKind is the kind of the pools that are made for clusters. Its API is the in-cluster IPAM provider's.
func PoolKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "ipam.cluster.x-k8s.io", Version: "v1alpha2", Kind: "InClusterIPPool"}
}

// pools observes the pools for the addresses that the ProxmoxCluster has. They are read past the cache: without the
// provider there is no such kind to watch.
func (o *Observer) pools(ctx context.Context, object *v1beta1.ProxmoxCluster, cluster string) (map[network.Family]plan.Pool, error) {
	pools := map[network.Family]plan.Pool{}
	for family, wanted := range map[network.Family]v1beta1.AddressPool{network.IPv4: object.Spec.IPv4, network.IPv6: object.Spec.IPv6} {
		if len(wanted.Addresses) == 0 {
			continue
		}
		pool, err := o.pool(ctx, object, network.DefaultPool(cluster, family).Name)
		if err != nil {
			return nil, err
		}
		pools[family] = pool
	}
	return pools, nil
}

func (o *Observer) pool(ctx context.Context, owner *v1beta1.ProxmoxCluster, name string) (plan.Pool, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(PoolKind())
	err := o.Live.Get(ctx, client.ObjectKey{Namespace: owner.Namespace, Name: name}, object)
	switch {
	case meta.IsNoMatchError(err):
		return plan.Pool{Why: plan.Reason{Code: v1beta1.NoIPAMProviderReason, Message: fmt.Sprintf(
			"InClusterIPPool %s cannot be made: the in-cluster IPAM provider is not installed; install it with `clusterctl init --ipam in-cluster`, or leave out spec.ipv4 and spec.ipv6 of the ProxmoxCluster", name)}}, nil
	case apierrors.IsNotFound(err):
		return plan.Pool{Presence: plan.PresenceAbsent}, nil
	case err != nil:
		return plan.Pool{}, fmt.Errorf("get InClusterIPPool %s: %w", name, err)
	case !isPoolOf(object, owner):
		return plan.Pool{Presence: plan.PresenceForeign}, nil
	case !metav1.IsControlledBy(object, owner): // as if it were empty, so that it is applied, with its owner
		return plan.Pool{Presence: plan.PresenceOurs}, nil
	}
	pool := plan.Pool{Presence: plan.PresenceOurs}
	pool.Addresses.Addresses, _, _ = unstructured.NestedStringSlice(object.Object, "spec", "addresses")
	prefix, _, _ := unstructured.NestedInt64(object.Object, "spec", "prefix")
	pool.Addresses.Prefix = int32(prefix)
	pool.Addresses.Gateway, _, _ = unstructured.NestedString(object.Object, "spec", "gateway")
	return pool, nil
}

// isPoolOf reports whether a pool was made for the cluster. After a restore its owner reference is to an object that is no
// more, or is gone; its label is not.
func isPoolOf(pool client.Object, owner *v1beta1.ProxmoxCluster) bool {
	controller := metav1.GetControllerOf(pool)
	if controller != nil {
		return controller.Kind == "ProxmoxCluster" && controller.Name == owner.Name
	}
	label, labelled := pool.GetLabels()[clusterv1.ClusterNameLabel]
	return labelled && label == owner.Labels[clusterv1.ClusterNameLabel]
}

// isExhausted reports whether a claim waits for a pool that has no free address. IPAM providers say so in the claim; the
// in-cluster one says nothing there, but counts the addresses of its pools.
func (o *Observer) isExhausted(ctx context.Context, owner client.Object, claim network.Claim, object *ipamv1.IPAddressClaim) bool {
	if !owner.GetDeletionTimestamp().IsZero() {
		return false
	}
	if ready := conditions.Get(object, clusterv1.ReadyCondition); ready != nil {
		return ready.Status == metav1.ConditionFalse && ready.Reason == ipamv1.IPAddressClaimReadyPoolExhaustedReason
	}
	pool := &unstructured.Unstructured{}
	pool.SetGroupVersionKind(PoolKind().GroupVersion().WithKind(claim.Pool.Kind))
	key := client.ObjectKey{Namespace: owner.GetNamespace(), Name: claim.Pool.Name}
	switch {
	case claim.Pool.APIGroup != PoolKind().Group:
		return false
	case claim.Pool.Kind == "GlobalInClusterIPPool":
		key.Namespace = ""
	case claim.Pool.Kind != PoolKind().Kind:
		return false
	}
	if err := o.Live.Get(ctx, key, pool); err != nil {
		return false // that it is not there, or may not be seen, is not that it is full
	}
	free, isCounted, err := unstructured.NestedInt64(pool.Object, "status", "ipAddresses", "free")
	if err != nil || !isCounted || free > 0 {
		return false
	}
	// The last address may be this claim's, which is not told of it yet.
	given := client.ObjectKey{Namespace: owner.GetNamespace(), Name: claim.Name}
	return apierrors.IsNotFound(o.Live.Get(ctx, given, &ipamv1.IPAddress{}))
}
