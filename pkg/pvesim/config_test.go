package pvesim_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestConfigIsChecked has one line per kind of mistake, with the words of Proxmox VE.
func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	tests := []struct{ key, value, want string }{
		{"cores", "0", "value must have a minimum value of 1"},
		{"cores", "2.0", "type check ('integer') failed - got '2.0'"},
		{"onboot", "true", "type check ('boolean') failed - got 'true'"},
		{"cpulimit", "129", "value must have a maximum value of 128"},
		{"cpulimit", "many", "type check ('number') failed - got 'many'"},
		{"ostype", "linux", "value 'linux' does not have a value in the enumeration 'other, wxp, w2k, w2k3, w2k8, wvista, win7, win8, win10, win11, l24, l26, solaris'"},
		{"name", "bad_name", "invalid format - value does not look like a valid DNS name\n"},
		{"tags", "x:y", "invalid format - invalid characters in tag\n"},
		{"description", strings.Repeat("x", 8193), "value may only be 8192 characters long"},
		{"net32", "virtio", "property is not defined in schema and the schema does not allow additional properties"},
		{"scsi31", "local-lvm:1", "property is not defined in schema and the schema does not allow additional properties"},
		{"net0", "virtio=01:00:5E:00:00:01", "invalid format - format error\nnet0.macaddr: invalid format - value does not look like a valid unicast MAC address\n\n"},
		{"net0", "virtio,foo=1", "invalid format - format error\nnet0.foo: property is not defined in schema and the schema does not allow additional properties\n"},
		{"ipconfig0", "gw=10.0.0.1", "invalid format - format error\nipconfig0.ip: missing property required by 'ipconfig0.gw'\n"},
		{"ipconfig0", "ip=10.0.0.1", "invalid format - format error\nipconfig0.ip: invalid format - value does not look like a valid ipv4 network configuration\n\n"},
		{"numa0", "memory=64", "invalid format - format error\nnuma0.cpus: property is missing and it is not optional\n"},
		{"memory", "8", "invalid format - format error\nmemory.current: value must have a minimum value of 16\n"},
		{"smbios1", "uuid=x", "invalid format - format error\nsmbios1.uuid: value does not match the regex pattern\n"},
		{"affinity", "4-2", "invalid format - unable to parse cpuset option\n"},
		{"sshkeys", "ssh-ed25519 AAAA a@b", "invalid format - invalid urlencoded string: ssh-ed25519 AAAA a@b\n"},
		{"delete", "nosuchkey", "unknown option 'nosuchkey'"},
		{"skiplock", "1", "Only root may use this option."},
	}
	for _, tt := range tests {
		r := a.do("PUT", "/nodes/pve1/qemu/9001/config", tt.key, tt.value)
		if r.status != http.StatusBadRequest || r.reason != "Parameter verification failed." || r.errors[tt.key] != tt.want {
			t.Errorf("%s=%.40s: %d %q, want %q", tt.key, tt.value, r.status, r.errors[tt.key], tt.want)
		}
	}
}

func TestConfigIsRefused(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	tests := []struct {
		reason string
		params []string
	}{
		{"no options specified", nil},
		{"checksum mismatch (file change by other user?)", []string{"cores", "1", "digest", "0000"}},
		{"volume 'local:iso/none.iso' does not exist", []string{"ide3", "local:iso/none.iso,media=cdrom"}},
		{"storage 'nope' does not exist", []string{"scsi1", "nope:1"}},
		{"ide3 - cloud-init drive is already attached at 'ide2'", []string{"ide3", "local-lvm:cloudinit"}},
		{"invalid bootorder: device 'scsi9' does not exist'", []string{"boot", "order=scsi9"}},
		{"balloon value too large (must be smaller than assigned memory)", []string{"balloon", "999999"}},
		{"only root can set 'hugepages' config", []string{"hugepages", "2"}},
		{"only root can set 'args' config", []string{"delete", "args"}},
		{"only root can set 'hostpci0' config for non-mapped devices", []string{"hostpci0", "0000:01:00"}},
		{"SSH public key validation error", []string{"sshkeys", "garbage%20key"}},
	}
	for _, tt := range tests {
		if r := a.do("PUT", "/nodes/pve1/qemu/9001/config", tt.params...); r.status != http.StatusInternalServerError || r.reason != tt.reason {
			t.Errorf("%v: %d %s, want %s", tt.params, r.status, r.reason, tt.reason)
		}
	}
}

