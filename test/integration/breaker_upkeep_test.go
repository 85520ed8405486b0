package integration_test

import (
	"net/http"
	"net/url"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// TestAMachineStaysReadyWhileItsConfigCannotBeRead has a node that runs its VMs, and does not answer for them.
func TestAMachineStaysReadyWhileItsConfigCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]pvesim.Fault{
		"the node's proxy hangs": {Status: 595, Reason: "No route to host"},
		"an error":               {Status: 500, Reason: "got no worker upid - start worker failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.provisioned(b.cluster("c1"))
			machine := b.machine("c1", "m1")
			b.settled(machine)
			b.isFollowed(machine)
			fault.Path = "/nodes/{node}/qemu/{vmid}/pending"
			b.add(b.pve.World.AddFault(fault))

			asked := func() int { return asked(b.requests(), "GET "+fault.Path) }
			before := asked()
			b.ask(http.MethodPut, b.vmPath(machine)+"/config", url.Values{"name": {"pet"}})
			b.Eventually(asked, patience, poll).Should(BeNumerically(">", before))
			b.polled(2)
			b.running(machine)
			b.Expect(asked()).To(Equal(before+1), "it is not asked again and again")
			b.restsWithoutRequests(machine)

			b.change(machine, func() { machine.Spec.CPU.Units = 50 })
			b.says(machine, v1beta1.ConfigurationUpToDateCondition, metav1.ConditionFalse, "Unobserved", "read the config of VM", fault.Reason)
			b.running(machine)
			b.restsWithoutRequests(machine)
		})
	}
}

// TestAMachineStaysReadyWhileItsFirewallCannotBeRead tells what is wrong where it is.
func TestAMachineStaysReadyWhileItsFirewallCannotBeRead(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1")
	b.settled(machine)
	b.add(b.pve.World.AddFault(pvesim.Fault{Path: "/nodes/{node}/qemu/{vmid}/firewall/options", Status: 500, Reason: "got no worker upid - start worker failed"}))
	b.change(machine, func() { machine.Spec.Firewall.Enabled = ptr.To(true) })
	b.says(machine, v1beta1.FirewallUpToDateCondition, metav1.ConditionFalse, "Error", "got no worker upid")
	b.running(machine)
	b.pve.World.ClearFaults()
	b.says(machine, v1beta1.FirewallUpToDateCondition, metav1.ConditionTrue, "UpToDate")
	b.running(machine)
}
