package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/network"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// Cluster is the snapshot that a cluster's step is planned from.
type Cluster struct {
	Spec v1beta1.ProxmoxClusterSpec
	// Deleting says that the ProxmoxCluster is on its way out.
	Deleting bool
	// Endpoint is the Cluster's own control plane endpoint, for a ProxmoxCluster that names none.
	Endpoint v1beta1.APIEndpoint
	// Regions is what was observed of each region, in the order of the spec.
	Regions []Region
	// Name is the Cluster's name; the ProxmoxCluster may have another.
	Name string
	// APIServerPort is the port that the Cluster wants the API server at; 0 for the usual one.
	APIServerPort int32
	// Pools are the InClusterIPPools for spec.ipv4 and spec.ipv6, as they were found, by family.
	Pools map[network.Family]Pool
	// VirtualIP is what the claim for the control plane endpoint has come to.
	VirtualIP Addresses
	// Machines are the names of the cluster's ProxmoxMachines that still exist.
	Machines []string
}

// Region is what was observed of a region.
type Region struct {
	Name proxmox.RegionName
	// Unavailable says why the region cannot be used; the zero Reason when it can.
	Unavailable Reason
	// Nodes are the nodes that it has.
	Nodes []proxmox.NodeName
}

// SetEndpoint copies the Cluster's control plane endpoint into the ProxmoxCluster.
type SetEndpoint struct {
	Endpoint v1beta1.APIEndpoint
}

func (SetEndpoint) isAction() {}

// ClusterStep plans the next step of a cluster.
func ClusterStep(c Cluster) Decision {
	if c.Deleting {
		return clusterDeletionStep(c)
	}
	for _, step := range []func(Cluster) Decision{makePools, claimEndpoint, awaitRegions, checkZones, setEndpoint} {
		if decision := step(c); decision != nil {
			return decision
		}
	}
	return Done{Reason{v1beta1.AvailableReason, "every region answers"}}
}

func clusterDeletionStep(c Cluster) Decision {
	if len(c.Machines) > 0 { // the last one wakes us, unless the Cluster, which joins the two, is gone
		return Wait{Reason: Reason{v1beta1.MachinesRemainReason, "waiting for ProxmoxMachines to go: " + list(c.Machines)}, After: lookAgain}
	}
	if c.VirtualIP.Remain {
		return Do{ReleaseAddresses{}, Reason{ReleasingAddresses, "releasing the control plane endpoint's address"}}
	}
	return Do{RemoveFinalizer{}, Reason{Deleted, "no machines remain"}}
}

