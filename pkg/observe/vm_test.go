package observe

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
)

// TestALockThatIsGoneIsForgotten: a machine would wait for ever for a lock that only its remembered config has.
func TestALockThatIsGoneIsForgotten(t *testing.T) {
	memory, _ := newTestMemory()
	machine := &v1beta1.ProxmoxMachine{Spec: v1beta1.ProxmoxMachineSpec{ProviderID: "proxmox://x", Reservation: v1beta1.Reservation{UUID: string(someVM)}}}
	sight := vmSight{
		Observer: &Observer{Memory: memory}, subject: MachineSubject{ProxmoxMachine: machine},
		task: plan.Task{Type: "qmstart", State: plan.TaskSucceeded}, listed: true,
		entry: pve.VM{Type: pve.VMResource, Status: pve.StatusRunning, Tags: []string{vmconfig.IdentityTag(someVM)}},
	}
	for lock, kept := range map[string]bool{"": true, "backup": false} {
		config := vmconfig.Config{"smbios1": "uuid=" + string(someVM)}
		if lock != "" {
			config["lock"] = lock
		}
		memory.keepConfig(someVM, config, "digest")
		if !sight.settled() || sight.justStarted() != kept {
			t.Errorf("lock %q: settled %t, the config from before its start is believed: %t", lock, sight.settled(), sight.justStarted())
		}
		vm, err := sight.fromInventory(t.Context())
		if err != nil || vm.Presence != plan.PresenceOurs || (vm.Config != nil) != kept || (vm.Digest != "") != kept {
			t.Errorf("lock %q: %+v, error %v", lock, vm, err)
		}
	}
}

// TestTheConfigOfAnotherIsNotRemembered: whoever took the VMID would be taken for a VM that was just started.
func TestTheConfigOfAnotherIsNotRemembered(t *testing.T) {
	memory, _ := newTestMemory()
	sight := vmSight{
		Observer: &Observer{Memory: memory},
		subject:  MachineSubject{ProxmoxMachine: &v1beta1.ProxmoxMachine{Spec: v1beta1.ProxmoxMachineSpec{Reservation: v1beta1.Reservation{UUID: string(someVM)}}}},
		task:     plan.Task{Type: "qmstart", State: plan.TaskSucceeded},
	}
	memory.keepConfig(someVM, vmconfig.Config{"name": "database"}, "digest")
	if sight.justStarted() {
		t.Error("nothing in the config is the machine's")
	}
}

// TestAMachineStaysReadyWhileItsVMIsAltered: the VM goes on as it did, and nothing is read that the task is about to change.
func TestAMachineStaysReadyWhileItsVMIsAltered(t *testing.T) {
	machine := &v1beta1.ProxmoxMachine{Spec: v1beta1.ProxmoxMachineSpec{
		ProviderID: "proxmox://x", DriftPolicy: v1beta1.DriftPolicyRepair, Reservation: v1beta1.Reservation{UUID: string(someVM), VMID: 101, Node: "pve1"},
	}}
	entry := guest(101, "pve1", "worker-1", vmconfig.IdentityTag(someVM), 0)
	entry["status"] = pve.StatusRunning
	for kind, want := range map[string]plan.Presence{"resize": plan.PresenceOurs, "qmconfig": plan.PresenceOurs, "qmshutdown": plan.PresenceUnknown} {
		region, asked := sight(t, hosts(entry), nil)
		subject, task := MachineSubject{ProxmoxMachine: machine}, plan.Task{Type: kind, State: plan.TaskRunning}
		vm, err := region.vm(t.Context(), region.pve, subject, task)
		if err != nil || vm.Presence != want || (vm.Power == plan.PowerRunning) != (want == plan.PresenceOurs) {
			t.Errorf("%s: %+v, error %v", kind, vm, err)
		}
		observed := plan.Machine{Spec: machine.Spec, Task: task, VM: vm}
		if err := region.addSettings(t.Context(), region.pve, subject, &observed); err != nil || asked.Load() != 0 || observed.Upkeep.Live != nil {
			t.Errorf("%s: %d requests, error %v", kind, asked.Load(), err)
		}
	}
	machine.Spec.ProviderID = ""
	if (MachineSubject{ProxmoxMachine: machine}).isAltered(plan.Task{Type: "qmconfig", State: plan.TaskRunning}) {
		t.Error("a VM that never ran is being made, not altered")
	}
}

