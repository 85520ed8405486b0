package pvesim_test

import (
	"strings"
	"testing"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// storages is a cluster with a storage of every type, one that is disabled and one that is for pve2 alone.
func storages() pvesim.Option {
	return pvesim.FromState(pvesim.State{
		Nodes: []pvesim.NodeSpec{{Name: "pve1"}, {Name: "pve2"}},
		Storages: []pvesim.StorageSpec{
			{ID: "local", Type: "dir", Content: []string{"iso", "vztmpl", "import", "snippets", "backup", "images"}, Total: 1 << 30},
			{ID: "nas", Type: "nfs", Content: []string{"images", "iso"}},
			{ID: "thin", Type: "lvmthin", Content: []string{"images"}, Total: 100 << 30},
			{ID: "thick", Type: "zfspool", Content: []string{"images"}, Options: map[string]string{"pool": "tank", "sparse": "0"}},
			{ID: "ceph", Type: "rbd", Content: []string{"images"}, Options: map[string]string{"pool": "vms"}},
			{ID: "off", Type: "dir", Path: "/off", Content: []string{"iso"}, Disabled: true},
			{ID: "two", Type: "dir", Path: "/two", Content: []string{"iso"}, Nodes: []proxmox.NodeName{"pve2"}},
		},
	})
}

func TestStorageConfiguration(t *testing.T) {
	t.Parallel()
	a := newAPI(t, storages())
	a.answers(
		asked{"GET /storage/local", `"path":"/var/lib/vz","storage":"local","type":"dir"`},
		asked{"GET /storage/nas", `"export":"/export/nas","path":"/mnt/pve/nas","server":"10.10.0.5","shared":1`},
		asked{"GET /storage/thin", `"thinpool":"data","type":"lvmthin","vgname":"pve"`},
		asked{"GET /storage/thick", `"pool":"tank","sparse":0`},
		asked{"GET /storage/off", `"disable":1`},
		asked{"GET /storage/two", `"nodes":"pve2"`},
		asked{"GET /storage/none", "500 storage 'none' does not exist"},
		asked{"GET /storage type=rbd", `"storage":"ceph","type":"rbd"}]`},
		asked{"GET /storage type=floppy", "value 'floppy' does not have a value in the enumeration"},
	)
	if list := a.must("GET", "/storage").([]any); len(list) != 7 {
		t.Errorf("%d storages are listed", len(list))
	}
	first := a.object("/storage/local")["digest"]
	must(t, a.server.World.AddStorage(pvesim.StorageSpec{ID: "more", Type: "dir"}))
	if a.object("/storage/local")["digest"] == first {
		t.Error("a change of storage.cfg does not show in its digest")
	}
}

func TestStoragesAsANodeSeesThem(t *testing.T) {
	t.Parallel()
	a := newAPI(t, storages())
	a.answers(
		asked{"GET /nodes/pve1/storage content=vztmpl", `"active":1,"avail":1073741824,`},
		asked{"GET /nodes/pve1/storage content=vztmpl", `"total":1073741824,"type":"dir","used":0,"used_fraction":0}]`},
		asked{"GET /nodes/pve1/storage storage=off", `"active":0,"avail":0,"content":"iso","enabled":0,"shared":0,"storage":"off","total":0`},
		asked{"GET /nodes/pve1/storage storage=off content=iso", "map[storage:No such storage.]"},
		asked{"GET /nodes/pve1/storage storage=off enabled=1", "200 OK map[] []"},
		asked{"GET /nodes/pve1/storage storage=two target=pve2", "200 OK map[] []"},
		asked{"GET /nodes/pve2/storage storage=two target=pve2", `"storage":"two"`},
		asked{"GET /nodes/pve1/storage storage=nas format=1", `"format":[{"qcow2":1,"raw":1,"vmdk":1},"raw"]`},
		asked{"GET /nodes/pve1/storage/two/status", `"active":0`},
		asked{"GET /nodes/pve2/storage/two/status", `"active":1`},
		asked{"GET /nodes/pve1/storage/none/status", "map[storage:No such storage.]"},
		asked{"GET /nodes/pve1/storage/local", `{"subdir":"upload"}`},
		asked{"GET /nodes/pve1/storage/local/rrddata timeframe=day", "200 OK map[] []"},
		asked{"GET /nodes/pve1/storage/off/content", "500 storage 'off' is disabled"},
		asked{"GET /nodes/pve1/storage/two/content", "500 storage 'two' is not available on node 'pve1'"},
	)
	if list := pick(a.must("GET", "/cluster/resources", "type", "storage"), "id"); strings.Contains(strings.Join(list, " "), "off") || len(list) != 11 {
		t.Errorf("resources are %v", list)
	}
}

// TestSpaceIsTakenThinOrThick: a volume takes what was written, except on a ZFS pool that is not sparse.
func TestSpaceIsTakenThinOrThick(t *testing.T) {
	t.Parallel()
	a := newAPI(t, storages())
	for storage, want := range map[string]string{"thin": `"used":204800`, "thick": `"used":1073741824`} {
		a.answers(
			asked{"POST /nodes/pve1/storage/" + storage + "/content vmid=100 filename=vm-100-disk-0 size=1G", `200 OK map[] "` + storage + `:vm-100-disk-0"`},
			asked{"GET /nodes/pve1/storage/" + storage + "/status", want},
			asked{"GET /nodes/pve2/storage/" + storage + "/status", `"used":0`},
		)
	}
}
