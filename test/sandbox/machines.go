package sandbox

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Machine is what there is to see of one machine of a cluster.
type Machine struct {
	Name         string
	ControlPlane bool
	// Phase is Cluster API's phase of the Machine.
	Phase string
	// Reason is why the machine is not ready, as a condition of the ProxmoxMachine or of the Machine has it. Empty when it
	// is ready.
	Reason string
	// Host is the Proxmox VE node, VMID the virtual machine's number, once they are decided.
	Host string
	VMID int
	// Address is the machine's IP address, once it has one.
	Address string
	// ProviderID identifies the virtual machine.
	ProviderID string
	// Node is the name of the machine's Node, once it is one.
	Node    string
	Created time.Time
}

// infrastructure is the part of a ProxmoxMachine that is shown.
type infrastructure struct {
	Spec struct {
		Reservation struct {
			Node string `json:"node"`
			VMID int    `json:"vmID"`
		} `json:"reservation"`
	} `json:"spec"`
	Status struct {
		Node       string                     `json:"node"`
		VMID       int                        `json:"vmID"`
		Addresses  []clusterv1.MachineAddress `json:"addresses"`
		Conditions []metav1.Condition         `json:"conditions"`
	} `json:"status"`
}

// Machines lists the cluster's machines, the oldest first.
func (s *Sandbox) Machines(ctx context.Context, cluster Cluster) ([]Machine, error) {
	selection := []client.ListOption{client.InNamespace(cluster.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: cluster.Name}}
	var machines clusterv1.MachineList
	if err := s.client.List(ctx, &machines, selection...); err != nil {
		return nil, fmt.Errorf("list machines: %w", err)
	}
	infrastructures, err := s.infrastructures(ctx, selection...)
	if err != nil {
		return nil, err
	}
	listed := make([]Machine, 0, len(machines.Items))
	for i := range machines.Items {
		listed = append(listed, newMachine(&machines.Items[i], infrastructures[machines.Items[i].Name]))
	}
	slices.SortFunc(listed, func(a, b Machine) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
	})
	return listed, nil
}

// infrastructures are the ProxmoxMachines by name, which is their Machine's too.
func (s *Sandbox) infrastructures(ctx context.Context, selection ...client.ListOption) (map[string]infrastructure, error) {
	var list unstructured.UnstructuredList
	list.SetAPIVersion("infrastructure.cluster.x-k8s.io/v1beta1")
	list.SetKind("ProxmoxMachineList")
	if err := s.client.List(ctx, &list, selection...); err != nil {
		return nil, fmt.Errorf("list ProxmoxMachines: %w", err)
	}
	byName := make(map[string]infrastructure, len(list.Items))
	for _, item := range list.Items {
		var parsed infrastructure
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, &parsed); err != nil {
			return nil, fmt.Errorf("parse ProxmoxMachine %s: %w", item.GetName(), err)
		}
		byName[item.GetName()] = parsed
	}
	return byName, nil
}

func newMachine(machine *clusterv1.Machine, infra infrastructure) Machine {
	_, controlPlane := machine.Labels[clusterv1.MachineControlPlaneLabel]
	return Machine{
		Name:         machine.Name,
		ControlPlane: controlPlane,
		Phase:        machine.Status.Phase,
		Reason:       reason(machine, infra),
		Host:         cmp.Or(infra.Status.Node, infra.Spec.Reservation.Node),
		VMID:         cmp.Or(infra.Status.VMID, infra.Spec.Reservation.VMID),
		Address:      internalIP(infra.Status.Addresses),
		ProviderID:   machine.Spec.ProviderID,
		Node:         machine.Status.NodeRef.Name,
		Created:      machine.CreationTimestamp.Time,
	}
}

// The words for what no condition says.
const (
	waitingForNode = "WaitingForNode"
	waitingForCAPI = "WaitingForClusterAPI"
)

// reason says what a machine waits for: in the infrastructure provider's words while it has something to do, and else in
// Cluster API's.
func reason(machine *clusterv1.Machine, infra infrastructure) string {
	vm := meta.FindStatusCondition(infra.Status.Conditions, "VirtualMachineReady")
	switch {
	case vm != nil && vm.Status != metav1.ConditionTrue:
		return vm.Reason
	case vm == nil:
		return waitingForCAPI
	case !machine.DeletionTimestamp.IsZero():
		return "Draining"
	case !machine.Status.NodeRef.IsDefined():
		return waitingForNode
	case !isTrue(machine.Status.Conditions, clusterv1.MachineReadyCondition):
		return "NodeNotReady"
	default:
		return ""
	}
}

func internalIP(addresses []clusterv1.MachineAddress) string {
	for _, address := range addresses {
		if address.Type == clusterv1.MachineInternalIP {
			return address.Address
		}
	}
	return ""
}

// Columns are the heads of Cells.
func Columns() []string {
	return []string{"MACHINE", "PHASE", "REASON", "HOST", "VMID", "ADDRESS", "AGE"}
}

// Cells is the machine as a row of a table.
func (m Machine) Cells(now time.Time) []string {
	vmid := ""
	if m.VMID != 0 {
		vmid = strconv.Itoa(m.VMID)
	}
	cells := []string{m.Name, m.Phase, m.Reason, m.Host, vmid, m.Address, now.Sub(m.Created).Truncate(time.Second).String()}
	for i, cell := range cells {
		cells[i] = cmp.Or(cell, "-")
	}
	return cells
}
