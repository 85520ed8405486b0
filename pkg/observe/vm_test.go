package observe

import (
	"testing"

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
