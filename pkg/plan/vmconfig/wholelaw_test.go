package vmconfig_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/network"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
)

// maker draws the fields of a spec: each is set or not.
type maker struct{ t *rapid.T }

func oneOf[V any](m maker, label string, values ...V) (none V) {
	if !rapid.Bool().Draw(m.t, "has "+label) {
		return none
	}
	return rapid.SampledFrom(values).Draw(m.t, label)
}

func (m maker) number(label string, least, most int32) int32 {
	if !rapid.Bool().Draw(m.t, "has "+label) {
		return 0
	}
	return rapid.Int32Range(least, most).Draw(m.t, label)
}

func (m maker) optional(label string) *int32 {
	if !rapid.Bool().Draw(m.t, "has "+label) {
		return nil
	}
	return ptr.To(rapid.Int32Range(0, 4096).Draw(m.t, label))
}

func (m maker) flag(label string) *bool {
	return rapid.SampledFrom([]*bool{nil, ptr.To(true), ptr.To(false)}).Draw(m.t, label)
}

func (m maker) spec() spec {
	s := spec{
		CPU: v1beta1.CPU{
			Sockets: rapid.Int32Range(1, 4).Draw(m.t, "sockets"), Cores: rapid.Int32Range(1, 128).Draw(m.t, "cores"), VCPUs: m.number("vcpus", 1, 4),
			Type: oneOf(m, "cpu type", "host", "x86-64-v2-AES"), Flags: oneOf(m, "flags", []string{"+aes"}, []string{"+aes", "-pcid"}), Units: m.number("units", 1, 262144),
		},
		Memory: v1beta1.Memory{
			SizeMiB: rapid.Int32Range(16, 8192).Draw(m.t, "MiB"), MinimumMiB: m.optional("balloon"), Hugepages: oneOf[v1beta1.Hugepages](m, "hugepages", "Any", "2MiB", "1GiB"),
		},
		Hardware: m.hardware(), Options: m.options(), Disks: m.disks(),
		Tags:        oneOf(m, "tags", []string{"a"}, []string{"a", "k8s.1"}),
		Description: oneOf(m, "description", "for *team A*", "two\n\nparagraphs"),
		VMName:      oneOf(m, "name", "vm-1", "{{ .Cluster }}-{{.Machine}}"),
		RawConfig:   oneOf(m, "raw", v1beta1.RawConfig{"kvm": "0"}, v1beta1.RawConfig{"args": "-no-reboot", "affinity": "0-3"}),
	}
	if rapid.Bool().Draw(m.t, "limited") {
		s.CPU.Limit = resource.NewMilliQuantity(rapid.Int64Range(1, 128000).Draw(m.t, "limit"), resource.DecimalSI)
	}
	s.Source.Image.Volume = "shared:import/debian.qcow2"
	for i := range rapid.IntRange(1, 14).Draw(m.t, "devices") {
		s.Network.Devices = append(s.Network.Devices, m.device(fmt.Sprintf("net%d", i*2)))
	}
	return s
}

func (m maker) device(name string) v1beta1.NetworkDevice {
	return v1beta1.NetworkDevice{
		Name: name, Bridge: rapid.SampledFrom([]string{"vmbr0", "vnet1"}).Draw(m.t, "bridge"), Model: rapid.SampledFrom([]v1beta1.NetworkDeviceModel{"virtio", "e1000"}).Draw(m.t, "model"),
		VLAN: m.number("vlan", 1, 4094), Trunks: oneOf(m, "trunks", []string{"5"}, []string{"5", "7-9"}), MTU: m.number("mtu", 576, 9000),
		MACAddress: oneOf(m, "mac", "BC:24:11:00:00:01"), RateLimitKiBps: m.number("rate", 1, 104857600), Queues: m.number("queues", 1, 64),
		Firewall: m.flag("firewall"), LinkDown: m.flag("link down"),
	}
}

