package integration_test

import (
	"net/http"
	"net/url"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// TestThePlaceFollowsAVMOutOfAllZones moves a VM to a node that no zone names, and asks as somebody does who drains a node.
func TestThePlaceFollowsAVMOutOfAllZones(t *testing.T) {
	t.Parallel()
	b := newBench(t, pvesim.WithTemplates(pvesim.TemplateSpec{Name: "ubuntu-2404-k8s", Storage: "shared"}))
	b.provisioned(b.cluster("c1", func(c *v1beta1.ProxmoxCluster) {
		c.Spec.Regions[0].Zones = []v1beta1.Zone{{Name: "rack1", Nodes: []string{"pve1"}}, {Name: "rack2", Nodes: []string{"pve2"}}}
	}))
	machine := b.machine("c1", "m1", at("pve1"), func(m *v1beta1.ProxmoxMachine) { m.Spec.Bootstrap.Storage = "shared" })
	b.settled(machine)
	b.get(b, machine)
	b.Expect(machine.Status.FailureDomain).To(Equal("rack1"))
	b.Expect(machine.Labels).To(And(HaveKeyWithValue("topology.kubernetes.io/region", "home"), HaveKeyWithValue("topology.kubernetes.io/zone", "rack1")))
	b.Expect(b.onHost("pve1")).To(ConsistOf("m1"))
	b.restsWithoutRequests(machine)

	b.ask(http.MethodPost, b.vmPath(machine)+"/migrate", url.Values{"target": {"pve3"}, "online": {"1"}})
	b.tells(machine, "Normal", v1beta1.MigratedEvent, "from pve1 to pve3", "out of failure domain rack1", "pve3 is in no zone of region home")
	b.Eventually(func(g Gomega) {
		b.get(g, machine)
		g.Expect(machine.Status.FailureDomain).To(BeEmpty())
		g.Expect(machine.Labels).NotTo(HaveKey("topology.kubernetes.io/zone"))
		g.Expect(b.onHost("pve3")).To(ConsistOf("m1"))
		g.Expect(b.onHost("pve1")).To(BeEmpty())
	}, patience, poll).Should(Succeed())
	b.restsWithoutRequests(machine)
}

// onHost are the machines that `kubectl get proxmoxmachines -l <host label>=node` lists.
func (b *bench) onHost(node string) []string {
	b.t.Helper()
	list := &v1beta1.ProxmoxMachineList{}
	b.Expect(b.client.List(b.ctx, list, client.InNamespace(b.namespace), client.MatchingLabels{v1beta1.HostLabel: node})).To(Succeed())
	var names []string
	for _, machine := range list.Items {
		names = append(names, machine.Name)
	}
	return names
}
