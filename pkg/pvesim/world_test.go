package pvesim_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// newWorld makes a world without a server that is closed when the test ends.
func newWorld(tb testing.TB, opts ...pvesim.Option) *pvesim.World {
	tb.Helper()
	w, err := pvesim.NewWorld(opts...)
	must(tb, err)
	tb.Cleanup(w.Close)
	return w
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func TestAWorldIsRebuiltFromItsState(t *testing.T) {
	t.Parallel()
	first := newWorld(t)
	must(t, first.AddContainer(pvesim.ContainerSpec{VMID: 300, Node: "pve2", Pool: "capi", Name: "ct", Tags: "x", State: "running"}))
	must(t, first.AddStorage(pvesim.StorageSpec{ID: "tank", Type: "zfspool", Options: map[string]string{"pool": "tank"}}))
	first.AddPool(pvesim.PoolSpec{ID: "capi/sub", Comment: "nested", Storages: []proxmox.StorageID{"tank"}})
	first.AddDownload(pvesim.DownloadSpec{URL: "http://files/a.iso", Data: []byte("image")})
	first.AddToken(pvesim.TokenSpec{User: "capi@pve", Name: "t1", Privileges: map[string][]string{"/pool/capi": {"VM.Audit"}}})
	written, err := yaml.Marshal(first.State())
	must(t, err)
	var read pvesim.State
	must(t, yaml.UnmarshalStrict(written, &read))
	if diff := cmp.Diff(first.State(), newWorld(t, pvesim.FromState(read)).State()); diff != "" {
		t.Errorf("the world differs (-first +rebuilt):\n%s", diff)
	}
}

func TestTheStateOfTheClusterIsKept(t *testing.T) {
	t.Parallel()
	s := newWorld(t).State()
	s.Options = map[string]string{"mac_prefix": "AA:BB:CC", "next-id": "lower=500"}
	s.PCI = []pvesim.PCIMappingSpec{{ID: "gpu", Map: []string{"node=pve1,path=0000:01:00.0,id=10de:2204"}, Mdev: true}}
	s.USB = []pvesim.USBMappingSpec{{ID: "key", Description: "d", Map: []string{"node=pve1,id=046d:c52b"}}}
	s.CPUModels = []string{"small"}
	s.Nodes[0].BridgeOptions = map[proxmox.BridgeName]map[string]string{"vmbr0": {"mtu": "9000"}}
	s.Nodes[0].PCI = []pvesim.PCIDeviceSpec{{ID: "0000:01:00.0", Vendor: "0x10de", Device: "0x2204"}}
	s.Volumes = append(s.Volumes, pvesim.VolumeSpec{
		ID: "shared:backup/vzdump-qemu-1-x.vma", Content: "backup", Format: "vma", VMID: 1, Size: 5, Used: 1, Notes: "n", Protected: true,
	})
	if diff := cmp.Diff(s, newWorld(t, pvesim.FromState(s)).State()); diff != "" {
		t.Errorf("the world differs (-want +got):\n%s", diff)
	}
}

func TestAStateThatCannotBeIsRefused(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]pvesim.State{
		"add node \"pve1\": want a name that no other node has":                     {Nodes: []pvesim.NodeSpec{{Name: "pve1"}, {Name: "pve1"}}},
		"add storage s: type is \"floppy\", want dir, nfs, lvmthin, zfspool or rbd": {Storages: []pvesim.StorageSpec{{ID: "s", Type: "floppy"}}},
		"add VM 100: no node \"pve9\"":                                              {VMs: []pvesim.VMSpec{{VMID: 100, Node: "pve9"}}},
		"add volume s:iso/a.iso: no storage \"s\"":                                  {Volumes: []pvesim.VolumeSpec{{ID: "s:iso/a.iso"}}},
		"add ACL entry of a@pve on /vms: no role \"R\"":                             {ACL: []pvesim.ACLSpec{{Path: "/vms", Role: "R", Type: "user", Holder: "a@pve"}}},
		"add VM 100: scsi0: storage 'gone' does not exist": {
			Nodes: []pvesim.NodeSpec{{Name: "pve1"}},
			VMs:   []pvesim.VMSpec{{VMID: 100, Node: "pve1", Config: map[string]string{"scsi0": "gone:vm-100-disk-0,size=1G"}}},
		},
	} {
		if _, err := pvesim.NewWorld(pvesim.FromState(s)); err == nil || err.Error() != name {
			t.Errorf("error is %v, want %s", err, name)
		}
	}
}
