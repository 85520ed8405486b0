package vmconfig_test

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
)

type spec = v1beta1.ProxmoxMachineSpec

// field is what a spec has set and what a config says then.
type field struct {
	name string
	set  func(*spec)
	want vmconfig.Config
	// also are other forms that Proxmox VE keeps of the same.
	also []vmconfig.Config
}

func hardware(set func(*v1beta1.Hardware)) func(*spec) { return func(s *spec) { set(&s.Hardware) } }
func options(set func(*v1beta1.Options)) func(*spec)   { return func(s *spec) { set(&s.Options) } }

// device sets something of net0, whose MAC address and bridge are given.
func device(set func(*v1beta1.NetworkDevice)) func(*spec) {
	return func(s *spec) {
		s.Network.Devices = []v1beta1.NetworkDevice{{Name: "net0", Bridge: "vmbr0", Model: "virtio", MACAddress: "BC:24:11:00:00:01"}}
		set(&s.Network.Devices[0])
	}
}

func net0(parts string) vmconfig.Config {
	return vmconfig.Config{"net0": "virtio=BC:24:11:00:00:01,bridge=vmbr0" + parts}
}

// disk sets something of scsi1, whose storage and size are given.
func disk(set func(*v1beta1.AdditionalDisk)) func(*spec) {
	return func(s *spec) {
		s.Disks.Additional = []v1beta1.AdditionalDisk{{Name: "scsi1", Storage: "local-lvm", SizeGiB: 20}}
		set(&s.Disks.Additional[0])
	}
}

func limits(set func(*v1beta1.DiskLimits)) func(*spec) {
	return disk(func(d *v1beta1.AdditionalDisk) { set(&d.Limits) })
}

func scsi1(parts string) vmconfig.Config {
	return vmconfig.Config{"scsi0": "local-lvm:10", "scsi1": "local-lvm:20" + parts}
}

func says(key, value string) vmconfig.Config { return vmconfig.Config{key: value} }

func cpuAndMemoryFields() []field {
	limit := resource.MustParse("2.5")
	return []field{
		{"sockets", func(s *spec) { s.CPU.Sockets = 2 }, says("sockets", "2"), nil},
		{"cores", func(s *spec) { s.CPU.Cores = 8 }, says("cores", "8"), nil},
		{"vcpus", func(s *spec) { s.CPU.VCPUs = 4 }, says("vcpus", "4"), nil},
		{"cpu type", func(s *spec) { s.CPU.Type = "x86-64-v2-AES" }, says("cpu", "x86-64-v2-AES"), []vmconfig.Config{says("cpu", "cputype=x86-64-v2-AES")}},
		{"cpu flags", func(s *spec) { s.CPU.Flags = []string{"+aes", "-pcid"} }, says("cpu", "flags=+aes;-pcid"), nil},
		{"cpu type and flags", func(s *spec) { s.CPU.Type, s.CPU.Flags = "host", []string{"+aes", "-pcid"} }, says("cpu", "host,flags=+aes;-pcid"), []vmconfig.Config{says("cpu", "flags=+aes;-pcid,cputype=host")}},
		{"cpu units", func(s *spec) { s.CPU.Units = 200 }, says("cpuunits", "200"), nil},
		{"cpu limit", func(s *spec) { s.CPU.Limit = &limit }, says("cpulimit", "2.5"), []vmconfig.Config{says("cpulimit", "2.50")}},
		{"memory", func(s *spec) { s.Memory.SizeMiB = 8192 }, says("memory", "8192"), []vmconfig.Config{says("memory", "current=8192")}},
		{"minimum memory", func(s *spec) { s.Memory.MinimumMiB = ptr.To[int32](1024) }, says("balloon", "1024"), nil},
		{"no balloon", func(s *spec) { s.Memory.MinimumMiB = ptr.To[int32](0) }, says("balloon", "0"), nil},
		{"hugepages of any size", func(s *spec) { s.Memory.Hugepages = "Any" }, vmconfig.Config{"hugepages": "any", "numa": "1"}, nil},
		{"hugepages of 2 MiB", func(s *spec) { s.Memory.Hugepages = "2MiB" }, vmconfig.Config{"hugepages": "2", "numa": "1"}, nil},
		{"hugepages of 1 GiB", func(s *spec) { s.Memory.Hugepages = "1GiB" }, vmconfig.Config{"hugepages": "1024", "numa": "1"}, nil},
	}
}

