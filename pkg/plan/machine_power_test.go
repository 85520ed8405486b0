package plan_test

import (
	"testing"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
)

func toBeOff(m *plan.Machine) { m.Spec.PowerState = v1beta1.PowerStateStopped }

func toBeOn(m *plan.Machine) { m.Spec.PowerState = v1beta1.PowerStateRunning }

// asked is a task that asked the HA manager for something, some time ago.
func asked(kind string, age time.Duration) change {
	return func(m *plan.Machine) {
		m.Task = plan.Task{UPID: "UPID:x", Type: kind, State: plan.TaskSucceeded, Age: age}
	}
}

const offIsRest = "done | PoweredOff: VM 101 on pve1 is off, since spec.powerState is Stopped: set it to Running to have it started"

func TestAMachineRunsOrNotAsAsked(t *testing.T) {
	down := power(plan.PowerStopped)
	runSteps(t, []step{
		{
			"a VM that is to be off is shut down", machine(recorded, toBeOff),
			"do Shutdown | ShuttingDown: shutting VM 101 on pve1 down, since spec.powerState is Stopped",
		},
		{
			"the guest is waited for", machine(recorded, toBeOff, task("qmshutdown", plan.TaskRunning)),
			"wait | ShuttingDown: waiting for the guest to shut the VM down",
		},
		{"off, it stays so", machine(recorded, toBeOff, down), offIsRest},
		{"off, it loses its seed all the same", machine(bootstrapped, toBeOff, down), "do EjectSeed | RemovingSeed: ejecting the seed ISO"},
		{"one that never ran is made", machine(cloned, toBeOff), "do Configure | Configuring: configuring VM 101"},
		{"one that never ran is not started", machine(resized, toBeOff), offIsRest},
		{
			"one that runs before its providerID is written has it written first", machine(running, toBeOff),
			"do RecordProviderID | Running: recording the providerID",
		},
		{
			"it is not known to be off", machine(recorded, toBeOff, power(plan.PowerUnknown)),
			"wait 15s | Unobserved: the state of VM 101 on pve1 is not known: is the node up?",
		},
		{"back to Running starts it", machine(recorded, toBeOn, down, task("qmshutdown", plan.TaskSucceeded)), "do Start | Starting: starting VM 101 on pve1"},
		{"deletion takes no notice", machine(recorded, toBeOff, deleting), "do Stop | Stopping: stopping VM 101 on pve1"},
		{"deletion destroys it", machine(recorded, toBeOff, down, deleting), "do Destroy | Destroying: destroying VM 101 on pve1"},
	})
}

func TestTheHAManagerIsAskedOnce(t *testing.T) {
	down := power(plan.PowerStopped)
	runSteps(t, []step{
		{
			"the request to start is sent", machine(recorded, down, task("hastart", plan.TaskRunning)),
			"wait | Starting: asking the HA manager to start the VM",
		},
		{
			"the start is waited for", machine(recorded, down, asked("hastart", 0)),
			"wait 15s | Starting: VM 101 on pve1 is managed by HA: waiting for the HA manager",
		},
		{"what comes to nothing is asked for again", machine(recorded, down, asked("hastart", time.Minute)), "do Start | Starting: starting VM 101 on pve1"},
		{
			"the shutdown is waited for", machine(recorded, toBeOff, asked("hastop", 0)),
			"wait 15s | Stopping: VM 101 on pve1 is managed by HA: waiting for the HA manager",
		},
		{
			"a shutdown that came to nothing is asked for again", machine(recorded, toBeOff, asked("hastop", time.Minute)),
			"do Shutdown | ShuttingDown: shutting VM 101 on pve1 down, since spec.powerState is Stopped",
		},
		{
			"a start that was wished while it is shut down is not held up", machine(recorded, down, asked("hastop", 0)),
			"do Start | Starting: starting VM 101 on pve1",
		},
	})
}
