package status

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
)

// upToDate is the reason of a VM that is as it was made.
const upToDate = "UpToDate"

// setConfiguration says whether the VM's config is as the spec says. What this pass could not compare stays as it was: the
// inventory alone does not show that what a look at the config found is mended.
func setConfiguration(machine *v1beta1.ProxmoxMachine, pass MachinePass) {
	why, isUpToDate, known := pass.Observed.ConfigurationState()
	was := conditions.Get(machine, v1beta1.ConfigurationUpToDateCondition)
	if !known || isUpToDate && pass.Observed.Upkeep.Live == nil && was != nil && was.Status != metav1.ConditionTrue {
		return
	}
	condition := metav1.Condition{Type: v1beta1.ConfigurationUpToDateCondition, Status: metav1.ConditionTrue, Reason: upToDate}
	if !isUpToDate {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, why.Code, why.Message
		if trouble, troubled := pass.trouble(); troubled && why.Code == plan.Configuring {
			condition.Reason, condition.Message = trouble.Code, trouble.Message
		}
	}
	conditions.Set(machine, condition)
}