func hardwareFields() []field {
	type h = v1beta1.Hardware
	return []field{
		{"machine type", hardware(func(h *h) { h.MachineType = "q35" }), says("machine", "q35"), []vmconfig.Config{says("machine", "type=q35"), says("machine", "q35")}},
		{"bios", hardware(func(h *h) { h.BIOS = "ovmf" }), says("bios", "ovmf"), nil},
		{"efi disk", hardware(func(h *h) { h.EFIDisk = v1beta1.EFIDisk{Storage: "local-lvm", PreEnrolledKeys: ptr.To(true)} }), says("efidisk0", "local-lvm:1,pre-enrolled-keys=1,efitype=4m"), nil},
		{"efi disk with a format", hardware(func(h *h) { h.EFIDisk = v1beta1.EFIDisk{Storage: "local", Format: "qcow2"} }), says("efidisk0", "local:1,format=qcow2,efitype=4m"), []vmconfig.Config{says("efidisk0", "local:316/vm-316-disk-0.qcow2,efitype=4m,size=528K")}},
		{"tpm", hardware(func(h *h) { h.TPM = v1beta1.TPM{Storage: "local", Version: "v2.0"} }), says("tpmstate0", "local:1,version=v2.0"), []vmconfig.Config{says("tpmstate0", "local:316/vm-316-disk-2.raw,size=4M,version=v2.0")}},
		{"scsi controller", hardware(func(h *h) { h.SCSIController = "virtio-scsi-single" }), says("scsihw", "virtio-scsi-single"), nil},
		{"display", hardware(func(h *h) { h.Display.Type = "serial0" }), says("vga", "serial0"), []vmconfig.Config{says("vga", "type=serial0")}},
		{"display memory", hardware(func(h *h) { h.Display.MemoryMiB = 32 }), says("vga", "memory=32"), nil},
		{"display with memory", hardware(func(h *h) { h.Display = v1beta1.Display{Type: "std", MemoryMiB: 32} }), says("vga", "std,memory=32"), nil},
		{"serial ports", hardware(func(h *h) { h.SerialPorts = []string{"serial0", "serial3"} }), vmconfig.Config{"serial0": "socket", "serial3": "socket"}, nil},
		{"rng", hardware(func(h *h) {
			h.RNG = v1beta1.RNG{Source: "/dev/urandom", MaxBytes: ptr.To[int32](0), PeriodMilliseconds: 500}
		}), says("rng0", "/dev/urandom,max_bytes=0,period=500"), []vmconfig.Config{says("rng0", "source=/dev/urandom,max_bytes=0,period=500")}},
		{"watchdog", hardware(func(h *h) { h.Watchdog = v1beta1.Watchdog{Model: "i6300esb", Action: "reset"} }), says("watchdog", "i6300esb,action=reset"), []vmconfig.Config{says("watchdog", "model=i6300esb,action=reset")}},
		{"pci device", hardware(func(h *h) {
			h.PCIDevices = []v1beta1.PCIDevice{{Name: "hostpci0", Mapping: "gpu", MDev: "nvidia-63", PCIe: ptr.To(true), ROMBar: ptr.To(false), PrimaryGPU: ptr.To(true)}}
		}), says("hostpci0", "mapping=gpu,mdev=nvidia-63,pcie=1,rombar=0,x-vga=1"), nil},
		{"usb device", hardware(func(h *h) {
			h.USBDevices = []v1beta1.USBDevice{{Name: "usb2", Mapping: "key", USB3: ptr.To(true)}}
		}), says("usb2", "mapping=key,usb3=1"), []vmconfig.Config{says("usb2", "usb3=yes,mapping=key")}},
	}
}

