package integration_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/cluster-api/util/contract"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// These tests are named after what Cluster API's contract v1beta2 asks of an infrastructure provider:
// https://cluster-api.sigs.k8s.io/developer/providers/contracts/overview

func TestContractCRDs(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	ours := map[string]apiextensionsv1.CustomResourceDefinitionSpec{}
	for _, crd := range apiServer(t).CRDs {
		if crd.Spec.Group != v1beta1.GroupVersion.Group {
			continue
		}
		kind := crd.Spec.Names.Kind
		ours[kind] = crd.Spec
		g.Expect(crd.Name).To(Equal(contract.CalculateCRDName(crd.Spec.Group, kind)))
		g.Expect(crd.Labels).To(HaveKeyWithValue("cluster.x-k8s.io/v1beta2", "v1beta1"), kind)
		g.Expect(crd.Labels).NotTo(HaveKey("cluster.x-k8s.io/v1beta1"), kind)
		g.Expect(crd.Spec.Scope).To(Equal(apiextensionsv1.NamespaceScoped), kind)
		g.Expect(crd.Spec.Names.ListKind).To(Equal(kind + "List"))
		g.Expect(crd.Spec.Names.Categories).To(ContainElement("cluster-api"), kind)
	}
	g.Expect(ours).To(HaveLen(4))
	for _, kind := range []string{"ProxmoxCluster", "ProxmoxMachine"} {
		g.Expect(ours[kind].Versions[0].Subresources.Status).NotTo(BeNil(), kind)
		list := property(ours[kind], "status", "conditions")
		g.Expect(list.XListType).To(HaveValue(Equal("map")))
		g.Expect(list.XListMapKeys).To(Equal([]string{"type"}))
		g.Expect(list.MaxItems).To(HaveValue(BeEquivalentTo(32)))
		g.Expect(property(ours[kind], "status", "initialization", "provisioned").Type).To(Equal("boolean"))
		g.Expect(property(ours[kind], "status").Properties).NotTo(HaveKey("failureReason"))
		g.Expect(property(ours[kind], "status").Properties).NotTo(HaveKey("failureMessage"))
	}
	domains := property(ours["ProxmoxCluster"], "status", "failureDomains")
	g.Expect(domains.Type).To(Equal("array"))
	g.Expect(domains.XListMapKeys).To(Equal([]string{"name"}))
	g.Expect(property(ours["ProxmoxMachine"], "spec", "providerID").MaxLength).To(HaveValue(BeEquivalentTo(512)))
	g.Expect(property(ours["ProxmoxMachine"], "spec").Properties).NotTo(HaveKey("failureDomain"), "Cluster API would overwrite the Machine's with it")
}

func property(crd apiextensionsv1.CustomResourceDefinitionSpec, path ...string) apiextensionsv1.JSONSchemaProps {
	at := *crd.Versions[0].Schema.OpenAPIV3Schema
	for _, name := range path {
		at = at.Properties[name]
	}
	return at
}

func TestContractClusterProvisionedIsALatch(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	cluster := b.cluster("c1")
	b.provisioned(cluster)
	b.says(cluster, clusterv1.ReadyCondition, metav1.ConditionTrue, clusterv1.ReadyReason)
	b.change(cluster, func() { cluster.Spec.Regions[0].CredentialsRef.Name = "none" })
	b.says(cluster, clusterv1.ReadyCondition, metav1.ConditionFalse, clusterv1.NotReadyReason)
	b.Expect(cluster.Status.Initialization.Provisioned).To(HaveValue(BeTrue()))
	b.Expect(cluster.Status.FailureDomains).To(HaveLen(3), "zones that cannot be seen are not gone")
}