func (m maker) hardware() v1beta1.Hardware {
	h := v1beta1.Hardware{
		MachineType: oneOf(m, "machine", "pc", "q35", "pc-q35-9.0"), BIOS: oneOf[v1beta1.BIOS](m, "bios", "seabios", "ovmf"),
		EFIDisk: oneOf(m, "efi", v1beta1.EFIDisk{Storage: "local"}, v1beta1.EFIDisk{Storage: "local", Format: "qcow2", PreEnrolledKeys: ptr.To(false)}),
		TPM:     oneOf(m, "tpm", v1beta1.TPM{Storage: "local", Version: "v2.0"}), SCSIController: oneOf[v1beta1.SCSIController](m, "scsihw", "lsi", "virtio-scsi-single"),
		Display:     oneOf(m, "vga", v1beta1.Display{Type: "serial0"}, v1beta1.Display{Type: "std", MemoryMiB: 32}),
		SerialPorts: oneOf(m, "serial", []string{"serial0"}, []string{"serial0", "serial1"}),
		RNG:         oneOf(m, "rng", v1beta1.RNG{Source: "/dev/urandom"}, v1beta1.RNG{Source: "/dev/hwrng", MaxBytes: ptr.To[int32](0), PeriodMilliseconds: 1}),
		Watchdog:    oneOf(m, "watchdog", v1beta1.Watchdog{Model: "ib700"}, v1beta1.Watchdog{Model: "i6300esb", Action: "reset"}),
	}
	if rapid.Bool().Draw(m.t, "has pci") {
		h.PCIDevices = []v1beta1.PCIDevice{{Name: "hostpci0", Mapping: "gpu", PCIe: m.flag("pcie")}, {Name: "hostpci10", Mapping: "nic", MDev: "x-1", ROMBar: m.flag("rombar"), PrimaryGPU: m.flag("x-vga")}}
		h.USBDevices = []v1beta1.USBDevice{{Name: "usb2", Mapping: "key", USB3: m.flag("usb3")}, {Name: "usb11", Mapping: "key2"}}
	}
	return h
}

func (m maker) options() v1beta1.Options {
	o := v1beta1.Options{
		OSType: oneOf(m, "ostype", "l26", "other"), OnBoot: m.flag("onboot"), Protection: m.flag("protection"), Tablet: m.flag("tablet"),
		Startup: v1beta1.Startup{Order: m.optional("order"), UpSeconds: m.optional("up"), DownSeconds: m.optional("down")},
		Hotplug: oneOf(m, "hotplug", &[]string{}, &[]string{"cpu"}, &[]string{"network", "memory"}),
	}
	if rapid.Bool().Draw(m.t, "has agent") {
		o.Agent = v1beta1.Agent{
			Enabled: ptr.To(rapid.Bool().Draw(m.t, "agent")), FSTrimClonedDisks: m.flag("fstrim"), FreezeFSOnBackup: m.flag("freeze"), Type: oneOf(m, "agent type", "isa", "virtio"),
		}
	}
	return o
}

func (m maker) disks() v1beta1.Disks {
	boot := rapid.SampledFrom([]string{"scsi0", "virtio0"}).Draw(m.t, "boot")
	disks := v1beta1.Disks{Boot: v1beta1.BootDisk{
		Name: boot, Storage: "local", Format: oneOf[v1beta1.DiskFormat](m, "format", "qcow2"), DiskOptions: m.diskOptions(),
	}}
	if boot == "virtio0" {
		disks.Boot.SSD = nil
	}
	for i := range rapid.IntRange(0, 3).Draw(m.t, "disks") {
		disks.Additional = append(disks.Additional, v1beta1.AdditionalDisk{
			Name: fmt.Sprintf("scsi%d", 1+i*9), Storage: "local-lvm", SizeGiB: rapid.Int32Range(1, 100).Draw(m.t, "GiB"), Format: oneOf[v1beta1.DiskFormat](m, "format", "raw"), DiskOptions: m.diskOptions(),
		})
	}
	return disks
}

func (m maker) diskOptions() v1beta1.DiskOptions {
	return v1beta1.DiskOptions{
		Cache: oneOf[v1beta1.DiskCache](m, "cache", "none", "writeback"), AIO: oneOf[v1beta1.DiskAIO](m, "aio", "native"), Discard: m.flag("discard"), SSD: m.flag("ssd"), IOThread: m.flag("iothread"),
		Backup: m.flag("backup"), Replicate: m.flag("replicate"), ReadOnly: m.flag("ro"), Serial: oneOf(m, "serial", "x"), Limits: v1beta1.DiskLimits{
			ReadMiBps: m.number("mbps_rd", 1, 9), WriteMiBps: m.number("mbps_wr", 1, 9), ReadIOPS: m.number("iops_rd", 10, 99), WriteBurstIOPS: m.number("iops_wr_max", 10, 99),
		},
	}
}

