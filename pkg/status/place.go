package status

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
)

// setPlace says where the VM is, in the status and in labels. A VM that this pass did not see is where it was; one that is
// not made yet, where it is to be made.
func setPlace(machine *v1beta1.ProxmoxMachine, pass MachinePass) {
	vm, reservation := pass.Observed.VM, machine.Spec.Reservation
	switch {
	case vm.Presence == plan.PresenceOurs && vm.Node != "":
		machine.Status.Node = string(vm.Node)
	case machine.Status.Node == "" || vm.Presence == plan.PresenceAbsent && machine.Spec.ProviderID == "":
		machine.Status.Node = reservation.Node
	}
	if machine.Status.Node == "" {
		return
	}
	setLabel(machine, pass, v1beta1.HostLabel, machine.Status.Node)
	setLabel(machine, pass, corev1.LabelTopologyRegion, reservation.Region)
	if pass.ProxmoxCluster == nil {
		return
	}
	if domain, known := plan.FailureDomainOf(pass.ProxmoxCluster.Spec, reservation.Region, machine.Status.Node); known {
		machine.Status.FailureDomain = domain
		setLabel(machine, pass, corev1.LabelTopologyZone, domain)
	}
}

// setLabel sets a label, or takes it away when it has no value that a label can hold. One that the Machine has, too, is its
// user's: Cluster API copies it, again and again, so that two would write it.
func setLabel(machine *v1beta1.ProxmoxMachine, pass MachinePass, label, value string) {
	if pass.Machine != nil {
		if _, theirs := pass.Machine.Labels[label]; theirs {
			return
		}
	}
	if value == "" || len(validation.IsValidLabelValue(value)) > 0 {
		delete(machine.Labels, label)
		return
	}
	if machine.Labels == nil {
		machine.Labels = map[string]string{}
	}
	machine.Labels[label] = value
}
