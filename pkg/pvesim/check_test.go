package pvesim_test

import (
	"fmt"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// tidy is a state in good order: the VMs 100 and 101 run on pve1, and 110 is a linked clone of the template 109.
func tidy() pvesim.State {
	vm := func(id proxmox.VMID, config map[string]string) pvesim.VMSpec {
		base := map[string]string{
			"scsi0": fmt.Sprintf("local-lvm:vm-%d-disk-0,size=1G", id), "net0": fmt.Sprintf("virtio=BC:24:11:00:00:%d,bridge=vmbr0", id%90),
			"smbios1": fmt.Sprintf("uuid=00000000-0000-4000-8000-000000000%d", id),
		}
		maps.Copy(base, config)
		return pvesim.VMSpec{VMID: id, Node: "pve1", State: "running", Config: base}
	}
	template := vm(109, map[string]string{"template": "1", "scsi0": "shared:109/base-109-disk-0.qcow2,size=1G", "ipconfig0": "ip=10.0.0.100/24"})
	template.State = "stopped"
	return pvesim.State{
		Nodes: []pvesim.NodeSpec{{Name: "pve1"}, {Name: "pve2"}},
		Storages: []pvesim.StorageSpec{
			{ID: "local-lvm", Type: "lvmthin", Content: []string{"images"}},
			{ID: "shared", Type: "nfs", Content: []string{"images", "iso"}},
		},
		Pools: []pvesim.PoolSpec{{ID: "capi"}},
		VMs: []pvesim.VMSpec{
			vm(100, map[string]string{"ipconfig0": "ip=10.0.0.100/24,gw=10.0.0.1", "affinity": "0-3"}),
			vm(101, map[string]string{"ipconfig0": "ip=10.0.0.101/24", "affinity": "4-7", "ide3": "shared:iso/seed.iso,media=cdrom"}),
			template,
			vm(110, map[string]string{"scsi0": "shared:109/base-109-disk-0.qcow2/110/vm-110-disk-0.qcow2,size=1G"}),
		},
	}
}

func TestCheckFindsWhatIsBroken(t *testing.T) {
	t.Parallel()
	seed := seedISO(t, "cidata", map[string]string{"meta-data": "instance-id: i", "user-data": ""})
	library := seedISO(t, "debian", map[string]string{"README": "install"})
	for name, tt := range map[string]struct {
		change func(*pvesim.State)
		act    func(*pvesim.World)
		want   []string
	}{
		"nothing": {},
		"disk of a VM that is gone": {
			change: func(s *pvesim.State) {
				s.Volumes = append(s.Volumes, pvesim.VolumeSpec{ID: "local-lvm:vm-200-disk-0", Node: "pve2", Size: 1 << 30})
			},
			want: []string{"orphan-volume local-lvm:vm-200-disk-0: volume local-lvm:vm-200-disk-0 on pve2 belongs to VM 200, which does not exist"},
		},
		"disk in no config": {
			change: func(s *pvesim.State) {
				s.Volumes = append(s.Volumes, pvesim.VolumeSpec{ID: "shared:100/vm-100-disk-7.qcow2", Size: 1 << 30})
			},
			want: []string{"orphan-volume shared:100/vm-100-disk-7.qcow2: volume shared:100/vm-100-disk-7.qcow2 on all nodes is in no config of VM 100"},
		},
		"disks that are unused, pending, or of a container or snapshot": {
			change: func(s *pvesim.State) {
				s.VMs[0].Config["unused0"] = "local-lvm:vm-100-disk-1"
				s.VMs[0].Pending = map[string]string{"scsi1": "local-lvm:vm-100-disk-2,size=1G"}
				s.VMs[0].Config["parent"] = "b"
				s.VMs[0].Snapshots = []pvesim.SnapshotSpec{{Name: "a"}, {Name: "b", Parent: "a", Config: map[string]string{"scsi2": "local-lvm:vm-100-disk-3,size=1G"}}}
				s.Containers = []pvesim.ContainerSpec{{VMID: 300, Node: "pve1"}}
				for _, id := range []proxmox.VolumeID{"local-lvm:vm-100-disk-1", "local-lvm:vm-100-disk-2", "local-lvm:vm-100-disk-3", "local-lvm:vm-300-disk-0"} {
					s.Volumes = append(s.Volumes, pvesim.VolumeSpec{ID: id, Node: "pve1", Size: 1 << 30})
				}
			},
		},
		"seeds and a library": {
			change: func(s *pvesim.State) {
				s.Volumes = append(s.Volumes, pvesim.VolumeSpec{ID: "shared:iso/seed.iso", Data: seed}, pvesim.VolumeSpec{ID: "shared:iso/left.iso", Data: seed},
					pvesim.VolumeSpec{ID: "shared:iso/debian.iso", Data: library}, pvesim.VolumeSpec{ID: "shared:iso/odd.iso", Data: []byte("odd")})
			},
			want: []string{"orphan-seed shared:iso/left.iso: ISO image shared:iso/left.iso on all nodes is a seed in no drive"},
		},
		"disk that is lost": {
			act:  func(w *pvesim.World) { w.RemoveFile("pve1", "local-lvm:vm-100-disk-0") },
			want: []string{"missing-volume local-lvm:vm-100-disk-0: VM 100 has local-lvm:vm-100-disk-0 in scsi0, which is not on pve1"},
		},
		"ISO image that is lost": {act: func(w *pvesim.World) { w.RemoveFile("pve1", "shared:iso/seed.iso") }},
		"base that is lost": {
			act: func(w *pvesim.World) { w.RemoveFile("pve1", "shared:109/base-109-disk-0.qcow2") },
			want: []string{
				"missing-base shared:109/base-109-disk-0.qcow2/110/vm-110-disk-0.qcow2: volume shared:109/base-109-disk-0.qcow2/110/vm-110-disk-0.qcow2 on all nodes is a linked clone of shared:109/base-109-disk-0.qcow2, which does not exist",
				"missing-volume shared:109/base-109-disk-0.qcow2: VM 109 has shared:109/base-109-disk-0.qcow2 in scsi0, which is not on pve1",
			},
		},
		"MAC address": {
			change: func(s *pvesim.State) { s.VMs[1].Config["net3"] = s.VMs[0].Config["net0"] },
			want:   []string{"shared-mac vm:101: MAC address bc:24:11:00:00:10 is used by VM 100 and VM 101"},
		},
		"UUID": {
			change: func(s *pvesim.State) { s.VMs[1].Config["smbios1"] = s.VMs[0].Config["smbios1"] },
			want:   []string{"shared-uuid vm:101: SMBIOS UUID 00000000-0000-4000-8000-000000000100 is used by VM 100 and VM 101"},
		},
		"address": {
			change: func(s *pvesim.State) { s.VMs[1].Config["ipconfig0"] = "ip6=auto,ip=10.0.0.100/16" },
			want:   []string{"shared-address vm:101: address 10.0.0.100 on vmbr0 is used by VM 100 and VM 101"},
		},
		"address in another VLAN": {
			change: func(s *pvesim.State) {
				s.VMs[1].Config["ipconfig0"] = "ip=10.0.0.100/24"
				s.VMs[1].Config["net0"] += ",tag=7"
			},
		},
		"CPU": {
			change: func(s *pvesim.State) { s.VMs[1].Config["affinity"] = "2-3,9,9" },
			want:   []string{"shared-cpu vm:101: CPU 2 of pve1 is pinned to VM 100 and VM 101"},
		},
		"CPU of a VM that is off": {
			change: func(s *pvesim.State) { s.VMs[1].Config["affinity"], s.VMs[1].State = "2", "stopped" },
		},
		"CPU of another host": {
			change: func(s *pvesim.State) {
				s.VMs[1].Config["affinity"], s.VMs[1].Node = "2", "pve2"
			},
		},
		"lock": {
			change: func(s *pvesim.State) { s.VMs[0].Config["lock"] = "clone" },
			want:   []string{"stale-lock vm:100: VM 100 is locked (clone) and no task works on it"},
		},
		"lock of a hibernated VM": {change: func(s *pvesim.State) { s.VMs[0].Config["lock"], s.VMs[0].State = "suspended", "stopped" }},
		"snapshots": {
			change: func(s *pvesim.State) {
				s.VMs[0].Snapshots = []pvesim.SnapshotSpec{{Name: "b", Parent: "a"}}
				s.VMs[0].Config["parent"] = "c"
			},
			want: []string{
				"missing-snapshot vm:100: snapshot b of VM 100 has the parent a, which does not exist",
				"missing-snapshot vm:100: VM 100 has the parent c, which is no snapshot of it",
			},
		},
		"HA and firewall of a VM that is gone": {
			change: func(s *pvesim.State) {
				s.HA.Resources = map[string]map[string]string{"vm:100": {}, "vm:900": {}}
				s.StrayFirewalls = map[proxmox.VMID]pvesim.FirewallSpec{901: {Options: map[string]string{"enable": "1"}}}
			},
			want: []string{
				"missing-guest vm:900: the HA manager looks after vm:900, which does not exist",
				"missing-guest vm:901: there is a firewall file of VM 901, which does not exist",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := tidy()
			if tt.change != nil {
				tt.change(&s)
			}
			w := newWorld(t, pvesim.FromState(s))
			if tt.act != nil {
				tt.act(w)
			}
			var got, texts []string
			for _, f := range w.Findings() {
				got, texts = append(got, fmt.Sprintf("%s %s: %s", f.Kind, f.Object, f)), append(texts, f.Text)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(texts, w.Check()); diff != "" {
				t.Errorf("Check says something else (-findings +check):\n%s", diff)
			}
		})
	}
}

// TestCheckAsksGuestsForTheirAddresses: two guests with one seed have one address, whatever their configs say.
func TestCheckAsksGuestsForTheirAddresses(t *testing.T) {
	t.Parallel()
	a := newAPI(t, pvesim.WithGuests(pvesim.Booting(pvesim.BootHooks{})))
	network := "version: 2\nethernets:\n  e:\n    match: {name: \"e*\"}\n    addresses: [10.0.0.9/24]\n"
	a.uploadISO("pve1", "local", "twice.iso", seedISO(t, "cidata", map[string]string{"meta-data": "instance-id: i", "user-data": "", "network-config": network}))
	for _, id := range []string{"200", "201"} {
		a.ok("POST", "/nodes/pve1/qemu", "vmid", id, "net0", "virtio,bridge=vmbr0", "agent", "1", "ide3", "local:iso/twice.iso,media=cdrom")
		a.ok("POST", "/nodes/pve1/qemu/"+id+"/status/start")
	}
	eventually(t, "the address is found twice", func() bool {
		broken := a.server.World.Check()
		return len(broken) == 1 && broken[0] == "address 10.0.0.9 on vmbr0 is used by VM 200 and VM 201"
	})
}