func TestContractFailureDomainsAreSorted(t *testing.T) {
	t.Parallel()
	b := newBench(t, pvesim.WithNodes(11))
	everyNode := b.cluster("nodes")
	b.provisioned(everyNode)
	b.Expect(names(everyNode)).To(Equal([]string{"pve1", "pve10", "pve11", "pve2", "pve3", "pve4", "pve5", "pve6", "pve7", "pve8", "pve9"}))
	for _, domain := range everyNode.Status.FailureDomains {
		b.Expect(domain.ControlPlane).To(HaveValue(BeTrue()))
	}
	zones := b.cluster("zones", func(c *v1beta1.ProxmoxCluster) {
		c.Spec.Regions[0].Zones = []v1beta1.Zone{{Name: "b", Nodes: []string{"pve2"}}, {Name: "a", Nodes: []string{"pve1"}, ControlPlane: ptr.To(false)}}
		other := c.Spec.Regions[0].DeepCopy()
		other.Name, other.Zones = "away", []v1beta1.Zone{{Name: "c", Nodes: []string{"pve3"}}}
		c.Spec.Regions = append(c.Spec.Regions, *other)
	})
	b.provisioned(zones)
	b.Expect(names(zones)).To(Equal([]string{"away.c", "home.a", "home.b"}))
	b.Expect(zones.Status.FailureDomains[1].ControlPlane).To(HaveValue(BeFalse()))
}

func names(cluster *v1beta1.ProxmoxCluster) []string {
	result := []string{}
	for _, domain := range cluster.Status.FailureDomains {
		result = append(result, domain.Name)
	}
	return result
}

func TestContractFailureDomainsAreOmittedWhenThereAreNone(t *testing.T) {
	t.Parallel()
	b := newBench(t, pvesim.WithNodes(1))
	cluster := b.cluster("c1", func(c *v1beta1.ProxmoxCluster) { c.Spec.Regions[0].CredentialsRef.Name = "none" })
	b.says(cluster, clusterv1.ReadyCondition, metav1.ConditionFalse, clusterv1.NotReadyReason)
	b.Expect(document(t, b.env.scheme, cluster).Object["status"]).NotTo(HaveKey("failureDomains"))
}

func TestContractControlPlaneEndpointIsTakenFromTheCluster(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	cluster := b.cluster("c1", func(c *v1beta1.ProxmoxCluster) { c.Spec.ControlPlaneEndpoint = v1beta1.APIEndpoint{} })
	b.says(cluster, v1beta1.ControlPlaneEndpointSetCondition, metav1.ConditionFalse, v1beta1.WaitingForEndpointReason)
	b.Expect(cluster.Status.Initialization.Provisioned).To(BeNil(), "the endpoint comes before provisioned")
	owner := &clusterv1.Cluster{ObjectMeta: b.meta("c1")}
	b.change(owner, func() { owner.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "10.1.0.9", Port: 443} })
	b.provisioned(cluster)
	b.Expect(cluster.Spec.ControlPlaneEndpoint).To(Equal(v1beta1.APIEndpoint{Host: "10.1.0.9", Port: 443}))
}

// TestAnEndpointOfTheClusterIsNoMachines has a Cluster get an endpoint that is among the addresses for its machines.
func TestAnEndpointOfTheClusterIsNoMachines(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	pool := b.inClusterPool("c1-ipv4")
	cluster := b.cluster("c1", func(c *v1beta1.ProxmoxCluster) {
		c.Spec.ControlPlaneEndpoint = v1beta1.APIEndpoint{}
		c.Spec.IPv4 = v1beta1.AddressPool{Addresses: []string{"10.1.0.10-10.1.0.99"}, Prefix: 16, Gateway: "10.1.0.1"}
	})
	b.Eventually(func(g Gomega) { b.get(g, pool) }, patience, poll).Should(Succeed())
	owner := &clusterv1.Cluster{ObjectMeta: b.meta("c1")}
	b.change(owner, func() { owner.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "10.1.0.20", Port: 6443} })
	b.says(cluster, v1beta1.AddressPoolsReadyCondition, metav1.ConditionFalse, v1beta1.EndpointInPoolReason,
		"the spec.controlPlaneEndpoint of Cluster c1 is 10.1.0.20", "spec.ipv4.addresses[0]: 10.1.0.10-10.1.0.99: contains 10.1.0.20", "one up to 10.1.0.19 and one from 10.1.0.21")
	b.Expect(cluster.Status.Initialization.Provisioned).To(BeNil(), "no machine gets an address of the pool")
	b.change(cluster, func() { cluster.Spec.IPv4.Addresses = []string{"10.1.0.10-10.1.0.19", "10.1.0.21-10.1.0.99"} })
	b.provisioned(cluster)
	b.Expect(cluster.Spec.ControlPlaneEndpoint.Host).To(Equal("10.1.0.20"))

	worker := b.machine("c1", "m1", func(m *v1beta1.ProxmoxMachine) { m.Spec.Network.Devices[0].IPv4.PoolRef.Name = "empty" })
	b.says(worker, v1beta1.AddressesReadyCondition, metav1.ConditionFalse, "WaitingForAddresses", "no address from InClusterIPPool empty yet")
	b.bind(worker, "10.1.0.20")
	b.says(worker, v1beta1.AddressesReadyCondition, metav1.ConditionFalse, "InvalidAddress",
		"10.1.0.20 is the host of the spec.controlPlaneEndpoint of Cluster c1: exclude it from pool empty")
}

