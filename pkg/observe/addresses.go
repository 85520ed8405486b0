package observe

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/cluster-api/util"
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
		found, err := readClaim(ctx, reader, owner.GetNamespace(), claim)
		if err != nil {
			return result, err
		}
		result.Remain = result.Remain || held(found.object) || held(found.given)
		if !found.isThere {
			result.Absent = append(result.Absent, claim)
			continue
		}
		if isUnheld(found.object, owner) || found.isGiven && isUnheld(found.given, nil) {
			result.Unheld = append(result.Unheld, claim)
		}
		isFull := found.isUnbound() && o.isExhausted(ctx, owner, claim, found.object)
		result.Exhausted = result.Exhausted || isFull
		if waits := found.pending(isFull); waits != "" {
			pending = append(pending, waits)
			continue
		}
		address, err := network.NewAddress(claim, found.given.Spec.Address, ptr.Deref(found.given.Spec.Prefix, 0), found.given.Spec.Gateway)
		if err != nil {
			invalid = append(invalid, err.Error())
			continue
		}
		result.Bound = append(result.Bound, address)
	}
	result.Pending, result.Invalid = strings.Join(pending, "; "), strings.Join(invalid, "; ")
	return result, nil
}

// claimed is a claim with the address that it was given. What is not there has no content.
type claimed struct {
	claim            network.Claim
	object           *ipamv1.IPAddressClaim
	given            *ipamv1.IPAddress
	isThere, isGiven bool
}

// readClaim reads a claim and its address; without the claim, the address that would have its name.
func readClaim(ctx context.Context, reader client.Reader, namespace string, claim network.Claim) (claimed, error) {
	found := claimed{claim: claim, object: &ipamv1.IPAddressClaim{}, given: &ipamv1.IPAddress{}}
	err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: claim.Name}, found.object)
	if client.IgnoreNotFound(err) != nil {
		return found, fmt.Errorf("get IPAddressClaim %s: %w", claim.Name, err)
	}
	found.isThere = err == nil
	err = reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: found.addressName()}, found.given)
	if client.IgnoreNotFound(err) != nil {
		return found, fmt.Errorf("get IPAddress %s: %w", found.addressName(), err)
	}
	found.isGiven = err == nil
	return found, nil
}

func (c claimed) addressName() string { return cmp.Or(c.object.Status.AddressRef.Name, c.claim.Name) }

// isUnbound reports whether the claim has no address yet.
func (c claimed) isUnbound() bool { return c.object.Status.AddressRef.Name == "" }

// pending says what the claim, of a pool that may be full, waits for; empty for nothing.
func (c claimed) pending(isFull bool) string {
	switch {
	case c.isUnbound():
		return pendingText(c.claim, c.object, isFull)
	case !c.isGiven:
		return fmt.Sprintf("IPAddress %s of claim %s is not there yet", c.addressName(), c.claim.Name)
	}
	return ""
}

// refuseEndpoint refuses the host of the control plane endpoint as the address of a worker, whatever pool gave it: two would
// answer to it.
func refuseEndpoint(addresses *plan.Addresses, subject MachineSubject) {
	if subject.Cluster == nil || subject.Machine == nil || util.IsControlPlaneMachine(subject.Machine) {
		return
	}
	host, err := netip.ParseAddr(subject.Cluster.Spec.ControlPlaneEndpoint.Host)
	if err != nil {
		return // a DNS name
	}
	addresses.Bound = slices.DeleteFunc(addresses.Bound, func(a network.Address) bool {
		if a.Prefix.Addr() != host.Unmap() {
			return false
		}
		text := fmt.Sprintf("IPAddress %s: %s is the host of the spec.controlPlaneEndpoint of Cluster %s: exclude it from pool %s",
			a.Claim.Name, host, subject.Cluster.Name, a.Claim.Pool.Name)
		addresses.Invalid = strings.TrimPrefix(addresses.Invalid+"; "+text, "; ")
		return true
	})
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
