package act

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/network"
)

// owner is an object of ours that claims addresses.
type owner struct {
	client.Object
	kind string
}

// The kinds of owners of claims.
const (
	machineKind = "ProxmoxMachine"
	clusterKind = "ProxmoxCluster"
)

func (o owner) reference() metav1.OwnerReference {
	return *metav1.NewControllerRef(o, v1beta1.GroupVersion.WithKind(o.kind))
}

// claimAddresses makes IPAddressClaims. A claim of that name that is there by now is looked at in the next pass.
func (a *Actor) claimAddresses(ctx context.Context, owner owner, action plan.ClaimAddresses) error {
	for _, claim := range action.Claims {
		if err := a.Client.Create(ctx, newClaim(owner, claim)); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create IPAddressClaim %s: %w", claim.Name, err)
		}
	}
	return nil
}

// newClaim makes a claim that lives as long as its owner.
func newClaim(owner owner, claim network.Claim) *ipamv1.IPAddressClaim {
	cluster := owner.GetLabels()[clusterv1.ClusterNameLabel]
	return &ipamv1.IPAddressClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name: claim.Name, Namespace: owner.GetNamespace(),
			Labels:          map[string]string{clusterv1.ClusterNameLabel: cluster},
			Finalizers:      []string{v1beta1.AddressClaimFinalizer},
			OwnerReferences: []metav1.OwnerReference{owner.reference()},
		},
		Spec: ipamv1.IPAddressClaimSpec{
			ClusterName: cluster,
			PoolRef:     ipamv1.IPPoolReference{APIGroup: claim.Pool.APIGroup, Kind: claim.Pool.Kind, Name: claim.Pool.Name},
		},
	}
}

// holdAddresses puts our owner reference on claims, and our finalizer on claims and their addresses. What is being deleted
// can be given no finalizer any more.
func (a *Actor) holdAddresses(ctx context.Context, owner owner, action plan.HoldAddresses) error {
	for _, claim := range action.Claims {
		object := &ipamv1.IPAddressClaim{}
		key := client.ObjectKey{Namespace: owner.GetNamespace(), Name: claim.Name}
		err := a.change(ctx, key, object, func() bool { return own(object, owner) })
		if err == nil && object.Status.AddressRef.Name != "" {
			address := &ipamv1.IPAddress{}
			key.Name = object.Status.AddressRef.Name
			err = a.change(ctx, key, address, func() bool { return hold(address) })
		}
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("hold the address of IPAddressClaim %s: %w", claim.Name, err)
		}
	}
	return nil
}

// own makes an object the owner of a claim; a reference to one of the name that is no more is replaced.
func own(claim *ipamv1.IPAddressClaim, owner owner) bool {
	held := hold(claim)
	if metav1.IsControlledBy(claim, owner) {
		return held
	}
	claim.OwnerReferences = slices.DeleteFunc(claim.OwnerReferences, func(reference metav1.OwnerReference) bool {
		return reference.Kind == owner.kind && reference.Name == owner.GetName()
	})
	claim.OwnerReferences = append(claim.OwnerReferences, owner.reference())
	return true
}

func hold(object client.Object) bool {
	return object.GetDeletionTimestamp().IsZero() && controllerutil.AddFinalizer(object, v1beta1.AddressClaimFinalizer)
}

// releaseAddresses lets claims and addresses go: our finalizer off, and the claims deleted.
func (a *Actor) releaseAddresses(ctx context.Context, namespace string, claims []network.Claim) error {
	var errs []error
	for _, claim := range claims {
		if err := a.releaseAddress(ctx, client.ObjectKey{Namespace: namespace, Name: claim.Name}); err != nil {
			errs = append(errs, fmt.Errorf("release the address of IPAddressClaim %s: %w", claim.Name, err))
		}
	}
	return errors.Join(errs...)
}

// releaseAddress lets a claim go, and then its address, which has the claim's name (Cluster API's IPAM contract).
func (a *Actor) releaseAddress(ctx context.Context, key client.ObjectKey) error {
	claim, address := &ipamv1.IPAddressClaim{}, &ipamv1.IPAddress{}
	err := a.change(ctx, key, claim, func() bool { return controllerutil.RemoveFinalizer(claim, v1beta1.AddressClaimFinalizer) })
	if err == nil {
		err = a.Client.Delete(ctx, claim)
	}
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	err = a.change(ctx, key, address, func() bool { return controllerutil.RemoveFinalizer(address, v1beta1.AddressClaimFinalizer) })
	return client.IgnoreNotFound(err)
}

// change reads an object, changes it, and patches it if that made a difference, unless it was changed since.
func (a *Actor) change(ctx context.Context, key client.ObjectKey, object client.Object, change func() bool) error {
	if err := a.Client.Get(ctx, key, object); err != nil {
		return err
	}
	before, isObject := object.DeepCopyObject().(client.Object)
	if !isObject || !change() {
		return nil
	}
	return a.Client.Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}
