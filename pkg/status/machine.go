// Package status projects what was observed and decided onto the status and conditions of the objects. It decides nothing:
// conditions are output only, and the same snapshot and decision give the same status.
package status

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
)

// MachinePass is what one pass over a machine came to.
type MachinePass struct {
	Observed plan.Machine
	// Decision is the last one of the pass; nil when the pass ended before one.
	Decision plan.Decision
	// Done are the actions of the pass that were done.
	Done []plan.Do
	// Failure is why the pass ended early; the zero Reason when it did not.
	Failure plan.Reason
	// Machine is the owner; nil for an orphan.
	Machine *clusterv1.Machine
	// ProxmoxCluster tells which zone a node is in; nil when it is gone.
	ProxmoxCluster *v1beta1.ProxmoxCluster
}

// MachineConditions are the types of the conditions that this package sets on a ProxmoxMachine.
func MachineConditions() []string {
	return []string{
		clusterv1.ReadyCondition, v1beta1.AddressesReadyCondition, v1beta1.VirtualMachineReadyCondition,
		v1beta1.BootstrapSeedRemovedCondition, clusterv1.DeletingCondition, v1beta1.ConfigurationUpToDateCondition,
		v1beta1.FirewallUpToDateCondition, v1beta1.HighAvailabilityUpToDateCondition,
	}
}

// Machine sets the status of a machine.
func Machine(machine *v1beta1.ProxmoxMachine, pass MachinePass) error {
	setVM(machine, pass)
	setPlace(machine, pass)
	setAddresses(machine, pass.Observed)
	if machine.Spec.ProviderID != "" {
		machine.Status.Initialization.Provisioned = ptr.To(true)
	}
	for _, condition := range []metav1.Condition{
		addressesReady(pass), virtualMachineReady(machine, pass), seedRemoved(machine, pass), deleting(!machine.DeletionTimestamp.IsZero(), pass.why()),
	} {
		conditions.Set(machine, condition)
	}
	setConfiguration(machine, pass)
	setFirewall(machine, pass)
	setHighAvailability(machine, pass)
	return summarize(machine, conditions.ForConditionTypes{
		v1beta1.AddressesReadyCondition, v1beta1.VirtualMachineReadyCondition, clusterv1.DeletingCondition,
	})
}

// settable is an object with conditions that can be summed up.
type settable interface {
	conditions.Getter
	conditions.Setter
}

func summarize(object settable, types conditions.ForConditionTypes) error {
	shorten(object)
	err := conditions.SetSummaryCondition(object, object, clusterv1.ReadyCondition, types,
		conditions.NegativePolarityConditionTypes{clusterv1.DeletingCondition},
		conditions.CustomMergeStrategy{MergeStrategy: conditions.DefaultMergeStrategy(
			conditions.GetPriorityFunc(conditions.GetDefaultMergePriorityFunc(clusterv1.DeletingCondition)),
			conditions.ComputeReasonFunc(conditions.GetDefaultComputeMergeReasonFunc(
				clusterv1.NotReadyReason, clusterv1.ReadyUnknownReason, clusterv1.ReadyReason)),
		)})
	if err != nil {
		return fmt.Errorf("sum up the conditions: %w", err)
	}
	return nil
}

// setVM copies what is known of the VM. What this pass did not look at stays as it was.
func setVM(machine *v1beta1.ProxmoxMachine, pass MachinePass) {
	machine.Status.VMID = machine.Spec.Reservation.VMID
	if machine.Spec.ProviderID != "" && pass.Observed.SeedIsGone() { // a machine that ran gets no other
		machine.Status.SeedRemoved = ptr.To(true)
	}
}

func (p MachinePass) why() plan.Reason {
	switch {
	case p.Failure.Code != "":
		return p.Failure
	case p.Decision != nil:
		return p.Decision.Why()
	}
	return plan.Reason{Code: plan.Unobserved, Message: "not looked at yet"}
}

// virtualMachineReady is True while the VM runs, whatever else is still to do; Unknown for a VM that once ran and cannot be
// seen now.
func virtualMachineReady(machine *v1beta1.ProxmoxMachine, pass MachinePass) metav1.Condition {
	why := pass.why()
	condition := metav1.Condition{
		Type: v1beta1.VirtualMachineReadyCondition, Status: metav1.ConditionFalse, Reason: why.Code, Message: why.Message,
	}
	vm, once := pass.Observed.VM, machine.Spec.ProviderID != ""
	switch {
	case !machine.DeletionTimestamp.IsZero():
	case once && vm.Presence == plan.PresenceOurs && vm.Power == plan.PowerRunning:
		condition.Status, condition.Reason = metav1.ConditionTrue, plan.Running
		condition.Message = fmt.Sprintf("VM %d runs on %s", machine.Spec.Reservation.VMID, vm.Node)
		switch why.Code { // it runs all the same
		case plan.HighAvailabilityFailed:
			condition.Reason, condition.Message = why.Code, why.Message
		case plan.Locked:
			condition.Reason, condition.Message = why.Code, condition.Message+"; "+why.Message
		}
	case once && vm.Presence == plan.PresenceUnknown:
		condition.Status = metav1.ConditionUnknown
	}
	return condition
}

func seedRemoved(machine *v1beta1.ProxmoxMachine, pass MachinePass) metav1.Condition {
	condition := metav1.Condition{
		Type: v1beta1.BootstrapSeedRemovedCondition, Status: metav1.ConditionFalse, Reason: plan.WaitingForBootstrapData,
		Message: "the seed ISO with the bootstrap data is removed once the machine has its Node",
	}
	if why, found := pass.trouble(); found && pass.Observed.Bootstrapped {
		condition.Reason, condition.Message = why.Code, why.Message
	}
	if ptr.Deref(machine.Status.SeedRemoved, false) {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionTrue, "Removed", ""
	}
	return condition
}

func deleting(isDeleting bool, why plan.Reason) metav1.Condition {
	if !isDeleting {
		return metav1.Condition{Type: clusterv1.DeletingCondition, Status: metav1.ConditionFalse, Reason: clusterv1.NotDeletingReason}
	}
	return metav1.Condition{Type: clusterv1.DeletingCondition, Status: metav1.ConditionTrue, Reason: why.Code, Message: why.Message}
}
