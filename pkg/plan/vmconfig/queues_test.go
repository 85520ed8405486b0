package vmconfig_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
)

// TestAQueueForEachCPU counts the CPUs that are plugged in, and does not unplug the device of a VM that runs.
func TestAQueueForEachCPU(t *testing.T) {
	cpus := func(cores, vcpus int32) vmconfig.Desired {
		d := desired()
		d.Spec.CPU.Sockets, d.Spec.CPU.Cores, d.Spec.CPU.VCPUs = 1, cores, vcpus
		d.Spec.Network.Devices[0].QueuesPerCPU = ptr.To(true)
		return d
	}
	for name, c := range map[string]struct {
		desired vmconfig.Desired
		queues  string
	}{
		"cores":               {cpus(4, 0), "4"},
		"fewer in use":        {cpus(4, 2), "2"},
		"no more than it has": {cpus(4, 8), "4"},
		"no more than 64":     {cpus(100, 0), "64"},
	} {
		if got := vmconfig.ParseProperties(c.desired.Encode()["net0"]).Get("queues"); got != c.queues {
			t.Errorf("%s: queues are %s, want %s", name, got, c.queues)
		}
	}

	before, now, running := cpus(2, 0), cpus(4, 0), cpus(4, 0)
	running.Running = true
	running.Spec.Network.Devices[0].Bridge = "vmbr7"
	vm := before.Encode()
	off := vmconfig.Alter(now, before.Spec, vm)
	if got := vmconfig.ParseProperties(off.Change.Set["net0"]).Get("queues"); got != "4" || len(off.AtStart) != 0 {
		t.Errorf("of a VM that is off: queues are %s, and %v waits", got, off.AtStart)
	}
	on := vmconfig.Alter(running, before.Spec, vm)
	net0 := vmconfig.ParseProperties(on.Change.Set["net0"])
	if diff := cmp.Diff([]string{"2", "vmbr7"}, []string{net0.Get("queues"), net0.Get("bridge")}); diff != "" {
		t.Errorf("of a VM that runs (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"network.devices[net0].queuesPerCPU: 4 → 2"}, texts(on.AtStart)); diff != "" {
		t.Errorf("what waits (-want +got):\n%s", diff)
	}
	changed := vmconfig.Alter(running, running.Spec, vm)
	if got := vmconfig.ParseProperties(changed.Repair.Set["net0"]).Get("queues"); got != "2" || len(changed.Drift) != 3 {
		t.Errorf("what somebody changed: queues are made %s, drift is %v", got, texts(changed.Drift))
	}
}

func texts(differences []vmconfig.Difference) []string {
	found := make([]string, len(differences))
	for i, difference := range differences {
		found[i] = difference.String()
	}
	return found
}
