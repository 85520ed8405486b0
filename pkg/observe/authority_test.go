package observe

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
)

// certified is a Proxmox VE cluster with that root CA, which lists a VM with those tags.
func certified(t *testing.T, authority, tags string) *pve.Cluster {
	t.Helper()
	cluster, _ := opened(t,
		[]map[string]any{{"type": "node", "node": "pve1", "status": "online"}, {"type": "qemu", "node": "pve1", "vmid": 102, "tags": tags}},
		answers{"/nodes/pve1/certificates/info": []map[string]any{{"filename": "pve-root-ca.pem", "fingerprint": authority}}})
	return cluster
}

func TestWhatAnotherProxmoxVEClusterSaysIsNotBelieved(t *testing.T) {
	const neighbour = "11111111-2222-3333-4444-555555555555"
	absent := plan.VM{Presence: plan.PresenceAbsent}
	for _, c := range []struct {
		name, recorded, now, tags string
		vm                        plan.VM
		believed                  bool
	}{
		{"the same one", "AA", "AA", "", absent, true},
		{"another one", "AA", "BB", "", absent, false},
		{"where the VMID is another's", "AA", "BB", "", plan.VM{Presence: plan.PresenceForeign}, false},
		{"where the node is unknown", "AA", "BB", "", plan.VM{Host: plan.HostRemoved}, false},
		{"a VM of ours proves where it is", "AA", "BB", "", plan.VM{Presence: plan.PresenceOurs}, true},
		{"and so does another machine's", "AA", "BB", "capve-" + neighbour, absent, true},
		{"but no machine that is elsewhere", "AA", "BB", "capve-99999999-2222-3333-4444-555555555555", absent, false},
		{"nothing is known of old machines", "", "BB", "", absent, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			memory, clock := newTestMemory()
			labels := map[string]string{clusterv1.ClusterNameLabel: "c1"}
			machine := func(name, uuid string, id int32) *v1beta1.ProxmoxMachine {
				return &v1beta1.ProxmoxMachine{
					ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: labels},
					Spec:       v1beta1.ProxmoxMachineSpec{Reservation: v1beta1.Reservation{UUID: uuid, Region: "home", VMID: id, Authority: c.recorded}},
				}
			}
			subject := MachineSubject{
				ProxmoxMachine: machine("m1", string(someVM), 101),
				ProxmoxCluster: &v1beta1.ProxmoxCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c1", Labels: labels}},
			}
			scheme := runtime.NewScheme()
			if err := v1beta1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(subject.ProxmoxMachine, machine("m2", neighbour, 102)).Build()
			observer := &Observer{Client: reader, Memory: memory, Clock: clock, Regions: NewRegions(nil, nil, pve.Options{})}
			err := observer.believed(t.Context(), certified(t, c.now, c.tags), subject, c.vm)
			reason, unavailable := Unavailable(err)
			if c.believed != (err == nil) || unavailable == c.believed {
				t.Fatalf("error %v", err)
			}
			if !c.believed && (reason.Code != v1beta1.OtherProxmoxClusterReason || !strings.Contains(reason.Message, "spec.regions[home].endpoints")) {
				t.Errorf("it says %+v", reason)
			}
		})
	}
}