// TestContractNothingIsWrittenBeforeTheOwnerReference also looks at objects that are paused, and comes back to them once
// they are owned.
func TestContractNothingIsWrittenBeforeTheOwnerReference(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var refs []metav1.OwnerReference
	cluster := b.cluster("c1", func(c *v1beta1.ProxmoxCluster) { refs, c.OwnerReferences = c.OwnerReferences, nil })
	var machineRefs []metav1.OwnerReference
	machine := b.machine("c1", "m1", func(m *v1beta1.ProxmoxMachine) { machineRefs, m.OwnerReferences = m.OwnerReferences, nil })
	versions := func() []string {
		b.get(b, cluster)
		b.get(b, machine)
		return []string{cluster.ResourceVersion, machine.ResourceVersion}
	}
	before := versions()
	b.Consistently(versions, 3*time.Second, poll).Should(Equal(before))
	b.Expect(b.requests()).To(BeEmpty())
	b.change(cluster, func() { cluster.OwnerReferences = refs })
	b.provisioned(cluster)
	b.change(machine, func() { machine.OwnerReferences = machineRefs })
	b.running(machine)
}

func TestContractExternallyManagedClustersAreSkipped(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	cluster := b.cluster("c1", func(c *v1beta1.ProxmoxCluster) {
		c.Annotations = map[string]string{clusterv1.ManagedByAnnotation: "somebody"}
	})
	version := func() string { b.get(b, cluster); return cluster.ResourceVersion }
	before := version()
	b.Consistently(version, 3*time.Second, poll).Should(Equal(before))
	b.Expect(b.requests()).To(BeEmpty())
	b.delete(cluster)
}

func TestContractClusterStaysWhileMachinesExist(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	cluster := b.cluster("c1")
	b.provisioned(cluster)
	machine := b.machine("c1", "m1")
	b.running(machine)
	b.Expect(b.client.Delete(b.ctx, cluster)).To(Succeed())
	b.says(cluster, clusterv1.DeletingCondition, metav1.ConditionTrue, v1beta1.MachinesRemainReason, "m1")
	b.says(cluster, clusterv1.ReadyCondition, metav1.ConditionFalse, clusterv1.NotReadyReason, "m1")
	b.Expect(b.vmOf(machine).Status).To(Equal("running"))
	b.delete(machine)
	b.gone(cluster)
	b.leavesNothing()
}

func TestContractMachineWaitsForTheCluster(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.cluster("c1")
	machine := b.machine("c1", "m1")
	b.says(machine, clusterv1.ReadyCondition, metav1.ConditionFalse, clusterv1.NotReadyReason)
	b.says(machine, v1beta1.VirtualMachineReadyCondition, metav1.ConditionFalse, "WaitingForClusterInfrastructure")
	b.Expect(writes(b.requests())).To(BeEmpty())
	b.delete(machine)
}