// TestConfigIsNormalised looks at what is stored, which is not always what was sent.
func TestConfigIsNormalised(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	before, _ := a.server.World.VM(9001)
	a.must("PUT", "/nodes/pve1/qemu/9001/config", "tags", "Zed,alpha;alpha Beta", "description", "two\nlines\n", "net0", "virtio,bridge=vmbr0",
		"net1", "firewall=1,model=e1000,macaddr=bc:24:11:00:00:aa,bridge=vmbr0")
	after, _ := a.server.World.VM(9001)
	if got := after.Config["tags"]; got != "alpha;beta;zed" {
		t.Errorf("tags are %q", got)
	}
	if got := after.Config["description"]; got != "two\nlines" {
		t.Errorf("description is %q", got)
	}
	if got := after.Config["net1"]; got != "e1000=BC:24:11:00:00:AA,bridge=vmbr0,firewall=1" {
		t.Errorf("net1 is %q", got)
	}
	if before.Config["net0"] == after.Config["net0"] {
		t.Error("net0 written without a MAC address keeps the old one")
	}
	a.must("PUT", "/nodes/pve1/qemu/9001/config", "tags", "")
	if v, _ := a.server.World.VM(9001); v.Config["tags"] != " " {
		t.Errorf("empty tags are stored as %q", v.Config["tags"])
	}
}

// TestDisks makes, detaches, attaches and frees a disk.
func TestDisks(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	const config = "/nodes/pve1/qemu/200/config"
	a.ok("POST", "/nodes/pve1/qemu", "vmid", "200", "scsi0", "local-lvm:4,discard=on", "ide0", "shared:2,format=qcow2")
	a.ok("POST", config, "scsi1", "local-lvm:0.5")
	a.must("PUT", config, "delete", "scsi1")
	drives := func() map[string]string {
		t.Helper()
		v, _ := a.server.World.VM(200)
		out := map[string]string{}
		for _, key := range []string{"ide0", "scsi0", "scsi1", "unused0"} {
			if v.Config[key] != "" {
				out[key] = v.Config[key]
			}
		}
		return out
	}
	want := map[string]string{
		"ide0": "shared:200/vm-200-disk-0.qcow2,size=2G", "scsi0": "local-lvm:vm-200-disk-0,discard=on,size=4G", "unused0": "local-lvm:vm-200-disk-1",
	}
	if diff := cmp.Diff(want, drives()); diff != "" {
		t.Error(diff)
	}
	a.must("PUT", config, "scsi1", "local-lvm:vm-200-disk-1,ssd=1")
	want["scsi1"] = "local-lvm:vm-200-disk-1,size=512M,ssd=1"
	delete(want, "unused0")
	if diff := cmp.Diff(want, drives()); diff != "" {
		t.Error(diff)
	}
	a.must("PUT", config, "delete", "scsi1", "force", "1")
	if n := len(a.object("/nodes/pve1/storage/local-lvm/status")); n == 0 {
		t.Error("no status of the storage")
	}
	if broken := a.server.World.Check(); len(broken) > 0 {
		t.Error(broken)
	}
	if exit := a.exit("POST", config, "scsi2", "local-lvm:999999"); !strings.Contains(exit, "not enough free space") {
		t.Errorf("disk larger than the storage: %s", exit)
	}
}

