package pvesim_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

const aKey = "ssh-ed25519%20AAAAC3NzaC1lZDI1NTE5AAAAIJ5ZqJ%2B8Yq4wFJmF0pE2lQ9m4m1mYV1xYq8sJ0r1yE2x%20a%40b"

// TestCloudInitFiles compares the instance ID with that of a real host: it is the checksum of the other two files.
func TestCloudInitFiles(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	vm := a.withVM(500, "stopped", map[string]string{
		"name": "vm500", "net0": "virtio=BC:24:11:00:05:00,bridge=vmbr0", "ipconfig0": "ip=10.77.0.50/24,gw=10.77.0.254", "ciuser": "deb",
		"cipassword": "$5$w0bgXJeG$JIz/CgJxzSUf/kblH1d/atL/DMHIv1rSo.Ng//QcR5A", "sshkeys": aKey, "nameserver": "x y", "searchdomain": "x.lan", "ciupgrade": "0",
	})
	if got := a.must("GET", vm+"/cloudinit/dump", "type", "meta"); got != "instance-id: b41b7329053bce67da421fd2ad42231e3e83cf35\n" {
		t.Errorf("meta-data %v\nuser-data %v\nnetwork %v", got, a.must("GET", vm+"/cloudinit/dump", "type", "user"), a.must("GET", vm+"/cloudinit/dump", "type", "network"))
	}
}

