package pvesim_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

const newVM = "/nodes/pve1/qemu"

// options are the options of a VM without those that are drawn.
func (a *api) options(vm string) map[string]any {
	a.t.Helper()
	out := a.object(vm + "/config")
	for _, key := range []string{"digest", "meta", "smbios1", "vmgenid"} {
		if out[key] == "" || out[key] == nil {
			a.t.Errorf("%s has no %s", vm, key)
		}
		delete(out, key)
	}
	return out
}

func TestNewVMsGetWhatQemuServerAdds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		version pvesim.Version
		given   []string
		want    map[string]any
	}{
		{"nothing", pvesim.V92, nil, map[string]any{"boot": " "}},
		{"empty values", pvesim.V92, []string{"ciuser", "", "description", ""}, map[string]any{"boot": " ", "ciuser": " "}},
		{"tags in order", pvesim.V92, []string{"tags", "b;a;B"}, map[string]any{"boot": " ", "tags": "a;b"}},
		{"tags as they are", pvesim.V84, []string{"tags", "b;a;B"}, map[string]any{"boot": " ", "tags": "b;a;B"}},
		{"a device of a boot order that is not there", pvesim.V92, []string{"boot", "order=net9"}, map[string]any{"boot": "order=net9"}},
		{"weight", pvesim.V92, []string{"cpuunits", "200000"}, map[string]any{"boot": " ", "cpuunits": 10000.0}},
		{"Windows", pvesim.V92, []string{"ostype", "win11", "machine", "q35"}, map[string]any{"boot": " ", "ostype": "win11", "machine": "pc-q35-10.1"}},
		{
			"disks", pvesim.V92,
			[]string{"scsi0", "shared:0.5,format=qcow2,ssd=1,discard=on", "ide2", "none", "efidisk0", "shared:9,efitype=4m", "tpmstate0", "shared:9,version=v2.0"},
			map[string]any{
				"boot": "order=scsi0;ide2", "scsi0": "shared:100/vm-100-disk-1.qcow2,discard=on,size=512M,ssd=1", "ide2": "none,media=cdrom",
				"efidisk0": "shared:100/vm-100-disk-0.raw,efitype=4m,size=528K", "tpmstate0": "shared:100/vm-100-disk-2.raw,size=4M,version=v2.0",
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a := newAPI(t, pvesim.WithVersion(c.version))
			a.ok("POST", newVM, append([]string{"vmid", "100"}, c.given...)...)
			if diff := cmp.Diff(c.want, a.options(newVM+"/100")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRefusedNewVMs(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	const images, missing = "400 map[scsi0:explicit 'media=cdrom' is required for iso images]", "unable to create VM 100 - "
	for _, c := range []struct{ want, key, value string }{
		{"500 storage 'nope' does not exist", "scsi0", "nope:1"},
		{"500 unable to parse directory volume name 'x'", "scsi0", "shared:x"},
		{images, "scsi0", "local:iso/x.iso"},
		{"400 map[scsi0:content type needs to be 'images' or 'iso']", "scsi0", "local:import/x.qcow2"},
		{"400 map[scsi0:'import-from' requires special syntax - use <storage ID>:0,import-from=<source>]", "scsi0", "shared:5,import-from=local:import/x.qcow2"},
		{"400 map[scsi0:local:iso/x.iso has wrong type 'iso' - needs to be 'images' or 'import']", "scsi0", "shared:0,import-from=local:iso/x.iso"},
		{"400 map[efidisk0:need to specify 'pre-enrolled-keys' when using 'import-from']", "efidisk0", "shared:0,import-from=local:import/x.raw,efitype=4m"},
		{"400 map[virtio0:unable to parse drive options]", "virtio0", "none,media=cdrom"},
		{"400 map[storage:storage 'local' does not support vm images]", "scsi0", "local:1"},
		{"400 map[scsi0:option 'scsi0' would conflict with backup/archive]", "scsi0", "shared:1,backup=1&archive=x"},
		{"500 volume 'local:backup/x.vma' does not exist", "archive", "local:backup/x.vma"},
	} {
		pairs := []string{"vmid", "100", c.key, c.value}
		if value, archive, both := strings.Cut(c.value, "&archive="); both {
			pairs = []string{"vmid", "100", c.key, value, "archive", archive}
		}
		a.expect(c.want, "POST", newVM, pairs...)
	}
	for value, want := range map[string]string{
		"shared:1,format=cloop":                      missing + "unsupported format 'cloop'",
		"local-lvm:1,format=qcow2":                   missing + "unsupported format 'qcow2'",
		"shared:100000":                              missing + "unable to create image: qemu-img: /mnt/pve/shared/images/100/vm-100-disk-0.raw: The image size is too large for file format 'raw'",
		"shared:0,import-from=local:import/none.raw": missing + "failed to stat '/var/lib/vz/import/none.raw'",
		"local:iso/none.iso,media=cdrom":             missing + "volume 'local:iso/none.iso' does not exist",
	} {
		if exit := a.exit("POST", newVM, "vmid", "100", "scsi0", value); exit != want {
			t.Errorf("%s: %s", value, exit)
		}
	}
	if vms := a.must("GET", newVM).([]any); len(vms) != 1 {
		t.Errorf("left behind: %v", vms)
	}
}

func TestImportsAreCopies(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	must(t, a.server.World.AddVolume(pvesim.VolumeSpec{ID: "local:import/small.qcow2", Node: "pve1", Size: 64 << 20}))
	a.ok("POST", newVM, "vmid", "100", "scsi0", "shared:0,import-from=local:import/small.qcow2", "scsi1", "local-lvm:0,import-from=local:import/small.qcow2")
	v, _ := a.server.World.VM(100)
	if v.Config["scsi0"] != "shared:100/vm-100-disk-0.qcow2,size=64M" || v.Config["scsi1"] != "local-lvm:vm-100-disk-0,size=64M" {
		t.Errorf("imported: %v", v.Config)
	}
	const want = "create full clone of drive scsi0 (shared:100/vm-100-disk-0.qcow2) / "
	if log := a.logOf("POST", newVM, "vmid", "101", "scsi0", "shared:0,import-from=shared:100/vm-100-disk-0.qcow2,format=raw"); !strings.HasPrefix(log, want) {
		t.Errorf("log is %s", log)
	}
}

func TestANewVMIsStartedByATaskOfItsOwn(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	if log := a.logOf("POST", newVM, "vmid", "100", "start", "1", "ha-managed", "1"); log != "Add as HA resource / Execute autostart / TASK OK" {
		t.Errorf("log is %s", log)
	}
	eventually(t, "start", func() bool { return a.power(newVM+"/100") == "running/running" })
	a.expect("500 VM 100 is running - destroy failed", "DELETE", newVM+"/100", "purge", "1")
	a.ok("POST", newVM, "vmid", "101", "start", "1", "net0", "virtio,bridge=nobr0")
	if got := a.options(newVM + "/101")["boot"]; got != "order=net0" {
		t.Errorf("the VM whose start failed has boot %v", got)
	}
}

func TestDestroyTakesWhatIsTheVMs(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.ok("POST", newVM, "vmid", "100", "scsi0", "shared:1", "scsi1", "shared:1", "protection", "1")
	a.must("PUT", newVM+"/100/config", "protection", "0")
	a.must("PUT", newVM+"/100/config", "delete", "scsi1")
	must(t, a.server.World.AddVolume(pvesim.VolumeSpec{ID: "shared:100/vm-100-disk-7.raw", Size: 1 << 20}))
	a.must("PUT", newVM+"/100/config", "protection", "1")
	a.expect("500 can't remove VM 100 - protection mode enabled", "DELETE", newVM+"/100")
	a.expect("500 can't remove unused disk 'shared:100/vm-100-disk-1.raw' - protection mode enabled", "PUT", newVM+"/100/config", "delete", "unused0")
	a.expect("500 can't remove drive 'scsi0' - protection mode enabled", "PUT", newVM+"/100/config", "delete", "scsi0")
	a.must("PUT", newVM+"/100/config", "delete", "protection")
	a.must("PUT", "/access/acl", "path", "/vms/100", "roles", "NoAccess", "users", "root@pam")
	a.ok("DELETE", newVM+"/100")
	if left := columns(a.must("GET", "/nodes/pve1/storage/shared/content", "vmid", "100"), "volid"); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
	if acl := a.must("GET", "/access/acl").([]any); len(acl) != 0 {
		t.Errorf("rights on a VM that is gone: %v", acl)
	}
	a.ok("POST", newVM, "vmid", "100")
	a.ok("DELETE", newVM+"/100", "destroy-unreferenced-disks", "1")
	if left := columns(a.must("GET", "/nodes/pve1/storage/shared/content", "vmid", "100"), "volid"); len(left) != 0 {
		t.Errorf("unreferenced disks are left: %v", left)
	}
}
