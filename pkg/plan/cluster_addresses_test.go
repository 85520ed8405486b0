package plan_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/network"
)

func TestThePoolsOfACluster(t *testing.T) {
	four := v1beta1.AddressPool{Addresses: []string{"10.0.0.10-10.0.0.99"}, Prefix: 24, Gateway: "10.0.0.1"}
	six := v1beta1.AddressPool{Addresses: []string{"fd00::10-fd00::99"}, Prefix: 64}
	asked := func(c *plan.Cluster) {
		c.Name, c.Spec.IPv4, c.Spec.IPv6 = "c1", four, six
		c.Pools = map[network.Family]plan.Pool{
			network.IPv4: {Presence: plan.PresenceOurs, Addresses: four}, network.IPv6: {Presence: plan.PresenceOurs, Addresses: six},
		}
	}
	found := func(family network.Family, pool plan.Pool) func(*plan.Cluster) {
		return func(c *plan.Cluster) { c.Pools[family] = pool }
	}
	changed := four
	changed.Gateway = ""
	const foreign = "InClusterIPPool c1-ipv6 belongs to something else: leave out spec.ipv6 of the ProxmoxCluster and name a pool in the machines' poolRef, or delete that pool"
	for _, c := range []struct {
		name    string
		cluster plan.Cluster
		want    string
	}{
		{"are left alone when they are as asked", cluster(asked), "done | Available: every region answers"},
		{"are made", cluster(asked, found(network.IPv4, plan.Pool{Presence: plan.PresenceAbsent})), "do ApplyPool | PoolApplied: spec.ipv4 is InClusterIPPool c1-ipv4"},
		{"are changed with the spec", cluster(asked, found(network.IPv4, plan.Pool{Presence: plan.PresenceOurs, Addresses: changed})), "do ApplyPool | PoolApplied: spec.ipv4 is InClusterIPPool c1-ipv4"},
		{"are made while a region is down", cluster(asked, down(0, v1beta1.UnreachableReason), found(network.IPv6, plan.Pool{Presence: plan.PresenceAbsent})), "do ApplyPool | PoolApplied: spec.ipv6 is InClusterIPPool c1-ipv6"},
		{"are not taken from another", cluster(asked, found(network.IPv6, plan.Pool{Presence: plan.PresenceForeign})), "wait 1m0s | PoolNotOurs: " + foreign},
		{"do not have the Cluster's endpoint", cluster(noEndpoint, asked, found(network.IPv4, plan.Pool{Presence: plan.PresenceAbsent}), func(c *plan.Cluster) {
			c.Endpoint = v1beta1.APIEndpoint{Host: "10.0.0.10", Port: 6443}
		}), "wait | EndpointInPool: the spec.controlPlaneEndpoint of Cluster c1 is 10.0.0.10, which goes for the ProxmoxCluster, too: spec.ipv4.addresses[0]: " + four.Addresses[0] + ": contains 10.0.0.10, the host of controlPlaneEndpoint, which no machine may have: name ranges before and behind it, such as one up to 10.0.0.9 and one from 10.0.0.11"},
		{"wait for the IPAM provider", cluster(asked, found(network.IPv4, plan.Pool{Why: plan.Reason{Code: v1beta1.NoIPAMProviderReason, Message: "install it"}})), "wait 1m0s | NoIPAMProvider: install it"},
		{"are none where none are asked for", cluster(asked, func(c *plan.Cluster) {
			c.Spec.IPv4, c.Spec.IPv6, c.Pools = v1beta1.AddressPool{}, v1beta1.AddressPool{}, nil
		}), "done | Available: every region answers"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, told(plan.ClusterStep(c.cluster))); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheVirtualIPOfACluster(t *testing.T) {
	pool := v1beta1.IPPoolReference{APIGroup: "ipam.cluster.x-k8s.io", Kind: "InClusterIPPool", Name: "vips"}
	claim := network.EndpointClaim("c1", pool)
	asked := func(addresses plan.Addresses) func(*plan.Cluster) {
		return func(c *plan.Cluster) {
			c.Name, c.Spec.ControlPlaneEndpointPoolRef, c.VirtualIP = "c1", pool, addresses
		}
	}
	absent := plan.Addresses{Absent: []network.Claim{claim}}
	bound := plan.Addresses{Remain: true, Bound: []network.Address{{Claim: claim, Prefix: netip.MustParsePrefix("10.0.0.250/24")}}}
	loose := bound
	loose.Unheld = []network.Claim{claim}
	leaving := func(c *plan.Cluster) { c.Deleting = true }
	for _, c := range []struct {
		name    string
		cluster plan.Cluster
		want    string
	}{
		{"is claimed", cluster(noEndpoint, asked(absent)), "do ClaimAddresses | ClaimingAddresses: claiming the control plane endpoint's address"},
		{"is waited for", cluster(noEndpoint, asked(plan.Addresses{Pending: "the pool is empty"})), "wait 1m0s | WaitingForAddresses: the pool is empty"},
		{"has to be one", cluster(noEndpoint, asked(plan.Addresses{Invalid: "10.0.0.0 stands for the network"})), "stalled | InvalidAddress: 10.0.0.0 stands for the network"},
		{"is held", cluster(noEndpoint, asked(loose)), "do HoldAddresses | HoldingAddresses: holding the control plane endpoint's address"},
		{"becomes the endpoint", cluster(noEndpoint, asked(bound)), "do SetEndpoint | EndpointSet: the control plane endpoint is 10.0.0.250, from InClusterIPPool vips"},
		{"stays", cluster(asked(bound)), "done | Available: every region answers"},
		{"is held again", cluster(asked(loose)), "do HoldAddresses | HoldingAddresses: holding the control plane endpoint's address"},
		{"is not claimed anew when there is an endpoint", cluster(asked(absent)), "done | Available: every region answers"},
		{"is released in the end", cluster(asked(bound), leaving), "do ReleaseAddresses | ReleasingAddresses: releasing the control plane endpoint's address"},
		{"is kept while there are machines", cluster(asked(bound), leaving, func(c *plan.Cluster) { c.Machines = []string{"m1"} }), "wait 15s | MachinesRemain: waiting for ProxmoxMachines to go: m1"},
		{"is released before the cluster goes", cluster(asked(absent), leaving), "do RemoveFinalizer | Deleted: no machines remain"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, told(plan.ClusterStep(c.cluster))); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
	for port, want := range map[int32]int32{0: 6443, 8443: 8443} {
		decision := plan.ClusterStep(cluster(noEndpoint, asked(bound), func(c *plan.Cluster) { c.APIServerPort = port }))
		wanted := plan.Do{Action: plan.SetEndpoint{Endpoint: v1beta1.APIEndpoint{Host: "10.0.0.250", Port: want}}, Reason: decision.Why()}
		if diff := cmp.Diff(plan.Decision(wanted), decision); diff != "" {
			t.Errorf("decision (-want +got):\n%s", diff)
		}
	}
}
