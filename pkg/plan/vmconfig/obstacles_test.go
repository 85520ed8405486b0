package vmconfig_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
)

func TestObstaclesToAnUpdateInPlace(t *testing.T) {
	type change func(*v1beta1.ProxmoxMachineSpec)
	set := func(changes ...change) change {
		return func(spec *v1beta1.ProxmoxMachineSpec) {
			for _, change := range changes {
				change(spec)
			}
		}
	}
	plugsAll := func(spec *v1beta1.ProxmoxMachineSpec) {
		spec.Options.Hotplug = &[]string{"cpu", "memory", "network", "disk"}
	}
	memory := func(mib int32) change {
		return func(spec *v1beta1.ProxmoxMachineSpec) { spec.Memory.SizeMiB = mib }
	}
	balloon := func(mib int32) change {
		return func(spec *v1beta1.ProxmoxMachineSpec) { spec.Memory.MinimumMiB = &mib }
	}
	disks := func(disks ...v1beta1.AdditionalDisk) change {
		return func(spec *v1beta1.ProxmoxMachineSpec) { spec.Disks.Additional = disks }
	}
	vcpus := func(count int32) change {
		return func(spec *v1beta1.ProxmoxMachineSpec) { spec.CPU.VCPUs = count }
	}
	queuesPerCPU := func(spec *v1beta1.ProxmoxMachineSpec) { spec.Network.Devices[0].QueuesPerCPU = ptr.To(true) }
	fromImage := func(spec *v1beta1.ProxmoxMachineSpec) {
		spec.Source = v1beta1.VirtualMachineSource{Image: v1beta1.ImageSource{Volume: "nfs:import/debian.qcow2"}}
	}
	plugsDisks := func(spec *v1beta1.ProxmoxMachineSpec) { spec.Options.Hotplug = &[]string{"disk"} }
	scsi1 := disks(v1beta1.AdditionalDisk{Name: "scsi1", Storage: "local-lvm", SizeGiB: 5, DiskOptions: v1beta1.DiskOptions{Cache: "none"}})
	const unplugged = "disks.additional[scsi1].name: it takes effect at a restart, without the feature disk in options.hotplug"
	nothing := func(*v1beta1.ProxmoxMachineSpec) {}
	tests := []struct {
		name        string
		before, now change
		want        []string
	}{
		{name: "nothing", before: nothing, now: nothing},
		{name: "tags come", before: nothing, now: func(s *v1beta1.ProxmoxMachineSpec) { s.Tags = []string{"a"} }},
		{name: "tags go", before: func(s *v1beta1.ProxmoxMachineSpec) { s.Tags = []string{"a"} }, now: nothing},
		{name: "the description goes", before: func(s *v1beta1.ProxmoxMachineSpec) { s.Description = "a" }, now: nothing},
		{name: "another pool", before: func(s *v1beta1.ProxmoxMachineSpec) { s.Pool = "a" }, now: func(s *v1beta1.ProxmoxMachineSpec) { s.Pool = "b" }},
		{name: "no pool any more", before: func(s *v1beta1.ProxmoxMachineSpec) { s.Pool = "a" }, now: nothing},
		{name: "another name", before: nothing, now: func(s *v1beta1.ProxmoxMachineSpec) { s.VMName = "a" }},
		{name: "a firewall", before: nothing, now: func(s *v1beta1.ProxmoxMachineSpec) { s.Firewall.Enabled = ptr.To(true) }},
		{
			name: "high availability", before: nothing,
			now: func(s *v1beta1.ProxmoxMachineSpec) {
				s.HighAvailability = v1beta1.HighAvailability{Enabled: ptr.To(true), Rules: []v1beta1.HighAvailabilityRule{{Name: "a"}}}
			},
		},
		{name: "the share of the CPU", before: nothing, now: func(s *v1beta1.ProxmoxMachineSpec) { s.CPU.Units = 200 }},
		{
			name: "a share that is no longer set", before: func(s *v1beta1.ProxmoxMachineSpec) { s.CPU.Units = 200 }, now: nothing,
			want: []string{"cpu.units: it is no longer set, which leaves the VM as it is"},
		},
		{name: "more memory", before: memory(2048), now: memory(4096), want: []string{"memory.sizeMiB: it takes effect at a restart, without the feature memory in options.hotplug"}},
		{name: "more memory, plugged in", before: set(plugsAll, memory(2048)), now: set(plugsAll, memory(4096))},
		{name: "less memory", before: set(plugsAll, memory(4096)), now: set(plugsAll, memory(2048)), want: []string{"memory.sizeMiB: it takes effect at a restart"}},
		{name: "other hotplug", before: nothing, now: plugsAll, want: []string{"options.hotplug: it takes effect at a restart"}},
		{name: "a balloon", before: balloon(1024), now: balloon(2048)},
		{name: "no balloon", before: nothing, now: balloon(0), want: []string{"memory.minimumMiB: it takes effect at a restart"}},
		{name: "more cores", before: nothing, now: func(s *v1beta1.ProxmoxMachineSpec) { s.CPU.Cores = 8 }, want: []string{"cpu.cores: it takes effect at a restart"}},
		{
			name: "a larger disk", before: func(s *v1beta1.ProxmoxMachineSpec) { s.Disks.Boot.SizeGiB = 10 },
			now: func(s *v1beta1.ProxmoxMachineSpec) { s.Disks.Boot.SizeGiB = 20 },
		},
		{
			name: "a smaller disk", before: func(s *v1beta1.ProxmoxMachineSpec) { s.Disks.Boot.SizeGiB = 20 },
			now: func(s *v1beta1.ProxmoxMachineSpec) { s.Disks.Boot.SizeGiB = 10 }, want: []string{"disks.boot.sizeGiB: a disk grows, but never shrinks, as from 20 GiB to 10 GiB"},
		},
		{name: "another disk", before: plugsDisks, now: set(plugsDisks, scsi1)},
		{name: "another disk, and a template that says whether it is plugged in", before: nothing, now: scsi1, want: []string{unplugged}},
		{name: "another disk, without a template", before: fromImage, now: set(fromImage, scsi1)},
		{name: "more CPUs in use", before: set(plugsAll, vcpus(1)), now: set(plugsAll, vcpus(2))},
		{name: "fewer CPUs in use", before: set(plugsAll, vcpus(2)), now: set(plugsAll, vcpus(1)), want: []string{"cpu.vcpus: it takes effect at a restart"}},
		{name: "not all cores in use any more", before: plugsAll, now: set(plugsAll, vcpus(1)), want: []string{"cpu.vcpus: it takes effect at a restart"}},
		{name: "another disk on sata", before: nothing, now: disks(v1beta1.AdditionalDisk{Name: "sata1", Storage: "local-lvm", SizeGiB: 5}), want: []string{"disks.additional[sata1].name: it takes effect at a restart"}},
		{name: "another source", before: nothing, now: func(s *v1beta1.ProxmoxMachineSpec) { s.Source.Template.Name = "b" }, want: []string{"source"}},
		{name: "a bridge", before: nothing, now: func(s *v1beta1.ProxmoxMachineSpec) { s.Network.Devices[0].Bridge = "vmbr9" }},
		{
			name: "queues for more CPUs in use", before: set(plugsAll, vcpus(1), queuesPerCPU), now: set(plugsAll, vcpus(2), queuesPerCPU),
			want: []string{"network.devices[net0].queuesPerCPU: it takes effect at a restart"},
		},
		{name: "raw config", before: nothing, now: func(s *v1beta1.ProxmoxMachineSpec) { s.RawConfig = v1beta1.RawConfig{"kvm": "0"} }, want: []string{"rawConfig: it takes effect at a restart"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			before := v1beta1.ProxmoxMachineSpec{
				CPU: v1beta1.CPU{Sockets: 1, Cores: 2}, Memory: v1beta1.Memory{SizeMiB: 2048},
				Network: v1beta1.Network{Devices: []v1beta1.NetworkDevice{{Name: "net0", Bridge: "vmbr0"}}},
			}
			before.Source.Template.Name = "a"
			now := *before.DeepCopy()
			test.before(&before)
			test.now(&now)
			found := vmconfig.Obstacles(before, now)
			if !slices.EqualFunc(found, test.want, strings.HasPrefix) {
				t.Errorf("obstacles are %q, want %q", found, test.want)
			}
		})
	}
}
