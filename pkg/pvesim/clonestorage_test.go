package pvesim_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// everyStorage is a node with one storage of each type, each named after its type, and on each a VM with a cloud-init drive.
func everyStorage(t *testing.T) *api {
	t.Helper()
	s := pvesim.State{Nodes: []pvesim.NodeSpec{{Name: "pve1"}, {Name: "pve2"}}, Users: []pvesim.UserSpec{{ID: "root@pam", Password: "pvesim"}}}
	for i, typ := range []string{"dir", "nfs", "lvmthin", "zfspool", "rbd"} {
		s.Storages = append(s.Storages, pvesim.StorageSpec{ID: proxmox.StorageID(typ), Type: typ, Content: []string{"images"}})
		id := 100 + i
		disk, seed := fmt.Sprintf("%s:vm-%d-disk-0", typ, id), fmt.Sprintf("%s:vm-%d-cloudinit", typ, id)
		if i < 2 {
			disk, seed = fmt.Sprintf("%s:%d/vm-%d-disk-0.qcow2", typ, id, id), fmt.Sprintf("%s:%d/vm-%d-cloudinit.qcow2", typ, id, id)
		}
		s.VMs = append(s.VMs, pvesim.VMSpec{VMID: proxmox.VMID(id), Node: "pve1", Config: map[string]string{
			"name": typ, "scsi0": disk + ",size=1G", "ide2": seed + ",media=cdrom", "scsi1": "dir:iso/none.iso,media=cdrom", "net0": "virtio,bridge=vmbr0",
		}})
	}
	s.Volumes = []pvesim.VolumeSpec{{ID: "dir:iso/none.iso", Node: "pve1", Size: 4096}}
	return newAPI(t, pvesim.FromState(s))
}

// TestTemplatesAndTheirClonesOnEachStorage makes a template, a linked clone, a template of that and a linked clone of it.
func TestTemplatesAndTheirClonesOnEachStorage(t *testing.T) {
	t.Parallel()
	type names struct{ Base, Linked, Base2, Linked2, Refused string }
	want := map[int]names{
		100: {"dir:100/base-100-disk-0.qcow2", "dir:100/base-100-disk-0.qcow2/200/vm-200-disk-0.qcow2", "dir:100/base-100-disk-0.qcow2/200/base-200-disk-0.qcow2", "dir:200/base-200-disk-0.qcow2/300/vm-300-disk-0.qcow2", "dir:100/base-100-disk-0.qcow2"},
		101: {"nfs:101/base-101-disk-0.qcow2", "nfs:101/base-101-disk-0.qcow2/200/vm-200-disk-0.qcow2", "nfs:101/base-101-disk-0.qcow2/200/base-200-disk-0.qcow2", "nfs:200/base-200-disk-0.qcow2/300/vm-300-disk-0.qcow2", "nfs:101/base-101-disk-0.qcow2"},
		102: {"lvmthin:base-102-disk-0", "lvmthin:vm-200-disk-0", "lvmthin:base-200-disk-0", "lvmthin:vm-300-disk-0", ""},
		103: {"zfspool:base-103-disk-0", "zfspool:base-103-disk-0/vm-200-disk-0", "zfspool:base-103-disk-0/base-200-disk-0", "zfspool:base-200-disk-0/vm-300-disk-0", "zfspool:base-103-disk-0"},
		104: {"rbd:base-104-disk-0", "rbd:base-104-disk-0/vm-200-disk-0", "rbd:base-104-disk-0/base-200-disk-0", "rbd:base-200-disk-0/vm-300-disk-0", "rbd:base-104-disk-0"},
	}
	for id, n := range want {
		a := everyStorage(t)
		disk := func(id int) string {
			v, _ := a.server.World.VM(proxmox.VMID(id))
			volume, _, _ := strings.Cut(v.Config["scsi0"], ",")
			return volume
		}
		path := fmt.Sprintf("/nodes/pve1/qemu/%d", id)
		a.ok("POST", path+"/template")
		a.ok("POST", path+"/clone", "newid", "200")
		got := names{Base: disk(id), Linked: disk(200)}
		a.ok("POST", "/nodes/pve1/qemu/200/template")
		a.ok("POST", "/nodes/pve1/qemu/200/clone", "newid", "300")
		got.Base2, got.Linked2 = disk(200), disk(300)
		if broken := a.server.World.Check(); len(broken) > 0 {
			t.Errorf("clones of VM %d: %v", id, broken)
		}
		if exit := a.exit("DELETE", path); exit != "OK" {
			got.Refused = strings.TrimSuffix(strings.TrimPrefix(exit, "base volume '"), "' is still in use by linked cloned")
		}
		if diff := cmp.Diff(n, got); diff != "" {
			t.Errorf("VM %d (-want +got):\n%s", id, diff)
		}
		rebuilt, err := pvesim.NewWorld(pvesim.FromState(a.server.World.State()))
		if err != nil || len(rebuilt.Check()) != len(a.server.World.Check()) {
			t.Errorf("the world of its state is broken: %v %v", err, rebuilt.Check())
		}
		rebuilt.Close()
		a.ok("DELETE", "/nodes/pve1/qemu/300")
		a.ok("DELETE", "/nodes/pve1/qemu/200")
	}
}

