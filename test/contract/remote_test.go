package contract_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
	"github.com/capve/cluster-api-provider-proxmox/test/contract"
)

// TestRealProxmoxVE replays against the Proxmox VE that the environment names what can be replayed there.
func TestRealProxmoxVE(t *testing.T) {
	remote, named, err := contract.RemoteFromEnvironment()
	if !named {
		t.Skip("PVE_TEST_URL names no Proxmox VE")
	}
	if err != nil {
		t.Fatal(err)
	}
	dir := recordings(t)
	version, err := remote.Version(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	scenarios, err := contract.Scenarios(dir, version)
	if err != nil {
		t.Fatal(err)
	}
	all := &board{}
	for _, scenario := range scenarios {
		t.Run(version+"/"+scenario, func(t *testing.T) {
			score, err := replayRemote(t, dir, version, scenario, remote.Target())
			if contract.IsUnfit(err) {
				t.Skip(err)
			}
			if err != nil {
				t.Error(err)
			}
			all.add(score)
		})
	}
	table := &strings.Builder{}
	contract.WriteTable(table, all.sorted())
	t.Logf("agreement of %s with the recordings of Proxmox VE %s\n%s", remote.URL, version, table)
}

func replayRemote(t *testing.T, dir, version, scenario string, target contract.Target) (contract.Score, error) {
	t.Helper()
	recording, err := contract.ReadRecording(dir, version, scenario)
	if err != nil {
		t.Fatal(err)
	}
	score := contract.Score{Version: version, Scenario: scenario}
	score.Results, err = contract.ReplayRemote(t.Context(), recording, target)
	misses := &strings.Builder{}
	contract.WriteMisses(misses, score, nil)
	t.Logf("%d of %d agree, %.1f %%\n%s", score.Agree(), len(score.Results), score.Percent(), misses)
	return score, err
}

// serve gives a simulated Proxmox VE over HTTPS that has the hosts of the recordings and nothing else.
func serve(t *testing.T) (contract.Remote, *pvesim.World) {
	t.Helper()
	state := pvesim.State{
		ClusterName: "capi",
		Nodes:       []pvesim.NodeSpec{{Name: "pve1", CPUs: 2}, {Name: "pve2", CPUs: 2}, {Name: "pve3", CPUs: 2}},
		Storages: []pvesim.StorageSpec{
			{ID: "local", Type: "dir", Content: []string{"images", "iso", "import", "rootdir", "backup", "vztmpl", "snippets"}},
			{ID: "shared", Type: "dir", Path: "/mnt/shared", Shared: true, Content: []string{"images", "iso", "import", "backup", "vztmpl", "snippets"}},
		},
		Users:  []pvesim.UserSpec{{ID: "root@pam", Password: "secret"}},
		Tokens: []pvesim.TokenSpec{{User: "root@pam", Name: "ci", Unseparated: true, Secret: "token"}},
	}
	server := pvesim.Run(t, pvesim.FromState(state), pvesim.WithVersion(pvesim.V92), pvesim.WithSpeed(speed), pvesim.WithGuests(contract.Guests))
	return contract.Remote{URL: server.URL, Token: "root@pam!ci=token", Password: "secret", CAPEM: server.CAPEM}, server.World
}

// hurried is a clock that sleeps as much less as the served world is faster.
type hurried struct{ clock.RealClock }

func (c hurried) Sleep(d time.Duration) { c.RealClock.Sleep(d / speed) }

const speed = 500

// TestReplayOverHTTPS takes pvesim for a Proxmox VE of which nothing is known but its URL.
func TestReplayOverHTTPS(t *testing.T) {
	t.Parallel()
	dir := recordings(t)
	for scenario, want := range map[string]float64{"06-resize": 95, "16-provider-life": 90} {
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			remote, world := serve(t)
			target := remote.Target()
			target.Clock = hurried{}
			score, err := replayRemote(t, dir, "9.2", scenario, target)
			if err != nil {
				t.Fatal(err)
			}
			if score.Percent() < want {
				t.Errorf("%.1f %% agree, want %.0f %%", score.Percent(), want)
			}
			if left := world.VMs(); len(left) > 0 {
				t.Errorf("VMs %v are left, want none", left)
			}
		})
	}
}

func TestReplayOverHTTPSTouchesNoForeignVM(t *testing.T) {
	t.Parallel()
	dir := recordings(t)
	remote, world := serve(t)
	if err := world.AddVM(pvesim.VMSpec{VMID: 600, Node: "pve2", Config: map[string]string{"name": "foreign"}}); err != nil {
		t.Fatal(err)
	}
	recording, err := contract.ReadRecording(dir, "9.2", "06-resize")
	if err != nil {
		t.Fatal(err)
	}
	_, err = contract.ReplayRemote(t.Context(), recording, remote.Target())
	if !contract.IsUnfit(err) || !strings.Contains(err.Error(), "VM 600 is there already") {
		t.Errorf("replaying where VM 600 is taken: %v, want a refusal", err)
	}
	for _, r := range world.Requests() {
		if r.Method != "GET" {
			t.Errorf("%s %s was sent, want reads only", r.Method, r.Path)
		}
	}
}
