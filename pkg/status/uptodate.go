package status

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
)

// upToDate is the reason of what is as the spec says.
const upToDate = "UpToDate"

// setConfiguration says whether the VM's config is as the spec says. What this pass could not compare stays as it was: the
// inventory alone does not show that what a look at the config found is mended.
func setConfiguration(machine *v1beta1.ProxmoxMachine, pass MachinePass) {
	why, isUpToDate, known := pass.Observed.ConfigurationState()
	was := conditions.Get(machine, v1beta1.ConfigurationUpToDateCondition)
	if !known || isUpToDate && pass.Observed.Upkeep.Live == nil && was != nil && was.Status != metav1.ConditionTrue {
		return
	}
	if trouble, troubled := pass.trouble(); troubled && why.Code == plan.Configuring {
		why = trouble
	}
	setUpToDate(machine, v1beta1.ConfigurationUpToDateCondition, why, isUpToDate)
}

// setFirewall says whether the VM's firewall is as asked.
func setFirewall(machine *v1beta1.ProxmoxMachine, pass MachinePass) {
	why, isUpToDate, isAsked := pass.Observed.FirewallState()
	trouble, troubled := pass.trouble()
	if !troubled {
		trouble = plan.Reason{}
	}
	setWhereAsked(machine, pass, addition{v1beta1.FirewallUpToDateCondition, isAsked, isUpToDate, why, trouble})
}

// setHighAvailability says whether the VM is to the HA manager what is asked.
func setHighAvailability(machine *v1beta1.ProxmoxMachine, pass MachinePass) {
	why, isUpToDate, isAsked := pass.Observed.HighAvailabilityState()
	setWhereAsked(machine, pass, addition{v1beta1.HighAvailabilityUpToDateCondition, isAsked, isUpToDate, why, pass.Failure})
}

// addition is what a machine may ask for beside its VM.
type addition struct {
	condition string
	// isAsked says that the machine asks for it, or did.
	isAsked, isUpToDate bool
	// why it is not up to date; trouble, unless it is zero, says what keeps it from that.
	why, trouble plan.Reason
}

// setWhereAsked says whether it is as asked. What this pass did not look at stays as it was.
func setWhereAsked(machine *v1beta1.ProxmoxMachine, pass MachinePass, told addition) {
	isKnown := conditions.Get(machine, told.condition) != nil
	switch {
	case !told.isAsked:
		conditions.Delete(machine, told.condition)
	case isKnown && told.why.Code == plan.Unobserved && pass.Failure.Code == "":
	default:
		setUpToDate(machine, told.condition, cmp.Or(told.trouble, told.why), told.isUpToDate)
	}
}

// setUpToDate says that something is as asked, or why it is not.
func setUpToDate(machine *v1beta1.ProxmoxMachine, name string, why plan.Reason, isUpToDate bool) {
	condition := metav1.Condition{Type: name, Status: metav1.ConditionFalse, Reason: why.Code, Message: why.Message}
	if isUpToDate {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionTrue, upToDate, ""
	}
	conditions.Set(machine, condition)
}