// TestAVMThatWasDestroyedIsNotAskedForItsConfig: the answer would be an error, and prove nothing that its VMID does not.
func TestAVMThatWasDestroyedIsNotAskedForItsConfig(t *testing.T) {
	const config, next = "/nodes/pve1/qemu/101/config", "/cluster/nextid?vmid=101"
	now := metav1.Now()
	machine := &v1beta1.ProxmoxMachine{
		ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &now},
		Spec:       v1beta1.ProxmoxMachineSpec{Reservation: v1beta1.Reservation{UUID: string(someVM), VMID: 101, Node: "pve1"}},
	}
	shown := []map[string]any{guest(101, "pve1", "worker-1", "", 0)}
	ours := map[string]any{"smbios1": "uuid=" + string(someVM), "description": vmconfig.Marker(someVM), "digest": "d"}
	for _, c := range []struct {
		name     string
		task     plan.Task
		guests   []map[string]any
		given    answers
		want     plan.Presence
		requests int32
	}{
		{"destroyed", plan.Task{Type: "qmdestroy", State: plan.TaskSucceeded}, nil, answers{next: "101"}, plan.PresenceAbsent, 1},
		{"and shown all the same", plan.Task{Type: "qmdestroy", State: plan.TaskSucceeded}, shown, answers{next: "101"}, plan.PresenceAbsent, 1},
		{"its seed deleted", plan.Task{Type: "imgdel", State: plan.TaskSucceeded}, nil, answers{next: "101"}, plan.PresenceAbsent, 1},
		{"not destroyed", plan.Task{Type: "qmdestroy", State: plan.TaskFailed}, nil, answers{config: ours}, plan.PresenceOurs, 2},
		{"its seed deleted as it ran", plan.Task{Type: "imgdel", State: plan.TaskSucceeded}, shown, answers{config: ours}, plan.PresenceOurs, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.given["/nodes/pve1/qemu/101/status/current"] = map[string]any{"status": "stopped"}
			region, asked := sight(t, hosts(c.guests...), c.given)
			region.Memory.isOld(someVM) // it was seen, so that nothing makes it any more
			vm, err := region.vm(t.Context(), region.pve, MachineSubject{ProxmoxMachine: machine}, c.task)
			if err != nil || vm.Presence != c.want || asked.Load() != c.requests {
				t.Errorf("%+v after %d requests, error %v", vm, asked.Load(), err)
			}
		})
	}
}

// TestAVMThatWasStartedWhileItWasConfiguredIsKnown: its config reads as if all were set, and its guest has no seed.
func TestAVMThatWasStartedWhileItWasConfiguredIsKnown(t *testing.T) {
	identity := "uuid=" + string(someVM)
	config := map[string]any{"smbios1": identity, "ide2": "local:iso/" + string(someVM) + ".iso,media=cdrom", "description": vmconfig.Marker(someVM), "digest": "d"}
	shown := guest(101, "pve1", "worker-1", "", 0)
	shown["status"] = pve.StatusRunning
	for name, row := range map[string]struct {
		pending    []map[string]any
		providerID string
		early      bool
		requests   int32
	}{
		"while it was configured":    {[]map[string]any{{"key": "smbios1", "value": "uuid=before", "pending": identity}}, "", true, 2},
		"after that":                 {[]map[string]any{{"key": "smbios1", "value": identity}}, "", false, 2},
		"with something else to do":  {[]map[string]any{{"key": "smbios1", "value": identity}, {"key": "cores", "value": 2, "pending": 4}}, "", false, 2},
		"it ran before: no question": {nil, "proxmox://x", false, 1},
	} {
		machine := &v1beta1.ProxmoxMachine{Spec: v1beta1.ProxmoxMachineSpec{
			ProviderID: row.providerID, Reservation: v1beta1.Reservation{UUID: string(someVM), VMID: 101, Node: "pve1"},
		}}
		region, asked := sight(t, hosts(shown), answers{"/nodes/pve1/qemu/101/config": config, "/nodes/pve1/qemu/101/pending": row.pending})
		vm, err := region.vm(t.Context(), region.pve, MachineSubject{ProxmoxMachine: machine}, plan.Task{})
		if err != nil || vm.Presence != plan.PresenceOurs || vm.StartedEarly != row.early || asked.Load() != row.requests {
			t.Errorf("%s: %+v after %d requests, error %v", name, vm, asked.Load(), err)
		}
	}
}
