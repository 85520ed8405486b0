package soak_test

import (
	"slices"

	"k8s.io/utils/ptr"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
)

// changeSpec changes what a machine is to be, at any moment, also while it is made.
func (s *simulation) changeSpec() {
	if living := s.living(); len(living) > 0 {
		s.change(living[s.random.IntN(len(living))])
	}
}

// change changes one to three things of a machine in a way that its VM can follow.
func (s *simulation) change(m *machine) {
	object, found := find[*v1beta1.ProxmoxMachine](s.api, m.name)
	if !found {
		return
	}
	changes := []struct {
		name string
		make func(*v1beta1.ProxmoxMachineSpec)
	}{
		{"tags", s.changeTags},
		{"description", s.changeDescription},
		{"cpu", s.changeCPU},
		{"firewall", s.changeFirewall},
		{"firewall", s.changeFirewall},
		{"highAvailability", s.changeHA},
		{"highAvailability", s.changeHA},
		{"disks.boot.sizeGiB", s.growBoot},
		{"disks.additional", s.growOrAdd},
		{"network.devices", s.changeDevice},
		{"options.onBoot", func(spec *v1beta1.ProxmoxMachineSpec) { spec.Options.OnBoot = ptr.To(s.oneIn(2)) }},
		{"driftPolicy", func(spec *v1beta1.ProxmoxMachineSpec) { spec.DriftPolicy = s.drawPolicy() }},
	}
	before := object.Spec.DeepCopy()
	for range 1 + s.random.IntN(3) {
		change := changes[s.random.IntN(len(changes))]
		change.make(&object.Spec)
		s.figures.changes[change.name]++
		s.trace.add("user", "changes %s of %s", change.name, m.name)
	}
	m.noted(before, &object.Spec)
	s.trouble()
	s.must(s.api.update(object))
}

// changeInPeace has the specs of machines, or their VMs, changed once nothing goes wrong any more.
func (s *simulation) changeInPeace() {
	for _, g := range s.guests() {
		vm, there := s.world.VM(g.vm.VMID)
		switch s.random.IntN(3) {
		case 0:
			s.change(g.machine)
		case 1:
			if there {
				s.edit(vm)
			}
		}
	}
}

// noted remembers what a spec says that it did not say before. Which tags of a VM that never ran are the spec's, and not its template's,
// nobody knows: they stay.
func (m *machine) noted(before, after *v1beta1.ProxmoxMachineSpec) {
	m.changes++
	m.firewalls = append(m.firewalls, after.Firewall)
	for _, tag := range before.Tags {
		if before.ProviderID != "" && !slices.Contains(after.Tags, tag) {
			m.dropped = append(m.dropped, tag)
		}
	}
	m.dropped = slices.DeleteFunc(m.dropped, func(tag string) bool { return slices.Contains(after.Tags, tag) })
}

func (s *simulation) growBoot(spec *v1beta1.ProxmoxMachineSpec) {
	const ofTemplate = 10
	if boot := &spec.Disks.Boot; spec.Source.UsesTemplate() || boot.Storage != "" {
		boot.SizeGiB = max(boot.SizeGiB, ofTemplate) + 1 + s.random.Int32N(3)
	}
}

// growOrAdd grows an additional disk, or adds one where each host sees it: the VM may be an HA resource by now.
func (s *simulation) growOrAdd(spec *v1beta1.ProxmoxMachineSpec) {
	if disks := spec.Disks.Additional; len(disks) > 0 && s.oneIn(2) {
		disks[s.random.IntN(len(disks))].SizeGiB += 1 + s.random.Int32N(3)
		return
	}
	count := len(spec.Disks.Additional)
	s.addDisk(spec)
	for i := range spec.Disks.Additional[count:] {
		spec.Disks.Additional[count+i].Storage = "shared"
	}
}

func (s *simulation) changeDevice(spec *v1beta1.ProxmoxMachineSpec) {
	device := &spec.Network.Devices[s.random.IntN(len(spec.Network.Devices))]
	if s.oneIn(2) {
		device.RateLimitKiBps = 1024 * (1 + s.random.Int32N(100))
	} else {
		device.Queues = 1 + s.random.Int32N(4)
	}
}
