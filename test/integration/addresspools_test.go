package integration_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
)

// usedUp makes a pool of the in-cluster IPAM provider, whose addresses that provider counts as used.
func (b *bench) usedUp(pool *unstructured.Unstructured) {
	b.t.Helper()
	pool.SetAPIVersion("ipam.cluster.x-k8s.io/v1alpha2")
	b.Expect(unstructured.SetNestedMap(pool.Object, map[string]any{"addresses": []any{"10.9.0.10-10.9.0.11"}, "prefix": int64(24)}, "spec")).To(Succeed())
	b.create(pool)
	b.updateStatus(pool, func() {
		counts := map[string]any{"total": int64(2), "used": int64(2), "free": int64(0), "outOfRange": int64(0)}
		b.Expect(unstructured.SetNestedMap(pool.Object, counts, "status", "ipAddresses")).To(Succeed())
	})
}

// fromPool has net0 of a machine get its address from a pool.
func fromPool(group, kind, name string) func(*v1beta1.ProxmoxMachine) {
	return func(m *v1beta1.ProxmoxMachine) {
		m.Spec.Network.Devices[0].IPv4.PoolRef = v1beta1.IPPoolReference{APIGroup: group, Kind: kind, Name: name}
	}
}

func TestAPoolWithoutAFreeAddressIsTold(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"InClusterIPPool", "GlobalInClusterIPPool"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.provisioned(b.cluster("c1"))
			pool := &unstructured.Unstructured{Object: map[string]any{"kind": kind}}
			pool.SetName(b.namespace + "-full") // those of the cluster are in no namespace
			if kind == "InClusterIPPool" {
				pool.SetNamespace(b.namespace)
			}
			b.usedUp(pool)
			t.Cleanup(func() { _ = b.client.Delete(b.ctx, pool) })
			machine := b.machine("c1", "m1", fromPool("ipam.cluster.x-k8s.io", kind, pool.GetName()))
			text := []string{"IPAddressClaim m1-net0-ipv4 has no address from " + kind + " " + pool.GetName(), "no free address", "add addresses to it"}
			b.says(machine, v1beta1.AddressesReadyCondition, metav1.ConditionFalse, plan.PoolExhausted, text...)
			b.says(machine, v1beta1.VirtualMachineReadyCondition, metav1.ConditionFalse, plan.PoolExhausted, text...)
			b.tells(machine, "Warning", plan.PoolExhausted, text...)
			b.bind(machine, "10.1.0.99")
			b.running(machine)
			b.tells(machine, "Warning", plan.PoolExhausted) // once
			b.delete(machine)
		})
	}
}

// TestAnIPAMProviderSaysThatItsPoolIsUsedUp: by Cluster API's contract, in the claim.
func TestAnIPAMProviderSaysThatItsPoolIsUsedUp(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1", fromPool("ipam.example.com", "Prefix", "office"))
	b.says(machine, v1beta1.AddressesReadyCondition, metav1.ConditionFalse, plan.WaitingForAddresses, "from Prefix office", "does the pool exist")
	b.untold(machine, plan.PoolExhausted)
	claim := &ipamv1.IPAddressClaim{ObjectMeta: b.meta("m1-net0-ipv4")}
	b.updateStatus(claim, func() {
		claim.Status.Conditions = []metav1.Condition{{
			Type: clusterv1.ReadyCondition, Status: metav1.ConditionFalse, Reason: ipamv1.IPAddressClaimReadyPoolExhaustedReason,
			Message: "all 14 addresses of 192.0.2.0/28 are given", LastTransitionTime: metav1.Now(),
		}}
	})
	b.says(machine, v1beta1.AddressesReadyCondition, metav1.ConditionFalse, plan.PoolExhausted, "PoolExhausted: all 14 addresses of 192.0.2.0/28 are given")
	b.tells(machine, "Warning", plan.PoolExhausted, "all 14 addresses")
	b.bind(machine, "10.1.0.99")
	b.running(machine)
	b.delete(machine)
}

// TestTheLastAddressOfAPoolIsNotAnEmptyPool: the pool counts it as used before the claim is told of it.
func TestTheLastAddressOfAPoolIsNotAnEmptyPool(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	pool := &unstructured.Unstructured{Object: map[string]any{"kind": "InClusterIPPool"}}
	pool.SetName("full")
	pool.SetNamespace(b.namespace)
	b.usedUp(pool)
	reference := ipamv1.IPPoolReference{APIGroup: "ipam.cluster.x-k8s.io", Kind: "InClusterIPPool", Name: "full"}
	b.create(&ipamv1.IPAddress{ObjectMeta: b.meta("m1-net0-ipv4"), Spec: ipamv1.IPAddressSpec{
		ClaimRef: ipamv1.IPAddressClaimReference{Name: "m1-net0-ipv4"}, PoolRef: reference, Address: "10.9.0.11", Prefix: ptr.To[int32](24), Gateway: "10.9.0.1",
	}})
	machine := b.machine("c1", "m1", fromPool(reference.APIGroup, reference.Kind, reference.Name))
	b.says(machine, v1beta1.AddressesReadyCondition, metav1.ConditionFalse, plan.WaitingForAddresses, "from InClusterIPPool full")
	claim := &ipamv1.IPAddressClaim{ObjectMeta: b.meta("m1-net0-ipv4")}
	b.updateStatus(claim, func() { claim.Status.AddressRef.Name = claim.Name })
	b.running(machine)
	b.untold(machine, plan.PoolExhausted)
	b.delete(machine)
}