func TestContractMachineWaitsForBootstrapData(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	owner, machine := &clusterv1.Machine{ObjectMeta: b.meta("m1")}, b.unbootstrapped("c1", "m1")
	b.says(machine, v1beta1.VirtualMachineReadyCondition, metav1.ConditionFalse, "WaitingForBootstrapData", "bootstrap provider")
	b.Expect(writes(b.requests())).To(BeEmpty())
	b.change(owner, func() { owner.Spec.Bootstrap.DataSecretName = ptr.To("m1-bootstrap") })
	b.running(machine)
}

// unbootstrapped makes a machine whose bootstrap provider has not made the data yet.
func (b *bench) unbootstrapped(cluster, name string) *v1beta1.ProxmoxMachine {
	b.t.Helper()
	var refs []metav1.OwnerReference
	machine := b.machine(cluster, name, func(m *v1beta1.ProxmoxMachine) { refs, m.OwnerReferences = m.OwnerReferences, nil })
	owner := &clusterv1.Machine{ObjectMeta: b.meta(name)}
	b.change(owner, func() {
		owner.Spec.Bootstrap = clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{
			APIGroup: "bootstrap.cluster.x-k8s.io", Kind: "KubeadmConfig", Name: name,
		}}
	})
	b.change(machine, func() { machine.OwnerReferences = refs })
	return machine
}

func TestContractDeletionIsNotGated(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	cluster := b.cluster("c1")
	early := b.machine("c1", "early")
	b.says(early, v1beta1.VirtualMachineReadyCondition, metav1.ConditionFalse, "WaitingForClusterInfrastructure")
	b.delete(early)
	b.provisioned(cluster)
	running := b.machine("c1", "running")
	b.running(running)
	owner := &clusterv1.Cluster{ObjectMeta: b.meta("c1")}
	b.updateStatus(owner, func() { owner.Status.Initialization.InfrastructureProvisioned = ptr.To(false) })
	b.Expect(b.client.Delete(b.ctx, &clusterv1.Machine{ObjectMeta: b.meta("running")})).To(Succeed())
	b.delete(running)
	b.leavesNothing()
	lost := b.unbootstrapped("c1", "lost")
	b.says(lost, v1beta1.VirtualMachineReadyCondition, metav1.ConditionFalse, "WaitingForClusterInfrastructure")
	b.Expect(b.client.Delete(b.ctx, cluster)).To(Succeed())
	b.change(cluster, func() { cluster.Finalizers = nil })
	b.gone(cluster)
	b.delete(lost)
}

func TestContractOrphanedMachineIsReleased(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	machine, waiting := b.machine("c1", "m1"), b.unbootstrapped("c1", "m2")
	b.running(machine)
	b.says(waiting, v1beta1.VirtualMachineReadyCondition, metav1.ConditionFalse, "WaitingForBootstrapData")
	for _, orphan := range []*v1beta1.ProxmoxMachine{machine, waiting} {
		b.Expect(b.client.Delete(b.ctx, &clusterv1.Machine{ObjectMeta: b.meta(orphan.Name)})).To(Succeed())
		b.change(orphan, func() { orphan.OwnerReferences = nil })
		b.delete(orphan)
	}
	b.leavesNothing()
}

