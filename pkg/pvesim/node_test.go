package pvesim_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

func TestWhatANodeTellsOfItself(t *testing.T) {
	t.Parallel()
	for _, version := range []pvesim.Version{pvesim.V84, pvesim.V92} {
		a := newAPI(t, pvesim.WithVersion(version), pvesim.FromState(pvesim.State{
			Version: version, ClusterName: "c",
			Nodes: []pvesim.NodeSpec{{Name: "pve1", CPUs: 64, Sockets: 2, Threads: 2, Address: "10.1.2.3", Bridges: []proxmox.BridgeName{"vmbr0", "vmbr7"}}, {Name: "pve2"}},
		}))
		a.answers(
			asked{"GET /", `{"subdir":"pools"}`},
			asked{"GET /cluster", `{"name":"mapping"}`},
			asked{"GET /cluster/config", `{"name":"nodes"}`},
			asked{"GET /cluster/config/nodes", `[{"name":"pve1","node":"pve1","nodeid":"1","quorum_votes":"1","ring0_addr":"10.1.2.3"},`},
			asked{"GET /cluster/status", `{"id":"cluster","name":"c","nodes":2,"quorate":1,"type":"cluster","version":1}`},
			asked{"GET /nodes/pve1", `{"name":"capabilities"}`},
			asked{"GET /nodes/pve1/dns", `"dns1"`},
			asked{"GET /nodes/pve1/time", `"timezone":"Etc/UTC"`},
			asked{"GET /nodes/pve1/rrddata timeframe=hour", "200 OK map[] []"},
			asked{"GET /nodes/pve1/network/vmbr0", `"address":"10.1.2.3"`},
			asked{"GET /nodes/pve1/network/eth0", `"type":"eth"`},
			asked{"GET /nodes/pve1/network/vmbr9", "map[iface:interface does not exist]"},
			asked{"GET /nodes/pve1/network type=eth", `[{"active":1,"families":["inet"],"iface":"eth0"`},
			asked{"GET /nodes/pve1/services/pveproxy/state", `"state":"running"`},
			asked{"GET /nodes/pve1/services/nonsense/state", "does not have a value in the enumeration"},
			asked{"GET /nodes/pve1/qemu/100", `{"subdir":"config"}`},
			asked{"GET /nodes/pve1/capabilities/qemu/cpu", `"custom":0,"name":"x86-64-v2-AES","vendor":"default"}`},
			asked{"GET /nodes/pve1/capabilities/qemu/machines", `{"id":"pc-q35-9.2","type":"q35","version":"9.2"}`},
		)
		if cpu := a.object("/nodes/pve1/status")["cpuinfo"].(map[string]any); cpu["cpus"] != 64.0 || cpu["cores"] != 32.0 || cpu["sockets"] != 2.0 {
			t.Errorf("cpuinfo is %v", cpu)
		}
		if diff := cmp.Diff([]string{"iface=vmbr0", "iface=vmbr7"}, pick(a.must("GET", "/nodes/pve1/network", "type", "any_bridge"), "iface")); diff != "" {
			t.Errorf("bridges (-want +got):\n%s", diff)
		}
	}
}

func TestADaemonThatIsDownShowsInItsState(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.server.World.StopDaemon("pve1", pvesim.PVEStatD)
	a.answers(
		asked{"GET /nodes/pve1/services/pvestatd/state", `"state":"dead"`},
		asked{"GET /nodes/pve1/services", `"service":"pveproxy","state":"running"`},
	)
}

// TestALostNodeIsStillKnownByItsSize: lists keep what does not change, until pmxcfs forgets.
func TestALostNodeIsStillKnownByItsSize(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bubble) {
		b.world.StopNode("pve3")
		for _, tt := range []struct {
			wait time.Duration
			want string
		}{{time.Second, "node=pve3 status=offline maxcpu=32 cpu=<nil>"}, {310 * time.Second, "node=pve3 status=offline maxcpu=<nil> cpu=<nil>"}} {
			b.pass(tt.wait)
			if got := pick(b.data("pve1", "/nodes"), "node", "status", "maxcpu", "cpu")[2]; got != tt.want {
				b.t.Errorf("after %s: %s, want %s", tt.wait, got, tt.want)
			}
		}
	})
}