func optionFields() []field {
	type o = v1beta1.Options
	return []field{
		{"os type", options(func(o *o) { o.OSType = "l26" }), says("ostype", "l26"), nil},
		{"on boot", options(func(o *o) { o.OnBoot = ptr.To(true) }), says("onboot", "1"), nil},
		{"not on boot", options(func(o *o) { o.OnBoot = ptr.To(false) }), says("onboot", "0"), nil},
		{"startup", options(func(o *o) {
			o.Startup = v1beta1.Startup{Order: ptr.To[int32](1), UpSeconds: ptr.To[int32](10), DownSeconds: ptr.To[int32](20)}
		}), says("startup", "1,up=10,down=20"), []vmconfig.Config{says("startup", "order=1,up=10,down=20")}},
		{"startup delay", options(func(o *o) { o.Startup.UpSeconds = ptr.To[int32](0) }), says("startup", "up=0"), nil},
		{"protection", options(func(o *o) { o.Protection = ptr.To(true) }), says("protection", "1"), nil},
		{"no tablet", options(func(o *o) { o.Tablet = ptr.To(false) }), says("tablet", "0"), nil},
		{"hotplug", options(func(o *o) { o.Hotplug = &[]string{"disk", "cpu"} }), says("hotplug", "disk,cpu"), nil},
		{"hotplug of nothing", options(func(o *o) { o.Hotplug = &[]string{} }), says("hotplug", "0"), nil},
		{"hotplug as usual", options(func(o *o) { o.Hotplug = &[]string{"network", "disk", "usb"} }), says("hotplug", "network,disk,usb"), []vmconfig.Config{says("hotplug", "1")}},
		{"hotplug of memory", options(func(o *o) { o.Hotplug = &[]string{"memory"} }), vmconfig.Config{"hotplug": "memory", "numa": "1"}, nil},
		{"agent", options(func(o *o) { o.Agent.Enabled = ptr.To(true) }), says("agent", "1"), []vmconfig.Config{says("agent", "enabled=1")}},
		{"no agent", options(func(o *o) { o.Agent.Enabled = ptr.To(false) }), says("agent", "0"), []vmconfig.Config{says("agent", "enabled=0")}},
		{"agent with all", options(func(o *o) {
			o.Agent = v1beta1.Agent{Enabled: ptr.To(true), FSTrimClonedDisks: ptr.To(true), FreezeFSOnBackup: ptr.To(false), Type: "isa"}
		}), says("agent", "1,fstrim_cloned_disks=1,freeze-fs-on-backup=0,type=isa"), []vmconfig.Config{says("agent", "enabled=1,freeze-fs=0,fstrim_cloned_disks=1,type=isa"), says("agent", "1,guest-fsfreeze=0,fstrim_cloned_disks=1,type=isa")}},
	}
}

func networkFields() []field {
	type n = v1beta1.NetworkDevice
	return []field{
		{"device", device(func(*n) {}), net0(""), []vmconfig.Config{says("net0", "model=virtio,macaddr=BC:24:11:00:00:01,bridge=vmbr0")}},
		{"model", device(func(n *n) { n.Model = "e1000e" }), says("net0", "e1000e=BC:24:11:00:00:01,bridge=vmbr0"), nil},
		{"vlan", device(func(n *n) { n.VLAN = 42 }), net0(",tag=42"), nil},
		{"trunks", device(func(n *n) { n.Trunks = []string{"5", "100-199"} }), net0(",trunks=5;100-199"), nil},
		{"mtu", device(func(n *n) { n.MTU = 1 }), net0(",mtu=1"), nil},
		{"rate of 100 Mbit/s", device(func(n *n) { n.RateLimitKiBps = 12207 }), net0(",rate=11.9208984375"), nil},
		{"rate of 1 MiB/s", device(func(n *n) { n.RateLimitKiBps = 1024 }), net0(",rate=1"), nil},
		{"queues", device(func(n *n) { n.Queues = 8 }), net0(",queues=8"), nil},
		{"firewall", device(func(n *n) { n.Firewall = ptr.To(true) }), net0(",firewall=1"), nil},
		{"no firewall", device(func(n *n) { n.Firewall = ptr.To(false) }), net0(",firewall=0"), nil},
		{"link down", device(func(n *n) { n.LinkDown = ptr.To(true) }), net0(",link_down=1"), nil},
	}
}

func diskFields() []field {
	type d = v1beta1.AdditionalDisk
	type l = v1beta1.DiskLimits
	return []field{
		{"disk", disk(func(*d) {}), scsi1(""), nil},
		{"disk with a format", disk(func(d *d) { d.Format = "qcow2" }), scsi1(",format=qcow2"), []vmconfig.Config{
			{"scsi0": "local-lvm:10", "scsi1": "local-lvm:101/vm-101-disk-1.qcow2,size=20G"},
		}},
		{"cache", disk(func(d *d) { d.Cache = "writeback" }), scsi1(",cache=writeback"), nil},
		{"aio", disk(func(d *d) { d.AIO = "io_uring" }), scsi1(",aio=io_uring"), nil},
		{"discard", disk(func(d *d) { d.Discard = ptr.To(true) }), scsi1(",discard=on"), nil},
		{"no discard", disk(func(d *d) { d.Discard = ptr.To(false) }), scsi1(",discard=ignore"), nil},
		{"ssd", disk(func(d *d) { d.SSD = ptr.To(true) }), scsi1(",ssd=1"), nil},
		{"io thread", disk(func(d *d) { d.IOThread = ptr.To(true) }), scsi1(",iothread=1"), nil},
		{"no backup", disk(func(d *d) { d.Backup = ptr.To(false) }), scsi1(",backup=0"), nil},
		{"no replication", disk(func(d *d) { d.Replicate = ptr.To(false) }), scsi1(",replicate=0"), nil},
		{"read only", disk(func(d *d) { d.ReadOnly = ptr.To(true) }), scsi1(",ro=1"), nil},
		{"serial", disk(func(d *d) { d.Serial = "etcd.1_a-b" }), scsi1(",serial=etcd.1_a-b"), nil},
		{"limits of throughput", limits(func(l *l) {
			*l = v1beta1.DiskLimits{ReadMiBps: 100, ReadBurstMiBps: 200, WriteMiBps: 50, WriteBurstMiBps: 60}
		}), scsi1(",mbps_rd=100,mbps_rd_max=200,mbps_wr=50,mbps_wr_max=60"), nil},
		{"limits of operations", limits(func(l *l) {
			*l = v1beta1.DiskLimits{ReadIOPS: 1000, ReadBurstIOPS: 2000, WriteIOPS: 500, WriteBurstIOPS: 600}
		}), scsi1(",iops_rd=1000,iops_rd_max=2000,iops_wr=500,iops_wr_max=600"), nil},
	}
}

