package observe

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// addresses observes what the machine's claims have come to.
func (o *Observer) addresses(ctx context.Context, machine *v1beta1.ProxmoxMachine) (plan.Addresses, error) {
	var result plan.Addresses
	var pending, invalid []string
	for _, claim := range network.Claims(machine.Name, machine.Spec.Network) {
		object := &ipamv1.IPAddressClaim{}
		err := o.Client.Get(ctx, client.ObjectKey{Namespace: machine.Namespace, Name: claim.Name}, object)
		switch {
		case apierrors.IsNotFound(err):
			result.Absent = append(result.Absent, claim)
			continue
		case err != nil:
			return result, fmt.Errorf("get IPAddressClaim %s: %w", claim.Name, err)
		}
		result.Remain = result.Remain || controllerutil.ContainsFinalizer(object, v1beta1.AddressClaimFinalizer)
		if object.Status.AddressRef.Name == "" {
			pending = append(pending, pendingText(claim, object))
			continue
		}
		address, err := o.address(ctx, claim, object)
		switch {
		case apierrors.IsNotFound(err):
			pending = append(pending, fmt.Sprintf("IPAddress %s of claim %s is not there yet", object.Status.AddressRef.Name, claim.Name))
		case apierrors.ReasonForError(err) != "" && err != nil:
			return result, err
		case err != nil:
			invalid = append(invalid, err.Error())
		default:
			result.Bound = append(result.Bound, address)
		}
	}
	result.Pending, result.Invalid = strings.Join(pending, "; "), strings.Join(invalid, "; ")
	return result, nil
}

func (o *Observer) address(ctx context.Context, claim network.Claim, object *ipamv1.IPAddressClaim) (network.Address, error) {
	address := &ipamv1.IPAddress{}
	key := client.ObjectKey{Namespace: object.Namespace, Name: object.Status.AddressRef.Name}
	if err := o.Client.Get(ctx, key, address); err != nil {
		return network.Address{}, err
	}
	return network.NewAddress(claim, address.Spec.Address, ptr.Deref(address.Spec.Prefix, 0), address.Spec.Gateway)
}

// pendingText says what a claim waits for, in the IPAM provider's words where it has some.
func pendingText(claim network.Claim, object *ipamv1.IPAddressClaim) string {
	text := fmt.Sprintf("IPAddressClaim %s has no address from %s %s yet", claim.Name, claim.Pool.Kind, claim.Pool.Name)
	if ready := conditions.Get(object, clusterv1.ReadyCondition); ready != nil && ready.Message != "" {
		return fmt.Sprintf("%s: %s: %s", text, ready.Reason, ready.Message)
	}
	return text + ": does the pool exist, and has it a free address?"
}
