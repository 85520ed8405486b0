package observe

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
)

// twoHosts is a cluster of pve1, which is down, and pve2, with local storages and a shared one, and templates.
func twoHosts(t *testing.T) pve.Snapshot {
	t.Helper()
	entries := []map[string]any{
		{"type": "node", "node": "pve1", "status": "offline"},
		{"type": "node", "node": "pve2", "status": "online"},
		{"type": "qemu", "node": "pve2", "vmid": 9000, "name": "ubuntu", "template": 1},
		{"type": "qemu", "node": "pve1", "vmid": 9002, "name": "ubuntu", "template": 1},
		{"type": "qemu", "node": "pve2", "vmid": 9003, "name": "ubuntu"},
		{"type": "qemu", "node": "pve2", "vmid": 9004, "status": "unknown"},
	}
	for _, node := range []string{"pve1", "pve2"} {
		entries = append(entries,
			map[string]any{"type": "storage", "node": node, "storage": "local", "status": "available"},
			map[string]any{"type": "storage", "node": node, "storage": "nfs", "status": "available", "shared": 1, "content": "iso"},
			map[string]any{"type": "storage", "node": node, "storage": "lvm", "status": "available", "content": "images"})
	}
	cluster, _ := opened(t, entries, nil)
	return cluster.Inventory.Snapshot()
}

func TestHostsAreDownOnlyInAFreshInventory(t *testing.T) {
	fresh := twoHosts(t)
	stale := fresh
	stale.Err = pve.ErrNoSnapshot
	cases := []struct {
		name     string
		snapshot pve.Snapshot
		node     proxmox.NodeName
		want     plan.HostState
	}{
		{"online", fresh, "pve2", plan.HostUp},
		{"offline", fresh, "pve1", plan.HostOffline},
		{"removed", fresh, "pve3", plan.HostRemoved},
		{"not known now", stale, "pve1", plan.HostUp},
		{"never known", pve.Snapshot{}, "pve1", plan.HostUp},
	}
	for _, c := range cases {
		if got := hostState(c.snapshot, c.node); got != c.want {
			t.Errorf("%s: state %d, want %d", c.name, got, c.want)
		}
	}
}

func TestASeedOnSharedStorageIsReachedThroughAnyHost(t *testing.T) {
	snapshot := twoHosts(t)
	cases := []struct {
		node, storage string
		want          proxmox.NodeName
		state         plan.HostState
	}{
		{"pve2", "local", "pve2", plan.HostUp},
		{"pve1", "nfs", "pve2", plan.HostUp},
		{"pve1", "local", "pve1", plan.HostOffline},
		{"pve3", "nfs", "pve2", plan.HostUp},
		{"pve3", "local", "pve3", plan.HostRemoved},
	}
	for _, c := range cases {
		node, state := seedHost(snapshot, v1beta1.Reservation{Node: c.node, SeedStorage: c.storage})
		if node != c.want || state != c.state {
			t.Errorf("%s of %s: through %s (%d), want %s (%d)", c.storage, c.node, node, state, c.want, c.state)
		}
	}
}

// TestAVMIDThatIsFreeProvesNothingOfANodeThatWasRemoved: the configs of a node may be removed after it, and its VMs still run.
func TestAVMIDThatIsFreeProvesNothingOfANodeThatWasRemoved(t *testing.T) {
	memory, _ := newTestMemory()
	machine := &v1beta1.ProxmoxMachine{Spec: v1beta1.ProxmoxMachineSpec{Reservation: v1beta1.Reservation{UUID: string(someVM), Region: "home"}}}
	sight := vmSight{Observer: &Observer{Memory: memory}, subject: MachineSubject{ProxmoxMachine: machine}, ref: pve.VMRef{Node: "pve3", ID: 101}}
	vm, err := sight.onLostHost(t.Context(), plan.HostRemoved)
	if err != nil || vm.Presence != plan.PresenceUnknown || vm.Host != plan.HostRemoved || vm.Node != "pve3" {
		t.Errorf("%+v, error %v", vm, err)
	}
	memory.Reserved(someVM)
	if vm, err = sight.onLostHost(t.Context(), plan.HostRemoved); err != nil || vm.Presence != plan.PresenceAbsent {
		t.Errorf("nothing was ever sent there: %+v, error %v", vm, err)
	}
}

func TestTasksOfALostHostAreNotWaitedFor(t *testing.T) {
	snapshot := twoHosts(t)
	for node, want := range map[proxmox.NodeName]bool{"pve1": true, "pve2": false, "pve3": true} {
		if got := isLost(snapshot, proxmox.TaskID{Node: node, Type: "qmstart"}); got != want {
			t.Errorf("a task of %s: lost %t, want %t", node, got, want)
		}
	}
}

func TestCredentialsAreRememberedForTheirEndpointsAlone(t *testing.T) {
	region := v1beta1.Region{Name: "home", Endpoints: []string{"https://pve1:8006"}, CredentialsRef: v1beta1.SecretReference{Name: "pve"}}
	other := region
	other.Endpoints = []string{"https://elsewhere:8006"}
	if keyOf("default", region) == keyOf("default", other) || keyOf("default", region) == keyOf("kube-system", region) {
		t.Error("credentials would go where they never went")
	}
	regions := NewRegions(nil, nil, pve.Options{})
	regions.keep("default", region, pve.TokenCredentials{ID: "a@pam!b"})
	regions.Forget(&v1beta1.ProxmoxCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default"}, Spec: v1beta1.ProxmoxClusterSpec{Regions: []v1beta1.Region{region}}})
	if len(regions.last) != 0 {
		t.Error("credentials of a cluster that is gone are remembered")
	}
}
