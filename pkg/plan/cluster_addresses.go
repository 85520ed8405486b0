package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/network"
)

// defaultAPIServerPort is where the control plane is reached unless the Cluster says otherwise.
const defaultAPIServerPort = 6443

// Pool is an InClusterIPPool as it was found.
type Pool struct {
	// Presence is PresenceForeign for one that was not made for the cluster.
	Presence Presence
	// Why explains PresenceUnknown.
	Why Reason
	// Addresses is what is in it.
	Addresses v1beta1.AddressPool
}

// ApplyPool makes the InClusterIPPool of a family, or brings it to what the ProxmoxCluster says.
type ApplyPool struct {
	Name      string
	Addresses v1beta1.AddressPool
}

func (ApplyPool) isAction() {}

// wantedPool is what the ProxmoxCluster says of the addresses of a family; nothing where it says nothing.
func (c Cluster) wantedPool(family network.Family) (v1beta1.AddressPool, bool) {
	wanted := c.Spec.IPv4
	if family == network.IPv6 {
		wanted = c.Spec.IPv6
	}
	return wanted, len(wanted.Addresses) > 0
}

// makePools makes the pools before all else: it depends on nothing, and machines claim from them.
func makePools(c Cluster) Decision {
	if conflict := c.endpointConflict(); conflict.Code != "" {
		return Wait{Reason: conflict}
	}
	for _, family := range []network.Family{network.IPv4, network.IPv6} {
		wanted, asked := c.wantedPool(family)
		found := c.Pools[family]
		if !asked || found.Presence == PresenceOurs && isSamePool(found.Addresses, wanted) {
			continue
		}
		if objection := c.poolObjection(family); objection.Code != "" {
			return Wait{Reason: objection, After: claimsAgain}
		}
		name := network.DefaultPool(c.Name, family).Name
		return Do{ApplyPool{Name: name, Addresses: wanted}, Reason{v1beta1.PoolAppliedReason, fmt.Sprintf("spec.%s is InClusterIPPool %s", family, name)}}
	}
	return nil
}

func isSamePool(a, b v1beta1.AddressPool) bool {
	return slices.Equal(a.Addresses, b.Addresses) && a.Prefix == b.Prefix && a.Gateway == b.Gateway
}

// endpointConflict says that the endpoint which the Cluster has, and the ProxmoxCluster is to take over, is among the addresses
// for machines; the zero Reason when it is not. One that the ProxmoxCluster has itself is checked when it is written.
func (c Cluster) endpointConflict() Reason {
	if c.Spec.ControlPlaneEndpoint != (v1beta1.APIEndpoint{}) || c.Endpoint == (v1beta1.APIEndpoint{}) || len(c.VirtualIP.Bound) > 0 {
		return Reason{}
	}
	taken := c.Spec
	taken.ControlPlaneEndpoint = c.Endpoint
	var messages []string
	for _, problem := range network.PoolProblems(taken) {
		messages = append(messages, problem.String())
	}
	if len(messages) == 0 {
		return Reason{}
	}
	return Reason{v1beta1.EndpointInPoolReason, fmt.Sprintf("the spec.controlPlaneEndpoint of Cluster %s is %s, which goes for the ProxmoxCluster, too: %s",
		c.Name, c.Endpoint.Host, strings.Join(messages, "; "))}
}

// poolObjection says why the pool of a family cannot be made; the zero Reason when it can.
func (c Cluster) poolObjection(family network.Family) Reason {
	switch found := c.Pools[family]; found.Presence {
	case PresenceUnknown:
		return found.Why
	case PresenceForeign:
		return Reason{v1beta1.PoolNotOursReason, fmt.Sprintf(
			"InClusterIPPool %s belongs to something else: leave out spec.%s of the ProxmoxCluster and name a pool in the machines' poolRef, or delete that pool",
			network.DefaultPool(c.Name, family).Name, family)}
	case PresenceAbsent, PresenceOurs:
	}
	return Reason{}
}

// PoolObjection says why the pools that are asked for are not there; the zero Reason when nothing is in their way. Asked says
// whether any are asked for.
func (c Cluster) PoolObjection() (objection Reason, asked bool) {
	if conflict := c.endpointConflict(); conflict.Code != "" {
		return conflict, true
	}
	for _, family := range []network.Family{network.IPv4, network.IPv6} {
		if _, wanted := c.wantedPool(family); !wanted {
			continue
		}
		asked = true
		if objection := c.poolObjection(family); objection.Code != "" {
			return objection, true
		}
	}
	return Reason{}, asked
}

// claimEndpoint claims the control plane endpoint's address. Once there is an endpoint it is not claimed anew: another address
// would be of no use.
func claimEndpoint(c Cluster) Decision {
	hasEndpoint := c.Spec.ControlPlaneEndpoint != (v1beta1.APIEndpoint{})
	switch {
	case c.Spec.ControlPlaneEndpointPoolRef.Name == "":
		return nil
	case len(c.VirtualIP.Absent) > 0 && !hasEndpoint:
		return Do{ClaimAddresses{c.VirtualIP.Absent}, Reason{ClaimingAddresses, "claiming the control plane endpoint's address"}}
	case len(c.VirtualIP.Unheld) > 0:
		return Do{HoldAddresses{c.VirtualIP.Unheld}, Reason{HoldingAddresses, "holding the control plane endpoint's address"}}
	case !hasEndpoint && c.VirtualIP.Invalid != "":
		return Stalled{Reason{InvalidAddress, c.VirtualIP.Invalid}}
	case !hasEndpoint && c.VirtualIP.Pending != "":
		return Wait{Reason: c.VirtualIP.Wait(), After: claimsAgain}
	}
	return nil
}
