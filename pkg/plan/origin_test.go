package plan_test

import (
	"maps"

	"pgregory.net/rapid"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// debian is an image.
const debian = "shared:import/debian-13.qcow2"

// origin is what the world knows of how its VM is made.
type origin struct {
	// makes is the phase in which it is.
	makes string
}

// drawSource draws what the VM is made from.
func (w *world) drawSource() {
	rapid.SampledFrom([]change{func(*plan.Machine) {}, fromImage, fromNetwork, fromNetworkWithoutDisk}).Draw(w.t, "source").in(w)
}

// in makes a change of a machine's spec that of the world.
func (c change) in(w *world) {
	m := plan.Machine{Spec: w.spec}
	c(&m)
	if w.spec = m.Spec; !w.spec.Source.UsesTemplate() {
		w.makes, w.template = plan.Creating, firewallOfNone()
	}
}

func fromImage(m *plan.Machine) {
	m.Spec.Source = v1beta1.VirtualMachineSource{Image: v1beta1.ImageSource{Volume: debian}}
	m.Spec.Disks.Boot = v1beta1.BootDisk{Storage: "local-lvm", SizeGiB: 20}
	withoutTemplate(m)
}

func fromNetwork(m *plan.Machine) {
	fromNetworkWithoutDisk(m)
	m.Spec.Disks.Boot = v1beta1.BootDisk{Storage: "local-lvm", SizeGiB: 20}
}

func fromNetworkWithoutDisk(m *plan.Machine) {
	m.Spec.Source = v1beta1.VirtualMachineSource{Netboot: v1beta1.NetbootSource{Device: "net0"}}
	m.Spec.Disks.Boot = v1beta1.BootDisk{}
	withoutTemplate(m)
}

// withoutTemplate has no host or place name one.
func withoutTemplate(m *plan.Machine) {
	m.Spec.Reservation.SourceNode, m.Spec.Reservation.SourceVMID = "", 0
	for i := range m.Candidates.Hosts {
		m.Candidates.Hosts[i].Template.ID, m.Candidates.Hosts[i].Template.Node = 0, ""
	}
}

// create makes a VM that is locked, and says nothing of itself, until the job ends. Proxmox VE takes a failed one away again.
func (w *world) create(action plan.Create) (*job, error) {
	switch uuid := proxmox.SMBIOSUUID(w.spec.Reservation.UUID); {
	case w.vms[action.VM.ID] != nil:
		return nil, errRefused
	case w.spec.Source.UsesTemplate():
		w.t.Fatal("made a VM without its template")
	case !action.Config.BelongsTo(uuid) || action.Config.SMBIOSUUID() != uuid || !vmconfig.HasSeed(action.Config):
		w.t.Fatalf("made a VM that does not say whose it is, or without its seed: %v", action.Config)
	}
	vm := &guest{node: action.VM.Node, making: true, pool: action.Pool}
	w.vms[action.VM.ID] = vm
	undo := func() { delete(w.vms, action.VM.ID) }
	return &job{kind: "qmcreate", undo: undo, apply: func() error {
		if !w.reachesSeed(vm) {
			undo()
			return errRefused
		}
		vm.making, vm.firewall, vm.config = false, w.template, w.kept(maps.Clone(action.Config))
		return nil
	}}, nil
}
