package vmconfig_test

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
)

// desired is a VM with one device, changed as a case needs it.
func desired(changes ...func(*vmconfig.Desired)) vmconfig.Desired {
	desired := vmconfig.Desired{
		UUID: uuid, Machine: "worker-1", Cluster: "prod", Namespace: "team-a",
		Spec: v1beta1.ProxmoxMachineSpec{
			CPU: v1beta1.CPU{Sockets: 1, Cores: 2}, Memory: v1beta1.Memory{SizeMiB: 4096},
			Network: v1beta1.Network{Devices: []v1beta1.NetworkDevice{{Name: "net0", Bridge: "vmbr0", Model: "virtio"}}},
		},
		Seed: vmconfig.SeedVolume("local", uuid),
	}
	for _, change := range changes {
		change(&desired)
	}
	return desired
}

// clone is a config as the clone of a template has it when its task has ended (Proxmox VE 8.4).
func clone() vmconfig.Config {
	return vmconfig.Config{
		"meta": "creation-qemu=7.2.22,ctime=1795233153", "ipconfig0": "ip=dhcp", "scsihw": "virtio-scsi-pci", "ostype": "l26", "numa": "1",
		"vmgenid": "c9a47a6c-d601-4921-ada0-fdd3a4d53f73", "smbios1": "uuid=966d3531-69bb-4cf7-889f-f8f652492abb", "args": "-no-reboot",
		"onboot": "1", "tags": "base;k8s", "ide2": "local:410/vm-410-cloudinit.qcow2,media=cdrom,size=4M", "ciuser": "debian",
		"net0": "virtio=BC:24:11:1B:F6:2C,bridge=vmbr0,firewall=1", "scsi0": "local:400/base-400-disk-0.qcow2/410/vm-410-disk-0.qcow2,size=1G",
		"serial0": "socket", "affinity": "0-1", "description": vmconfig.Description("worker-1", uuid), "name": "worker-1", "cores": "1",
		"kvm": "0", "memory": "128", "agent": "1", "boot": "order=scsi0",
	}
}

// with returns the clone with keys set, or taken away where the value is empty.
func with(changes vmconfig.Config) vmconfig.Config {
	config := clone()
	for key, value := range changes {
		config[key] = value
		if value == "" {
			delete(config, key)
		}
	}
	return config
}

// mac is the MAC address of net0 of the VM with that identity.
const mac = "36:DE:7D:5E:B3:1D"

func TestAFreshCloneIsBroughtToWhatIsAsked(t *testing.T) {
	want := vmconfig.Change{Set: map[string]string{
		"cores": "2", "memory": "4096", "smbios1": "uuid=" + string(uuid), "tags": "base;capve-" + string(uuid) + ";k8s",
		"net0": "virtio=" + mac + ",bridge=vmbr0,firewall=1", "ide2": "local:iso/capve-" + string(uuid) + ".iso,media=cdrom",
	}}
	if diff := cmp.Diff(want, vmconfig.Diff(desired(), clone())); diff != "" {
		t.Errorf("change (-want +got):\n%s", diff)
	}
}

func TestOneKeyOfTheConfig(t *testing.T) {
	vlan := func(d *vmconfig.Desired) { d.Spec.Network.Devices[0].VLAN = 42 }
	e1000 := func(d *vmconfig.Desired) { d.Spec.Network.Devices[0].Model = "e1000" }
	noDevices := func(d *vmconfig.Desired) { d.Spec.Network.Devices = nil }
	cases := []struct {
		name     string
		desired  vmconfig.Desired
		key      string
		observed string
		want     string // "keep", "delete" or the new value
	}{
		{"a name is set", desired(), "name", "Copy-of-VM-tmpl", "worker-1"},
		{"a description that has our marker stays", desired(), "description", "my words\nCAPVE-UUID: " + string(uuid), "keep"},
		{"a description without our marker is replaced", desired(), "description", "base image", vmconfig.Description("worker-1", uuid)},
		{"other SMBIOS fields stay", desired(), "smbios1", "base64=1,manufacturer=UVVNVQ==,uuid=966d3531-69bb-4cf7-889f-f8f652492abb", "base64=1,manufacturer=UVVNVQ==,uuid=" + string(uuid)},
		{"an SMBIOS UUID that is ours stays, whatever the order", desired(), "smbios1", "uuid=" + string(uuid) + ",base64=1", "keep"},
		{"tags of a template's former machine go", desired(), "tags", "base;capve-" + string(other), "base;capve-" + string(uuid)},
		{"tags in another order stay", desired(), "tags", "k8s;capve-" + string(uuid) + ";base", "keep"},
		{"an emptied list of tags gets ours", desired(), "tags", " ", "capve-" + string(uuid)},
		{"a device's flags stay", desired(), "net0", "virtio=BC:24:11:1B:F6:2C,bridge=vmbr9,firewall=1,queues=4,tag=7", "virtio=" + mac + ",bridge=vmbr0,firewall=1,queues=4"},
		{"a device that is as asked stays, whatever the order", desired(), "net0", "virtio=" + mac + ",bridge=vmbr0,firewall=1", "keep"},
		{"a device gets its VLAN", desired(vlan), "net0", "virtio=" + mac + ",bridge=vmbr0", "virtio=" + mac + ",bridge=vmbr0,tag=42"},
		{"a device's model is replaced", desired(e1000), "net0", "virtio=BC:24:11:1B:F6:2C,bridge=vmbr0", "e1000=" + mac + ",bridge=vmbr0"},
		{"a device in the long form is replaced", desired(), "net0", "model=e1000,macaddr=BC:24:11:1B:F6:2C,bridge=vmbr0", "virtio=" + mac + ",bridge=vmbr0"},
		{"a device that is not asked for goes", desired(), "net1", "virtio=BC:24:11:1B:F6:2D,bridge=vmbr1", "delete"},
		{"every device goes that is not asked for", desired(noDevices), "net0", "virtio=BC:24:11:1B:F6:2D,bridge=vmbr1", "delete"},
		{"the seed in its drive stays, with the size that Proxmox VE adds", desired(), "ide2", "local:iso/capve-" + string(uuid) + ".iso,media=cdrom,size=374K", "keep"},
		{"a seed that came with the template is replaced", desired(), "ide2", "local:iso/capve-" + string(other) + ".iso,media=cdrom,size=374K", "local:iso/capve-" + string(uuid) + ".iso,media=cdrom"},
		{"a second cloud-init drive goes", desired(), "scsi1", "local:410/vm-410-cloudinit.raw,media=cdrom,size=4M", "delete"},
		{"a data disk stays", desired(), "scsi1", "local:410/vm-410-disk-1.qcow2,serial=data,size=1G", "keep"},
		{"another ISO image stays", desired(), "ide0", "local:iso/debian.iso,media=cdrom,size=600M", "keep"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			change := vmconfig.Diff(c.desired, with(vmconfig.Config{c.key: c.observed}))
			if diff := cmp.Diff(c.want, fate(change, c.key)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.key, diff)
			}
		})
	}
}

