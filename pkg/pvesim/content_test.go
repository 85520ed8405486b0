package pvesim_test

import (
	"strings"
	"testing"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

func TestVolumesAreAllocatedUnderTheNamesOfTheirStorage(t *testing.T) {
	t.Parallel()
	a := newAPI(t, storages())
	const local, thin, thick = "POST /nodes/pve1/storage/local/content vmid=100 ", "POST /nodes/pve1/storage/thin/content vmid=100 ", "POST /nodes/pve1/storage/thick/content vmid=100 "
	a.answers(
		asked{local + "filename=vm-100-disk-0.qcow2 size=16M", `"local:100/vm-100-disk-0.qcow2"`},
		asked{local + "filename=vm-100-disk-0.qcow2 size=16M", "500 disk image '/var/lib/vz/images/100/vm-100-disk-0.qcow2' already exists"},
		asked{local + "filename=vm-100-disk-1.raw size=4096", `"local:100/vm-100-disk-1.raw"`},
		asked{"GET /nodes/pve1/storage/local/content/100/vm-100-disk-1.raw", `"format":"raw","path":"/var/lib/vz/images/100/vm-100-disk-1.raw","size":4194304`},
		asked{local + "filename=vm-100-disk-2.raw size=1G format=qcow2", "map[format:different storage formats (qcow2 != raw)]"},
		asked{local + "filename=disk size=1G", "500 unable to parse volume filename 'disk'"},
		asked{local + "filename=vm-100-disk-2.qcow2 size=1T", "map[size:value does not match the regex pattern]"},
		asked{thin + "filename=vm-100-disk-0 size=1G", `"thin:vm-100-disk-0"`},
		asked{thin + "filename=vm-100-disk-1 size=1G format=qcow2", "500 unsupported format 'qcow2'"},
		asked{thin + "filename=vm-101-disk-1 size=1G", "500 illegal name 'vm-101-disk-1' - should be 'vm-100-*'"},
		asked{"GET /nodes/pve1/storage/thin/content/vm-100-disk-0", `"path":"/dev/pve/vm-100-disk-0"`},
		asked{"GET /nodes/pve1/storage/thin/content", `"volid":"thin:vm-100-disk-0"`},
		asked{thick + "filename=vm-100-disk-0 size=1G", `"thick:vm-100-disk-0"`},
		asked{"GET /nodes/pve1/storage/thick/content/vm-100-disk-0", `"path":"/dev/zvol/tank/vm-100-disk-0","size":1073741824,"used":1073741824`},
	)
}

func TestNamesThatNoVolumeCanHave(t *testing.T) {
	t.Parallel()
	a := newAPI(t, storages())
	for name, want := range map[string]string{
		"local/content/foo":                  "500 unable to parse directory volume name 'foo'",
		"local/content/iso/a.txt":            "500 unable to parse directory volume name 'iso/a.txt'",
		"local/content/100/a/b":              "500 unable to parse directory volume name '100/a/b'",
		"local/content/100/disk.vdi":         "500 unable to parse volume filename 'disk.vdi'",
		"thin/content/disk":                  "500 unable to parse lvm volume name 'disk'",
		"thin/content/base-1-x/vm-100-x":     "500 unable to parse lvm volume name 'base-1-x/vm-100-x'",
		"thick/content/vm-x-disk-0":          "500 unable to parse zfs volume name 'vm-x-disk-0'",
		"ceph/content/x/vm-100-disk-0":       "500 unable to parse rbd volume name 'x/vm-100-disk-0'",
		"local/content/nas:iso/a.iso":        "map[volume:storage ID mismatch (nas != local)\n]",
		"local/content/iso/a.iso":            "500 volume_size_info on 'local:iso/a.iso' failed - no format",
		"local/content/backup/vzdump-a.zst":  "500 unable to parse directory volume name 'backup/vzdump-a.zst'",
		"local/content/import/disk.tar":      "500 unable to parse directory volume name 'import/disk.tar'",
		"local/content/snippets/a/b":         "500 unable to parse directory volume name 'snippets/a/b'",
		"local/content/vztmpl/debian.tar.7z": "500 unable to parse directory volume name 'vztmpl/debian.tar.7z'",
	} {
		a.answers(asked{"GET /nodes/pve1/storage/" + name, want})
	}
}

func TestContentIsListedAsWhatItIs(t *testing.T) {
	t.Parallel()
	a := newAPI(t, storages())
	for _, v := range []pvesim.VolumeSpec{
		{ID: "local:iso/a.iso", Node: "pve1", Size: 7},
		{ID: "local:vztmpl/d.tar.zst", Node: "pve1", Size: 7},
		{ID: "local:snippets/user.yaml", Node: "pve1", Size: 7},
		{ID: "local:import/d.qcow2", Node: "pve1", Size: 7},
		{ID: "local:100/base-100-disk-0.qcow2", Node: "pve1", Size: 7},
		{ID: "local:100/base-100-disk-0.qcow2/110/vm-110-disk-0.qcow2", Node: "pve1", Size: 7},
		{ID: "local:backup/vzdump-qemu-110-2026_01_02-03_04_05.vma.zst", Node: "pve1", Size: 7, Notes: "kept", Protected: true},
		{ID: "ceph:base-100-disk-0", Size: 7},
		{ID: "ceph:base-100-disk-0/vm-110-disk-0", Size: 7},
	} {
		must(t, a.server.World.AddVolume(v))
	}
	for id, want := range map[proxmox.VolumeID]string{
		"content=iso": `"format":"iso"`, "content=vztmpl": `"format":"tzst"`, "content=snippets": `"format":"snippet"`, "content=import": `"format":"qcow2"`,
		"vmid=110 content=images": `"parent":"../100/base-100-disk-0.qcow2"`, "vmid=100": `"parent":null`,
		"content=backup": `"format":"vma.zst","notes":"kept","protected":1,"size":7,"subtype":"qemu","vmid":110`,
	} {
		a.answers(asked{"GET /nodes/pve1/storage/local/content " + string(id), want})
	}
	a.answers(
		asked{"GET /nodes/pve2/storage/ceph/content vmid=110", `"parent":"base-100-disk-0@__base__"`},
		asked{"GET /nodes/pve2/storage/local/content", "200 OK map[] []"},
		asked{"GET /nodes/pve1/storage/local/content content=foo", "invalid content type 'foo'"},
	)
}

func TestDeletingVolumes(t *testing.T) {
	t.Parallel()
	a := newAPI(t, storages())
	for _, id := range []proxmox.VolumeID{
		"local:100/base-100-disk-0.qcow2", "local:100/base-100-disk-0.qcow2/110/vm-110-disk-0.qcow2", "thin:base-100-disk-0", "local:iso/a.iso",
	} {
		must(t, a.server.World.AddVolume(pvesim.VolumeSpec{ID: id, Node: "pve1", Size: 1 << 20}))
	}
	backup := pvesim.VolumeSpec{ID: "local:backup/vzdump-qemu-110-x.vma", Node: "pve1", Protected: true}
	must(t, a.server.World.AddVolume(backup))
	for volume, want := range map[string]string{
		"local/content/100/base-100-disk-0.qcow2":                          "base volume '100/base-100-disk-0.qcow2' is still in use by linked clones",
		"local/content/" + strings.TrimPrefix(string(backup.ID), "local:"): "cannot remove protected volume 'backup/vzdump-qemu-110-x.vma' on 'local'",
		"thin/content/base-100-disk-0":                                     "OK",
		"thin/content/vm-999-disk-0":                                       "no such logical volume pve/vm-999-disk-0",
		"local/content/iso/none.iso":                                       "OK",
	} {
		if exit := a.exit("DELETE", "/nodes/pve1/storage/"+volume); exit != want {
			t.Errorf("delete %s: %s, want %s", volume, exit, want)
		}
	}
	// With a delay the answer waits for the worker.
	a.answers(asked{"DELETE /nodes/pve1/storage/local/content/iso/a.iso delay=5", "200 OK map[] null"})
	if list := a.must("GET", "/nodes/pve1/storage/local/content", "content", "iso").([]any); len(list) > 0 {
		t.Errorf("left is %v", list)
	}
}

func TestAttributesAreForBackups(t *testing.T) {
	t.Parallel()
	a := newAPI(t, storages())
	const iso, backup = "PUT /nodes/pve1/storage/local/content/iso/a.iso ", "/nodes/pve1/storage/local/content/backup/vzdump-qemu-110-x.vma"
	must(t, a.server.World.AddVolume(pvesim.VolumeSpec{ID: "local:backup/vzdump-qemu-110-x.vma", Node: "pve1", Size: 9}))
	a.answers(
		asked{iso + "notes=x", "500 only backups can have notes"},
		asked{iso + "protected=1", "500 only backups support attribute 'protected'"},
		asked{"PUT " + backup + " notes=mine protected=1", "200 OK"},
		asked{"GET " + backup, `"notes":"mine"`},
		asked{"PUT " + backup + " protected=0", "200 OK"},
		asked{"DELETE " + backup + " delay=5", "200 OK map[] null"},
		asked{"PUT " + backup + " notes=gone", "does not exist"},
	)
}

func TestCopyAndImportMetadata(t *testing.T) {
	t.Parallel()
	a := newAPI(t, storages())
	for _, id := range []proxmox.VolumeID{"local:import/app.ova", "local:import/d.qcow2"} {
		must(t, a.server.World.AddVolume(pvesim.VolumeSpec{ID: id, Node: "pve1", Size: 5}))
	}
	const meta = "GET /nodes/pve1/storage/local/import-metadata volume="
	a.answers(
		asked{meta + "local:import/app.ova", `"create-args":{"name":"app"}`},
		asked{meta + "local:import/d.qcow2", "500 invalid format"},
		asked{meta + "local:iso/a.iso", "500 invalid content type 'iso'"},
		asked{meta + "local:import/none.ova", "500 failed to stat '/var/lib/vz/import/none.ova'"},
		asked{"POST /nodes/pve1/storage/local/content/import/d.qcow2 target=import/e.qcow2", "403 Permission check failed (user != root@pam)"},
	)
}
