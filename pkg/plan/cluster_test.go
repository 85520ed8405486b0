package plan_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

var endpoint = v1beta1.APIEndpoint{Host: "10.0.0.10", Port: 6443}

// cluster is a ProxmoxCluster of one region with three nodes and an endpoint, with changes.
func cluster(changes ...func(*plan.Cluster)) plan.Cluster {
	c := plan.Cluster{
		Spec:    v1beta1.ProxmoxClusterSpec{ControlPlaneEndpoint: endpoint, Regions: []v1beta1.Region{{Name: "home"}}},
		Regions: []plan.Region{{Name: "home", Nodes: []proxmox.NodeName{"pve1", "pve2", "pve3"}}},
	}
	for _, change := range changes {
		change(&c)
	}
	return c
}

func zones(zones ...v1beta1.Zone) func(*plan.Cluster) {
	return func(c *plan.Cluster) { c.Spec.Regions[0].Zones = zones }
}

func zone(name string, nodes ...string) v1beta1.Zone { return v1beta1.Zone{Name: name, Nodes: nodes} }

// secondRegion adds a region east with the nodes pve1 and pve9.
func secondRegion(c *plan.Cluster) {
	c.Spec.Regions = append(c.Spec.Regions, v1beta1.Region{Name: "east"})
	c.Regions = append(c.Regions, plan.Region{Name: "east", Nodes: []proxmox.NodeName{"pve9", "pve1"}})
}

func down(region int, code string) func(*plan.Cluster) {
	return func(c *plan.Cluster) {
		c.Regions[region].Nodes = nil
		c.Regions[region].Unavailable = plan.Reason{Code: code, Message: "region " + c.Spec.Regions[region].Name + " is down"}
	}
}

func noEndpoint(c *plan.Cluster) { c.Spec.ControlPlaneEndpoint = v1beta1.APIEndpoint{} }

