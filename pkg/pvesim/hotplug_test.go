package pvesim_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// waiting are the options of a VM that wait: key=pending, or key! for a deletion, key!! for a forced one.
func (a *api) waiting(vm string) string {
	a.t.Helper()
	var out []string
	for _, x := range a.must("GET", vm+"/pending").([]any) {
		entry := x.(map[string]any)
		if value, is := entry["pending"]; is {
			out = append(out, fmt.Sprint(entry["key"], "=", value))
		}
		if n, is := entry["delete"].(float64); is {
			out = append(out, fmt.Sprint(entry["key"], strings.Repeat("!", int(n))))
		}
	}
	return strings.Join(out, " ")
}

func runningConfig() map[string]string {
	return map[string]string{
		"name": "a", "memory": "512", "boot": "order=scsi0", "scsi0": "local-lvm:vm-100-disk-0,size=1G", "scsi1": "local-lvm:vm-100-disk-1,size=1G",
		"net0": "virtio=BC:24:11:00:00:01,bridge=vmbr0", "agent": "1", "ide2": "none,media=cdrom", "onboot": "0",
	}
}

// TestWhatARunningVMTakes has one line for each kind of option: what of an update waits for the next start.
func TestWhatARunningVMTakes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ key, value, waits string }{
		{"name", "b", ""},
		{"description", "x\n", ""},
		{"tags", "b;a", ""},
		{"cpuunits", "200", ""},
		{"ciuser", "u", ""},
		{"ipconfig0", "ip=dhcp", ""},
		{"cores", "2", "cores=2"},
		{"memory", "256", "memory=256"},
		{"bios", "ovmf", "bios=ovmf"},
		{"boot", "order=scsi1", "boot=order=scsi1"},
		{"balloon", "128", ""},
		{"balloon", "0", "balloon=0"},
		{"vcpus", "1", "vcpus=1"},
		{"hotplug", "disk", ""},
		{"hotplug", "memory", "hotplug=memory"},
		{"agent", "1,fstrim_cloned_disks=1", ""},
		{"agent", "0", "agent=0"},
		{"usb0", "spice", ""},
		{"net0", "virtio=BC:24:11:00:00:01,bridge=vmbr0,link_down=1", ""},
		{"net0", "e1000=BC:24:11:00:00:01,bridge=vmbr0", ""},
		{"net1", "virtio=BC:24:11:00:00:02,bridge=vmbr0", ""},
		{"scsi2", "local-lvm:1", ""},
		{"sata0", "local-lvm:1", "sata0=local-lvm:vm-100-disk-2,size=1G"},
		{"scsi1", "local-lvm:vm-100-disk-1,backup=0,size=1G", ""},
		{"scsi1", "local-lvm:vm-100-disk-1,cache=unsafe,size=1G", "scsi1=local-lvm:vm-100-disk-1,cache=unsafe,size=1G"},
		{"ide2", "local:iso/a.iso,media=cdrom", "boot=order=scsi0;ide2"},
		{"efidisk0", "local-lvm:1,efitype=4m", "efidisk0=local-lvm:vm-100-disk-2,efitype=4m,size=528K"},
		{"delete", "memory", "memory!"},
		{"delete", "onboot", ""},
		{"delete", "scsi1", ""},
		{"delete", "net0", ""},
		{"delete", "ide2", "ide2!"},
		{"delete", "scsi0", "boot= "},
	} {
		a := newAPI(t)
		must(t, a.server.World.AddVolume(pvesim.VolumeSpec{ID: "local:iso/a.iso", Node: "pve1", Size: 2048}))
		vm := a.withVM(100, "running", runningConfig())
		a.must("PUT", vm+"/config", c.key, c.value)
		if got := a.waiting(vm); got != c.waits {
			t.Errorf("%s=%s: waits %q, want %q", c.key, c.value, got, c.waits)
		}
	}
}

