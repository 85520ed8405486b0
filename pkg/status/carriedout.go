package status

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
)

// CarriedOut reports whether the conditions of a machine say that its VM is as its spec says, as it is now, and otherwise what is
// missing. What somebody else changed of the VM does not count: that is not the spec's to wait for.
func CarriedOut(machine *v1beta1.ProxmoxMachine) (why string, isDone bool) {
	for _, name := range []string{
		v1beta1.VirtualMachineReadyCondition, v1beta1.ConfigurationUpToDateCondition, v1beta1.FirewallUpToDateCondition,
		v1beta1.HighAvailabilityUpToDateCondition,
	} {
		condition := conditions.Get(machine, name)
		if condition == nil && (name == v1beta1.FirewallUpToDateCondition || name == v1beta1.HighAvailabilityUpToDateCondition) {
			continue // it asks for none
		}
		if condition == nil || condition.ObservedGeneration < machine.Generation {
			return fmt.Sprintf("the new spec of ProxmoxMachine %s was not looked at yet (%s)", machine.Name, name), false
		}
		if condition.Status != metav1.ConditionTrue && !isBesideTheSpec(condition.Reason) {
			return condition.Message, false
		}
	}
	return "", true
}

// isBesideTheSpec reports whether a reason says nothing against the VM being as the spec says.
func isBesideTheSpec(reason string) bool {
	return reason == plan.PoweredOff || reason == plan.Drifted || reason == plan.RepairContested
}
