package pvesim_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMoveDiskToAnotherStorage(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	vm := newVM + "/100"
	a.ok("POST", newVM, "vmid", "100", "scsi0", "shared:1,format=qcow2,ssd=1", "scsi1", "shared:1", "ide2", "none")
	a.ok("POST", vm+"/move_disk", "disk", "scsi0", "storage", "local-lvm")
	a.ok("POST", vm+"/move_disk", "disk", "scsi1", "storage", "shared", "format", "qcow2", "delete", "1")
	want := map[string]any{
		"boot": "order=scsi0;ide2", "ide2": "none,media=cdrom", "scsi0": "local-lvm:vm-100-disk-0,size=1G,ssd=1", "scsi1": "shared:100/vm-100-disk-2.qcow2,size=1G",
		"unused0": "shared:100/vm-100-disk-0.qcow2",
	}
	if diff := cmp.Diff(want, a.options(vm)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, c := range []struct {
		want  string
		pairs []string
	}{
		{"400 map[target-vmid:either set 'storage' or 'target-vmid', but not both]", []string{"disk", "scsi0", "storage", "shared", "target-vmid", "101"}},
		{"500 disk 'scsi9' does not exist", []string{"disk", "scsi9", "storage", "shared"}},
		{"500 disk 'ide2' has no associated volume", []string{"disk", "ide2", "storage", "shared"}},
		{"500 you can't move to the same storage with same format", []string{"disk", "scsi0", "storage", "local-lvm"}},
		{"500 storage 'nope' does not exist", []string{"disk", "scsi0", "storage", "nope"}},
		{"500 checksum mismatch (file change by other user?)", []string{"disk", "scsi0", "storage", "shared", "digest", "00"}},
	} {
		a.expect(c.want, "POST", vm+"/move_disk", c.pairs...)
	}
	const missing = "both 'storage' and 'target-vmid' missing, either needs to be set"
	a.expect("400 map[storage:"+missing+" target-vmid:"+missing+"]", "POST", vm+"/move_disk", "disk", "scsi0")
}

func TestMoveDiskToAnotherVM(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	move := newVM + "/100/move_disk"
	a.ok("POST", newVM, "vmid", "100", "scsi0", "shared:1,format=qcow2,ssd=1", "ide2", "shared:cloudinit")
	a.ok("POST", newVM, "vmid", "101", "scsi0", "shared:1")
	a.expect("500 Target disk key 'scsi0' is already in use for VM '101'!", "POST", move, "disk", "scsi0", "target-vmid", "101")
	a.expect("500 disk reassignment: source and target VM are the same", "POST", move, "disk", "scsi0", "target-vmid", "100")
	a.expect("500 You can't move a cloud-init disk to another VM", "POST", move, "disk", "ide2", "target-vmid", "101", "target-disk", "ide3")
	a.expect("500 Configuration file 'nodes/pve1/qemu-server/999.conf' does not exist", "POST", move, "disk", "scsi0", "target-vmid", "999")
	a.ok("POST", move, "disk", "scsi0", "target-vmid", "101", "target-disk", "virtio3")
	if from, to := a.options(newVM + "/100")["scsi0"], a.options(newVM + "/101")["virtio3"]; from != nil || to != "shared:101/vm-101-disk-1.qcow2,size=1G,ssd=1" {
		t.Errorf("moved from %v to %v", from, to)
	}
	if broken := a.server.World.Check(); len(broken) > 0 {
		t.Error(broken)
	}
}

func TestUnlinkFreesUnusedDisks(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	vm := newVM + "/100"
	a.ok("POST", newVM, "vmid", "100", "scsi0", "shared:1", "scsi1", "shared:1", "scsi2", "shared:1,format=qcow2")
	a.must("PUT", vm+"/unlink", "idlist", "scsi0")
	a.must("PUT", vm+"/unlink", "idlist", "scsi1", "force", "1")
	if got := columns(a.must("GET", "/nodes/pve1/storage/shared/content", "vmid", "100"), "volid"); len(got) != 2 {
		t.Errorf("volumes after unlinking: %v", got)
	}
	a.ok("POST", vm+"/snapshot", "snapname", "s1")
	a.must("PUT", vm+"/unlink", "idlist", "scsi2")
	a.must("PUT", vm+"/unlink", "idlist", "unused0")
	a.expect("500 unable to delete 'shared:100/vm-100-disk-2.qcow2' - volume is still in use (snapshot?)", "PUT", vm+"/unlink", "idlist", "unused1")
	a.expect("400 map[delete:unknown option 'cake']", "PUT", vm+"/unlink", "idlist", "cake")
}

func TestResizeSaysWhyNot(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	resize := newVM + "/100/resize"
	a.ok("POST", newVM, "vmid", "100", "scsi0", "shared:1,format=qcow2", "scsi1", "local-lvm:1", "ide2", "none")
	for _, c := range []struct{ disk, size, want string }{
		{"scsi0", "1G", "OK"},
		{"scsi0", "+512M", "OK"},
		{"scsi0", "1G", "shrinking disks is not supported"},
		{"ide2", "1G", "you can't resize a cdrom"},
		{"scsi9", "1G", "disk 'scsi9' does not exist"},
		{"scsi0", "99999G", "command '/usr/bin/qemu-img resize '--preallocation=metadata' -f qcow2 /mnt/pve/shared/images/100/vm-100-disk-0.qcow2 107373108658176' failed: exit code 1"},
		{"scsi1", "99999G", "not enough free space on storage 'local-lvm'"},
	} {
		if exit := a.exit("PUT", resize, "disk", c.disk, "size", c.size); exit != c.want {
			t.Errorf("%s to %s: %s, want %s", c.disk, c.size, exit, c.want)
		}
	}
	if got := a.options(newVM + "/100")["scsi0"]; got != "shared:100/vm-100-disk-0.qcow2,size=1536M" {
		t.Errorf("scsi0 is %v", got)
	}
}