func TestTheLifeOfACluster(t *testing.T) {
	remaining := func(count int) func(*plan.Cluster) {
		return func(c *plan.Cluster) {
			c.Deleting = true
			for i := range count {
				c.Machines = append(c.Machines, fmt.Sprintf("m%d", count-i))
			}
		}
	}
	cases := []struct {
		name    string
		cluster plan.Cluster
		want    string
	}{
		{"it is done when every region answers", cluster(), "done | Available: every region answers"},
		{"it waits for a region that does not answer", cluster(down(0, v1beta1.UnreachableReason)), "wait 15s | Unreachable: region home is down"},
		{
			"it waits for all regions that cannot be used, with the reason of the first", cluster(secondRegion, down(0, v1beta1.CredentialsRefusedReason), down(1, v1beta1.UnreachableReason)),
			"wait 15s | CredentialsRefused: region home is down; region east is down",
		},
		{
			"it waits for nodes that a zone names and the region lacks", cluster(zones(zone("rack1", "pve1", "pve7"))),
			`wait 15s | UnknownNode: spec.regions[home].zones[rack1].nodes: home has no node "pve7" (it has pve1, pve2, pve3)`,
		},
		{
			"it does not judge the zones of a region that it cannot see", cluster(secondRegion, zones(zone("rack1", "pve7")), down(0, v1beta1.UnreachableReason)),
			"wait 15s | Unreachable: region home is down",
		},
		{"it is done when the zones name nodes that exist", cluster(zones(zone("rack1", "pve1"), zone("rack2", "pve2"))), "done | Available: every region answers"},
		{
			"it takes over the Cluster's endpoint when it has none", cluster(noEndpoint, func(c *plan.Cluster) { c.Endpoint = endpoint }),
			"do SetEndpoint | EndpointSet: taking over the Cluster's control plane endpoint",
		},
		{
			"it waits for an endpoint when nobody has one", cluster(noEndpoint),
			"wait | WaitingForEndpoint: no control plane endpoint: set spec.controlPlaneEndpoint or spec.controlPlaneEndpointPoolRef of the ProxmoxCluster, or let the control plane provider set the Cluster's",
		},
		{"its deletion waits for its machines", cluster(remaining(2)), "wait 15s | MachinesRemain: waiting for ProxmoxMachines to go: m1, m2"},
		{"its deletion names the first few of many machines", cluster(remaining(7)), "wait 15s | MachinesRemain: waiting for ProxmoxMachines to go: m1, m2, m3, m4, m5 and 2 more"},
		{"its deletion ends when no machine is left", cluster(remaining(0)), "do RemoveFinalizer | Deleted: no machines remain"},
		{"its deletion needs no region", cluster(remaining(0), down(0, v1beta1.UnreachableReason)), "do RemoveFinalizer | Deleted: no machines remain"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, told(plan.ClusterStep(c.cluster))); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheEndpointThatIsTakenOver(t *testing.T) {
	decision := plan.ClusterStep(cluster(noEndpoint, func(c *plan.Cluster) { c.Endpoint = endpoint }))
	want := plan.Do{Action: plan.SetEndpoint{Endpoint: endpoint}, Reason: decision.Why()}
	if diff := cmp.Diff(plan.Decision(want), decision); diff != "" {
		t.Errorf("decision (-want +got):\n%s", diff)
	}
}

func domain(name, region string, controlPlane *bool) clusterv1.FailureDomain {
	return clusterv1.FailureDomain{Name: name, ControlPlane: controlPlane, Attributes: map[string]string{"region": region}}
}

func TestTheFailureDomainsOfACluster(t *testing.T) {
	yes, no := ptr.To(true), ptr.To(false)
	workersOnly := zone("edge", "pve3")
	workersOnly.ControlPlane = no
	cases := []struct {
		name    string
		cluster plan.Cluster
		want    []clusterv1.FailureDomain
	}{
		{"are the nodes of its only region", cluster(), []clusterv1.FailureDomain{domain("pve1", "home", yes), domain("pve2", "home", yes), domain("pve3", "home", yes)}},
		{
			"are the zones of its only region, by name", cluster(zones(zone("rack2", "pve2"), zone("rack1", "pve1"), workersOnly)),
			[]clusterv1.FailureDomain{domain("edge", "home", no), domain("rack1", "home", yes), domain("rack2", "home", yes)},
		},
		{
			"carry the region's name where there are several", cluster(secondRegion, zones(zone("rack1", "pve1"))),
			[]clusterv1.FailureDomain{domain("east.pve1", "east", yes), domain("east.pve9", "east", yes), domain("home.rack1", "home", yes)},
		},
		{
			"are known from the spec while a region with zones is down", cluster(zones(zone("rack1", "pve1")), down(0, v1beta1.UnreachableReason)),
			[]clusterv1.FailureDomain{domain("rack1", "home", yes)},
		},
		{"are none while a region without zones is down", cluster(down(0, v1beta1.UnreachableReason)), nil},
		{"are none before any region was looked at", cluster(func(c *plan.Cluster) { c.Regions = nil }), nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, plan.FailureDomains(c.cluster)); diff != "" {
				t.Errorf("failure domains (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNoMoreFailureDomainsThanClusterAPIAccepts(t *testing.T) {
	many := cluster(func(c *plan.Cluster) {
		c.Regions[0].Nodes = nil
		for i := range 150 {
			c.Regions[0].Nodes = append(c.Regions[0].Nodes, proxmox.NodeName(fmt.Sprintf("pve%03d", i)))
		}
	})
	domains := plan.FailureDomains(many)
	if diff := cmp.Diff(100, len(domains)); diff != "" {
		t.Fatalf("number (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff("pve099", domains[99].Name); diff != "" {
		t.Errorf("the last one (-want +got):\n%s", diff)
	}
}

func TestTheFailureDomainOfANode(t *testing.T) {
	zoned := v1beta1.Region{Name: "home", Zones: []v1beta1.Zone{zone("rack1", "pve1", "pve2")}}
	one := v1beta1.ProxmoxClusterSpec{Regions: []v1beta1.Region{zoned}}
	two := v1beta1.ProxmoxClusterSpec{Regions: []v1beta1.Region{zoned, {Name: "far"}}}
	cases := []struct {
		name         string
		spec         v1beta1.ProxmoxClusterSpec
		region, node string
		want         string
		known        bool
	}{
		{"is its zone", one, "home", "pve2", "rack1", true},
		{"is its zone in its region", two, "home", "pve2", "home.rack1", true},
		{"is the node where there are no zones", two, "far", "pve7", "far.pve7", true},
		{"is none when no zone names it", one, "home", "pve3", "", true},
		{"is not known when the region is gone", one, "far", "pve7", "", false},
	}
	for _, c := range cases {
		if domain, known := plan.FailureDomainOf(c.spec, c.region, c.node); domain != c.want || known != c.known {
			t.Errorf("it %s: got %q, %t", c.name, domain, known)
		}
	}
}

func TestTheZoneOfANode(t *testing.T) {
	zoned := v1beta1.Region{Name: "home", Zones: []v1beta1.Zone{zone("rack1", "pve1", "pve2")}}
	cases := []struct {
		name   string
		region v1beta1.Region
		node   string
		want   v1beta1.Zone
		found  bool
	}{
		{"is the one that names it", zoned, "pve2", zone("rack1", "pve1", "pve2"), true},
		{"is none when there are zones and none names it", zoned, "pve3", v1beta1.Zone{}, false},
		{"is its own when the region has no zones", v1beta1.Region{Name: "home"}, "pve3", v1beta1.Zone{Name: "pve3", Nodes: []string{"pve3"}, ControlPlane: ptr.To(true)}, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, found := plan.ZoneOf(c.region, c.node)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("zone (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.found, found); diff != "" {
				t.Errorf("found (-want +got):\n%s", diff)
			}
		})
	}
}
