package status

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/network"
)

// setAddresses reports the addresses once all are there that are known before the VM is, so that the list does not change
// while it grows. Those that the guest told once stay while it is not asked.
func setAddresses(machine *v1beta1.ProxmoxMachine, observed plan.Machine) {
	addresses, known := observed.AddressList()
	wasTold := len(machine.Status.Addresses) > 0 && network.HasDynamic(observed.Spec.Network) && observed.Addresses.Reported == nil
	if !known || len(addresses) == 0 || wasTold {
		return
	}
	list := []clusterv1.MachineAddress{{Type: clusterv1.MachineHostName, Address: machine.Name}}
	for _, address := range addresses {
		list = append(list, clusterv1.MachineAddress{Type: clusterv1.MachineInternalIP, Address: address.Prefix.Addr().String()})
	}
	machine.Status.Addresses = list
}

// addressesReady is True when every claim has its address, and the guest has told those that it got from the network. A guest
// that has its Node and says nothing gets on without.
func addressesReady(pass MachinePass) metav1.Condition {
	observed, addresses := pass.Observed, pass.Observed.Addresses
	condition := metav1.Condition{Type: v1beta1.AddressesReadyCondition, Status: metav1.ConditionFalse, Reason: plan.WaitingForAddresses}
	switch {
	case addresses.Invalid != "":
		condition.Reason, condition.Message = plan.InvalidAddress, addresses.Invalid
	case addresses.Pending != "":
		condition.Reason, condition.Message = addresses.Wait().Code, addresses.Pending
	case len(addresses.Absent) > 0:
		condition.Message = "the addresses are not claimed yet"
	case observed.Name == "" || len(addresses.Bound) < len(network.Claims(observed.Name, "", observed.Spec.Network)): // it ended before it looked
		condition.Status, condition.Reason, condition.Message = metav1.ConditionUnknown, pass.why().Code, pass.why().Message
	case addresses.Unreported != "" && !observed.Bootstrapped:
		condition.Message = addresses.Unreported
	default:
		condition.Status, condition.Reason, condition.Message = metav1.ConditionTrue, v1beta1.AvailableReason, addresses.Unreported
	}
	return condition
}
