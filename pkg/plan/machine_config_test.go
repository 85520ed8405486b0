package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

func secondDisk(m *plan.Machine) {
	m.Spec.Disks.Additional = []v1beta1.AdditionalDisk{{Name: "scsi1", Storage: "ceph", SizeGiB: 10}}
}

func named(name string) change {
	return func(m *plan.Machine) {
		m.Cluster, m.Namespace, m.Spec.VMName, m.Spec.Description = "prod", "team-a", name, "for *team A*"
	}
}

// sized gives the second disk a size.
func sized(size string) change {
	return func(m *plan.Machine) { m.VM.Config["scsi1"] = "ceph:vm-101-disk-1,size=" + size }
}

func TestWhatDoesNotFitIsSaid(t *testing.T) {
	raw := func(m *plan.Machine) { m.Spec.RawConfig = v1beta1.RawConfig{"cores": "4"} }
	inTheWay := func(m *plan.Machine) { secondDisk(m); m.Spec.Disks.Additional[0].Name = "scsi0" }
	runSteps(t, []step{
		{"before a place is taken", machine(raw), "stalled | InvalidConfiguration: rawConfig: set cores in the field cpu.cores"},
		{"a name, before a place is taken", machine(named("{{ .Name }}")), `stalled | InvalidConfiguration: vmName "{{ .Name }}" has {{ .Name }}: use {{ .Machine }}, {{ .Cluster }} and {{ .Namespace }}`},
		{"once the template's disks are seen", machine(cloned, inTheWay), "stalled | InvalidConfiguration: disks.additional[scsi0]: the VM boots from scsi0: give the additional disk another name"},
		{"by a host without the storage", machine(secondDisk), "wait 15s | WaitingForCapacity: 1 host refused: pve1: storage ceph is not there, cannot be seen (Datastore.Audit) or does not take images"},
	})
}

func TestDisksAreMadeAndGrown(t *testing.T) {
	runSteps(t, []step{
		{"with all else", machine(cloned, secondDisk), "do Configure | Configuring: configuring VM 101"},
		{"in a task, which is waited for", machine(cloned, secondDisk, task("qmconfig", plan.TaskRunning)), "wait | Configuring: configuring the VM, with disks to make"},
		{"the boot disk first", machine(configured, secondDisk, sized("5G")), "do Resize | Resizing: growing disk scsi0 of VM 101 to 20 GiB"},
		{"then the others", machine(resized, secondDisk, sized("5G")), "do Resize | Resizing: growing disk scsi1 of VM 101 to 10 GiB"},
		{"and never shrunk", machine(resized, secondDisk, sized("50G")), "do Start | Starting: starting VM 101 on pve1"},
	})
	do, _ := plan.MachineStep(machine(cloned, secondDisk)).(plan.Do)
	configure, _ := do.Action.(plan.Configure)
	if diff := cmp.Diff([]any{"ceph:10", true}, []any{configure.Change.Set["scsi1"], configure.Change.Allocates()}); diff != "" {
		t.Errorf("change (-want +got):\n%s", diff)
	}
}

func TestAVMIsClonedWithItsNameAndNotes(t *testing.T) {
	m := machine(reserved, task("imgcopy", plan.TaskSucceeded), named("{{ .Cluster }}-{{ .Machine }}"))
	do, _ := plan.MachineStep(m).(plan.Do)
	clone, _ := do.Action.(plan.Clone)
	want := []string{"prod-worker-1", vmconfig.Description("worker-1", proxmox.SMBIOSUUID(uuid)) + "\nfor *team A*\n"}
	if diff := cmp.Diff(want, []string{clone.Name, clone.Description}); diff != "" {
		t.Errorf("name and description (-want +got):\n%s", diff)
	}
	renamed := machine(recorded, named("{{ .Cluster }}-{{ .Machine }}"))
	renamed.VM.Listing = &plan.Listing{Running: true, Name: "worker-1", CPUs: 2, Memory: 4 * gib, Tags: []string{vmconfig.IdentityTag(uuid)}, Pool: "capi"}
	if drift, _ := plan.Drift(renamed); drift.String() != "name: prod-worker-1 → worker-1" {
		t.Errorf("drift is %q", drift)
	}
}