func TestResize(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.ok("POST", "/nodes/pve1/qemu/9001/clone", "newid", "200")
	tests := []struct{ disk, size, exit string }{
		{"scsi0", "12G", "OK"},
		{"scsi0", "12G", "OK"},
		{"scsi0", "+512M", "OK"},
		{"scsi0", "1G", "shrinking disks is not supported"},
		{"scsi5", "1G", "disk 'scsi5' does not exist"},
		{"ide2", "1G", "you can't resize a cdrom"},
	}
	for _, tt := range tests {
		if exit := a.exit("PUT", "/nodes/pve1/qemu/200/resize", "disk", tt.disk, "size", tt.size); exit != tt.exit {
			t.Errorf("%s to %s: %s, want %s", tt.disk, tt.size, exit, tt.exit)
		}
	}
	if v, _ := a.server.World.VM(200); v.Config["scsi0"] != "local-lvm:vm-200-disk-0,size=12800M" {
		t.Errorf("scsi0 is %s", v.Config["scsi0"])
	}
	if r := a.do("PUT", "/nodes/pve1/qemu/200/resize", "disk", "scsi0", "size", "12Gi"); r.errors["size"] != "value does not match the regex pattern" {
		t.Errorf("size 12Gi: %+v", r)
	}
}

// TestRunningVMKeepsChangesPending shows what a running VM takes at once and what waits for its next start.
func TestRunningVMKeepsChangesPending(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	const vm = "/nodes/pve1/qemu/200"
	a.ok("POST", "/nodes/pve1/qemu/9001/clone", "newid", "200")
	a.ok("POST", vm+"/status/start")
	a.must("PUT", vm+"/config", "cores", "8", "name", "renamed", "delete", "serial0")
	if got := a.object(vm + "/config"); got["cores"] != 8.0 || got["name"] != "renamed" || got["serial0"] != nil {
		t.Errorf("config with pending changes is %v", got)
	}
	if got := a.object(vm+"/config", "current", "1"); got["cores"] != 2.0 || got["name"] != "renamed" || got["serial0"] != "socket" {
		t.Errorf("present config is %v", got)
	}
	pending := fmt.Sprint(a.must("GET", vm+"/pending"))
	for _, want := range []string{"map[key:cores pending:8 value:2]", "map[delete:1 key:serial0 value:socket]"} {
		if !strings.Contains(pending, want) {
			t.Errorf("pending has no %s: %s", want, pending)
		}
	}
	a.ok("POST", vm+"/status/stop")
	a.ok("POST", vm+"/status/start")
	if got := a.object(vm+"/config", "current", "1"); got["cores"] != 8.0 || got["serial0"] != nil {
		t.Errorf("config after the next start is %v", got)
	}
}

func TestPower(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	const vm = "/nodes/pve1/qemu/200"
	a.ok("POST", "/nodes/pve1/qemu/9001/clone", "newid", "200")
	a.must("PUT", vm+"/config", "net1", "virtio,bridge=vmbr9")
	tests := []struct{ path, exit string }{
		{vm + "/status/start", "bridge 'vmbr9' does not exist"},
		{"/nodes/pve1/qemu/9001/status/start", "you can't start a vm if it's a template"},
		{"/nodes/pve1/qemu/777/status/start", "Configuration file 'nodes/pve1/qemu-server/777.conf' does not exist"},
		{"/nodes/pve1/qemu/777/status/stop", "unable to find configuration file for VM 777 on node 'pve1'"},
		{vm + "/status/stop", "OK"},
		{vm + "/status/shutdown", "OK"},
	}
	for _, tt := range tests {
		if exit := a.exit("POST", tt.path); exit != tt.exit {
			t.Errorf("%s: %s, want %s", tt.path, exit, tt.exit)
		}
	}
	a.must("PUT", vm+"/config", "delete", "net1", "protection", "1")
	a.ok("POST", vm+"/status/start")
	if exit := a.exit("POST", vm+"/status/start"); exit != "VM 200 already running" {
		t.Errorf("start of a running VM: %s", exit)
	}
	if got := a.object(vm + "/status/current"); got["status"] != "running" || got["pid"] == nil || got["agent"] != 1.0 {
		t.Errorf("status is %v", got)
	}
	a.ok("POST", vm+"/status/reset")
	a.ok("POST", vm+"/status/shutdown")
	if r := a.do("POST", vm+"/status/reset"); r.reason != "VM 200 not running" {
		t.Errorf("reset of a stopped VM: %+v", r)
	}
	if r := a.do("DELETE", vm); r.reason != "can't remove VM 200 - protection mode enabled" {
		t.Errorf("destroy of a protected VM: %+v", r)
	}
}
