package integration_test

import (
	"os"
	"regexp"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/yaml"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
)

// TestExampleHealthCheckMatchesMachineWhoseVMIsGone removes a VM right after its start, before the inventory shows it running.
// Cluster API's core mirrors Ready to the Machine's InfrastructureReady, which the example in the docs looks at.
func TestExampleHealthCheckMatchesMachineWhoseVMIsGone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1")
	b.running(machine)
	b.removeVM(b.vmOf(machine))
	b.says(machine, v1beta1.VirtualMachineReadyCondition, metav1.ConditionFalse, "VirtualMachineGone")

	core := &clusterv1.Machine{}
	conditions.SetMirrorCondition(machine, core, clusterv1.ReadyCondition, conditions.TargetConditionType(clusterv1.MachineInfrastructureReadyCondition))
	page, err := os.ReadFile("../../docs/proxmoxmachine.md")
	b.Expect(err).NotTo(HaveOccurred())
	example := regexp.MustCompile("(?s)```yaml\n(apiVersion: cluster.x-k8s.io/v1beta2\nkind: MachineHealthCheck.*?)```").FindSubmatch(page)
	b.Expect(example).NotTo(BeNil(), "the page has the example")
	check := &clusterv1.MachineHealthCheck{}
	b.Expect(yaml.UnmarshalStrict(example[1], check)).To(Succeed())
	check.Namespace = b.namespace
	b.create(check) // the API server accepts it
	b.Expect(check.Spec.Checks.UnhealthyMachineConditions).To(HaveLen(1))
	wanted := check.Spec.Checks.UnhealthyMachineConditions[0]
	b.Expect(condition(core, wanted.Type)).To(Equal(wanted.Status))
}
