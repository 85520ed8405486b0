package integration_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/observe"
)

// inClusterPool is an InClusterIPPool of the bench.
func (b *bench) inClusterPool(name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(observe.PoolKind())
	object.SetName(name)
	object.SetNamespace(b.namespace)
	return object
}

// TestTheAddressesOfACluster has the cluster make pools, claim its endpoint, and a machine with an address of either family
// without naming a pool.
func TestTheAddressesOfACluster(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	cluster := b.cluster("c1", func(c *v1beta1.ProxmoxCluster) {
		c.Spec.ControlPlaneEndpoint = v1beta1.APIEndpoint{}
		c.Spec.ControlPlaneEndpointPoolRef = v1beta1.IPPoolReference{Name: "pool"}
		c.Spec.IPv4 = v1beta1.AddressPool{Addresses: []string{"10.1.0.10-10.1.9.250"}, Prefix: 16, Gateway: "10.1.0.1"}
		c.Spec.IPv6 = v1beta1.AddressPool{Addresses: []string{"fd00::10-fd00::ffff"}, Prefix: 64}
	})
	b.provisioned(cluster)
	b.says(cluster, v1beta1.AddressPoolsReadyCondition, metav1.ConditionTrue, v1beta1.AvailableReason)
	four, six := b.inClusterPool("c1-ipv4"), b.inClusterPool("c1-ipv6")
	b.get(b, four)
	b.get(b, six)
	b.Expect(four.Object["spec"]).To(Equal(map[string]any{"addresses": []any{"10.1.0.10-10.1.9.250"}, "prefix": int64(16), "gateway": "10.1.0.1"}))
	b.Expect(six.Object["spec"]).To(Equal(map[string]any{"addresses": []any{"fd00::10-fd00::ffff"}, "prefix": int64(64)}))
	b.get(b, cluster)
	b.Expect(metav1.IsControlledBy(four, cluster)).To(BeTrue())
	b.Expect(four.GetLabels()).To(HaveKeyWithValue(clusterv1.ClusterNameLabel, "c1"), "clusterctl moves it")

	endpoint := &ipamv1.IPAddress{ObjectMeta: b.meta("c1-control-plane-endpoint")}
	b.get(b, endpoint)
	b.Expect(cluster.Spec.ControlPlaneEndpoint).To(Equal(v1beta1.APIEndpoint{Host: endpoint.Spec.Address, Port: 6443}))
	b.Expect(endpoint.Finalizers).To(ContainElement(v1beta1.AddressClaimFinalizer))

	machine := b.machine("c1", "m1", func(m *v1beta1.ProxmoxMachine) {
		m.Spec.Network.Devices[0].IPv4 = v1beta1.IPv4Addressing{Method: v1beta1.IPv4MethodPool}
		m.Spec.Network.Devices[0].IPv6 = v1beta1.IPv6Addressing{Method: v1beta1.IPv6MethodPool}
	})
	b.running(machine)
	b.Eventually(func(g Gomega) {
		b.get(g, machine)
		g.Expect(addressesOf(machine)).To(HaveLen(2))
	}, patience, poll).Should(Succeed())

	b.change(cluster, func() { cluster.Spec.IPv4.Addresses = append(cluster.Spec.IPv4.Addresses, "10.1.20.0/24") })
	b.Eventually(func(g Gomega) {
		b.get(g, four)
		addresses, _, _ := unstructured.NestedStringSlice(four.Object, "spec", "addresses")
		g.Expect(addresses).To(Equal([]string{"10.1.0.10-10.1.9.250", "10.1.20.0/24"}))
	}, patience, poll).Should(Succeed())

	b.change(six, func() { six.SetOwnerReferences(nil) })
	b.change(cluster, func() { cluster.Annotations = map[string]string{"look": "again"} })
	b.Eventually(func(g Gomega) {
		b.get(g, six)
		g.Expect(metav1.IsControlledBy(six, cluster)).To(BeTrue(), "a restore may leave out the owner")
	}, patience, poll).Should(Succeed())

	b.Expect(b.client.Delete(b.ctx, &clusterv1.Machine{ObjectMeta: b.meta("m1")})).To(Succeed())
	b.Expect(b.client.Delete(b.ctx, cluster)).To(Succeed())
	b.says(cluster, clusterv1.DeletingCondition, metav1.ConditionTrue, v1beta1.MachinesRemainReason, "m1")
	b.get(b, endpoint)
	b.Expect(endpoint.DeletionTimestamp.IsZero()).To(BeTrue(), "the endpoint is in use while there are machines")
	b.delete(machine)
	b.gone(cluster)
	b.gone(&ipamv1.IPAddressClaim{ObjectMeta: b.meta(endpoint.Name)})
	b.get(b, endpoint) // its owner, the claim, is gone: the API server's garbage collector, which is not here, takes it
	b.Expect(endpoint.Finalizers).To(BeEmpty())
}

// TestAPoolOfAnotherIsLeftAlone has somebody's pool with the name that the cluster's would have.
func TestAPoolOfAnotherIsLeftAlone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	foreign := b.inClusterPool("c1-ipv4")
	foreign.Object["spec"] = map[string]any{"addresses": []any{"10.9.0.10-10.9.0.20"}, "prefix": int64(24)}
	b.create(foreign)
	cluster := b.cluster("c1", func(c *v1beta1.ProxmoxCluster) {
		c.Spec.IPv4 = v1beta1.AddressPool{Addresses: []string{"10.1.0.10-10.1.0.20"}, Prefix: 16, Gateway: "10.1.0.1"}
	})
	b.says(cluster, v1beta1.AddressPoolsReadyCondition, metav1.ConditionFalse, v1beta1.PoolNotOursReason, "c1-ipv4", "spec.ipv4")
	b.get(b, foreign)
	b.Expect(foreign.Object["spec"]).To(HaveKeyWithValue("prefix", int64(24)))
	b.Expect(foreign.GetOwnerReferences()).To(BeEmpty())
}
