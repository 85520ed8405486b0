package integration_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// eastern adds a second region, with credentials of its own, to a ProxmoxCluster.
func (b *bench) eastern(east *pvesim.Server) func(*v1beta1.ProxmoxCluster) {
	b.create(&corev1.Secret{ObjectMeta: b.meta("east"), StringData: map[string]string{
		"tokenID": east.Token.ID, "tokenSecret": string(east.Token.Secret),
	}})
	return func(cluster *v1beta1.ProxmoxCluster) {
		cluster.Spec.Regions = append(cluster.Spec.Regions, v1beta1.Region{
			Name: "east", Endpoints: []string{east.URL}, TLS: v1beta1.RegionTLS{CABundle: east.CAPEM},
			CredentialsRef: v1beta1.SecretReference{Name: "east"},
			Zones:          []v1beta1.Zone{{Name: "a", Nodes: []string{"pve2"}}, {Name: "b", Nodes: []string{"pve3"}}},
			VMIDRange:      v1beta1.VMIDRange{Start: 7000, End: 7001},
		})
	}
}

func TestAClusterSpansTwoProxmoxVEClusters(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	east := pvesim.Run(t)
	cluster := b.cluster("c1", b.eastern(east))
	b.provisioned(cluster)
	b.get(b, cluster)
	names := []string{}
	for _, domain := range cluster.Status.FailureDomains {
		names = append(names, domain.Name)
	}
	b.Expect(names).To(Equal([]string{"east.a", "east.b", "home.pve1", "home.pve2", "home.pve3"}))

	machine := b.unbootstrapped("c1", "m1")
	owner := &clusterv1.Machine{ObjectMeta: b.meta("m1")}
	b.change(owner, func() {
		owner.Spec.FailureDomain, owner.Spec.Bootstrap.DataSecretName = "east.b", ptr.To("m1-bootstrap")
	})
	b.running(machine)
	b.Expect(machine.Spec.Reservation.Region).To(Equal("east"))
	b.Expect(machine.Spec.Reservation.Node).To(Equal("pve3"))
	b.Expect(machine.Status.FailureDomain).To(Equal("east.b"))
	b.Expect(machine.Status.VMID).To(Equal(int32(7000)))
	b.Expect(b.pveVMs()).To(BeEmpty(), "the other region was not touched")

	b.Expect(b.client.Delete(b.ctx, machine)).To(Succeed())
	b.gone(machine)
	_, there := east.World.VM(7000)
	b.Expect(there).To(BeFalse())
	b.Expect(east.World.Check()).To(BeEmpty())
}

func TestARegionThatIsDownDoesNotStandInTheWayOfAnother(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	east := pvesim.Run(t)
	cluster := b.cluster("c1", b.eastern(east))
	b.provisioned(cluster)
	east.Close()

	machine := b.machine("c1", "m1")
	b.running(machine)
	b.Expect(machine.Spec.Reservation.Region).To(Equal("home"))
	b.Eventually(func(g Gomega) {
		b.get(g, cluster)
		g.Expect(condition(cluster, v1beta1.ProxmoxAvailableCondition)).NotTo(BeEquivalentTo("True"))
		g.Expect(condition(cluster, clusterv1.ReadyCondition)).NotTo(BeEquivalentTo("True"))
	}, patience, poll).Should(Succeed())
	b.Expect(cluster.Status.FailureDomains).To(HaveLen(5), "what cannot be seen is not gone")
}

// TestARegionThatLeadsToAnotherProxmoxVECluster has somebody mistake the endpoints of a region: its VMs are not there, which
// must not count as gone.
func TestARegionThatLeadsToAnotherProxmoxVECluster(t *testing.T) {
	t.Parallel()
	for name, mistaken := range map[string]struct {
		nodes   int
		removed bool
	}{
		"with the same nodes": {nodes: 3}, "with fewer nodes": {nodes: 1}, "where the VM's number is another's": {nodes: 3, removed: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			cluster := b.cluster("c1")
			b.provisioned(cluster)
			machine, leaving := b.machine("c1", "m1", at("pve3")), b.machine("c1", "m2", at("pve3"))
			b.settled(machine)
			b.settled(leaving)
			before, right := b.vmOf(leaving), cluster.Spec.Regions[0].DeepCopy()
			other := pvesim.Run(t, pvesim.WithNodes(mistaken.nodes))
			if mistaken.removed {
				b.Expect(other.World.AddVM(pvesim.VMSpec{VMID: before.VMID, Node: "pve1", Config: map[string]string{"name": "others"}})).To(Succeed())
			}
			b.credentials(map[string]string{"tokenID": other.Token.ID, "tokenSecret": string(other.Token.Secret)})
			b.change(cluster, func() {
				cluster.Spec.Regions[0].Endpoints, cluster.Spec.Regions[0].TLS = []string{other.URL}, v1beta1.RegionTLS{CABundle: other.CAPEM}
			})
			b.says(cluster, v1beta1.ProxmoxAvailableCondition, metav1.ConditionFalse, v1beta1.OtherProxmoxClusterReason, "region home leads to another Proxmox VE cluster", "spec.regions[home].endpoints")
			b.begin(leaving)
			b.waits(leaving, v1beta1.OtherProxmoxClusterReason, "is in (", v1beta1.RegionGoneAnnotation+"=home")
			b.says(machine, v1beta1.VirtualMachineReadyCondition, metav1.ConditionUnknown, v1beta1.OtherProxmoxClusterReason)
			made := b.machine("c1", "m3")
			b.says(made, v1beta1.VirtualMachineReadyCondition, metav1.ConditionFalse, "WaitingForCapacity", "leads to another Proxmox VE cluster")
			b.Expect(b.vmOf(leaving).Status).To(Equal("running"))

			b.credentials(b.token())
			b.change(cluster, func() { cluster.Spec.Regions[0].Endpoints, cluster.Spec.Regions[0].TLS = right.Endpoints, right.TLS })
			b.gone(leaving)
			b.running(machine)
			b.running(made)
			b.Expect(b.pveVMs()).To(HaveLen(2))
			b.Expect(other.World.Check()).To(BeEmpty())
		})
	}
}
