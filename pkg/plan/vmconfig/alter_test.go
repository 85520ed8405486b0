package vmconfig_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
)

// altered is what came of a change of the spec, and of one of the VM, as text.
type altered struct {
	Change, Repair string
	Grow, Regrow   int
	Beyond, Drift  string
}

func textOf(a vmconfig.Alteration) altered {
	text := altered{Change: a.Change.String(), Repair: a.Repair.String(), Grow: len(a.Grow), Regrow: len(a.Regrow)}
	for _, difference := range a.Beyond {
		text.Beyond += difference.String() + ";"
	}
	for _, difference := range a.Drift {
		text.Drift += difference.String() + ";"
	}
	return text
}

func TestWhatTheSpecSaysAnewIsToldFromWhatSomebodyChanged(t *testing.T) {
	device := func(set func(*v1beta1.NetworkDevice)) func(*spec) {
		return func(s *spec) { set(&s.Network.Devices[0]) }
	}
	second := func(s *spec) {
		s.Network.Devices = append(s.Network.Devices, v1beta1.NetworkDevice{Name: "net1", Bridge: "vmbr1", Model: "virtio"})
	}
	gpu := hardware(func(h *v1beta1.Hardware) { h.PCIDevices = []v1beta1.PCIDevice{{Name: "hostpci0", Mapping: "gpu"}} })
	sized := func(gib int32) func(*spec) { return func(s *spec) { s.Disks.Boot.SizeGiB = gib } }
	tagged := func(tags ...string) func(*spec) { return func(s *spec) { s.Tags = tags } }
	units := func(units int32) func(*spec) { return func(s *spec) { s.CPU.Units = units } }
	own := "capve-" + string(uuid)
	ours := vmconfig.Description("worker-1", uuid)
	noted := func(text string) func(*spec) { return func(s *spec) { s.Description = text } }
	cases := []struct {
		name        string
		before, now func(*spec)
		vm          vmconfig.Config // what somebody changed; empty for a key that is gone
		want        altered
	}{
		{"nothing", nil, nil, nil, altered{}},
		{"the spec", nil, units(50), nil, altered{Change: "cpuunits=50"}},
		{"the VM", units(50), units(50), vmconfig.Config{"cpuunits": "200"}, altered{Repair: "cpuunits=50", Drift: "cpu.units: 50 → 200;"}},
		{"both", units(50), units(60), vmconfig.Config{"cpuunits": "200"}, altered{Change: "cpuunits=60"}},
		{"the VM, before the spec said the same", units(50), units(60), vmconfig.Config{"cpuunits": "60"}, altered{}},
		{"a field that is no longer set", units(50), nil, nil, altered{}},
		{"the notes, between what others wrote", noted("old"), noted("new"), vmconfig.Config{"description": ours + "\ntheirs\n\nold\n\nmore"}, altered{Change: "description=" + ours + "\ntheirs\n\nnew\n\nmore\n"}},
		{"the notes away", noted("old"), nil, vmconfig.Config{"description": ours + "\nold\n\nmore"}, altered{Change: "description=" + ours + "\nmore\n"}},
		{"notes that others wrote", noted("old"), noted("old"), vmconfig.Config{"description": ours + "\nold\n\nmore"}, altered{}},
		{"notes that had the same words", noted("Worker"), noted("Worker of A"), vmconfig.Config{"description": ours + "\nWorker of A\n\nWorker\n"}, altered{}},
		{"the notes, not a sentence of others", noted("old"), noted("new"), vmconfig.Config{"description": ours + "\nan old host\n\nold\n"}, altered{Change: "description=" + ours + "\nan old host\n\nnew\n"}},
		{"the notes away, but not a sentence of others", noted("old"), nil, vmconfig.Config{"description": ours + "\nan old host\n"}, altered{}},
		{"fewer notes", noted("a\n\nb"), noted("a"), vmconfig.Config{"description": ours + "\na\n\nb\n\nmore"}, altered{Change: "description=" + ours + "\na\n\nmore\n"}},
		{"two parts of a device", nil, device(func(n *v1beta1.NetworkDevice) { n.Bridge = "vmbr7" }), vmconfig.Config{"net0": "virtio=" + mac + ",bridge=vmbr0,tag=9"}, altered{
			Change: "net0=virtio=" + mac + ",bridge=vmbr7,tag=9", Repair: "net0=virtio=" + mac + ",bridge=vmbr0", Drift: "network.devices[net0].vlan: none → 9;",
		}},
		{"a VLAN away", device(func(n *v1beta1.NetworkDevice) { n.VLAN = 9 }), nil, nil, altered{Change: "net0=virtio=" + mac + ",bridge=vmbr0,firewall=1"}},
		{"a new device", nil, second, nil, altered{Change: "net1=virtio=16:31:93:8F:38:DF,bridge=vmbr1"}},
		{"a device away", second, nil, nil, altered{Change: "net1="}},
		{"a device that somebody took", second, second, vmconfig.Config{"net1": ""}, altered{
			Repair: "net1=virtio=16:31:93:8F:38:DF,bridge=vmbr1", Drift: "network.devices[net1]: virtio=16:31:93:8F:38:DF,bridge=vmbr1 → none;",
		}},
		{"a device that somebody added", nil, nil, vmconfig.Config{"net5": "virtio=BC:24:11:1B:F6:2D,bridge=vmbr1"}, altered{Drift: "network.devices[net5]: none → virtio=BC:24:11:1B:F6:2D,bridge=vmbr1;"}},
		{"a PCI device away", gpu, nil, nil, altered{Change: "hostpci0="}},
		{"serial ports", hardware(func(h *v1beta1.Hardware) { h.SerialPorts = []string{"serial1"} }), hardware(func(h *v1beta1.Hardware) { h.SerialPorts = []string{"serial2"} }), nil, altered{Change: "serial1= serial2=socket"}},
		{"tags", tagged("a", "b"), tagged("b", "c"), nil, altered{Change: "tags=b;base;c;" + own + ";k8s"}},
		{"tags away", tagged("a"), nil, nil, altered{Change: "tags=base;" + own + ";k8s"}},
		{"a tag that somebody took", tagged("a"), tagged("a"), vmconfig.Config{"tags": "base;" + own + ";k8s"}, altered{
			Repair: "tags=a;base;" + own + ";k8s", Drift: "tags: a;base;" + own + ";k8s → base;" + own + ";k8s;",
		}},
		{"a tag that somebody added", tagged("a"), tagged("a"), vmconfig.Config{"tags": "a;x;" + own}, altered{}},
		{"the name", nil, func(s *spec) { s.VMName = "pet" }, nil, altered{Change: "name=pet"}},
		{"a larger disk", nil, sized(20), nil, altered{Grow: 1}},
		{"a disk that shrank", sized(20), sized(20), vmconfig.Config{"scsi0": "local:410/vm-410-disk-0.qcow2,size=1G"}, altered{Regrow: 1, Drift: "disks.boot.sizeGiB: 20 GiB → 1G;"}},
		{"a disk that somebody grew", sized(20), sized(20), vmconfig.Config{"scsi0": "local:410/vm-410-disk-0.qcow2,size=30G"}, altered{}},
		{"a smaller disk than there is", nil, sized(20), vmconfig.Config{"scsi0": "local:410/vm-410-disk-0.qcow2,size=30G"}, altered{Beyond: "disks.boot.sizeGiB: 20 GiB → 30G;"}},
		{"a new disk", nil, disk(func(d *v1beta1.AdditionalDisk) {}), nil, altered{Change: "scsi1=local-lvm:20"}},
		{"a disk that somebody took", disk(func(d *v1beta1.AdditionalDisk) {}), disk(func(d *v1beta1.AdditionalDisk) {}), vmconfig.Config{"scsi1": ""}, altered{Drift: "disks.additional[scsi1]: local-lvm:20 → none;"}},
		{
			"a disk that somebody took, and that is to be larger", disk(func(d *v1beta1.AdditionalDisk) {}), disk(func(d *v1beta1.AdditionalDisk) { d.SizeGiB = 40 }),
			vmconfig.Config{"scsi1": ""},
			altered{Drift: "disks.additional[scsi1]: local-lvm:40 → none;"},
		},
		{
			"a disk that somebody took, with another option", disk(func(d *v1beta1.AdditionalDisk) {}), disk(func(d *v1beta1.AdditionalDisk) { d.Backup = ptr.To(false) }),
			vmconfig.Config{"scsi1": ""},
			altered{Drift: "disks.additional[scsi1]: local-lvm:20,backup=0 → none;"},
		},
		{
			"a disk that is there, on another storage", disk(func(d *v1beta1.AdditionalDisk) {}), disk(func(d *v1beta1.AdditionalDisk) { d.Storage = "ceph" }),
			vmconfig.Config{"scsi1": "local-lvm:vm-410-disk-1,size=20G"},
			altered{Beyond: "disks.additional[scsi1].storage: ceph → local-lvm;"},
		},
		{"a disk away", disk(func(d *v1beta1.AdditionalDisk) {}), nil, vmconfig.Config{"scsi1": "local-lvm:vm-1-disk-1,size=20G"}, altered{}},
		{"a disk's option", nil, func(s *spec) { s.Disks.Boot.Backup = ptr.To(false) }, nil, altered{Change: "scsi0=local:400/base-400-disk-0.qcow2/410/vm-410-disk-0.qcow2,size=1G,backup=0"}},
		{"what needs another VM, in the spec", nil, hardware(func(h *v1beta1.Hardware) { h.BIOS = "ovmf" }), nil, altered{Beyond: "hardware.bios: ovmf → seabios;"}},
		{"what needs another VM, in the VM", hardware(func(h *v1beta1.Hardware) { h.BIOS = "ovmf" }), hardware(func(h *v1beta1.Hardware) { h.BIOS = "ovmf" }), vmconfig.Config{"bios": "seabios"}, altered{Drift: "hardware.bios: ovmf → seabios;"}},
		{"the identity", nil, nil, vmconfig.Config{"smbios1": "uuid=" + string(other)}, altered{Drift: "reservation.uuid: " + string(uuid) + " → " + string(other) + ";"}},
		{"the seed is ejected", nil, nil, vmconfig.Config{"ide2": "none,media=cdrom"}, altered{}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			before, now := desired(), desired()
			for d, set := range map[*vmconfig.Desired]func(*spec){&before: c.before, &now: c.now} {
				if set != nil {
					set(&d.Spec)
				}
			}
			observed := made(before)
			if before.Spec.Disks.Boot.SizeGiB != 0 {
				observed["scsi0"] = "local:410/vm-410-disk-0.qcow2,size=20G"
			}
			maps.Copy(observed, c.vm)
			maps.DeleteFunc(observed, func(_, value string) bool { return value == "" })
			alteration := vmconfig.Alter(now, before.Spec, observed)
			if diff := cmp.Diff(c.want, textOf(alteration)); diff != "" {
				t.Errorf("alteration (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAlterationsEnd has any spec follow any other, on a VM that somebody changed.
func TestAlterationsEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, now := drawWhole(t), drawWhole(t)
		observed := made(before)
		for key, value := range drawTemplate(t) {
			if rapid.Bool().Draw(t, "somebody changed "+key) {
				observed[key] = value
			}
		}
		for _, extra := range before.Spec.Disks.Additional {
			if rapid.Bool().Draw(t, "somebody took "+extra.Name) {
				delete(observed, extra.Name)
			}
		}
		first := vmconfig.Alter(now, before.Spec, observed)
		second := vmconfig.Alter(now, before.Spec, kept(first.Change.Apply(observed)))
		if !second.Change.Empty() {
			t.Fatalf("after %v there is still %v to change", first.Change, second.Change)
		}
		third := vmconfig.Alter(now, now.Spec, kept(second.Repair.Apply(first.Change.Apply(observed))))
		if !third.Change.Empty() || !third.Repair.Empty() {
			t.Fatalf("after %v there is still %v, and %v to repair", second.Repair, third.Change, third.Repair)
		}
		for _, extra := range before.Spec.Disks.Additional {
			if value, isSet := first.Change.Set[extra.Name]; isSet && observed[extra.Name] == "" && (vmconfig.Change{Set: map[string]string{extra.Name: value}}).Allocates() {
				t.Fatalf("an empty disk %s takes the place of one that is elsewhere", extra.Name)
			}
		}
		if second.Repair.Allocates() {
			t.Fatalf("a repair makes disks: %v", second.Repair)
		}
	})
}

// TestNotesFollowTheSpecOnce has any notes follow any others: until that is written down, the same is asked again.
func TestNotesFollowTheSpecOnce(t *testing.T) {
	draw := func(t *rapid.T, label string, words ...string) string {
		paragraph := rapid.Map(rapid.SliceOfN(rapid.SampledFrom(words), 1, 2), func(w []string) string { return strings.Join(w, " ") })
		gap := rapid.SampledFrom([]string{"\n", "\n\n", "\n\n\n", "\n \n", "\r\n\r\n"})
		var text strings.Builder
		for _, part := range rapid.SliceOfN(paragraph, 0, 5).Draw(t, label) {
			text.WriteString(part + gap.Draw(t, "gap"))
		}
		return text.String()
	}
	rapid.Check(t, func(t *rapid.T) {
		former, now, below := desired(), desired(), draw(t, "below", "a", "b", "theirs")
		former.Spec.Description, now.Spec.Description = draw(t, "former", "a", "b"), draw(t, "now", "a", "b")
		observed := made(desired())
		observed["description"] = vmconfig.Description("worker-1", uuid) + "\n" + below
		after := vmconfig.Alter(now, former.Spec, observed).Change.Apply(observed)
		if again := vmconfig.Alter(now, former.Spec, after).Change; !again.Empty() {
			t.Fatalf("of %q there is still to do: %v", after["description"], again)
		}
		if before, left := strings.Count(below, "theirs"), strings.Count(after["description"], "theirs"); before != left {
			t.Fatalf("of %q this is left: %q", below, after["description"])
		}
	})
}
