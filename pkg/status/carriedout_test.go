package status_test

import (
	"testing"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/status"
)

func TestWhatSomebodyChangedDoesNotHideWhatTheSpecWaitsFor(t *testing.T) {
	changed := func(waiting ...string) status.MachinePass {
		pass := looked("renamed")
		pass.Observed.Upkeep.Live.Waiting = waiting
		return pass
	}
	cases := []struct {
		name         string
		pass         status.MachinePass
		reason, want string
	}{
		{"it is as the spec says", looked("worker-1"), "UpToDate", "done"},
		{"somebody changed it", changed(), plan.Drifted, "done"},
		{"and the spec waits for a restart", changed("tags"), plan.RestartRequired, "not yet"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			machine, got := proxmoxMachine(recorded), "not yet"
			if err := status.Machine(machine, c.pass); err != nil {
				t.Fatal(err)
			}
			why, isDone := status.CarriedOut(machine)
			if isDone {
				got = "done"
			}
			var reason string
			for _, condition := range machine.Status.Conditions {
				if condition.Type == v1beta1.ConfigurationUpToDateCondition {
					reason = condition.Reason
				}
			}
			if got != c.want || reason != c.reason {
				t.Errorf("it is %s (%s) with %s, want %s with %s", got, why, reason, c.want, c.reason)
			}
		})
	}
}
