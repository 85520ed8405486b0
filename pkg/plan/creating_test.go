package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/network"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
)

// created is a VM as it is made, once its disks are.
func created(source change) change {
	return func(m *plan.Machine) {
		reserved(m)
		source(m)
		task("imgcopy", plan.TaskSucceeded)(m)
		do, _ := plan.MachineStep(*m).(plan.Do)
		create, _ := do.Action.(plan.Create)
		task("qmcreate", plan.TaskSucceeded)(m)
		m.VM = plan.VM{Presence: plan.PresenceOurs, Node: "pve1", Power: plan.PowerStopped, Digest: "d1", Config: create.Config}
		if m.Spec.Disks.Boot.Storage != "" {
			m.VM.Config["scsi0"] = "local-lvm:vm-101-disk-0,size=3G"
		}
	}
}

func TestAMachineWithoutATemplateIsMadeInOneRequest(t *testing.T) {
	uploaded := task("imgcopy", plan.TaskSucceeded)
	runSteps(t, []step{
		{"it has a place without a template", machine(fromImage), "do Reserve | Placed: placed on pve1 of region home as VM 101"},
		{"its seed comes first", machine(reserved, fromImage), "do UploadSeed | UploadingSeed: uploading the seed ISO to local of pve1"},
		{"then it is made from an image", machine(reserved, fromImage, uploaded), "do Create | Creating: making VM 101 on pve1 with a disk from image " + debian},
		{"or empty", machine(reserved, fromNetwork, uploaded), "do Create | Creating: making VM 101 on pve1 to boot from the network by net0"},
		{"once a slot is free", machine(reserved, fromImage, uploaded, func(m *plan.Machine) { m.CloneSlot.Full = "2 VMs are being made on pve1 already: a, b" }), "wait 1m0s | WaitingForCloneSlot: 2 VMs are being made on pve1 already: a, b"},
		{"which is waited for", machine(reserved, fromImage, task("qmcreate", plan.TaskRunning)), "wait | Creating: making the VM"},
		{"and tried again", machine(reserved, fromImage, failed("qmcreate", "storage is full", 2*lastPause)), "wait 2s | TaskFailed: making the VM failed: storage is full; it is tried again"},
		{"the image's disk is grown", machine(created(fromImage)), "do Resize | Resizing: growing disk scsi0 of VM 101 to 20 GiB"},
		{"an empty VM has nothing to configure", machine(created(fromNetworkWithoutDisk)), "do Start | Starting: starting VM 101 on pve1"},
		{"what somebody changed of it is put right", machine(created(fromNetworkWithoutDisk), func(m *plan.Machine) { m.VM.Config["cores"] = "64" }), "do Configure | Configuring: configuring VM 101"},
		{"a VM in the making is not touched by a deletion", machine(reserved, fromImage, task("qmcreate", plan.TaskRunning), deleting), "wait | Creating: making the VM"},
		{"one that is made is destroyed", machine(created(fromImage), deleting), "do Destroy | Destroying: destroying VM 101 on pve1"},
	})
}

func TestAMachineWithoutATemplateLeavesAHostThatCannotMakeIt(t *testing.T) {
	noSeed := seedVolumeSeen(plan.SeedAbsent)
	missing := func(m *plan.Machine) {
		leaving(m)
		fromImage(m)
		m.CloneTrouble = plan.CloneTrouble{Leave: "image " + debian + " is not on storage shared of pve1", Unfit: true}
	}
	nowhere := func(m *plan.Machine) {
		missing(m)
		for i := range m.Candidates.Hosts {
			m.Candidates.Hosts[i].SourceRefusal = "image " + debian + " is not there"
		}
	}
	runSteps(t, []step{
		{"for another", machine(missing, noSeed), "do Reserve | Placed: placed on pve2 of region home as VM 102; not on pve1: a VM could not be made here 40 s ago: no space left"},
		{"without its seed", machine(missing), "do WithdrawSeed | Relocating: leaving pve1, where VM 101 could not be made (image " + debian + " is not on storage shared of pve1): deleting the seed ISO from local there"},
		{
			"not while one may come", machine(missing, noSeed, func(m *plan.Machine) { m.CloneTrouble.MayComeLate = true }),
			"wait 15s | Relocating: VM 101 goes to another host than pve1 (image " + debian + " is not on storage shared of pve1) once it is certain that no create whose answer was lost makes it there: for two minutes Proxmox VE may",
		},
		{
			"and waits where none can", machine(nowhere, noSeed),
			"wait 15s | WaitingForCapacity: VM 101 cannot be made on pve1 (image " + debian + " is not on storage shared of pve1), and no other host fits: 2 hosts refused: pve1, pve2: image " + debian + " is not there",
		},
	})
}

func TestAVMWithoutATemplateIsMadeWithAllThatItNeeds(t *testing.T) {
	do, _ := plan.MachineStep(machine(reserved, fromImage, task("imgcopy", plan.TaskSucceeded))).(plan.Do)
	want := plan.Create{VM: on("pve1"), Pool: "capi", Config: vmconfig.Config{
		"name": "worker-1", "description": vmconfig.Description("worker-1", uuid), "smbios1": "uuid=" + string(uuid), "tags": "capve-" + string(uuid),
		"sockets": "1", "cores": "2", "memory": "4096", "cpu": "x86-64-v2-AES", "ostype": "l26", "scsihw": "virtio-scsi-single",
		"scsi0": "local-lvm:0,import-from=" + debian, "boot": "order=scsi0", "ide2": string(seedVolume) + ",media=cdrom",
		"net0": "virtio=" + network.MAC(uuid, "net0") + ",bridge=vmbr0",
	}}
	if diff := cmp.Diff(want, do.Action); diff != "" {
		t.Errorf("action (-want +got):\n%s", diff)
	}
}

func TestAVMWithoutATemplateThatCannotBeIsNotPlaced(t *testing.T) {
	runSteps(t, []step{
		{
			"a PCIe device of a machine that has none", machine(fromImage, func(m *plan.Machine) {
				pcie := true
				m.Spec.Hardware.PCIDevices = []v1beta1.PCIDevice{{Name: "hostpci0", Mapping: "gpu", PCIe: &pcie}}
			}),
			"stalled | InvalidConfiguration: hardware.pciDevices[hostpci0].pcie needs the machine type q35, and the VM has pc: set hardware.machineType to q35",
		},
	})
}

func TestASnapshotIsClonedInFull(t *testing.T) {
	m := machine(reserved, task("imgcopy", plan.TaskSucceeded), func(m *plan.Machine) {
		m.Spec.Source.Template = v1beta1.TemplateSource{VMID: 300, Snapshot: "v1", CloneMode: v1beta1.CloneModeFull, Storage: "nfs", Format: "qcow2"}
		m.Spec.Reservation.SourceVMID = 300
	})
	runSteps(t, []step{{"it is named", m, "do Clone | Cloning: cloning snapshot v1 of VM 300 of pve3 to VM 101 on pve1"}})
	do, _ := plan.MachineStep(m).(plan.Do)
	want := plan.Clone{
		VM: on("pve1"), Source: 300, SourceNode: "pve3", Name: "worker-1", Description: vmconfig.Description("worker-1", uuid), Pool: "capi", Mode: v1beta1.CloneModeFull,
		Snapshot: "v1", Storage: "nfs", Format: "qcow2",
	}
	if diff := cmp.Diff(want, do.Action); diff != "" {
		t.Errorf("action (-want +got):\n%s", diff)
	}
}
