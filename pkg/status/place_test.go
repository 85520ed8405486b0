package status_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/status"
)

// racks is a cluster with pve1 and pve2 in a zone each, and pve3 in none.
func racks() *v1beta1.ProxmoxCluster {
	return &v1beta1.ProxmoxCluster{Spec: v1beta1.ProxmoxClusterSpec{Regions: []v1beta1.Region{{Name: "home", Zones: []v1beta1.Zone{
		{Name: "rack1", Nodes: []string{"pve1"}}, {Name: "rack2", Nodes: []string{"pve2"}},
	}}}}}
}

func on(node string) status.MachinePass {
	vm := runningVM
	vm.Node = proxmox.NodeName(node)
	return status.MachinePass{Observed: sees(vm), Decision: done, ProxmoxCluster: racks()}
}

func TestTheLabelsFollowTheVM(t *testing.T) {
	const host, region, zone = v1beta1.HostLabel, "topology.kubernetes.io/region", "topology.kubernetes.io/zone"
	labelled := func(labels map[string]string) func(*v1beta1.ProxmoxMachine) {
		return func(m *v1beta1.ProxmoxMachine) { m.Labels = labels }
	}
	orphan, owned := on("pve2"), on("pve2")
	orphan.ProxmoxCluster = nil
	owned.Machine = &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{zone: "by-hand"}}}
	long := on("pve2")
	long.ProxmoxCluster.Spec.Regions = append(long.ProxmoxCluster.Spec.Regions, v1beta1.Region{Name: "far"})
	long.ProxmoxCluster.Spec.Regions[0].Zones[1].Name = "a-zone-whose-name-is-so-long-that-with-its-region-no-label-has-room"
	cases := []struct {
		name    string
		machine *v1beta1.ProxmoxMachine
		pass    status.MachinePass
		want    map[string]string
	}{
		{"without a place there are none", proxmoxMachine(), status.MachinePass{}, nil},
		{"at first they are the reserved host's", proxmoxMachine(reserved), status.MachinePass{ProxmoxCluster: racks()}, map[string]string{host: "pve1", region: "home", zone: "rack1"}},
		{"they are the host's that the VM is on", proxmoxMachine(recorded, labelled(map[string]string{host: "pve1", "a": "b"})), on("pve2"), map[string]string{host: "pve2", region: "home", zone: "rack2", "a": "b"}},
		{"a host in no zone has none", proxmoxMachine(recorded, labelled(map[string]string{zone: "rack1"})), on("pve3"), map[string]string{host: "pve3", region: "home"}},
		{"the zone stays while nobody knows it", proxmoxMachine(recorded, labelled(map[string]string{zone: "rack1"})), orphan, map[string]string{host: "pve2", region: "home", zone: "rack1"}},
		{"the Machine's own are left alone", proxmoxMachine(recorded, labelled(map[string]string{zone: "by-hand"})), owned, map[string]string{host: "pve2", region: "home", zone: "by-hand"}},
		{"a zone that no label can hold is left out", proxmoxMachine(recorded), long, map[string]string{host: "pve2", region: "home"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, after(t, c.machine, c.pass).Labels); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAMoveTellsOfTheFailureDomains(t *testing.T) {
	cases := []struct {
		name     string
		from, to status.MachinePass
		want     string
	}{
		{"to another zone", on("pve1"), on("pve2"), "moved from pve1 to pve2, from failure domain rack1 to rack2"},
		{"out of all zones", on("pve1"), on("pve3"), "moved from pve1 to pve3, out of failure domain rack1: pve3 is in no zone of region home"},
		{"into a zone", on("pve3"), on("pve1"), "moved from pve3 to pve1, into failure domain rack1"},
		{"where every host is one", unzoned(on("pve1")), unzoned(on("pve2")), "moved from pve1 to pve2"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			before := after(t, proxmoxMachine(recorded), c.from)
			events := status.MachineEvents(before, after(t, before.DeepCopy(), c.to), c.to)
			if diff := cmp.Diff([]string{"Normal Migrated: VM 101 " + c.want}, tellings(events)); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

func unzoned(pass status.MachinePass) status.MachinePass {
	pass.ProxmoxCluster.Spec.Regions[0].Zones = nil
	return pass
}