// TestFullClonesChooseTheFormat copies to other storages: the format is the one that was asked for, that of the source, or raw.
func TestFullClonesChooseTheFormat(t *testing.T) {
	t.Parallel()
	a := everyStorage(t)
	for i, tt := range []struct{ source, storage, format, disk, seed string }{
		{"100", "", "", "dir:%d/vm-%d-disk-0.qcow2", "dir:%d/vm-%d-cloudinit.qcow2"},
		{"100", "nfs", "raw", "nfs:%d/vm-%d-disk-0.raw", "nfs:%d/vm-%d-cloudinit.raw"},
		{"100", "nfs", "vmdk", "nfs:%d/vm-%d-disk-0.vmdk", "nfs:%d/vm-%d-cloudinit.vmdk"},
		{"100", "lvmthin", "qcow2", "lvmthin:vm-%d-disk-0", "lvmthin:vm-%d-cloudinit"},
		{"102", "dir", "", "dir:%d/vm-%d-disk-0.raw", "dir:%d/vm-%d-cloudinit.raw"},
		{"103", "rbd", "", "rbd:vm-%d-disk-0", "rbd:vm-%d-cloudinit"},
	} {
		id := 200 + i
		params := []string{"newid", fmt.Sprint(id), "full", "1"}
		if tt.storage != "" {
			params = append(params, "storage", tt.storage)
		}
		if tt.format != "" {
			params = append(params, "format", tt.format)
		}
		a.ok("POST", "/nodes/pve1/qemu/"+tt.source+"/clone", params...)
		numbers := []any{id, id}[:strings.Count(tt.disk, "%d")]
		want := []string{fmt.Sprintf(tt.disk, numbers...) + ",size=1G", fmt.Sprintf(tt.seed, numbers...) + ",media=cdrom,size=4M", "dir:iso/none.iso,media=cdrom"}
		v, _ := a.server.World.VM(proxmox.VMID(id))
		if diff := cmp.Diff(want, []string{v.Config["scsi0"], v.Config["ide2"], v.Config["scsi1"]}); diff != "" {
			t.Errorf("clone of %s to %s as %s:\n%s", tt.source, tt.storage, tt.format, diff)
		}
	}
}

