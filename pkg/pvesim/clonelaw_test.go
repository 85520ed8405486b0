package pvesim_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// meddler sends requests at times that rapid draws to a world whose clock only it moves.
type meddler struct {
	*rapid.T
	world *pvesim.World
	clock *clocktesting.FakeClock
	api   *api
	upids []string
}

// TestNoOrderOfClonesLeavesAnythingBehind clones, stops, destroys, snapshots and makes templates of the same few VMs in any order.
// When all tasks have ended no VM is locked and no volume is orphaned, unless a worker was killed.
func TestNoOrderOfClonesLeavesAnythingBehind(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		clock := clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0))
		version := rapid.SampledFrom([]pvesim.Version{pvesim.V84, pvesim.V92}).Draw(rt, "version")
		w, err := pvesim.NewWorld(append(withTemplates(version), pvesim.WithClock(clock))...)
		if err != nil {
			rt.Fatal(err)
		}
		defer w.Close()
		token := w.AddToken(pvesim.TokenSpec{User: "root@pam", Name: "t", Unseparated: true})
		client := &http.Client{Transport: signed{w.Transport("pve1"), token}}
		m := &meddler{T: rt, world: w, clock: clock, api: &api{t: t, server: &pvesim.Server{URL: "https://pve"}, client: client, patience: patience, every: moment}}
		killed := false
		for range rapid.IntRange(1, 50).Draw(rt, "steps") {
			killed = m.act() || killed
			clock.Step(rapid.SampledFrom([]time.Duration{0, 20 * time.Millisecond, 300 * time.Millisecond, time.Second, 8 * time.Second}).Draw(rt, "pause"))
		}
		for i := 0; w.RunningTasks() > 0; i++ {
			if clock.Step(time.Second); i > 600 {
				rt.Fatalf("%d tasks do not end", w.RunningTasks())
			}
		}
		if broken := w.Check(); len(broken) > 0 && !killed {
			rt.Errorf("the world is broken: %v", broken)
		}
	})
}

// act does one thing; it tells whether a worker was killed.
func (m *meddler) act() (killed bool) {
	vm := func(what string) string {
		return fmt.Sprintf("/nodes/pve1/qemu/%d", rapid.IntRange(200, 203).Draw(m.T, what))
	}
	switch rapid.IntRange(0, 9).Draw(m.T, "act") {
	case 0, 1, 2:
		source := rapid.SampledFrom([]string{"9001", "9100", "200", "201"}).Draw(m.T, "source")
		full := rapid.SampledFrom([]string{"0", "1"}).Draw(m.T, "full")
		storage := rapid.SampledFrom([]string{"", "shared", "local-lvm"}).Draw(m.T, "storage")
		params := []string{"newid", fmt.Sprint(rapid.IntRange(200, 203).Draw(m.T, "target")), "full", full, "pool", "capi"}
		if storage != "" && full == "1" {
			params = append(params, "storage", storage)
		}
		m.send("POST", "/nodes/pve1/qemu/"+source+"/clone", params...)
	case 3, 4:
		m.send("DELETE", vm("destroyed"), "purge", "1")
	case 5, 6:
		if len(m.upids) > 0 {
			m.send("DELETE", "/nodes/pve1/tasks/"+m.upids[max(0, len(m.upids)-rapid.IntRange(1, 3).Draw(m.T, "stopped"))])
		}
	case 7:
		m.send("POST", vm("snapshotted")+"/snapshot", "snapname", rapid.SampledFrom([]string{"s1", "s2"}).Draw(m.T, "snapshot"))
	case 8:
		m.send("POST", vm("template")+"/template")
	case 9:
		if running := m.world.RunningTasks(); len(m.upids) > 0 && running > 0 && rapid.IntRange(0, 3).Draw(m.T, "kill") == 0 {
			m.world.KillWorker(proxmox.UPID(m.upids[len(m.upids)-1]))
			return true
		}
	}
	return false
}

func (m *meddler) send(method, path string, params ...string) {
	r := m.api.do(method, path, params...)
	if upid := fmt.Sprint(r.data); method != http.MethodGet && r.status == http.StatusOK && r.data != nil {
		m.upids = append(m.upids, upid)
	}
}
