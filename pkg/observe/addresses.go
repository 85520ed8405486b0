package observe

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/network"
)

// addresses observes what claims of an owner have come to.
func (o *Observer) addresses(ctx context.Context, owner client.Object, claims []network.Claim) (plan.Addresses, error) {
	var result plan.Addresses
	var pending, invalid []string
	reader := o.Client
	if !owner.GetDeletionTimestamp().IsZero() {
		reader = o.Live // a claim that was just made, and that the cache does not show yet, would stay for ever
	}
	for _, claim := range claims {
		object := &ipamv1.IPAddressClaim{}
		key := client.ObjectKey{Namespace: owner.GetNamespace(), Name: claim.Name}
		claimErr := reader.Get(ctx, key, object)
		if client.IgnoreNotFound(claimErr) != nil {
			return result, fmt.Errorf("get IPAddressClaim %s: %w", claim.Name, claimErr)
		}
		key.Name = cmp.Or(object.Status.AddressRef.Name, claim.Name)
		given := &ipamv1.IPAddress{}
		givenErr := reader.Get(ctx, key, given)
		if client.IgnoreNotFound(givenErr) != nil {
			return result, fmt.Errorf("get IPAddress %s: %w", key.Name, givenErr)
		}
		result.Remain = result.Remain || held(object) || held(given)
		if claimErr != nil {
			result.Absent = append(result.Absent, claim)
			continue
		}
		if isUnheld(object, owner) || givenErr == nil && isUnheld(given, nil) {
			result.Unheld = append(result.Unheld, claim)
		}
		if object.Status.AddressRef.Name == "" {
			isFull := o.isExhausted(ctx, owner, claim, object)
			result.Exhausted = result.Exhausted || isFull
			pending = append(pending, pendingText(claim, object, isFull))
			continue
		}
		address, err := network.NewAddress(claim, given.Spec.Address, ptr.Deref(given.Spec.Prefix, 0), given.Spec.Gateway)
		switch {
		case givenErr != nil:
			pending = append(pending, fmt.Sprintf("IPAddress %s of claim %s is not there yet", key.Name, claim.Name))
		case err != nil:
			invalid = append(invalid, err.Error())
		default:
			result.Bound = append(result.Bound, address)
		}
	}
	result.Pending, result.Invalid = strings.Join(pending, "; "), strings.Join(invalid, "; ")
	return result, nil
}

func held(object client.Object) bool {
	return controllerutil.ContainsFinalizer(object, v1beta1.AddressClaimFinalizer)
}

// isUnheld reports whether an object that is not on its way out lacks our finalizer or, where there is to be one, its owner.
func isUnheld(object, owner client.Object) bool {
	if !object.GetDeletionTimestamp().IsZero() {
		return false
	}
	return !held(object) || owner != nil && !metav1.IsControlledBy(object, owner)
}

// pendingText says what a claim waits for, in the IPAM provider's words where it has some.
func pendingText(claim network.Claim, object *ipamv1.IPAddressClaim, isFull bool) string {
	text := fmt.Sprintf("IPAddressClaim %s has no address from %s %s yet", claim.Name, claim.Pool.Kind, claim.Pool.Name)
	ready := conditions.Get(object, clusterv1.ReadyCondition)
	switch {
	case ready != nil && ready.Message != "":
		return fmt.Sprintf("%s: %s: %s", text, ready.Reason, ready.Message)
	case isFull:
		return text + ": the pool has no free address: add addresses to it, or delete machines that have some of it"
	}
	return text + ": does the pool exist, and has it a free address?"
}
