package pvesim_test

import (
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/diskfs/go-diskfs/filesystem/iso9660"
	"github.com/google/go-cmp/cmp"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/isotest"
)

// seedISO makes an image with Rock Ridge names.
func seedISO(t *testing.T, label string, files map[string]string) []byte {
	t.Helper()
	return isotest.Image(t, files, iso9660.FinalizeOptions{RockRidge: true, VolumeIdentifier: label})
}

// boots collects what guests report.
type boots struct {
	mu      sync.Mutex
	booted  []pvesim.BootedGuest
	failed  []pvesim.BootedGuest
	stopped []pvesim.PowerOffCause
}

func (b *boots) hooks() pvesim.BootHooks {
	return pvesim.BootHooks{
		OnBoot:       func(g pvesim.BootedGuest) { b.mu.Lock(); defer b.mu.Unlock(); b.booted = append(b.booted, g) },
		OnBootFailed: func(g pvesim.BootedGuest) { b.mu.Lock(); defer b.mu.Unlock(); b.failed = append(b.failed, g) },
		OnStop: func(_ pvesim.BootedGuest, c pvesim.PowerOffCause) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.stopped = append(b.stopped, c)
		},
	}
}

func (b *boots) count() (booted, failed, stopped int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.booted), len(b.failed), len(b.stopped)
}

const uuid = "7b10d7af-b932-4c66-b2c3-3996152ec465"

// TestLifeOfAMachine does what a provider does: clone, configure, resize, upload a seed, start, look, stop, destroy.
func TestLifeOfAMachine(t *testing.T) {
	t.Parallel()
	for _, version := range []pvesim.Version{pvesim.V84, pvesim.V92} {
		t.Run(string(version), func(t *testing.T) {
			t.Parallel()
			seen := &boots{}
			a := newAPI(t, pvesim.WithVersion(version), pvesim.WithGuests(pvesim.Booting(seen.hooks())))
			bringUp(t, a)
			eventually(t, "guest boots", func() bool { n, _, _ := seen.count(); return n == 1 })
			checkBooted(t, a, seen.booted[0])
			tearDown(t, a)
			eventually(t, "guest is told of its end", func() bool { _, _, n := seen.count(); return n == 2 })
			if diff := cmp.Diff([]pvesim.PowerOffCause{pvesim.CauseStop, pvesim.CauseDestroy}, seen.stopped); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func bringUp(t *testing.T, a *api) {
	t.Helper()
	a.ok("POST", "/nodes/pve2/qemu/9002/clone", "newid", "120", "name", "w1", "full", "1", "pool", "capi", "description", "ours")
	net := fmt.Sprint(a.object("/nodes/pve2/qemu/120/config")["net0"])
	mac := strings.Split(strings.Split(net, "=")[1], ",")[0]
	a.must("PUT", "/nodes/pve2/qemu/120/config", "cores", "4", "memory", "4096", "smbios1", "uuid="+uuid, "tags", "Zed;capve", "delete", "ide2",
		"net0", "virtio="+mac+",bridge=vmbr0,firewall=1")
	a.ok("PUT", "/nodes/pve2/qemu/120/resize", "disk", "scsi0", "size", "20G")
	a.uploadISO("pve2", "local", "w1.iso", seedISO(t, "cidata", map[string]string{
		"meta-data":      "instance-id: i-1\nlocal-hostname: w1.example\nprovider-id: proxmox://x\n",
		"user-data":      "## template: jinja\n#cloud-config\nhostname: {{ v1.local_hostname }}\nid: '{{ ds.meta_data.provider_id }}'\n",
		"network-config": fmt.Sprintf("version: 2\nethernets:\n  eth0:\n    match: {macaddress: %q}\n    addresses: [10.1.0.7/24, 'fd00::7/64']\n", strings.ToLower(mac)),
	}))
	a.must("PUT", "/nodes/pve2/qemu/120/config", "ide3", "local:iso/w1.iso,media=cdrom")
	a.ok("POST", "/nodes/pve2/qemu/120/status/start")
	config := a.object("/nodes/pve2/qemu/120/config")
	delete(config, "digest")
	delete(config, "meta")
	delete(config, "vmgenid")
	size := config["ide3"]
	want := map[string]any{
		"agent": "1", "boot": "order=scsi0;ide3", "cores": 4.0, "cpu": "x86-64-v2-AES", "description": "ours", "ide3": size, "memory": "4096", "name": "w1",
		"net0": "virtio=" + mac + ",bridge=vmbr0,firewall=1", "numa": 0.0, "ostype": "l26", "scsi0": "local-lvm:vm-120-disk-0,size=20G",
		"scsihw": "virtio-scsi-single", "serial0": "socket", "smbios1": "uuid=" + uuid, "sockets": 1.0, "tags": "capve;zed", "vga": "serial0",
	}
	if diff := cmp.Diff(want, config); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
}

func checkBooted(t *testing.T, a *api, got pvesim.BootedGuest) {
	t.Helper()
	if got.Hostname != "w1.example" || got.InstanceID != "i-1" || got.UUID != uuid || got.Node != "pve2" || got.VMID != 120 || got.Boots != 1 {
		t.Errorf("booted guest is %+v", got)
	}
	if want := "#cloud-config\nhostname: w1.example\nid: 'proxmox://x'\n"; got.UserData != want {
		t.Errorf("user-data is %q, want %q", got.UserData, want)
	}
	addresses := []netip.Prefix{netip.MustParsePrefix("10.1.0.7/24"), netip.MustParsePrefix("fd00::7/64")}
	if diff := cmp.Diff(addresses, got.Addresses, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
	interfaces := fmt.Sprint(a.object("/nodes/pve2/qemu/120/agent/network-get-interfaces"))
	if !strings.Contains(interfaces, "ip-address:10.1.0.7 ip-address-type:ipv4 prefix:24") {
		t.Errorf("agent reports %s", interfaces)
	}
}

func tearDown(t *testing.T, a *api) {
	t.Helper()
	if r := a.do("DELETE", "/nodes/pve2/qemu/120", "purge", "1"); r.status != 500 || r.reason != "VM 120 is running - destroy failed" {
		t.Errorf("destroy of a running VM: %d %s", r.status, r.reason)
	}
	a.must("PUT", "/nodes/pve2/qemu/120/config", "ide3", "none,media=cdrom")
	a.ok("DELETE", "/nodes/pve2/storage/local/content/local:iso/w1.iso")
	a.ok("POST", "/nodes/pve2/qemu/120/status/stop")
	a.ok("DELETE", "/nodes/pve2/qemu/120", "purge", "1", "destroy-unreferenced-disks", "1")
	if r := a.do("GET", "/nodes/pve2/qemu/120/config"); r.status != 500 || r.reason != "Configuration file 'nodes/pve2/qemu-server/120.conf' does not exist" {
		t.Errorf("config of a destroyed VM: %d %s", r.status, r.reason)
	}
	if broken := a.server.World.Check(); len(broken) > 0 {
		t.Errorf("world is broken: %v", broken)
	}
	for _, v := range a.server.World.Volumes() {
		if v.VMID == 120 || v.Content == "iso" {
			t.Errorf("volume %s is left", v.ID)
		}
	}
}
