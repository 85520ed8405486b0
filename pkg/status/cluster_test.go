package status_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/network"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/status"
)

func proxmoxCluster(changes ...func(*v1beta1.ProxmoxCluster)) *v1beta1.ProxmoxCluster {
	cluster := &v1beta1.ProxmoxCluster{ObjectMeta: metav1.ObjectMeta{Name: "lab", Namespace: "default"}}
	cluster.Spec.ControlPlaneEndpoint = v1beta1.APIEndpoint{Host: "10.0.0.10", Port: 6443}
	cluster.Spec.Regions = []v1beta1.Region{{Name: "home"}}
	for _, change := range changes {
		change(cluster)
	}
	return cluster
}

func withZone(c *v1beta1.ProxmoxCluster) {
	c.Spec.Regions[0].Zones = []v1beta1.Zone{{Name: "rack1", Nodes: []string{"pve7"}}}
}

func withoutEndpoint(c *v1beta1.ProxmoxCluster) {
	c.Spec.ControlPlaneEndpoint = v1beta1.APIEndpoint{}
}

func going(c *v1beta1.ProxmoxCluster) {
	c.DeletionTimestamp = &metav1.Time{Time: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)}
}

func answers(nodes ...proxmox.NodeName) plan.Region { return plan.Region{Name: "home", Nodes: nodes} }

func silent() plan.Region {
	return plan.Region{Name: "home", Unavailable: plan.Reason{Code: v1beta1.UnreachableReason, Message: "region home does not answer"}}
}

// passOver is a pass over a cluster in which its region was seen so and the next step was planned.
func passOver(cluster *v1beta1.ProxmoxCluster, region plan.Region) status.ClusterPass {
	observed := plan.Cluster{Spec: cluster.Spec, Deleting: !cluster.DeletionTimestamp.IsZero(), Regions: []plan.Region{region}, Machines: []string{"worker-1"}}
	return status.ClusterPass{Observed: observed, Decision: plan.ClusterStep(observed)}
}