func drawWhole(t *rapid.T) vmconfig.Desired {
	return vmconfig.Desired{UUID: uuid, Machine: "worker-1", Cluster: "prod", Namespace: "team-a", Spec: maker{t}.spec(), Seed: vmconfig.SeedVolume("local", uuid)}
}

func TestDecodingWhatWasEncodedGivesItBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawWhole(t)
		want := *d.Spec.DeepCopy()
		want.VMName, _ = d.Name()
		for i := range want.Network.Devices {
			want.Network.Devices[i].MACAddress = network.DeviceMAC(uuid, want.Network.Devices[i])
		}
		if diff := cmp.Diff(want, vmconfig.Decode(d.Encode()), specEqual); diff != "" {
			t.Fatalf("%v\n(-want +got):\n%s", d.Encode(), diff)
		}
	})
}

// drawTemplate is a config with anything in it.
func drawTemplate(t *rapid.T) vmconfig.Config {
	config := drawConfig(t)
	encoded := vmconfig.Desired{UUID: other, Machine: "x", Spec: maker{t}.spec()}.Encode()
	for _, key := range slices.Sorted(maps.Keys(encoded)) {
		if _, has := config[key]; !has && rapid.Bool().Draw(t, "template has "+key) {
			config[key] = encoded[key]
		}
	}
	return kept(config)
}

func TestAWholeVMIsReachedAtOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want, observed := drawWhole(t), drawTemplate(t)
		if rapid.Bool().Draw(t, "from a template") {
			want.Spec.Source = v1beta1.VirtualMachineSource{Template: v1beta1.TemplateSource{Name: "debian"}}
			want.Spec.Disks.Boot.Storage, want.Spec.Disks.Boot.Name = "", ""
		}
		if disk, found := observed.BootDisk(); found && slices.ContainsFunc(want.Spec.Disks.Additional, func(d v1beta1.AdditionalDisk) bool { return d.Name == disk.Key }) {
			return // a misfit
		}
		comparison := vmconfig.Compare(want, observed)
		after := comparison.Change.Apply(observed)
		for _, growth := range comparison.Grow {
			after[growth.Key] = vmconfig.ParseProperties(after[growth.Key]).With("size", fmt.Sprintf("%dG", growth.Size/gib)).String()
		}
		after = kept(after)
		again := vmconfig.Compare(want, after)
		if !again.Change.Empty() || len(again.Grow) > 0 {
			t.Fatalf("of %v there is still to do: %+v", after, again)
		}
		for _, difference := range again.Differences {
			if difference.Effect != vmconfig.Replace {
				t.Fatalf("a difference is left that could be mended: %v", difference)
			}
		}
	})
}

// TestUnsetFieldsStayAsTheTemplateHasThem asks for nothing but what has a default, of a template that has everything.
func TestUnsetFieldsStayAsTheTemplateHasThem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		observed := drawTemplate(t)
		want := desired(func(d *vmconfig.Desired) { d.Spec.Network.Devices = nil })
		drive, _ := want.SeedDrive(observed)
		after := vmconfig.Diff(want, observed).Apply(observed)
		for _, key := range slices.Sorted(maps.Keys(observed)) {
			ours := slices.Contains([]string{"name", "sockets", "cores", "vcpus", "memory", "smbios1", "tags", "description", drive}, key)
			if ours || strings.HasPrefix(key, "net") || strings.Contains(observed[key], "cloudinit") {
				continue
			}
			if diff := cmp.Diff(observed[key], after[key]); diff != "" {
				t.Fatalf("%s (-before +after):\n%s", key, diff)
			}
		}
	})
}

func TestNoTwoDifferencesOfOneField(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seen := map[string]bool{}
		for _, difference := range vmconfig.Compare(drawWhole(t), drawTemplate(t)).Differences {
			id := difference.Path + " " + difference.Key + " " + difference.Part
			if seen[id] || difference.Path == "" || difference.Effect == "" || difference.Wanted == difference.Is {
				t.Fatalf("a difference twice, or without its field: %+v", difference)
			}
			seen[id] = true
		}
	})
}