func TestContractReadyOverTheWholeLife(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	cluster := b.cluster("c1")
	b.provisioned(cluster)
	machine := b.machine("c1", "m1", func(m *v1beta1.ProxmoxMachine) { m.Finalizers = []string{"example.com/look-at-the-end"} })
	reasons := map[string]bool{}
	b.atEachStep(machine, func(reason string) {
		reasons[reason] = true
		ready := conditions.Get(machine, clusterv1.ReadyCondition)
		b.Expect(ready).NotTo(BeNil(), "no Ready while %s", reason)
		b.Expect(ready.ObservedGeneration).NotTo(BeZero())
		// ConfigurationUpToDate joins them once the inventory shows the VM.
		b.Expect(machine.Status.Conditions).To(Or(HaveLen(6), HaveLen(7)), "every condition is there from the first: %s", pretty(machine.Status.Conditions))
	})
	b.running(machine)
	b.Expect(len(reasons)).To(BeNumerically(">=", 4), "%v", reasons)
	b.Expect(machine.Status.Initialization.Provisioned).To(HaveValue(BeTrue()))
	b.Expect(b.client.Delete(b.ctx, machine)).To(Succeed())
	b.says(machine, clusterv1.DeletingCondition, metav1.ConditionTrue, "Deleted")
	b.says(machine, clusterv1.ReadyCondition, metav1.ConditionFalse, clusterv1.NotReadyReason)
	b.Eventually(func() []string { b.get(b, machine); return machine.Finalizers }, patience, poll).
		Should(Equal([]string{"example.com/look-at-the-end"}))
	b.change(machine, func() { machine.Finalizers = nil })
	b.gone(machine)
	b.leavesNothing()
}

func TestContractPauseStopsAllWrites(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	cluster := b.cluster("c1")
	b.provisioned(cluster)
	machine := b.unbootstrapped("c1", "m1")
	b.says(machine, v1beta1.VirtualMachineReadyCondition, metav1.ConditionFalse, "WaitingForBootstrapData")
	owner := &clusterv1.Cluster{ObjectMeta: b.meta("c1")}
	b.change(owner, func() { owner.Spec.Paused = ptr.To(true) })
	b.says(machine, clusterv1.PausedCondition, metav1.ConditionTrue, clusterv1.PausedReason)
	b.says(cluster, clusterv1.PausedCondition, metav1.ConditionTrue, clusterv1.PausedReason)

	parent := &clusterv1.Machine{ObjectMeta: b.meta("m1")}
	b.change(parent, func() { parent.Spec.Bootstrap.DataSecretName = ptr.To("m1-bootstrap") })
	b.Expect(b.client.Delete(b.ctx, cluster)).To(Succeed())
	b.Eventually(func() bool {
		b.get(b, cluster)
		return conditions.Get(cluster, clusterv1.PausedCondition).ObservedGeneration == cluster.Generation
	}, patience, poll).Should(BeTrue(), "Paused follows the generation, which the deletion raised")
	versions := func() []string {
		b.get(b, cluster)
		b.get(b, machine)
		return []string{cluster.ResourceVersion, machine.ResourceVersion}
	}
	before := versions()
	b.Consistently(versions, 3*time.Second, poll).Should(Equal(before))
	b.Expect(writes(b.requests())).To(BeEmpty())

	b.change(owner, func() { owner.Spec.Paused = nil })
	b.running(machine)
	b.says(machine, clusterv1.PausedCondition, metav1.ConditionFalse, clusterv1.NotPausedReason)
	b.change(machine, func() { machine.Annotations = map[string]string{clusterv1.PausedAnnotation: ""} })
	b.says(machine, clusterv1.PausedCondition, metav1.ConditionTrue, clusterv1.PausedReason)
	b.Expect(b.client.Delete(b.ctx, machine)).To(Succeed())
	b.Consistently(func() string { return b.vmOf(machine).Status }, 3*time.Second, poll).Should(Equal("running"))
	b.change(machine, func() { machine.Annotations = nil })
	b.gone(machine)
	b.gone(cluster)
	b.leavesNothing()
}

func TestContractMachineIsPlacedInItsFailureDomain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.provisioned(b.cluster("c1", func(c *v1beta1.ProxmoxCluster) {
		c.Spec.Regions[0].Zones = []v1beta1.Zone{{Name: "a", Nodes: []string{"pve1", "pve2"}}, {Name: "b", Nodes: []string{"pve3"}}}
	}))
	machine := b.unbootstrapped("c1", "m1")
	owner := &clusterv1.Machine{ObjectMeta: b.meta("m1")}
	b.change(owner, func() {
		owner.Spec.FailureDomain, owner.Spec.Bootstrap.DataSecretName = "b", ptr.To("m1-bootstrap")
	})
	b.running(machine)
	b.Expect(b.vmOf(machine).Node).To(BeEquivalentTo("pve3"))
	b.Expect(machine.Status.FailureDomain).To(Equal("b"))
	b.Expect(machine.Spec.ProviderID).To(Equal("proxmox://" + machine.Spec.Reservation.UUID))
}