func TestRefusedClones(t *testing.T) {
	t.Parallel()
	a := everyStorage(t)
	a.ok("POST", "/nodes/pve1/qemu/103/snapshot", "snapname", "s1")
	a.ok("POST", "/nodes/pve1/qemu/104/snapshot", "snapname", "s1")
	a.must("PUT", "/nodes/pve1/qemu/104/config", "delete", "scsi1")
	for _, tt := range []struct {
		source string
		params []string
		want   string
	}{
		{"999", []string{"target", "pve9"}, "unable to find configuration file for VM 999 on node 'pve1'"},
		{"100", []string{"pool", "none"}, "Permission check failed (pool 'none' does not exist)"},
		{"100", []string{"full", "0"}, "Linked clone feature is not supported for 'dir:100/vm-100-disk-0.qcow2' (scsi0)"},
		{"103", []string{"full", "0", "snapname", "s1"}, "Linked clone feature is not supported for a snapshot of 'zfspool:vm-103-disk-0' (scsi0)"},
		{"103", []string{"full", "1", "snapname", "s1"}, "Full clone feature is not supported for a snapshot of 'zfspool:vm-103-disk-0' (scsi0)"},
		{"103", []string{"snapname", "s2"}, "snapshot 's2' does not exist"},
		// The ISO image is on local storage.
		{"101", []string{"target", "pve2"}, "can't clone VM to node 'pve2' (VM uses local storage)"},
	} {
		if r := a.do("POST", "/nodes/pve1/qemu/"+tt.source+"/clone", append([]string{"newid", "200"}, tt.params...)...); r.reason != tt.want {
			t.Errorf("clone of %s with %v: %d %s", tt.source, tt.params, r.status, r.reason)
		}
	}
	a.ok("POST", "/nodes/pve1/qemu/104/clone", "newid", "200", "full", "0", "snapname", "s1")
	if v, _ := a.server.World.VM(200); !strings.HasPrefix(v.Config["scsi0"], "rbd:vm-200-disk-0,") || v.Config["scsi1"] == "" {
		t.Errorf("linked clone of a snapshot is %v", v.Config)
	}
}

// TestIdentitiesOfAClone looks at what is copied and what is new.
func TestIdentitiesOfAClone(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, a *api) {
		w := a.server.World
		must(t, w.AddVM(pvesim.VMSpec{
			VMID: 300, Node: "pve1", Pending: map[string]string{"memory": "4096"},
			Config: map[string]string{"tags": "a;b", "description": "text", "affinity": "0-1", "net0": "virtio=BC:24:11:00:00:01,bridge=vmbr0,firewall=1", "unused0": "shared:300/vm-300-disk-9.raw", "smbios1": "uuid=11111111-2222-4333-8444-555555555555,serial=abc"},
		}))
		upid := a.must("POST", "/nodes/pve1/qemu/300/clone", "newid", "301")
		if exit := a.wait(upid); exit != "OK" {
			t.Fatal(exit)
		}
		v, _ := w.VM(301)
		old, _ := w.VM(300)
		for _, key := range []string{"net0", "smbios1", "vmgenid"} {
			if v.Config[key] == old.Config[key] || v.Config[key] == "" {
				t.Errorf("%s is %q, that of the source %q", key, v.Config[key], old.Config[key])
			}
		}
		want := map[string]string{"name": "Copy-of-VM-300", "tags": "a;b", "description": "text", "affinity": "0-1", "unused0": "", "memory": ""}
		for key, value := range want {
			if v.Config[key] != value {
				t.Errorf("%s is %q, want %q", key, v.Config[key], value)
			}
		}
		if !strings.HasSuffix(v.Config["smbios1"], ",serial=abc") && !strings.Contains(v.Config["smbios1"], "serial=abc,") || !strings.HasSuffix(v.Config["net0"], ",bridge=vmbr0,firewall=1") {
			t.Errorf("smbios1=%s net0=%s", v.Config["smbios1"], v.Config["net0"])
		}
		lines := a.list("/nodes/pve1/tasks/"+fmt.Sprint(upid)+"/log", "limit", "0")
		if text := lines[len(lines)-2]["t"]; text != "found pending changes for 'memory', discarding for clone" {
			t.Errorf("log says %q", text)
		}
	})
}