func TestTheConditionsOfACluster(t *testing.T) {
	const unknown = `spec.regions[home].zones[rack1].nodes: home has no node "pve7" (it has pve1)`
	const nobody = "no control plane endpoint: set spec.controlPlaneEndpoint or spec.controlPlaneEndpointPoolRef of the ProxmoxCluster, or let the control plane provider set the Cluster's"
	cases := []struct {
		name    string
		cluster *v1beta1.ProxmoxCluster
		region  plan.Region
		// the conditions in the order Ready, ProxmoxAvailable, ZonesValid, ControlPlaneEndpointSet, Deleting
		want [5]string
	}{
		{"when all is well", proxmoxCluster(), answers("pve1"), [5]string{"True Ready", "True Available", "True Available", "True EndpointSet", notDeleting}},
		{
			"when a region does not answer", proxmoxCluster(), silent(),
			[5]string{"False NotReady: * ProxmoxAvailable: region home does not answer", "False Unreachable: region home does not answer", "True Available", "True EndpointSet", notDeleting},
		},
		{
			"when a zone names a node that is not there", proxmoxCluster(withZone), answers("pve1"),
			[5]string{"False NotReady: * ZonesValid: " + unknown, "True Available", "False UnknownNode: " + unknown, "True EndpointSet", notDeleting},
		},
		{
			"while nobody has an endpoint", proxmoxCluster(withoutEndpoint), answers("pve1"),
			[5]string{"False NotReady: * ControlPlaneEndpointSet: " + nobody, "True Available", "True Available", "False WaitingForEndpoint: " + nobody, notDeleting},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if err := status.Cluster(c.cluster, passOver(c.cluster, c.region)); err != nil {
				t.Fatal(err)
			}
			want := map[string]string{}
			types := slices.DeleteFunc(status.ClusterConditions(), func(t string) bool { return t == v1beta1.AddressPoolsReadyCondition })
			for i, conditionType := range types {
				want[conditionType] = c.want[i]
			}
			if diff := cmp.Diff(want, told(c.cluster.Status.Conditions)); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheAddressPoolsOfACluster(t *testing.T) {
	cluster := proxmoxCluster()
	cluster.Spec.IPv4 = v1beta1.AddressPool{Addresses: []string{"10.0.0.10-10.0.0.99"}, Prefix: 24}
	seen := passOver(cluster, answers("pve1"))
	seen.Observed.Pools = map[network.Family]plan.Pool{network.IPv4: {Presence: plan.PresenceOurs, Addresses: cluster.Spec.IPv4}}
	foreign := passOver(cluster, answers("pve1"))
	foreign.Observed.Name = "c1"
	foreign.Observed.Pools = map[network.Family]plan.Pool{network.IPv4: {Presence: plan.PresenceForeign}}
	const message = "InClusterIPPool c1-ipv4 belongs to something else: leave out spec.ipv4 of the ProxmoxCluster and name a pool in the machines' poolRef, or delete that pool"
	withoutPools := passOver(proxmoxCluster(), answers("pve1"))
	for _, c := range []struct {
		pass        status.ClusterPass
		want, ready string
	}{
		{seen, "True Available", "True Ready"},
		{foreign, "False PoolNotOurs: " + message, "False NotReady: * AddressPoolsReady: " + message},
		{withoutPools, "", "True Ready"},
	} {
		got := pass(t, cluster, c.pass)
		if diff := cmp.Diff([]string{c.want, c.ready}, []string{got[v1beta1.AddressPoolsReadyCondition], got["Ready"]}); diff != "" {
			t.Errorf("conditions (-want +got):\n%s", diff)
		}
	}
}

// pass takes a pass over the cluster and returns what its conditions are then.
func pass(t *testing.T, cluster *v1beta1.ProxmoxCluster, pass status.ClusterPass) map[string]string {
	t.Helper()
	if err := status.Cluster(cluster, pass); err != nil {
		t.Fatal(err)
	}
	return told(cluster.Status.Conditions)
}

func TestAClusterStaysProvisionedOnceItWas(t *testing.T) {
	cluster := proxmoxCluster()
	var provisioned []bool
	for _, region := range []plan.Region{silent(), answers("pve1"), silent()} {
		pass(t, cluster, passOver(cluster, region))
		provisioned = append(provisioned, ptr.Deref(cluster.Status.Initialization.Provisioned, false))
	}
	if diff := cmp.Diff([]bool{false, true, true}, provisioned); diff != "" {
		t.Errorf("provisioned, pass by pass (-want +got):\n%s", diff)
	}
}

func TestFailureDomainsStayWhileARegionIsSilent(t *testing.T) {
	cluster := proxmoxCluster()
	pass(t, cluster, passOver(cluster, answers("pve1")))
	pass(t, cluster, passOver(cluster, silent()))
	want := []clusterv1.FailureDomain{{Name: "pve1", ControlPlane: ptr.To(true), Attributes: map[string]string{"region": "home"}}}
	if diff := cmp.Diff(want, cluster.Status.FailureDomains); diff != "" {
		t.Errorf("failure domains (-want +got):\n%s", diff)
	}
}

func TestAPassOverAClusterThatFailedSaysSoAndLeavesTheRest(t *testing.T) {
	cluster := proxmoxCluster()
	pass(t, cluster, passOver(cluster, answers("pve1")))
	got := pass(t, cluster, status.ClusterPass{Failure: plan.Reason{Code: plan.Unobserved, Message: "the API server is busy"}})
	want := map[string]string{
		"Ready": "Unknown ReadyUnknown: * ProxmoxAvailable: the API server is busy", "ProxmoxAvailable": "Unknown Unobserved: the API server is busy",
		"ZonesValid": "True Available", "ControlPlaneEndpointSet": "True EndpointSet", "Deleting": notDeleting,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
}

func TestAClusterThatIsDeletedSaysWhatItWaitsFor(t *testing.T) {
	cluster := proxmoxCluster()
	pass(t, cluster, passOver(cluster, answers("pve1")))
	going(cluster)
	got := pass(t, cluster, passOver(cluster, silent()))
	want := map[string]string{
		"Ready": "False NotReady: * Deleting: waiting for ProxmoxMachines to go: worker-1", "ProxmoxAvailable": "True Available",
		"ZonesValid": "True Available", "ControlPlaneEndpointSet": "True EndpointSet", "Deleting": "True MachinesRemain: waiting for ProxmoxMachines to go: worker-1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
}
