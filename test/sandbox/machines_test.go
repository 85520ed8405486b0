package sandbox

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func condition(kind string, status metav1.ConditionStatus, why string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: why}
}

func TestReason(t *testing.T) {
	vmUp := condition("VirtualMachineReady", metav1.ConditionTrue, "Running")
	for name, test := range map[string]struct {
		machine clusterv1.Machine
		infra   []metav1.Condition
		want    string
	}{
		"nothing yet": {want: waitingForCAPI},
		"the VM is being made": {
			infra: []metav1.Condition{
				condition("BootstrapSeedRemoved", metav1.ConditionFalse, "WaitingForBootstrapData"),
				condition("VirtualMachineReady", metav1.ConditionFalse, "Cloning"),
			},
			want: "Cloning",
		},
		"the VM runs": {infra: []metav1.Condition{vmUp}, want: waitingForNode},
		"the node is not ready": {
			machine: clusterv1.Machine{Status: clusterv1.MachineStatus{
				NodeRef:    clusterv1.MachineNodeReference{Name: "a"},
				Conditions: []metav1.Condition{condition(clusterv1.MachineReadyCondition, metav1.ConditionFalse, "NotReady")},
			}},
			infra: []metav1.Condition{vmUp},
			want:  "NodeNotReady",
		},
		"all is well": {
			machine: clusterv1.Machine{Status: clusterv1.MachineStatus{
				NodeRef:    clusterv1.MachineNodeReference{Name: "a"},
				Conditions: []metav1.Condition{condition(clusterv1.MachineReadyCondition, metav1.ConditionTrue, "Ready")},
			}},
			infra: []metav1.Condition{vmUp},
		},
		"it is drained": {
			machine: clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{Time: time.Unix(1, 0)}}},
			infra:   []metav1.Condition{vmUp},
			want:    "Draining",
		},
	} {
		var infra infrastructure
		infra.Status.Conditions = test.infra
		if got := reason(&test.machine, infra); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

// The reservation tells where a VM will be before there is one; status tells where it is now.
func TestMachineIsWhereItIsNow(t *testing.T) {
	var infra infrastructure
	infra.Spec.Reservation.Node, infra.Spec.Reservation.VMID = "pve1", 100
	if got := newMachine(&clusterv1.Machine{}, infra); got.Host != "pve1" || got.VMID != 100 {
		t.Errorf("reserved: got %+v", got)
	}
	infra.Status.Node, infra.Status.VMID = "pve2", 100
	if got := newMachine(&clusterv1.Machine{}, infra); got.Host != "pve2" {
		t.Errorf("migrated: got %+v", got)
	}
}

func TestCells(t *testing.T) {
	created := time.Unix(1000, 0)
	machine := Machine{Name: "demo-1", Phase: "Running", Host: "pve1", VMID: 100, Address: "10.10.10.20", Created: created}
	want := []string{"demo-1", "Running", "-", "pve1", "100", "10.10.10.20", "1m5s"}
	if got := machine.Cells(created.Add(65*time.Second + time.Millisecond)); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := (Machine{Created: created}).Cells(created); len(got) != len(Columns()) || got[0] != "-" {
		t.Errorf("got %q", got)
	}
}

func TestInternalIP(t *testing.T) {
	addresses := []clusterv1.MachineAddress{
		{Type: clusterv1.MachineHostName, Address: "demo"},
		{Type: clusterv1.MachineInternalIP, Address: "10.10.10.20"},
		{Type: clusterv1.MachineInternalIP, Address: "fd00::1"},
	}
	if got := internalIP(addresses); got != "10.10.10.20" {
		t.Errorf("got %q", got)
	}
	if got := internalIP(nil); got != "" {
		t.Errorf("got %q", got)
	}
}
