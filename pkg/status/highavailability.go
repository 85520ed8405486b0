package status

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
)

// setHighAvailability says whether the VM is to the HA manager what is asked, of a machine that asks for it or did. What this
// pass did not look at stays as it was.
func setHighAvailability(machine *v1beta1.ProxmoxMachine, pass MachinePass) {
	why, isUpToDate, found := pass.Observed.HighAvailabilityState()
	if !found {
		conditions.Delete(machine, v1beta1.HighAvailabilityUpToDateCondition)
		return
	}
	known := conditions.Get(machine, v1beta1.HighAvailabilityUpToDateCondition) != nil
	if known && why.Code == plan.Unobserved && pass.Failure.Code == "" {
		return
	}
	condition := metav1.Condition{Type: v1beta1.HighAvailabilityUpToDateCondition, Status: metav1.ConditionTrue, Reason: upToDate}
	if !isUpToDate {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, why.Code, why.Message
		if pass.Failure.Code != "" {
			condition.Reason, condition.Message = pass.Failure.Code, pass.Failure.Message
		}
	}
	conditions.Set(machine, condition)
}