// fate says what a change does to a key.
func fate(change vmconfig.Change, key string) string {
	for _, deleted := range change.Delete {
		if deleted == key {
			return "delete"
		}
	}
	if value, set := change.Set[key]; set {
		return value
	}
	return "keep"
}

func TestApplyLeavesWhatItWasGiven(t *testing.T) {
	config := clone()
	vmconfig.Diff(desired(), config).Apply(config)
	if diff := cmp.Diff(clone(), config); diff != "" {
		t.Errorf("config (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(vmconfig.Config{"a": "1"}, vmconfig.Change{Set: map[string]string{"a": "1"}}.Apply(nil)); diff != "" {
		t.Errorf("a change of nothing (-want +got):\n%s", diff)
	}
}

func TestAVMWithoutATemplateHasWhatTheGUIOffers(t *testing.T) {
	netboot := v1beta1.VirtualMachineSource{Netboot: v1beta1.NetbootSource{Device: "net0"}}
	cases := []struct {
		name string
		spec v1beta1.ProxmoxMachineSpec
		want vmconfig.Config
	}{
		{"of nothing", v1beta1.ProxmoxMachineSpec{Source: netboot}, vmconfig.Config{"cpu": "x86-64-v2-AES", "ostype": "l26", "scsihw": "virtio-scsi-single", "boot": "order=net0"}},
		{
			"but for what is asked",
			v1beta1.ProxmoxMachineSpec{
				Source: netboot, CPU: v1beta1.CPU{Type: "host"}, Options: v1beta1.Options{OSType: "other"}, Hardware: v1beta1.Hardware{SCSIController: "lsi"},
			},
			vmconfig.Config{"cpu": "host", "ostype": "other", "scsihw": "lsi", "boot": "order=net0"},
		},
		{"with flags", v1beta1.ProxmoxMachineSpec{Source: netboot, CPU: v1beta1.CPU{Flags: []string{"+aes"}}}, vmconfig.Config{"cpu": "x86-64-v2-AES,flags=+aes", "ostype": "l26", "scsihw": "virtio-scsi-single", "boot": "order=net0"}},
		{"no CPU of x86 on aarch64", v1beta1.ProxmoxMachineSpec{Source: netboot, Hardware: v1beta1.Hardware{MachineType: "virt"}}, vmconfig.Config{"cpu": "", "machine": "virt", "ostype": "l26", "scsihw": "virtio-scsi-single", "boot": "order=net0"}},
		{
			"a new disk first",
			v1beta1.ProxmoxMachineSpec{Source: netboot, Disks: v1beta1.Disks{Boot: v1beta1.BootDisk{Storage: "ceph", SizeGiB: 8, Format: "raw"}}},
			vmconfig.Config{"scsi0": "ceph:8,format=raw", "boot": "order=scsi0;net0"},
		},
		{
			"or an imported one",
			v1beta1.ProxmoxMachineSpec{
				Source: v1beta1.VirtualMachineSource{Image: v1beta1.ImageSource{Volume: "nfs:import/a.qcow2"}}, Disks: v1beta1.Disks{Boot: v1beta1.BootDisk{Name: "virtio1", Storage: "ceph", SizeGiB: 8}},
			},
			vmconfig.Config{"virtio1": "ceph:0,import-from=nfs:import/a.qcow2", "boot": "order=virtio1"},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			config := vmconfig.Desired{UUID: uuid, Machine: "m1", Spec: c.spec}.New()
			for key, want := range c.want {
				if config[key] != want {
					t.Errorf("%s: %q, want %q", key, config[key], want)
				}
			}
			if again := vmconfig.Compare(vmconfig.Desired{UUID: uuid, Machine: "m1", Spec: c.spec}, withDisksMade(config)); !again.Change.Empty() {
				t.Errorf("what is made is changed again: %+v", again.Change)
			}
		})
	}
}

// withDisksMade is a config with the disks that Proxmox VE made for it.
func withDisksMade(config vmconfig.Config) vmconfig.Config {
	made := maps.Clone(config)
	for _, key := range []string{"scsi0", "virtio1"} {
		if made[key] != "" {
			made[key] = "ceph:vm-101-disk-0,size=2G"
		}
	}
	return made
}
