package pvesim_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// untimed takes times and durations out of the log of a migration.
func untimed(log string) string {
	return regexp.MustCompile(`\d{4}-\d\d-\d\d |\d\d:\d\d:\d\d `).ReplaceAllString(regexp.MustCompile(`duration \d\d:\d\d:\d\d`).ReplaceAllString(log, "duration"), "")
}

func TestMigrationPreconditions(t *testing.T) {
	t.Parallel()
	for _, version := range []pvesim.Version{pvesim.V84, pvesim.V92} {
		a := newAPI(t, pvesim.WithVersion(version), pvesim.WithTemplates())
		must(t, a.server.World.AddStorage(pvesim.StorageSpec{ID: "here", Type: "nfs", Content: []string{"images"}, Nodes: []proxmox.NodeName{"pve1", "pve2"}}))
		vm := a.withVM(100, "", map[string]string{"scsi0": "local-lvm:vm-100-disk-0,size=1G", "scsi1": "here:100/vm-100-disk-0.raw,size=1G", "ide2": "local-lvm:vm-100-cloudinit,media=cdrom"})
		got := a.object(vm + "/migrate")
		if _, is := got["has-dbus-vmstate"]; is != (version == pvesim.V92) {
			t.Errorf("%s: %v", version, got)
		}
		if fmt.Sprint(got["running"], got["allowed_nodes"], got["not_allowed_nodes"]) != "0 [pve2] map[pve2:map[] pve3:map[unavailable_storages:[here]]]" {
			t.Errorf("%s: preconditions are %v", version, got)
		}
		want := []string{"ide2/local-lvm:vm-100-cloudinit/1/1", "scsi0/local-lvm:vm-100-disk-0/0/1"}
		if diff := cmp.Diff(want, columns(got["local_disks"], "drivename", "volid", "cdrom", "is_attached")); diff != "" {
			t.Errorf("%s: local disks (-want +got):\n%s", version, diff)
		}
	}
}

func TestMigrationIsRefused(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	running := a.withVM(100, "running", map[string]string{"scsi0": "shared:100/vm-100-disk-0.raw,size=1G"})
	locked := a.withVM(101, "", map[string]string{"lock": "backup"})
	must(t, a.server.World.AddStorage(pvesim.StorageSpec{ID: "here", Type: "nfs", Content: []string{"images"}, Nodes: []proxmox.NodeName{"pve1"}}))
	bound := a.withVM(102, "", map[string]string{"scsi0": "here:102/vm-102-disk-0.raw,size=1G"})
	a.expect("400 map[target:target is local node.]", "POST", running+"/migrate", "target", "pve1")
	a.expect("500 no such cluster node 'pve9'", "POST", running+"/migrate", "target", "pve9")
	a.expect("400 map[target:property is missing and it is not optional]", "POST", running+"/migrate")
	a.expect("400 map[force:Only root may use this option.]", "POST", running+"/migrate", "target", "pve2", "force", "1")
	a.expect("500 can't migrate running VM without --online", "POST", running+"/migrate", "target", "pve2")
	a.expect("500 VM is locked (backup)", "POST", locked+"/migrate", "target", "pve2")
	a.expect("500 storage 'here' is not available on node 'pve2'", "POST", bound+"/migrate", "target", "pve2")
	a.expect("500 Configuration file 'nodes/pve1/qemu-server/199.conf' does not exist", "POST", "/nodes/pve1/qemu/199/migrate", "target", "pve2")
	a.expect("501 Method 'POST /nodes/pve1/qemu/100/remote_migrate' not implemented", "POST", running+"/remote_migrate")
}

func TestOfflineMigrationTakesDisksAlong(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	vm := a.withVM(100, "", map[string]string{"scsi0": "local-lvm:vm-100-disk-0,size=1G", "scsi1": "shared:100/vm-100-disk-0.raw,size=1G"})
	want := "starting migration of VM 100 to node 'pve2' (10.10.0.12) / found local disk 'local-lvm:vm-100-disk-0' (attached) / copying local disk images / " +
		"successfully imported 'local-lvm:vm-100-disk-0' / volume 'local-lvm:vm-100-disk-0' is 'local-lvm:vm-100-disk-0' on the target / migration finished successfully (duration) / TASK OK"
	if got := untimed(a.logOf("POST", vm+"/migrate", "target", "pve2")); got != want {
		t.Errorf("log:\n got %s\nwant %s", got, want)
	}
	a.expect("500 Configuration file 'nodes/pve1/qemu-server/100.conf' does not exist", "GET", vm+"/config")
	vm = "/nodes/pve2/qemu/100"
	a.ok("POST", vm+"/migrate", "target", "pve3", "targetstorage", "shared")
	vm = "/nodes/pve3/qemu/100"
	if config := a.object(vm + "/config"); config["scsi0"] != "shared:100/vm-100-disk-1.raw,size=1G" || config["scsi1"] != "shared:100/vm-100-disk-0.raw,size=1G" {
		t.Errorf("config after a move to another storage: %v", config)
	}
	a.ok("POST", vm+"/status/start")
	if broken := a.server.World.Check(); len(broken) > 0 {
		t.Errorf("broken: %v", broken)
	}
}

func TestOnlineMigration(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	vm := a.withVM(100, "running", map[string]string{"memory": "128", "scsi0": "shared:100/vm-100-disk-0.raw,size=1G"})
	got := untimed(a.logOf("POST", vm+"/migrate", "target", "pve2", "online", "1"))
	for _, line := range []string{"migration cachesize: 16.0 MiB", "migration completed, transferred 2.1 MiB VM-state", "migration status: completed", "TASK OK"} {
		if !strings.Contains(got, line) {
			t.Errorf("log has no line %q: %s", line, got)
		}
	}
	if got := a.power("/nodes/pve2/qemu/100"); got != "running/running" {
		t.Errorf("after the migration the VM is %s", got)
	}
	local := a.withVM(101, "running", map[string]string{"scsi0": "local-lvm:vm-101-disk-0,size=1G"})
	want := "starting migration of VM 101 to node 'pve2' (10.10.0.12) / found local disk 'local-lvm:vm-101-disk-0' (attached) / " +
		"can't migrate local disk 'local-lvm:vm-101-disk-0': can't live migrate attached local disks without with-local-disks option / " +
		"ERROR: Problem found while scanning volumes - can't migrate VM - check log / aborting phase 1 - cleanup resources / " +
		"ERROR: migration aborted (duration): Problem found while scanning volumes - can't migrate VM - check log / TASK ERROR: migration aborted"
	if got := untimed(a.logOf("POST", local+"/migrate", "target", "pve2", "online", "1")); got != want {
		t.Errorf("log:\n got %s\nwant %s", got, want)
	}
	a.ok("POST", local+"/migrate", "target", "pve2", "online", "1", "with-local-disks", "1")
	if v, _ := a.server.World.VM(101); v.Node != "pve2" || v.Lock != "" {
		t.Errorf("VM 101 is %+v", v)
	}
}

func TestImagesOfOneNodeDoNotMigrate(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.uploadISO("pve1", "local", "m.iso", make([]byte, 40960))
	vm := a.withVM(100, "", map[string]string{"ide2": "local:iso/m.iso,media=cdrom,size=40K"})
	if got := a.logOf("POST", vm+"/migrate", "target", "pve2"); !strings.Contains(got, "can't migrate local disk 'local:iso/m.iso': local cdrom image") {
		t.Errorf("migration with an ISO: %s", got)
	}
	a.must("PUT", vm+"/config", "ide2", "none,media=cdrom")
	a.ok("POST", vm+"/migrate", "target", "pve2")
}