func TestContractAddressClaims(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1", func(m *v1beta1.ProxmoxMachine) {
		second := m.Spec.Network.Devices[0]
		second.Name = "net1"
		m.Spec.Network.Devices = append(m.Spec.Network.Devices, second)
	})
	b.running(machine)
	for _, name := range []string{"m1-net0-ipv4", "m1-net1-ipv4"} {
		claim := &ipamv1.IPAddressClaim{ObjectMeta: b.meta(name)}
		b.get(b, claim)
		b.Expect(claim.OwnerReferences).To(Equal([]metav1.OwnerReference{{
			APIVersion: v1beta1.GroupVersion.String(), Kind: "ProxmoxMachine", Name: "m1", UID: machine.UID,
			Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
		}}))
		b.Expect(claim.Finalizers).To(ContainElement(v1beta1.AddressClaimFinalizer))
		b.Expect(claim.Labels).To(HaveKeyWithValue(clusterv1.ClusterNameLabel, "c1"), "clusterctl and IPAM providers go by it")
		b.Expect(claim.Spec.ClusterName).To(Equal("c1"))
		b.Expect(claim.Spec.PoolRef).To(Equal(ipamv1.IPPoolReference{APIGroup: "ipam.cluster.x-k8s.io", Kind: "InClusterIPPool", Name: "pool"}))
	}
	b.Expect(machine.Status.Addresses).To(HaveLen(3), "the host name and two addresses")
}

// TestContractAddressesAreHeldAgain takes away what ties a claim to its machine, as a restore does.
func TestContractAddressesAreHeldAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1")
	b.running(machine)
	claim, address := &ipamv1.IPAddressClaim{ObjectMeta: b.meta("m1-net0-ipv4")}, &ipamv1.IPAddress{ObjectMeta: b.meta("m1-net0-ipv4")}
	b.change(address, func() { address.Finalizers = nil })
	b.change(claim, func() { claim.Finalizers, claim.OwnerReferences = nil, nil })
	b.change(machine, func() { machine.Annotations = map[string]string{"touched": "yes"} }) // what owns nothing is woken by nothing
	b.Eventually(func(g Gomega) {
		b.get(g, claim)
		b.get(g, address)
		g.Expect(metav1.IsControlledBy(claim, machine)).To(BeTrue())
		g.Expect(claim.Finalizers).To(ContainElement(v1beta1.AddressClaimFinalizer))
		g.Expect(address.Finalizers).To(ContainElement(v1beta1.AddressClaimFinalizer))
	}, patience, poll).Should(Succeed())
}

// TestContractAddressIsNotReleasedBeforeItsVM has the claim deleted by somebody, and the VM's destruction refused.
func TestContractAddressIsNotReleasedBeforeItsVM(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1")
	b.running(machine)
	b.Expect(b.pve.World.AddFault(pvesim.Fault{Method: "DELETE", Path: "/nodes/{node}/qemu/{vmid}", Status: 500, Reason: "not today"})).To(Succeed())
	claim := &ipamv1.IPAddressClaim{ObjectMeta: b.meta("m1-net0-ipv4")}
	b.Expect(b.client.Delete(b.ctx, claim)).To(Succeed())
	b.Expect(b.client.Delete(b.ctx, machine)).To(Succeed())
	b.Eventually(func() string { return b.vmOf(machine).Status }, patience, poll).Should(Equal("stopped"))
	b.says(machine, clusterv1.DeletingCondition, metav1.ConditionTrue, "Error", "not today")
	b.get(b, claim)
	b.Expect(claim.Finalizers).To(ContainElement(v1beta1.AddressClaimFinalizer))
	address := &ipamv1.IPAddress{ObjectMeta: b.meta(claim.Name)}
	b.get(b, address)
	b.Expect(address.DeletionTimestamp).NotTo(BeNil(), "the IPAM provider wants it back")
	b.pve.World.ClearFaults()
	b.gone(machine)
	b.gone(claim)
	b.gone(address)
	b.leavesNothing()
}

