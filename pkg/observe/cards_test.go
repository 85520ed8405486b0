package observe

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
)

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
