package pvesim

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// TestCheckFindsBugs breaks what only a bug of the simulator itself can break.
func TestCheckFindsBugs(t *testing.T) {
	t.Parallel()
	w, err := NewWorld()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	w.mu.Lock()
	w.storageByID("shared").used[""] += 5
	w.pools["capi"].members[100] = true
	w.mu.Unlock()
	want := []Finding{
		{Kind: WrongUsage, Object: "shared", Text: "storage shared on all nodes has 5 bytes in use, and its volumes 0"},
		{Kind: MissingGuest, Object: "vm:100", Text: "pool capi has the member 100, which does not exist"},
	}
	if diff := cmp.Diff(want, w.Findings()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNetworksAreTold(t *testing.T) {
	t.Parallel()
	for device, want := range map[string]string{
		"virtio=BC:24:11:00:00:01,bridge=vmbr0":       "vmbr0",
		"virtio=BC:24:11:00:00:01,bridge=vmbr1,tag=7": "vmbr1 VLAN 7",
		"": "",
	} {
		if got := network(device); got != want {
			t.Errorf("network of %q is %q, want %q", device, got, want)
		}
	}
	v := &vm{id: proxmox.VMID(100), config: map[string]string{"ipconfig0": "ip=dhcp,ip6=auto", "ipconfig1": "ip=10.0.0.1/24,gw=10.0.0.254", "net0": "virtio,bridge=a"}}
	if got := v.configuredAddresses(); len(got) > 0 {
		t.Errorf("addresses of no device, or of DHCP: %v", got)
	}
}