func TestCloudInitNetworks(t *testing.T) {
	t.Parallel()
	config := map[string]string{
		"name": "a.b.c", "net0": "virtio=BC:24:11:00:05:00", "net1": "virtio=BC:24:11:00:05:01", "net2": "virtio=BC:24:11:00:05:02", "net3": "virtio=BC:24:11:00:05:03",
		"ipconfig0": "ip=dhcp,ip6=auto", "ipconfig1": "ip=10.0.0.2/8,ip6=fd00::2/64,gw6=fd00::1", "ipconfig3": "ip6=dhcp", "ipconfig7": "ip=dhcp",
	}
	const v1 = `version: 1
config:
    - type: physical
      name: eth0
      mac_address: 'bc:24:11:00:05:00'
      subnets:
      - type: dhcp4
      - type: ipv6_slaac
    - type: physical
      name: eth1
      mac_address: 'bc:24:11:00:05:01'
      subnets:
      - type: static
        address: '10.0.0.2'
        netmask: '255.0.0.0'
      - type: static6
        address: 'fd00::2/64'
        gateway: 'fd00::1'
    - type: physical
      name: eth3
      mac_address: 'bc:24:11:00:05:03'
      subnets:
      - type: dhcp6
`
	a := newAPI(t)
	vm := a.withVM(100, "stopped", config)
	if diff := cmp.Diff(v1, a.must("GET", vm+"/cloudinit/dump", "type", "network")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	user, _ := a.must("GET", vm+"/cloudinit/dump", "type", "user").(string)
	if !strings.HasPrefix(user, "#cloud-config\nhostname: a\nmanage_etc_hosts: true\nfqdn: a.b.c\nchpasswd:") || !strings.HasSuffix(user, "package_upgrade: true\n") {
		t.Errorf("user-data is %s", user)
	}
	a.must("PUT", vm+"/config", "ostype", "win11", "nameserver", "10.0.0.1")
	network, _ := a.must("GET", vm+"/cloudinit/dump", "type", "network").(string)
	const want = "iface eth1 inet static\n        address 10.0.0.2\n        netmask 255.0.0.0\niface eth1 inet6 static\n        address fd00::2\n        netmask 64\n        gateway fd00::1\n"
	if !strings.Contains(network, want) || !strings.HasSuffix(network, "dns_nameservers 10.0.0.1\n") {
		t.Errorf("config drive has %s", network)
	}
	if meta, _ := a.must("GET", vm+"/cloudinit/dump", "type", "meta").(string); !strings.Contains(meta, `"content_path": "/content/0000"`) {
		t.Errorf("meta-data of a config drive is %s", meta)
	}
	a.expect("500 Configuration file 'nodes/pve1/qemu-server/999.conf' does not exist", "GET", "/nodes/pve1/qemu/999/cloudinit/dump", "type", "user")
}

// TestCloudInitDriveFallsBehind changes options of a running VM, whose drive is as it was until it is made again.
func TestCloudInitDriveFallsBehind(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	config := runningConfig()
	config["ciuser"], config["nameserver"] = "old", "1.1.1.1"
	vm := a.withVM(100, "running", config)
	stale := func() []string { return columns(a.must("GET", vm+"/cloudinit"), "key", "value", "pending", "delete") }
	a.must("PUT", vm+"/config", "ciuser", "new", "ipconfig0", "ip=dhcp", "name", "b", "searchdomain", "x", "delete", "nameserver")
	want := []string{"ipconfig0/<nil>/ip=dhcp/<nil>", "nameserver/<nil>/<nil>/1", "searchdomain/<nil>/x/<nil>", "ciuser/old/new/<nil>"}
	if diff := cmp.Diff(want, stale()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	a.must("PUT", vm+"/config", "ciuser", "old", "delete", "searchdomain")
	if diff := cmp.Diff([]string{"ipconfig0/<nil>/ip=dhcp/<nil>", "nameserver/<nil>/<nil>/1", "ciuser/old/<nil>/<nil>"}, stale()); diff != "" {
		t.Errorf("changed back (-want +got):\n%s", diff)
	}
	a.must("PUT", vm+"/config", "cicustom", "user=local:snippets/none.yaml")
	a.expect("500 volume 'local:snippets/none.yaml' does not exist", "PUT", vm+"/cloudinit")
	a.must("PUT", vm+"/config", "delete", "cicustom")
	a.must("PUT", vm+"/cloudinit")
	if diff := cmp.Diff([]string{"ciuser/old/<nil>/<nil>"}, stale()); diff != "" {
		t.Errorf("made again (-want +got):\n%s", diff)
	}
}

func TestStateKeepsWhatWaits(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	vm := a.withVM(100, "running", runningConfig())
	a.must("PUT", vm+"/config", "hotplug", "0", "ciuser", "u", "name", "b")
	a.must("PUT", vm+"/config", "delete", "scsi1", "force", "1", "cores", "2")
	copied, err := pvesim.NewWorld(pvesim.FromState(a.server.World.State()))
	must(t, err)
	defer copied.Close()
	state := copied.State()
	got := state.VMs[len(state.VMs)-1]
	if got.VMID != 100 {
		got = state.VMs[0]
	}
	if diff := cmp.Diff(map[string]string{"cores": "2"}, got.Pending); diff != "" {
		t.Errorf("pending (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"!scsi1"}, got.PendingDelete); diff != "" {
		t.Errorf("pending deletions (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"ciuser": "", "name": "a"}, got.CloudInit); diff != "" {
		t.Errorf("cloud-init (-want +got):\n%s", diff)
	}
}

func TestCloudInitPasswordsAreHashed(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	vm := a.withVM(100, "stopped", map[string]string{"name": "a"})
	if log := a.logOf("POST", vm+"/config", "cipassword", "secret"); log != "update VM 100: -cipassword <hidden> / TASK OK" {
		t.Errorf("log is %s", log)
	}
	v, _ := a.server.World.VM(100)
	if password := v.Config["cipassword"]; strings.Contains(password, "secret") || !strings.HasPrefix(password, "$5$") {
		t.Errorf("password is kept as %q", password)
	}
	a.withVM(101, "stopped", nil)
	a.expect("500 SSH public key validation error", "POST", newVM, "vmid", "102", "sshkeys", "cake")
	must(t, a.server.World.AddVM(pvesim.VMSpec{VMID: 103, Node: "pve1", Config: map[string]string{"lock": "backup"}}))
	a.expect("500 VM is locked (backup)", "PUT", "/nodes/pve1/qemu/103/cloudinit")
}