func TestWithoutHotplugDevicesWait(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	config := runningConfig()
	config["hotplug"] = "0"
	vm := a.withVM(100, "running", config)
	a.must("PUT", vm+"/config", "net1", "virtio=BC:24:11:00:00:02,bridge=vmbr0", "scsi2", "local-lvm:1", "delete", "scsi1,net0", "force", "1")
	const want = "net0!! net1=virtio=BC:24:11:00:00:02,bridge=vmbr0 scsi1!! scsi2=local-lvm:vm-100-disk-2,size=1G"
	if got := a.waiting(vm); got != want {
		t.Errorf("waits %q, want %q", got, want)
	}
	a.must("PUT", vm+"/config", "revert", "scsi1,net1")
	if got := a.waiting(vm); got != "net0!! scsi2=local-lvm:vm-100-disk-2,size=1G" {
		t.Errorf("after the revert waits %q", got)
	}
	a.ok("POST", vm+"/status/stop")
	got := a.options(vm)
	if a.waiting(vm) != "" || got["net0"] != nil || got["scsi2"] != "local-lvm:vm-100-disk-2,size=1G" || got["scsi1"] == nil {
		t.Errorf("stopped: %v", got)
	}
}

func TestAGuestThatDoesNotAnswerKeepsItsDevices(t *testing.T) {
	t.Parallel()
	for version, want := range map[pvesim.Version]string{
		pvesim.V84: "400 map[net0:hotplug problem - error on hot-unplugging device 'net0'\n]",
		pvesim.V92: "400 map[net0:hotplug problem - error on hot-unplugging device 'net0' - still busy in guest?\n]",
	} {
		a := newAPI(t, pvesim.WithVersion(version), pvesim.WithGuests(pvesim.Deaf))
		vm := a.withVM(100, "running", runningConfig())
		a.expect(want, "PUT", vm+"/config", "delete", "net0")
		a.must("PUT", vm+"/config", "delete", "scsi1")
		a.expect("400 map[ide2:hotplug problem - unable to change media type\n]", "PUT", vm+"/config", "ide2", "local-lvm:1")
		if got := a.waiting(vm); got != "ide2=local-lvm:vm-100-disk-2,size=1G net0!" {
			t.Errorf("waits %q", got)
		}
	}
}

func TestConfigShowsWhatWillBe(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	vm := a.withVM(100, "running", runningConfig())
	a.must("PUT", vm+"/config", "cores", "4", "cipassword", "secret", "delete", "memory")
	now, then := a.object(vm+"/config", "current", "1"), a.object(vm+"/config")
	if now["cores"] != nil || now["memory"] != "512" || then["cores"] != 4.0 || then["memory"] != nil || then["cipassword"] != "**********" {
		t.Errorf("now %v, then %v", now, then)
	}
	want := "400 map[current:cannot use 'snapshot' parameter with 'current' snapshot:cannot use 'snapshot' parameter with 'current']"
	a.expect(want, "GET", vm+"/config", "current", "1", "snapshot", "snap")
}

func TestARefusedEditLeavesTheRestWaiting(t *testing.T) {
	t.Parallel()
	for version, want := range map[pvesim.Version]any{pvesim.V84: "x", pvesim.V92: nil} {
		a := newAPI(t, pvesim.WithVersion(version))
		vm := a.withVM(100, "stopped", runningConfig())
		a.expect("500 volume 'local-lvm:vm-100-disk-9' does not exist", "PUT", vm+"/config", "description", "x", "scsi5", "local-lvm:vm-100-disk-9")
		if got := a.options(vm)["description"]; got != want {
			t.Errorf("%s: description is %v, want %v", version, got, want)
		}
	}
}

func TestBootOrderFollowsDrives(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	vm := a.withVM(100, "stopped", runningConfig())
	var got []any
	for _, pairs := range [][]string{
		{"boot", "order=scsi1;net0"}, {"ide3", "none"}, {"ide3", "none"}, {"ide0", "local-lvm:cloudinit"}, {"delete", "scsi1"}, {"delete", "ide3,net0"}, {"boot", "cdn"}, {"sata0", "none"},
	} {
		a.must("PUT", vm+"/config", pairs...)
		got = append(got, a.options(vm)["boot"])
	}
	want := []any{"order=scsi1;net0", "order=scsi1;net0;ide3", "order=scsi1;net0;ide3", "order=scsi1;net0;ide3", "order=net0;ide3", " ", "cdn", "cdn"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	a.expect("500 invalid bootorder: device 'scsi9' does not exist'", "PUT", vm+"/config", "boot", "order=scsi9")
	a.expect("500 ide3 - cloud-init drive is already attached at 'ide0'", "PUT", vm+"/config", "ide3", "local-lvm:cloudinit")
}
