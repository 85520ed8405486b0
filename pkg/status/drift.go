package status

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
)

// upToDate is the reason of a VM that is as it was made.
const upToDate = "UpToDate"

// setDrift says whether the VM is as it was made. What this pass could not compare stays as it was.
func setDrift(machine *v1beta1.ProxmoxMachine, observed plan.Machine) {
	differences, known := plan.Drift(observed)
	if !known {
		return
	}
	condition := metav1.Condition{Type: v1beta1.ConfigurationUpToDateCondition, Status: metav1.ConditionTrue, Reason: upToDate}
	if len(differences) > 0 {
		condition.Status, condition.Reason = metav1.ConditionFalse, plan.Drifted
		condition.Message = fmt.Sprintf(
			"VM %d on %s was changed outside of Cluster API (wanted → is): %s. Change it back in Proxmox VE, or change the ProxmoxMachineTemplate and roll the machine",
			machine.Spec.Reservation.VMID, observed.VM.Node, differences)
	}
	conditions.Set(machine, condition)
}