func otherFields() []field {
	return []field{
		{"raw keys", func(s *spec) { s.RawConfig = map[string]string{"kvm": "0", "args": "-no-reboot"} }, vmconfig.Config{"kvm": "0", "args": "-no-reboot"}, nil},
		{"image", func(s *spec) {
			s.Source.Image.Volume = "shared:import/debian.qcow2"
			s.Disks.Boot = v1beta1.BootDisk{Name: "virtio0", Storage: "local", Format: "qcow2", DiskOptions: v1beta1.DiskOptions{Discard: ptr.To(true)}}
		}, vmconfig.Config{"virtio0": "local:0,import-from=shared:import/debian.qcow2,format=qcow2,discard=on", "boot": "order=virtio0"}, nil},
		{"netboot", func(s *spec) { s.Source.Netboot.Device = "net1" }, says("boot", "order=net1"), nil},
		{"netboot with a disk", func(s *spec) {
			s.Source.Netboot.Device = "net0"
			s.Disks.Boot = v1beta1.BootDisk{Name: "scsi0", Storage: "local-lvm", SizeGiB: 32}
		}, vmconfig.Config{"scsi0": "local-lvm:32", "boot": "order=scsi0;net0"}, nil},
	}
}

func allFields() []field {
	var all []field
	for _, fields := range [][]field{cpuAndMemoryFields(), hardwareFields(), optionFields(), networkFields(), diskFields(), otherFields()} {
		all = append(all, fields...)
	}
	return all
}

// ignoring are the keys that are there whatever is asked for.
func ignoring(config vmconfig.Config, keys ...string) vmconfig.Config {
	config = maps.Clone(config)
	for _, key := range append(keys, "smbios1", "tags", "description", "name") {
		delete(config, key)
	}
	return config
}

// specEqual compares numbers by their value.
var specEqual = cmp.Comparer(func(a, b resource.Quantity) bool { return a.Cmp(b) == 0 })

func TestEveryFieldBothWays(t *testing.T) {
	for _, field := range allFields() {
		t.Run(field.name, func(t *testing.T) {
			var asked spec
			field.set(&asked)
			config := vmconfig.Desired{UUID: uuid, Machine: "worker-1", Spec: asked}.Encode()
			_, hasSCSI0 := field.want["scsi0"]
			want := maps.Clone(field.want)
			if hasSCSI0 && len(asked.Disks.Additional) > 0 {
				delete(want, "scsi0") // the template's, which decoding needs to tell them apart
			}
			if diff := cmp.Diff(want, ignoring(config)); diff != "" {
				t.Errorf("encoded (-want +got):\n%s", diff)
			}
			for _, config := range append([]vmconfig.Config{field.want}, field.also...) {
				decoded := vmconfig.Decode(config)
				if len(asked.Disks.Additional) > 0 {
					decoded.Disks.Boot = v1beta1.BootDisk{}
				}
				if diff := cmp.Diff(asked, decoded, specEqual); diff != "" {
					t.Errorf("decoded %v (-want +got):\n%s", config, diff)
				}
			}
		})
	}
}

func TestWhatProxmoxKeepsIsWhatWasAsked(t *testing.T) {
	for _, field := range allFields() {
		d := desired(func(d *vmconfig.Desired) { field.set(&d.Spec) })
		for _, form := range append([]vmconfig.Config{field.want}, field.also...) {
			t.Run(field.name, func(t *testing.T) {
				observed := kept(vmconfig.Diff(d, clone()).Apply(clone()))
				for key, value := range form {
					if key != "scsi0" || d.Spec.Source.Netboot.Device != "" {
						observed[key] = keptDrive(key, value)
					}
				}
				if change := vmconfig.Diff(d, observed); !change.Empty() {
					t.Errorf("of %v there is to do: %+v", form, change)
				}
			})
		}
	}
}
