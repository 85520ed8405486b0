package status

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
)

// setFirewall says whether the VM's firewall is as asked, of a machine that asks for one or did. What this pass did not look at
// stays as it was.
func setFirewall(machine *v1beta1.ProxmoxMachine, pass MachinePass) {
	why, isUpToDate, found := pass.Observed.FirewallState()
	if !found {
		conditions.Delete(machine, v1beta1.FirewallUpToDateCondition)
		return
	}
	known := conditions.Get(machine, v1beta1.FirewallUpToDateCondition) != nil
	if known && why.Code == plan.Unobserved && pass.Failure.Code == "" {
		return
	}
	condition := metav1.Condition{Type: v1beta1.FirewallUpToDateCondition, Status: metav1.ConditionTrue, Reason: upToDate}
	if !isUpToDate {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, why.Code, why.Message
		if trouble, troubled := pass.trouble(); troubled {
			condition.Reason, condition.Message = trouble.Code, trouble.Message
		}
	}
	conditions.Set(machine, condition)
}