// list names the first few of many.
func list(names []string) string {
	const most = 5
	sorted := slices.Sorted(slices.Values(names))
	if len(sorted) <= most {
		return strings.Join(sorted, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(sorted[:most], ", "), len(sorted)-most)
}

// Unavailable gives the reasons of the regions that cannot be used, as one; the code is the first one's.
func (c Cluster) Unavailable() Reason {
	var reason Reason
	var messages []string
	for _, region := range c.Regions {
		if region.Unavailable.Code == "" {
			continue
		}
		if reason.Code == "" {
			reason.Code = region.Unavailable.Code
		}
		messages = append(messages, region.Unavailable.Message)
	}
	reason.Message = strings.Join(messages, "; ")
	return reason
}

func awaitRegions(c Cluster) Decision {
	if reason := c.Unavailable(); reason.Code != "" {
		return Wait{Reason: reason, After: lookAgain}
	}
	return nil
}

func checkZones(c Cluster) Decision {
	if reason := c.UnknownNodes(); reason.Code != "" {
		return Wait{Reason: reason, After: lookAgain}
	}
	return nil
}

// UnknownNodes says which zones name nodes that their region does not have. A region that cannot be used has no say.
func (c Cluster) UnknownNodes() Reason {
	var messages []string
	for i, region := range c.Spec.Regions {
		if i >= len(c.Regions) || c.Regions[i].Unavailable.Code != "" {
			continue
		}
		for _, zone := range region.Zones {
			messages = append(messages, unknownNodes(region, zone, c.Regions[i].Nodes)...)
		}
	}
	if len(messages) == 0 {
		return Reason{}
	}
	return Reason{v1beta1.UnknownNodeReason, strings.Join(messages, "; ")}
}

// unknownNodes says which nodes of a zone are not among those that its region has.
func unknownNodes(region v1beta1.Region, zone v1beta1.Zone, nodes []proxmox.NodeName) (messages []string) {
	for _, node := range zone.Nodes {
		if !slices.Contains(nodes, proxmox.NodeName(node)) {
			messages = append(messages, fmt.Sprintf("spec.regions[%s].zones[%s].nodes: %s has no node %q (it has %s)",
				region.Name, zone.Name, region.Name, node, nodeList(nodes)))
		}
	}
	return messages
}

func nodeList(nodes []proxmox.NodeName) string {
	names := make([]string, len(nodes))
	for i, node := range nodes {
		names[i] = string(node)
	}
	return list(names)
}

func setEndpoint(c Cluster) Decision {
	reason := c.MissingEndpoint()
	switch {
	case reason.Code == "":
		return nil
	case len(c.VirtualIP.Bound) > 0:
		host := c.VirtualIP.Bound[0].Prefix.Addr().String()
		return Do{SetEndpoint{v1beta1.APIEndpoint{Host: host, Port: cmp.Or(c.APIServerPort, defaultAPIServerPort)}}, Reason{
			v1beta1.EndpointSetReason, fmt.Sprintf("the control plane endpoint is %s, from %s %s", host, c.Spec.ControlPlaneEndpointPoolRef.Kind, c.Spec.ControlPlaneEndpointPoolRef.Name),
		}}
	case c.Endpoint != v1beta1.APIEndpoint{}:
		return Do{SetEndpoint{c.Endpoint}, Reason{v1beta1.EndpointSetReason, "taking over the Cluster's control plane endpoint"}}
	}
	return Wait{Reason: reason}
}

// MissingEndpoint says that the ProxmoxCluster has no control plane endpoint; the zero Reason when it has one.
func (c Cluster) MissingEndpoint() Reason {
	if c.Spec.ControlPlaneEndpoint != (v1beta1.APIEndpoint{}) {
		return Reason{}
	}
	if c.VirtualIP.Invalid != "" || c.VirtualIP.Pending != "" {
		return Reason{v1beta1.WaitingForEndpointReason, cmp.Or(c.VirtualIP.Invalid, c.VirtualIP.Pending)}
	}
	return Reason{
		v1beta1.WaitingForEndpointReason,
		"no control plane endpoint: set spec.controlPlaneEndpoint or spec.controlPlaneEndpointPoolRef of the ProxmoxCluster, or let the control plane provider set the Cluster's",
	}
}

// FailureDomain returns the name under which Cluster API knows a zone: `<region>.<zone>`, or the bare zone where the
// cluster has one region only.
func FailureDomain(spec v1beta1.ProxmoxClusterSpec, region, zone string) string {
	if len(spec.Regions) == 1 {
		return zone
	}
	return region + "." + zone
}

// FailureDomainOf returns the failure domain that a node is in; empty when it is in none. It is not known of a region that
// the cluster does not have.
func FailureDomainOf(spec v1beta1.ProxmoxClusterSpec, region, node string) (domain string, known bool) {
	for _, candidate := range spec.Regions {
		if candidate.Name != region {
			continue
		}
		zone, found := ZoneOf(candidate, node)
		if !found {
			return "", true
		}
		return FailureDomain(spec, region, zone.Name), true
	}
	return "", false
}

// ZoneOf returns the zone that a node of a region is in: the one that names it, or, where the region has no zones, one of
// its own. A node that no zone names is in none.
func ZoneOf(region v1beta1.Region, node string) (v1beta1.Zone, bool) {
	if len(region.Zones) == 0 {
		return v1beta1.Zone{Name: node, Nodes: []string{node}, ControlPlane: ptr.To(true)}, true
	}
	for _, zone := range region.Zones {
		if slices.Contains(zone.Nodes, node) {
			return zone, true
		}
	}
	return v1beta1.Zone{}, false
}

// maxFailureDomains is the most that Cluster API accepts.
const maxFailureDomains = 100

// FailureDomains returns the zones of all regions, by name. They come from the spec and, for regions without zones, from
// the nodes there are.
func FailureDomains(c Cluster) []clusterv1.FailureDomain {
	var domains []clusterv1.FailureDomain
	for i, region := range c.Spec.Regions {
		zones := region.Zones
		if len(zones) == 0 && i < len(c.Regions) {
			for _, node := range c.Regions[i].Nodes {
				zone, _ := ZoneOf(region, string(node))
				zones = append(zones, zone)
			}
		}
		for _, zone := range zones {
			domains = append(domains, clusterv1.FailureDomain{
				Name: FailureDomain(c.Spec, region.Name, zone.Name), ControlPlane: ptr.To(ptr.Deref(zone.ControlPlane, true)),
				Attributes: map[string]string{"region": region.Name},
			})
		}
	}
	slices.SortFunc(domains, func(a, b clusterv1.FailureDomain) int { return strings.Compare(a.Name, b.Name) })
	return domains[:min(len(domains), maxFailureDomains)]
}
