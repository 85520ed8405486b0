package act

import (
	"context"
	"errors"
	"fmt"

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

// claimAddresses makes IPAddressClaims. A claim of that name that is there by now is looked at in the next pass.
func (a *Actor) claimAddresses(ctx context.Context, machine *v1beta1.ProxmoxMachine, action plan.ClaimAddresses) error {
	for _, claim := range action.Claims {
		if err := a.Client.Create(ctx, newClaim(machine, claim)); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create IPAddressClaim %s: %w", claim.Name, err)
		}
	}
	return nil
}

// newClaim makes a claim that lives as long as the machine, and whose address is not given to another before our finalizer
// is off.
func newClaim(machine *v1beta1.ProxmoxMachine, claim network.Claim) *ipamv1.IPAddressClaim {
	cluster := machine.Labels[clusterv1.ClusterNameLabel]
	return &ipamv1.IPAddressClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name: claim.Name, Namespace: machine.Namespace,
			Labels:          map[string]string{clusterv1.ClusterNameLabel: cluster},
			Finalizers:      []string{v1beta1.AddressClaimFinalizer},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(machine, v1beta1.GroupVersion.WithKind("ProxmoxMachine"))},
		},
		Spec: ipamv1.IPAddressClaimSpec{
			ClusterName: cluster,
			PoolRef:     ipamv1.IPPoolReference{APIGroup: claim.Pool.APIGroup, Kind: claim.Pool.Kind, Name: claim.Pool.Name},
		},
	}
}

// releaseAddresses lets the machine's claims go: our finalizer off, and deleted.
func (a *Actor) releaseAddresses(ctx context.Context, machine *v1beta1.ProxmoxMachine) error {
	var errs []error
	for _, claim := range network.Claims(machine.Name, machine.Spec.Network) {
		if err := a.releaseClaim(ctx, client.ObjectKey{Namespace: machine.Namespace, Name: claim.Name}); client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("release IPAddressClaim %s: %w", claim.Name, err))
		}
	}
	return errors.Join(errs...)
}

func (a *Actor) releaseClaim(ctx context.Context, key client.ObjectKey) error {
	claim := &ipamv1.IPAddressClaim{}
	if err := a.Client.Get(ctx, key, claim); err != nil {
		return err
	}
	before := claim.DeepCopy()
	if controllerutil.RemoveFinalizer(claim, v1beta1.AddressClaimFinalizer) {
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		if err := a.Client.Patch(ctx, claim, patch); err != nil {
			return err
		}
	}
	return a.Client.Delete(ctx, claim)
}
