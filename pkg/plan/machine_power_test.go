package plan_test

import (
	"testing"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
)

func toBeOff(m *plan.Machine) { m.Spec.PowerState = v1beta1.PowerStateStopped }

func toBeOn(m *plan.Machine) { m.Spec.PowerState = v1beta1.PowerStateRunning }

// settling is a task that only asked the HA manager for something.
func settling(kind string, rest time.Duration) change {
	return func(m *plan.Machine) { m.Task = plan.Task{UPID: "UPID:x", Type: kind, State: plan.TaskSucceeded, Settling: rest} }
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
			"the start is waited for", machine(recorded, down, settling("hastart", time.Second)),
			"wait 15s | Starting: waiting for the HA manager to start VM 101",
		},
		{"what comes to nothing is asked for again", machine(recorded, down, settling("hastart", 0)), "do Start | Starting: starting VM 101 on pve1"},
		{
			"the shutdown is waited for", machine(recorded, toBeOff, settling("hastop", time.Second)),
			"wait 15s | ShuttingDown: waiting for the HA manager to shut VM 101 down",
		},
		{
			"a shutdown that came to nothing is asked for again", machine(recorded, toBeOff, settling("hastop", 0)),
			"do Shutdown | ShuttingDown: shutting VM 101 on pve1 down, since spec.powerState is Stopped",
		},
		{
			"a start that was wished while it is shut down is not held up", machine(recorded, down, settling("hastop", time.Second)),
			"do Start | Starting: starting VM 101 on pve1",
		},
	})
}
