package observe

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
)

// TestAMachineOfTheSameNameIsReservedFor: the reservation of a machine that is gone must not stand in the way of the next one
// of its name, although nobody asked the ledger in between.
func TestAMachineOfTheSameNameIsReservedFor(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	machine := func(uid string) *v1beta1.ProxmoxMachine {
		return &v1beta1.ProxmoxMachine{ObjectMeta: metav1.ObjectMeta{Name: "m1", Namespace: "default", UID: types.UID(uid)}}
	}
	kube := fake.NewClientBuilder().WithScheme(scheme).WithObjects(machine("first")).Build()
	ledger := NewLedger(kube)
	take := func(of *v1beta1.ProxmoxMachine) error {
		_, version, err := ledger.Entries(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return ledger.Take(ledger.NewEntry(of, nil, v1beta1.Reservation{VMID: 100}), version)
	}
	if err := take(machine("first")); err != nil {
		t.Fatal(err)
	}
	if err := take(machine("first")); err == nil {
		t.Error("a machine was given a second reservation while the cache does not show its first")
	}
	for _, do := range []func(client.Object) error{
		func(o client.Object) error { return kube.Delete(t.Context(), o) }, func(o client.Object) error { return kube.Create(t.Context(), o) },
	} {
		if err := do(machine("second")); err != nil {
			t.Fatal(err)
		}
	}
	if err := take(machine("second")); err != nil {
		t.Errorf("the second machine of the name: %v", err)
	}
}
