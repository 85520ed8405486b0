package status_test

import (
	"testing"

	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/firewall"
	"github.com/capve/cluster-api-provider-proxmox/pkg/status"
)

// TestTheFirewallIsToldButNotPartOfReady has a running machine get a firewall, be hindered, have it, not be looked at, and lose it.
func TestTheFirewallIsToldButNotPartOfReady(t *testing.T) {
	machine := proxmoxMachine(recorded)
	asked := running.Observed
	asked.Spec.Firewall = v1beta1.Firewall{Enabled: ptr.To(true)}
	withState := func(options map[string]string) status.MachinePass {
		pass := running
		pass.Observed = asked
		pass.Observed.Firewall = plan.Firewall{Present: &firewall.State{Options: options}, Before: firewall.Before{"enable": ""}}
		return pass
	}
	refused := withState(nil)
	refused.Failure = plan.Reason{Code: "Forbidden", Message: "VM.Config.Network is missing"}
	unseen := running
	unseen.Observed = asked
	for _, step := range []struct {
		name string
		pass status.MachinePass
		want string
	}{
		{"none asked", running, ""},
		{"not looked at yet", unseen, "False Unobserved: not looked at yet"},
		{"on its way", withState(nil), "False ConfiguringFirewall: setting the firewall options enable=1 of VM 0"},
		{"refused", refused, "False Forbidden: VM.Config.Network is missing"},
		{"there", withState(map[string]string{"enable": "1"}), "True UpToDate"},
		{"not looked at", unseen, "True UpToDate"},
		{"none asked any more", running, ""},
	} {
		after(t, machine, step.pass)
		conditions := told(machine.Status.Conditions)
		if got := conditions[v1beta1.FirewallUpToDateCondition]; got != step.want {
			t.Errorf("%s: %q, want %q", step.name, got, step.want)
		}
		if conditions[clusterv1.ReadyCondition] != ready {
			t.Errorf("%s: Ready is %s", step.name, conditions[clusterv1.ReadyCondition])
		}
	}
}
