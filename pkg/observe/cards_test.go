package observe

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/network"
)

func TestAMachineWithoutAnIdentityHasTheMACAddressesThatItNames(t *testing.T) {
	machine := &v1beta1.ProxmoxMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m"}}
	machine.Spec.Network.Devices = []v1beta1.NetworkDevice{{Name: "net0"}, {Name: "net1", MACAddress: "bc:24:11:00:00:01"}}
	want := []network.Card{{Machine: "ns/m", Device: "net1", MAC: "BC:24:11:00:00:01"}}
	if diff := cmp.Diff(want, cardsOf(machine)); diff != "" {
		t.Errorf("cards (-want +got):\n%s", diff)
	}
	machine.Spec.Reservation.UUID = "8d1ab5f6-59f1-4a3e-9a0b-0d6f2a5b7c11"
	if got := cardsOf(machine); len(got) != 2 || len(machine.Spec.Network.Devices) != 2 {
		t.Errorf("with an identity it has %v", got)
	}
}

func TestOfTwoMachinesOneKeepsAMACAddress(t *testing.T) {
	made := func(name, providerID string, age time.Duration) *v1beta1.ProxmoxMachine {
		machine := &v1beta1.ProxmoxMachine{ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID(name), CreationTimestamp: metav1.Time{Time: time.Unix(1e9, 0).Add(-age)},
		}}
		machine.Spec.ProviderID = providerID
		return machine
	}
	young, old, ran := made("young", "", 0), made("old", "", time.Hour), made("ran", "proxmox://x", 0)
	twin := made("zwilling", "", 0)
	for _, c := range []struct {
		one, other *v1beta1.ProxmoxMachine
		want       bool
	}{{old, young, true}, {young, old, false}, {ran, old, true}, {old, old, false}, {young, twin, true}, {twin, young, false}} {
		if got := precedes(c.one, c.other); got != c.want {
			t.Errorf("%s precedes %s: %t", c.one.Name, c.other.Name, got)
		}
	}
}