// TestContractSteadyStateCostsNothing counts, over more than two polls of the inventory, what machines that are ready cost.
func TestContractSteadyStateCostsNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	cluster := b.cluster("c1")
	b.provisioned(cluster)
	machines := []*v1beta1.ProxmoxMachine{b.machine("c1", "m1"), b.machine("c1", "m2")}
	for _, machine := range machines {
		b.settled(machine)
	}
	versions := func() []string {
		b.get(b, cluster)
		result := []string{cluster.ResourceVersion}
		for _, machine := range machines {
			b.get(b, machine)
			result = append(result, machine.ResourceVersion)
		}
		return result
	}
	before, sent, since := versions(), len(b.requests()), time.Now()
	b.Consistently(versions, 16*time.Second, poll).Should(Equal(before))
	steady, polls := b.requests()[sent:], int(time.Since(since)/(5*time.Second))
	for _, request := range steady {
		b.Expect(endpoint(request)).To(Equal("GET /cluster/resources"))
	}
	b.Expect(len(steady)).To(And(BeNumerically(">", 0), BeNumerically("<=", polls+1)), "one poll of the inventory each 5 s, and nothing else")
}

// settled waits until a machine runs, has its Node and is rid of its seed, and the inventory knows.
func (b *bench) settled(machine *v1beta1.ProxmoxMachine) {
	b.t.Helper()
	b.running(machine)
	b.hasNode(machine)
	b.says(machine, v1beta1.BootstrapSeedRemovedCondition, metav1.ConditionTrue, "Removed")
	b.polled(2)
}

// TestContractStatusCanBeRestored wipes the status at each step, as `clusterctl move` does, and finds the same VM again.
func TestContractStatusCanBeRestored(t *testing.T) {
	t.Parallel()
	for name, restart := range map[string]bool{"in a running manager": false, "and the manager starts anew": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.provisioned(b.cluster("c1"))
			machine := b.machine("c1", "m1")
			reservations := map[v1beta1.Reservation]bool{}
			b.atEachStep(machine, func(string) {
				if machine.Spec.Reservation.UUID != "" {
					reservations[machine.Spec.Reservation] = true
				}
				if restart {
					b.stop()
				}
				b.wipeStatus(machine)
				if restart {
					b.startControllers()
				}
			})
			b.Expect(reservations).To(HaveLen(1))
			b.settled(machine)
			want := machine.Status.DeepCopy()
			b.wipeStatus(machine)
			b.running(machine)
			b.Expect(machine.Status.Initialization.Provisioned).To(HaveValue(BeTrue()))
			b.Expect(machine.Status.Addresses).To(Equal(want.Addresses))
			b.Expect(machine.Status.FailureDomain).To(Equal(want.FailureDomain))
			b.Expect(machine.Status.VMID).To(Equal(want.VMID))
			b.Expect(b.pveVMs()).To(HaveLen(1))
			b.delete(machine)
			b.leavesNothing()
		})
	}
}

// TestContractMoveFindsEveryObject follows the owner references up from the objects that we make, as `clusterctl move` does.
func TestContractMoveFindsEveryObject(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1")
	b.running(machine)
	claims := &ipamv1.IPAddressClaimList{}
	b.Expect(b.client.List(b.ctx, claims, client.InNamespace(b.namespace))).To(Succeed())
	b.Expect(claims.Items).To(HaveLen(1))
	b.Expect(metav1.IsControlledBy(&claims.Items[0], machine)).To(BeTrue())
	b.Expect(machine.Annotations).NotTo(HaveKey("clusterctl.cluster.x-k8s.io/block-move"))
}
