package sandbox_test

import (
	"context"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/cluster-api/test/framework"

	"github.com/capve/cluster-api-provider-proxmox/test/sandbox"
)

const infrastructureVersion = "infrastructure.cluster.x-k8s.io/v1beta1"

// ownerAssertions are Cluster API's, for owners by kind.
type ownerAssertions = map[string]func(types.NamespacedName, []metav1.OwnerReference) error

// TestClusterAPIChecks runs the checks of Cluster API's own end-to-end framework: that owner references and finalizers
// come back when somebody removes them all, and that a cluster at rest is not written to. They need Ginkgo.
func TestClusterAPIChecks(t *testing.T) {
	t.Parallel()
	s := start(t)
	scenario := newScenario(t, s, "checks", "10.20.1")
	scenario.Cluster.WorkerReplicas = 1
	must(t, scenario.Up(t.Context()))

	gomega.RegisterFailHandler(ginkgo.Fail)
	scheme := runtime.NewScheme()
	framework.TryAddDefaultSchemes(scheme)
	proxy := framework.NewClusterProxy("sandbox", s.Kubeconfig(), scheme)
	describe(proxy, scenario.Cluster)
	suite, reporter := ginkgo.GinkgoConfiguration()
	reporter.Verbose = testing.Verbose()
	if !ginkgo.RunSpecs(t, "Cluster API's framework checks", suite, reporter) {
		t.FailNow()
	}

	must(t, scenario.DeleteCluster(t.Context()))
	checkNothingLeft(t, scenario)
}

func describe(proxy framework.ClusterProxy, cluster sandbox.Cluster) {
	ginkgo.Describe("A cluster", ginkgo.Ordered, func() {
		ginkgo.It("gets its owner references back", func(ctx context.Context) {
			framework.ValidateOwnerReferencesResilience(ctx, proxy, cluster.Namespace, cluster.Name, notSecretOfUser,
				framework.CoreOwnerReferenceAssertion, framework.KubeadmBootstrapOwnerReferenceAssertions,
				framework.KubeadmControlPlaneOwnerReferenceAssertions(false), framework.KubernetesReferenceAssertions, ownersOfOurs())
		})
		ginkgo.It("gets its finalizers back", func(ctx context.Context) {
			framework.ValidateFinalizersResilience(ctx, proxy, cluster.Namespace, cluster.Name, notIPAM,
				framework.CoreFinalizersAssertionWithLegacyClusters, framework.KubeadmControlPlaneFinalizersAssertion, finalizersOfOurs())
		})
		ginkgo.It("is left alone at rest", func(ctx context.Context) {
			framework.ValidateResourceVersionStable(ctx, framework.ValidateResourceVersionStableInput{
				ClusterProxy: proxy, Namespace: cluster.Namespace, OwnerGraphFilterFunction: notSecretOfUser,
				WaitToBecomeStable: []any{"3m", "5s"}, WaitToRemainStable: []any{"45s", "5s"},
			})
		})
	})
}

// notSecretOfUser leaves the user's own objects out, which nobody owns: the credentials and the pool.
func notSecretOfUser(object unstructured.Unstructured) bool {
	return object.GetName() != "checks-proxmox" && object.GetKind() != "InClusterIPPool"
}

// notIPAM leaves the IPAM provider's finalizers out too: whether they come back is its business.
func notIPAM(object unstructured.Unstructured) bool {
	return notSecretOfUser(object) && object.GroupVersionKind().Group != ipamv1.GroupVersion.Group
}

// ownersOfOurs says who owns our objects and those that we make.
func ownersOfOurs() ownerAssertions {
	cluster := metav1.OwnerReference{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster"}
	machine := metav1.OwnerReference{APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine", Controller: ptr.To(true)}
	claimant := metav1.OwnerReference{APIVersion: infrastructureVersion, Kind: "ProxmoxMachine", Controller: ptr.To(true)}
	claim := metav1.OwnerReference{APIVersion: ipamv1.GroupVersion.String(), Kind: "IPAddressClaim", Controller: ptr.To(true)}
	pool := metav1.OwnerReference{APIVersion: "ipam.cluster.x-k8s.io/v1alpha2", Kind: "InClusterIPPool"}
	exactly := func(owners ...metav1.OwnerReference) func(types.NamespacedName, []metav1.OwnerReference) error {
		return func(_ types.NamespacedName, got []metav1.OwnerReference) error {
			return framework.HasExactOwners(got, owners...)
		}
	}
	return ownerAssertions{
		"ProxmoxCluster":         exactly(cluster),
		"ProxmoxMachine":         exactly(machine),
		"ProxmoxMachineTemplate": exactly(cluster),
		"IPAddressClaim":         exactly(claimant),
		"IPAddress":              exactly(claim, pool),
	}
}

// finalizersOfOurs says what finalizers our objects have.
func finalizersOfOurs() map[string]func(types.NamespacedName) []string {
	return map[string]func(types.NamespacedName) []string{
		"ProxmoxCluster": func(types.NamespacedName) []string {
			return []string{"proxmoxcluster.infrastructure.cluster.x-k8s.io"}
		},
		"ProxmoxMachine": func(types.NamespacedName) []string {
			return []string{"proxmoxmachine.infrastructure.cluster.x-k8s.io"}
		},
	}
}
