package vmconfig_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
)

// made is the clone after it was configured.
func made(d vmconfig.Desired) vmconfig.Config {
	return kept(vmconfig.Diff(d, clone()).Apply(clone()))
}

func TestADifferenceSaysItsFieldAndEffect(t *testing.T) {
	extra := disk(func(d *v1beta1.AdditionalDisk) { d.Name = "scsi5" })
	sata := disk(func(d *v1beta1.AdditionalDisk) { d.Name = "sata1" })
	second := func(s *spec) {
		s.Network.Devices = append(s.Network.Devices, v1beta1.NetworkDevice{Name: "net1", Bridge: "vmbr1", Model: "virtio"})
	}
	onDevice := func(set func(*v1beta1.NetworkDevice)) func(*spec) {
		return func(s *spec) { set(&s.Network.Devices[0]) }
	}
	cases := []struct {
		name   string
		set    func(*spec)
		want   string
		effect vmconfig.Effect
	}{
		{"cores", func(s *spec) { s.CPU.Cores = 4 }, "cpu.cores: 4 → 2", vmconfig.Reboot},
		{"vcpus", func(s *spec) { s.CPU.VCPUs = 1 }, "cpu.vcpus: 1 → none", vmconfig.HotplugCPU},
		{"units", func(s *spec) { s.CPU.Units = 50 }, "cpu.units: 50 → 100", vmconfig.Live},
		{"limit", func(s *spec) { s.CPU.Limit = ptr.To(resource.MustParse("500m")) }, "cpu.limit: 0.5 → 0", vmconfig.Live},
		{"memory", func(s *spec) { s.Memory.SizeMiB = 8192 }, "memory.sizeMiB: 8192 → 4096", vmconfig.HotplugMemory},
		{"minimum memory", func(s *spec) { s.Memory.MinimumMiB = ptr.To[int32](2048) }, "memory.minimumMiB: 2048 → none", vmconfig.Live},
		{"balloon away", func(s *spec) { s.Memory.MinimumMiB = ptr.To[int32](0) }, "memory.minimumMiB: 0 → none", vmconfig.Reboot},
		{"bios", hardware(func(h *v1beta1.Hardware) { h.BIOS = "ovmf" }), "hardware.bios: ovmf → seabios", vmconfig.Replace},
		{"hotplug of usb away", options(func(o *v1beta1.Options) { o.Hotplug = &[]string{"network", "disk"} }), "options.hotplug: network,disk → network,disk,usb", vmconfig.Live},
		{"hotplug of cpu", options(func(o *v1beta1.Options) { o.Hotplug = &[]string{"network", "disk", "usb", "cpu"} }), "options.hotplug: network,disk,usb,cpu → network,disk,usb", vmconfig.Reboot},
		{"agent", options(func(o *v1beta1.Options) { o.Agent.Enabled = ptr.To(false) }), "options.agent.enabled: 0 → 1", vmconfig.Reboot},
		{"bridge", onDevice(func(n *v1beta1.NetworkDevice) { n.Bridge = "vmbr7" }), "network.devices[net0].bridge: vmbr7 → vmbr0", vmconfig.Live},
		{"vlan", onDevice(func(n *v1beta1.NetworkDevice) { n.VLAN = 7 }), "network.devices[net0].vlan: 7 → none", vmconfig.Live},
		{"model", onDevice(func(n *v1beta1.NetworkDevice) { n.Model = "e1000" }), "network.devices[net0].model: e1000 → virtio", vmconfig.HotplugNetwork},
		{"queues per CPU", onDevice(func(n *v1beta1.NetworkDevice) { n.QueuesPerCPU = ptr.To(true) }), "network.devices[net0].queuesPerCPU: 2 → none", vmconfig.Reboot},
		{"MAC address", onDevice(func(n *v1beta1.NetworkDevice) { n.MACAddress = "bc:24:11:00:00:01" }), "network.devices[net0].macAddress: BC:24:11:00:00:01 → " + mac, vmconfig.Replace},
		{"second device", second, "network.devices[net1]: virtio=16:31:93:8F:38:DF,bridge=vmbr1 → none", vmconfig.HotplugNetwork},
		{"boot disk", func(s *spec) { s.Disks.Boot.SizeGiB = 20 }, "disks.boot.sizeGiB: 20 GiB → 1G", vmconfig.Live},
		{"boot disk's discard", func(s *spec) { s.Disks.Boot.Discard = ptr.To(true) }, "disks.boot.discard: on → ignore", vmconfig.Reboot},
		{"scsi disk", extra, "disks.additional[scsi5]: local-lvm:20 → none", vmconfig.HotplugDisk},
		{"sata disk", sata, "disks.additional[sata1]: local-lvm:20 → none", vmconfig.Reboot},
		{"name", func(s *spec) { s.VMName = "{{ .Cluster }}-{{ .Machine }}" }, "vmName: prod-worker-1 → worker-1", vmconfig.Live},
		{"tags", func(s *spec) { s.Tags = []string{"prod"} }, "tags: base;capve-" + string(uuid) + ";k8s;prod → base;capve-" + string(uuid) + ";k8s", vmconfig.Live},
		{"raw key", func(s *spec) { s.RawConfig = v1beta1.RawConfig{"kvm": "1"} }, "rawConfig[kvm]: 1 → 0", vmconfig.Reboot},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			differences := vmconfig.Compare(desired(func(d *vmconfig.Desired) { c.set(&d.Spec) }), made(desired())).Differences
			if len(differences) != 1 {
				t.Fatalf("differences: %v", differences)
			}
			if diff := cmp.Diff([]string{c.want, string(c.effect)}, []string{differences[0].String(), string(differences[0].Effect)}); diff != "" {
				t.Errorf("difference (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatIsMadeOnceIsKept(t *testing.T) {
	efi := hardware(func(h *v1beta1.Hardware) {
		h.EFIDisk = v1beta1.EFIDisk{Storage: "fast", Format: "raw", PreEnrolledKeys: ptr.To(true)}
		h.TPM = v1beta1.TPM{Storage: "fast", Version: "v2.0"}
	})
	d := desired(func(d *vmconfig.Desired) {
		efi(&d.Spec)
		disk(func(d *v1beta1.AdditionalDisk) { d.Storage, d.Format = "fast", "raw" })(&d.Spec)
	})
	observed := made(desired())
	observed["efidisk0"] = "local:101/vm-101-disk-1.qcow2,efitype=4m,size=528K"
	observed["tpmstate0"] = "local:101/vm-101-disk-2.raw,size=4M,version=v1.2"
	observed["scsi1"] = "local:101/vm-101-disk-3.qcow2,size=30G"
	comparison := vmconfig.Compare(d, observed)
	if !comparison.Change.Empty() || len(comparison.Grow) > 0 {
		t.Errorf("what is there is touched: %+v", comparison)
	}
	var got []string
	for _, difference := range comparison.Differences {
		got = append(got, difference.String())
		if difference.Effect != vmconfig.Replace {
			t.Errorf("%v would take effect %s", difference, difference.Effect)
		}
	}
	want := []string{
		"hardware.efiDisk.storage: fast → local", "hardware.efiDisk.format: raw → qcow2", "hardware.efiDisk.preEnrolledKeys: 1 → 0", "hardware.tpm.storage: fast → local",
		"hardware.tpm.version: v2.0 → v1.2", "disks.additional[scsi1].storage: fast → local", "disks.additional[scsi1].format: raw → qcow2",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("differences (-want +got):\n%s", diff)
	}
}

func TestPartsThatContradictGo(t *testing.T) {
	limited := func(d *vmconfig.Desired) { d.Spec.Disks.Boot.Limits.ReadMiBps = 50 }
	passed := func(d *vmconfig.Desired) {
		d.Spec.Hardware.PCIDevices = []v1beta1.PCIDevice{{Name: "hostpci0", Mapping: "gpu"}}
	}
	const volume = "local:400/base-400-disk-0.qcow2/410/vm-410-disk-0.qcow2"
	cases := []struct {
		name, key, observed, want string
		desired                   vmconfig.Desired
	}{
		{"a limit of reads and writes together", "scsi0", volume + ",mbps=100,size=1G", volume + ",size=1G,mbps_rd=50", desired(limited)},
		{"beside one that is right", "scsi0", volume + ",bps=100,mbps_rd=50,size=1G", volume + ",mbps_rd=50,size=1G", desired(limited)},
		{"a device by its address", "hostpci0", "0000:01:00.0,pcie=1", "pcie=1,mapping=gpu", desired(passed)},
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

func TestAMachineTypeWithoutAVersionIsAnyOfIt(t *testing.T) {
	for observed, wanted := range map[string]map[string]string{
		"":                  {"pc": "keep", "q35": "q35"},
		"pc":                {"pc": "keep", "q35": "q35", "pc-i440fx-9.0": "pc-i440fx-9.0"},
		"pc-i440fx-9.0":     {"pc": "keep", "q35": "q35", "pc-i440fx-9.0": "keep", "pc-i440fx-8.1": "pc-i440fx-8.1"},
		"pc-9.0":            {"pc": "keep", "virt": "virt"},
		"pc-q35-9.0+pve1":   {"q35": "keep", "pc": "pc", "pc-q35-9.0": "pc-q35-9.0"},
		"q35,viommu=intel":  {"q35": "keep", "pc-q35-9.0": "pc-q35-9.0,viommu=intel"},
		"virt-9.0":          {"virt": "keep"},
		"type=pc-q35-9.0":   {"q35": "keep"},
		"viommu=virtio,q35": {"q35": "keep"},
	} {
		for wanted, want := range wanted {
			d := desired(func(d *vmconfig.Desired) { d.Spec.Hardware.MachineType = wanted })
			if diff := cmp.Diff(want, fate(vmconfig.Diff(d, with(vmconfig.Config{"machine": observed})), "machine")); diff != "" {
				t.Errorf("%s of %q (-want +got):\n%s", wanted, observed, diff)
			}
		}
	}
}

func TestDisksGrowAndNeverShrink(t *testing.T) {
	two := func(d *vmconfig.Desired) {
		d.Spec.Disks.Boot.SizeGiB = 10
		disk(func(*v1beta1.AdditionalDisk) {})(&d.Spec)
	}
	small := with(vmconfig.Config{"scsi1": "local-lvm:vm-101-disk-1,size=10G"})
	want := []vmconfig.Growth{{Key: "scsi0", Field: "disks.boot.sizeGiB", Size: 10 * gib}, {Key: "scsi1", Field: "disks.additional[scsi1].sizeGiB", Size: 20 * gib}}
	if diff := cmp.Diff(want, desired(two).Growths(small)); diff != "" {
		t.Errorf("of small disks (-want +got):\n%s", diff)
	}
	large := with(vmconfig.Config{"scsi0": "local-lvm:vm-101-disk-0,size=1T", "scsi1": "local-lvm:vm-101-disk-1,size=20G"})
	if growths := desired(two).Growths(large); len(growths) > 0 {
		t.Errorf("of large disks: %+v", growths)
	}
	if growths := desired(two).Growths(with(vmconfig.Config{"scsi0": "local-lvm:vm-101-disk-0,size=1T"})); len(growths) > 0 {
		t.Errorf("of a disk that is yet to be made: %+v", growths)
	}
}

func TestAChangeThatMakesDisksSaysSo(t *testing.T) {
	for value, want := range map[string]bool{
		"local-lvm:20": true, "local-lvm:0.5,discard=on": true, "local:0,import-from=shared:import/x.qcow2": true, "file=local:1": true,
		"local-lvm:vm-101-disk-0,size=20G": false, "local:101/vm-101-disk-0.raw": false, "local:iso/x.iso,media=cdrom": false, "none,media=cdrom": false, "": false,
	} {
		for _, key := range []string{"scsi1", "efidisk0", "tpmstate0"} {
			change := vmconfig.Change{Set: map[string]string{key: value, "cores": "2"}}
			if change.Allocates() != want {
				t.Errorf("%s: %s makes a disk: %v", key, value, !want)
			}
		}
		if (vmconfig.Change{Set: map[string]string{"description": value}}).Allocates() {
			t.Errorf("a description makes a disk")
		}
	}
}

func TestNotesBelowTheMarker(t *testing.T) {
	ours := vmconfig.Description("worker-1", uuid)
	cases := []struct{ name, asked, observed, want string }{
		{"are written", "for *team A*\n", "base image", ours + "\nfor *team A*\n"},
		{"are written below what is there", "new", "my words\nCAPVE-UUID: " + string(uuid), "my words\nCAPVE-UUID: " + string(uuid) + "\n\nnew\n"},
		{"come before what others wrote", "new", ours + "\nold\n\nolder\n", ours + "\nnew\n\nold\n\nolder\n"},
		{"stay between what others wrote", "same", ours + "\nbefore\n\nsame\n\nafter\n", "keep"},
		{"stay", "same", strings.TrimSpace(ours + "\nsame\n"), "keep"},
		{"stay when none are asked for", "", ours + "\nwritten by hand", "keep"},
		{"are no other's", "new", vmconfig.Description("x", other) + "\nnotes", ours + "\nnew\n"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d := desired(func(d *vmconfig.Desired) { d.Spec.Description = c.asked })
			if diff := cmp.Diff(c.want, fate(vmconfig.Diff(d, with(vmconfig.Config{"description": c.observed})), "description")); diff != "" {
				t.Errorf("description (-want +got):\n%s", diff)
			}
			if !strings.HasPrefix(d.Description(), ours) {
				t.Errorf("a new VM's description is %q", d.Description())
			}
		})
	}
}

func TestTheNameOfAVM(t *testing.T) {
	long := strings.Repeat("x", 64)
	cases := map[string]string{
		"": "worker-1", "vm-1.example.com": "vm-1.example.com", "{{ .Cluster }}-{{.Machine}}.{{ .Namespace }}": "prod-worker-1.team-a",
		"{{ .Name }}-{{ .Cluster }}":   `vmName "{{ .Name }}-{{ .Cluster }}" has {{ .Name }}: use {{ .Machine }}, {{ .Cluster }} and {{ .Namespace }}`,
		"{{ .Machine }}{{ $x }}{{ 1}}": `vmName "{{ .Machine }}{{ $x }}{{ 1}}" has {{ $x }}, {{ 1}}: use`,
		"a_b":                          `vmName "a_b" makes "a_b", which is no DNS name`, "-{{ .Machine }}": `makes "-worker-1", which is no DNS name`, long: "which is no DNS name",
		"{{ .Machine": `which is no DNS name`, "a..b": "which is no DNS name", strings.Repeat("x.", 127) + "x": "which is no DNS name",
	}
	for text, want := range cases {
		t.Run(text, func(t *testing.T) {
			d := desired(func(d *vmconfig.Desired) { d.Spec.VMName = text })
			got, err := d.Name()
			if err != nil {
				got = err.Error()
			}
			if !strings.Contains(got, want) || err == nil && got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestAdditionalDisksDoNotTakeTheBootDisksPlace(t *testing.T) {
	observed := with(vmconfig.Config{"boot": "", "scsi0": "", "virtio3": "local-lvm:vm-101-disk-0,size=3G"})
	d := desired(func(d *vmconfig.Desired) {
		d.Spec.Disks = v1beta1.Disks{Boot: v1beta1.BootDisk{SizeGiB: 5}, Additional: []v1beta1.AdditionalDisk{{Name: "scsi0", Storage: "local-lvm", SizeGiB: 20}}}
	})
	change := vmconfig.Diff(d, observed)
	if diff := cmp.Diff([]string{"local-lvm:20", "order=virtio3"}, []string{fate(change, "scsi0"), fate(change, "boot")}); diff != "" {
		t.Errorf("scsi0 and boot (-want +got):\n%s", diff)
	}
	after := kept(change.Apply(observed))
	if growths := d.Growths(after); len(growths) != 1 || growths[0].Key != "virtio3" {
		t.Errorf("grows %+v", growths)
	}
}

func TestWhatDoesNotFit(t *testing.T) {
	pcie := func(s *spec) {
		s.Hardware.PCIDevices = []v1beta1.PCIDevice{{Name: "hostpci0", Mapping: "gpu", PCIe: ptr.To(true)}}
	}
	onVirtio := vmconfig.Config{"scsi0": "", "virtio0": "local-lvm:vm-101-disk-0,size=3G", "boot": "order=virtio0"}
	onSATA := vmconfig.Config{"scsi0": "", "sata0": "local-lvm:vm-101-disk-0,size=3G", "boot": "order=sata0"}
	cases := []struct {
		name     string
		set      func(*spec)
		template vmconfig.Config
		want     string
	}{
		{"nothing", func(*spec) {}, nil, ""},
		{"ssd of a virtio disk", func(s *spec) { s.Disks.Boot.SSD = ptr.To(true) }, onVirtio, "disks.boot.ssd: disk virtio0 has no such option, which is for scsi, sata, ide disks: leave it out"},
		{"io thread of a sata disk", func(s *spec) { s.Disks.Boot.IOThread = ptr.To(false) }, onSATA, "disks.boot.ioThread: disk sata0 has no such option"},
		{"read-only sata disk", func(s *spec) { s.Disks.Boot.ReadOnly = ptr.To(true) }, onSATA, "disks.boot.readOnly: disk sata0 has no such option"},
		{"a disk in the boot disk's place", disk(func(d *v1beta1.AdditionalDisk) { d.Name = "scsi0" }), nil, "disks.additional[scsi0]: the VM boots from scsi0: give the additional disk another name"},
		{"ide on aarch64", disk(func(d *v1beta1.AdditionalDisk) { d.Name = "ide1" }), vmconfig.Config{"arch": "aarch64"}, "disks.additional[ide1]: aarch64 has no ide"},
		{"a template's balloon", func(*spec) {}, vmconfig.Config{"balloon": "8192"}, "the template's minimum memory, 8192 MiB, is above memory.sizeMiB, 4096: set memory.minimumMiB to 4096 at most"},
		{"a template's balloon that is set anew", func(s *spec) { s.Memory.MinimumMiB = ptr.To[int32](0) }, vmconfig.Config{"balloon": "8192"}, ""},
		{"pcie on pc", pcie, nil, "hardware.pciDevices[hostpci0].pcie needs the machine type q35, and the VM has pc: set hardware.machineType to q35"},
		{"pcie on a template's q35", pcie, vmconfig.Config{"machine": "pc-q35-9.0+pve1,viommu=intel"}, ""},
		{"seed on ide of aarch64", func(s *spec) { s.Bootstrap.Bus = "ide" }, vmconfig.Config{"arch": "aarch64", "ide2": ""}, "bootstrap.bus: no drive on ide is free for the seed ISO on a machine of type aarch64: choose another bus"},
		{"raw key of a field", func(s *spec) { s.RawConfig = v1beta1.RawConfig{"cores": "4"} }, nil, "rawConfig: set cores in the field cpu.cores"},
		{"raw part of a field", func(s *spec) { s.RawConfig = v1beta1.RawConfig{"agent": "1"} }, nil, "rawConfig: set agent in the field options.agent"},
		{"raw device", func(s *spec) { s.RawConfig = v1beta1.RawConfig{"net5": "virtio"} }, nil, "rawConfig: set net5 in the field network.devices"},
		{"raw key of the provider", func(s *spec) { s.RawConfig = v1beta1.RawConfig{"smbios1": "x"} }, nil, "rawConfig: smbios1 is the provider's: leave it out"},
		{"raw keys without value", func(s *spec) { s.RawConfig = v1beta1.RawConfig{"kvm": ""} }, nil, "rawConfig: kvm has no value: give it one, or leave it out"},
		{"name", func(s *spec) { s.VMName = "{{ .Name }}" }, nil, "vmName"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			misfits := desired(func(d *vmconfig.Desired) { c.set(&d.Spec) }).Misfits(with(c.template))
			got := strings.Join(misfits, "; ")
			if !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestRawKeysThatAreRefusedChangeNothing(t *testing.T) {
	d := desired(func(d *vmconfig.Desired) {
		d.Spec.RawConfig = v1beta1.RawConfig{"cores": "64", "smbios1": "x", "kvm": "1"}
	})
	change := vmconfig.Diff(d, made(desired()))
	if diff := cmp.Diff(vmconfig.Change{Set: map[string]string{"kvm": "1"}}, change); diff != "" {
		t.Errorf("change (-want +got):\n%s", diff)
	}
	if slices.Contains(change.Delete, "cores") {
		t.Error("cores are deleted")
	}
}
