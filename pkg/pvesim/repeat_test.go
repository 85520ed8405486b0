package pvesim_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// session is what a client did, what it was told, and what became of the world.
type session struct {
	answers []string
	state   pvesim.State
	broken  []string
}

// step is an operation, the node that is asked, and the time until the next.
type step struct {
	operation
	via   proxmox.NodeName
	pause time.Duration
	// abort the latest task instead.
	abort bool
}

func (d dice) steps(n int) []step {
	out := make([]step, n)
	for i := range out {
		out[i] = step{d.operation(), proxmox.NodeName(d.one("pve1", "pve3")), time.Duration(d(4)) * time.Second, d(12) == 0}
	}
	return out
}

// play makes the steps one after another, and lets all tasks end.
func play(t *testing.T, steps []step, faults []pvesim.Fault, opts ...pvesim.Option) session {
	t.Helper()
	var out session
	synctest.Test(t, func(t *testing.T) {
		w, err := pvesim.NewWorld(opts...)
		must(t, err)
		defer w.Close()
		b := &bubble{t: t, world: w, token: w.AddToken(pvesim.TokenSpec{User: "root@pam", Name: "t", Unseparated: true})}
		must(t, w.AddVM(pvesim.VMSpec{VMID: 300, Node: "pve2", Config: map[string]string{"scsi0": "shared:300/vm-300-disk-0.qcow2,size=1G"}}))
		b.expect([]probe{{"pve1", "POST", "/cluster/ha/resources", "200 OK"}}, "sid", "vm:300")
		for _, f := range faults {
			must(t, w.AddFault(f))
		}
		upid := ""
		for _, s := range steps {
			if id, err := proxmox.UPID(upid).Parse(); s.abort && err == nil {
				s.operation = operation{"DELETE", "/nodes/" + string(id.Node) + "/tasks/" + upid, nil}
			}
			status, data := b.send(s.via, s.method, s.path, s.params...)
			if text := fmt.Sprint(data); strings.HasPrefix(text, "UPID:") {
				upid = text
			}
			out.answers = append(out.answers, fmt.Sprintf("%s: %s %v", s.operation, status, data))
			b.pass(s.pause)
		}
		for w.RunningTasks() > 0 {
			b.pass(time.Minute)
		}
		b.pass(time.Hour)
		out.state, out.broken = w.State(), w.Check()
	})
	return out
}

// TestRunsAreRepeatable: one seed, the same requests and the same faults give the same answers and the same world.
func TestRunsAreRepeatable(t *testing.T) {
	t.Parallel()
	for _, v := range []pvesim.Version{pvesim.V84, pvesim.V92} {
		for seed := range uint64(4) {
			t.Run(fmt.Sprintf("%s/%d", v, seed), func(t *testing.T) {
				t.Parallel()
				run := func() session {
					d := dice(rand.New(rand.NewPCG(seed, 9)).IntN)
					return play(t, d.steps(150), []pvesim.Fault{d.fault(), d.fault()}, pvesim.WithVersion(v), pvesim.WithSeed(seed+1))
				}
				first, second := run(), run()
				if done := strings.Count(strings.Join(first.answers, "\n"), ": 200 OK"); done < 30 || len(first.state.Tasks) < 20 {
					t.Errorf("only %d of 150 operations succeeded, with %d tasks", done, len(first.state.Tasks))
				}
				if diff := cmp.Diff(first.answers, second.answers); diff != "" {
					t.Errorf("answers differ (-first +second):\n%s", diff)
				}
				if diff := cmp.Diff(first.state, second.state); diff != "" {
					t.Errorf("worlds differ (-first +second):\n%s", diff)
				}
			})
		}
	}
}

// TestOperationsKeepTheWorldInOrder: nothing that a client may ask for breaks an invariant, with faults or without.
func TestOperationsKeepTheWorldInOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		d := dice(func(n int) int { return rapid.IntRange(0, n-1).Draw(rt, "draw") })
		version := pvesim.Version(d.one(string(pvesim.V84), string(pvesim.V92)))
		var faults []pvesim.Fault
		for range d(3) {
			faults = append(faults, d.fault())
		}
		out := play(t, d.steps(5+d(60)), faults, pvesim.WithVersion(version))
		if len(out.broken) > 0 {
			for _, line := range out.answers {
				rt.Log(line)
			}
			rt.Fatalf("PVE %s with %v is broken: %q", version, faults, out.broken)
		}
	})
}
