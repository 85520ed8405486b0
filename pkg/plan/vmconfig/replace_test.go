package vmconfig_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
)

func TestWhatNeedsAnotherVMIsTold(t *testing.T) {
	pool := v1beta1.IPv4Addressing{AddressSource: v1beta1.AddressSource{PoolRef: v1beta1.IPPoolReference{Name: "pool"}}}
	device := func(set func(*v1beta1.NetworkDevice)) func(*spec) {
		return func(s *spec) { set(&s.Network.Devices[0]) }
	}
	second := func(addressing v1beta1.IPv4Addressing) func(*spec) {
		return func(s *spec) {
			s.Network.Devices = append(s.Network.Devices, v1beta1.NetworkDevice{Name: "net1", Bridge: "vmbr1", MACAddress: mac, IPv4: addressing})
		}
	}
	sized := func(gib int32) func(*spec) { return func(s *spec) { s.Disks.Boot.SizeGiB = gib } }
	extra := disk
	none := func(*spec) {}
	const once = "a VM cannot change it, the guest is told at its first start"
	cases := []struct {
		name        string
		before, now func(*spec)
		want        []vmconfig.Replacement
	}{
		{"nothing", none, none, nil},
		{"what changes in place", none, func(s *spec) {
			s.CPU.Cores, s.Tags, s.Description, s.VMName = 8, []string{"a"}, "x", "n"
			s.Options.OnBoot, s.Firewall.Enabled, s.HighAvailability.Enabled = ptr.To(true), ptr.To(true), ptr.To(true)
			s.PowerState, s.DriftPolicy = v1beta1.PowerStateStopped, v1beta1.DriftPolicyRepair
		}, nil},
		{"what the provider writes", none, func(s *spec) { s.ProviderID, s.Reservation.Node = "proxmox://x", "pve1" }, nil},
		{"the source", none, func(s *spec) { s.Source.Template.Name = "other" }, []vmconfig.Replacement{{"source", "a VM cannot change it"}}},
		{"the firmware", none, hardware(func(h *v1beta1.Hardware) { h.BIOS = "ovmf" }), []vmconfig.Replacement{{"hardware.bios", "a VM cannot change it, the guest's boot loader was installed for one of them"}}},
		{"an EFI disk", none, hardware(func(h *v1beta1.Hardware) { h.EFIDisk.Storage = "local" }), []vmconfig.Replacement{{"hardware.efiDisk.storage", "a VM cannot change it"}}},
		{"an address", none, device(func(n *v1beta1.NetworkDevice) { n.IPv4 = pool }), []vmconfig.Replacement{{"network.devices[net0].ipv4", once}}},
		{"no address", device(func(n *v1beta1.NetworkDevice) { n.IPv4 = pool }), none, []vmconfig.Replacement{{"network.devices[net0].ipv4", once}}},
		{"a MAC address", none, device(func(n *v1beta1.NetworkDevice) { n.MACAddress = mac }), []vmconfig.Replacement{{"network.devices[net0].macAddress", "a VM cannot change it, the guest's network config finds the device by it"}}},
		{"bridge and link", none, device(func(n *v1beta1.NetworkDevice) { n.Bridge, n.LinkDown = "vmbr1", ptr.To(true) }), nil},
		{"a device without addresses", none, second(v1beta1.IPv4Addressing{}), nil},
		{"and away again", second(v1beta1.IPv4Addressing{}), none, nil},
		{"a device with an address", none, second(pool), []vmconfig.Replacement{{"network.devices[net1].ipv4", once}}},
		{"and away", second(pool), none, []vmconfig.Replacement{{"network.devices[net1].ipv4", once}}},
		{"a larger disk", sized(20), sized(30), nil},
		{"a disk's first size", none, sized(30), nil},
		{"a smaller disk", sized(30), sized(20), []vmconfig.Replacement{{"disks.boot.sizeGiB", "a disk grows, but never shrinks, as from 30 GiB to 20 GiB"}}},
		{"no size", sized(30), none, nil},
		{"a new disk", none, extra(func(*v1beta1.AdditionalDisk) {}), nil},
		{"a disk away", extra(func(*v1beta1.AdditionalDisk) {}), none, []vmconfig.Replacement{{"disks.additional[scsi1]", "a disk, and what is on it, is not taken from a VM"}}},
		{"a disk's storage", extra(func(*v1beta1.AdditionalDisk) {}), extra(func(d *v1beta1.AdditionalDisk) { d.Storage = "x" }), []vmconfig.Replacement{{"disks.additional[scsi1].storage", "a VM cannot change it, the disk that exists is kept"}}},
		{"a disk's size", extra(func(d *v1beta1.AdditionalDisk) { d.SizeGiB = 9 }), extra(func(d *v1beta1.AdditionalDisk) { d.SizeGiB = 8 }), []vmconfig.Replacement{{"disks.additional[scsi1].sizeGiB", "a disk grows, but never shrinks, as from 9 GiB to 8 GiB"}}},
		{"a PCI device", none, hardware(func(h *v1beta1.Hardware) { h.PCIDevices = []v1beta1.PCIDevice{{Name: "hostpci0", Mapping: "gpu"}} }), nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			before, now := desired(), desired()
			c.before(&before.Spec)
			c.now(&now.Spec)
			got := vmconfig.Replacements(before.Spec, now.Spec)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("replacements (-want +got):\n%s", diff)
			}
			for _, replacement := range got {
				if !strings.HasSuffix(replacement.String(), ": make a new ProxmoxMachineTemplate and have the machines rolled, or delete the Machine to have it made anew") {
					t.Errorf("no remedy: %s", replacement)
				}
			}
		})
	}
}
