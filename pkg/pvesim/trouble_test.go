package pvesim_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// bubble is a world under a clock that jumps: what takes half a minute takes no time.
type bubble struct {
	t     *testing.T
	world *pvesim.World
	token pvesim.Token
}

// inBubble runs a test in a world of three nodes with the VMs 100, 200 and 300, one on each, and the running VM 301 on pve3.
func inBubble(t *testing.T, test func(*bubble), opts ...pvesim.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w, err := pvesim.NewWorld(append([]pvesim.Option{pvesim.WithTemplates()}, opts...)...)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		b := &bubble{t: t, world: w, token: w.AddToken(pvesim.TokenSpec{User: "root@pam", Name: "t", Unseparated: true})}
		for id, node := range map[proxmox.VMID]proxmox.NodeName{100: "pve1", 200: "pve2", 300: "pve3", 301: "pve3"} {
			spec := pvesim.VMSpec{VMID: id, Node: node, Config: map[string]string{"name": fmt.Sprintf("vm%d", id), "scsi0": fmt.Sprintf("shared:%d/vm-%d-disk-0.qcow2,size=1G", id, id)}}
			if id == 301 {
				spec.State = "running"
			}
			if err := w.AddVM(spec); err != nil {
				t.Fatal(err)
			}
		}
		test(b)
	})
}

// ask sends a request to a node and returns the status and the reason; the status is 0 when no connection was made.
func (b *bubble) ask(via proxmox.NodeName, method, path string, params ...string) string {
	b.t.Helper()
	status, _ := b.send(via, method, path, params...)
	return status
}

// data is the data of an answer that must be a success.
func (b *bubble) data(via proxmox.NodeName, path string, params ...string) any {
	b.t.Helper()
	status, data := b.send(via, "GET", path, params...)
	if status != "200 OK" {
		b.t.Fatalf("GET %s: %s", path, status)
	}
	return data
}

func (b *bubble) send(via proxmox.NodeName, method, path string, params ...string) (status string, data any) {
	b.t.Helper()
	client := &api{t: b.t, server: &pvesim.Server{URL: "https://pve"}, client: &http.Client{Transport: signed{b.world.Transport(via), b.token}}}
	r := client.do(method, path, params...)
	return fmt.Sprintf("%d %s", r.status, r.reason), r.data
}

// exit waits for a task that a request started and returns how it ended.
func (b *bubble) exit(via proxmox.NodeName, method, path string, params ...string) string {
	b.t.Helper()
	status, data := b.send(via, method, path, params...)
	if status != "200 OK" {
		return status
	}
	upid := proxmox.UPID(fmt.Sprint(data))
	id, err := upid.Parse()
	if err != nil {
		b.t.Fatalf("%s %s gave no task: %v", method, path, err)
	}
	for {
		b.pass(time.Second)
		task, _ := b.data(id.Node, fmt.Sprintf("/nodes/%s/tasks/%s/status", id.Node, upid)).(map[string]any)
		if exit, ok := task["exitstatus"]; ok {
			return fmt.Sprint(exit)
		}
	}
}

// signed adds the token to every request.
type signed struct {
	next  http.RoundTripper
	token pvesim.Token
}

func (s signed) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", s.token.Header())
	return s.next.RoundTrip(r)
}

// pass lets time pass, which takes none in a bubble.
func (b *bubble) pass(d time.Duration) { <-time.After(d) }

// after returns how much of the world's time f takes.
func after(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}

// probe is a request and the answer to it.
type probe struct {
	via          proxmox.NodeName
	method, path string
	want         string
}

func (b *bubble) expect(probes []probe, params ...string) {
	b.t.Helper()
	for _, p := range probes {
		if got := b.ask(p.via, p.method, p.path, params...); got != p.want {
			b.t.Errorf("%s %s via %s: %s, want %s", p.method, p.path, p.via, got, p.want)
		}
	}
}

func TestNodeThatIsDown(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bubble) {
		b.world.StopNode("pve3")
		took := after(func() {
			b.expect([]probe{{"pve1", "GET", "/nodes/pve3/status", "595 No route to host"}})
		})
		if took != 3*time.Second {
			t.Errorf("a node that is down is waited for %v", took)
		}
		b.expect([]probe{
			{"pve1", "GET", "/nodes/pve3/qemu/300/config", "595 No route to host"},
			{"pve1", "POST", "/nodes/pve3/qemu/300/status/start", "595 No route to host"},
			{"pve1", "GET", "/nodes/pve2/qemu/200/config", "200 OK"},
			{"pve3", "GET", "/version", `0 Get "https://pve/api2/json/version?": dial tcp: connect to pve3: no route to host`},
		})
		if v, _ := b.world.VM(301); v.Status != "stopped" {
			t.Errorf("the VM of a host without power is %s", v.Status)
		}
		b.world.StartNode("pve3")
		b.expect([]probe{{"pve1", "GET", "/nodes/pve3/status", "200 OK"}})
	})
}

// TestClusterKnowsOldFiguresOfSilentNodes: for 5 minutes pmxcfs keeps what a node broadcast last.
func TestClusterKnowsOldFiguresOfSilentNodes(t *testing.T) {
	t.Parallel()
	acts := map[string]func(*pvesim.World){
		"host is down":        func(w *pvesim.World) { w.StopNode("pve3") },
		"link is cut":         func(w *pvesim.World) { w.CutLink("pve3") },
		"pvestatd is stopped": func(w *pvesim.World) { w.StopDaemon("pve3", pvesim.PVEStatD) },
	}
	for name, act := range acts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(b *bubble) {
				b.pass(time.Minute)
				act(b.world)
				b.pass(time.Minute)
				vm := pick(b.data("pve1", "/cluster/resources", "type", "vm"), "vmid", "status", "uptime")
				if want := "vmid=301 status=running uptime=60"; vm[3] != want {
					t.Errorf("a minute later: %s, want %s", vm[3], want)
				}
				b.pass(5 * time.Minute)
				vm = pick(b.data("pve1", "/cluster/resources", "type", "vm"), "vmid", "status", "name")
				if want := "vmid=301 status=unknown name=<nil>"; vm[3] != want {
					t.Errorf("six minutes later: %s, want %s", vm[3], want)
				}
				b.world.MendLink("pve3")
				b.world.StartNode("pve3")
				b.world.StartDaemon("pve3", pvesim.PVEStatD)
				if vm = pick(b.data("pve1", "/cluster/resources", "type", "vm"), "vmid", "name"); vm[3] != "vmid=301 name=vm301" {
					t.Errorf("back again: %s", vm[3])
				}
			})
		})
	}
}

// TestCutLink: both sides see the other offline, and the smaller one has no quorum.
func TestCutLink(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bubble) {
		b.world.CutLink("pve3")
		for via, want := range map[proxmox.NodeName]string{
			"pve1": "quorate=1 online=<nil>, quorate=<nil> online=1, quorate=<nil> online=1, quorate=<nil> online=0",
			"pve3": "quorate=0 online=<nil>, quorate=<nil> online=0, quorate=<nil> online=0, quorate=<nil> online=1",
		} {
			if got := strings.Join(pick(b.data(via, "/cluster/status"), "quorate", "online"), ", "); got != want {
				t.Errorf("%s sees %s, want %s", via, got, want)
			}
		}
		b.expect([]probe{
			{"pve1", "GET", "/nodes/pve3/qemu/300/config", "595 No route to host"},
			{"pve3", "GET", "/nodes/pve1/qemu/100/config", "595 No route to host"},
			{"pve3", "GET", "/nodes/pve3/qemu/300/config", "200 OK"},
			{"pve3", "POST", "/nodes/pve3/qemu/300/status/start", "500 cluster not ready - no quorum?"},
			{"pve1", "POST", "/nodes/pve1/qemu/100/status/start", "200 OK"},
		})
		if v, _ := b.world.VM(301); v.Status != "running" {
			t.Errorf("the VM of a cut host is %s", v.Status)
		}
		_, upid := b.send("pve1", "POST", "/nodes/pve1/qemu/100/migrate", "target", "pve3", "online", "1")
		b.pass(10 * time.Second)
		if log := untimed(strings.Join(b.log(upid), " / ")); !strings.Contains(log, "# /usr/bin/ssh ") || !strings.HasSuffix(log, "No route to host / "+
			"ERROR: migration aborted (duration): Can't connect to destination address using public key / TASK ERROR: migration aborted") {
			t.Errorf("migration to a cut host: %s", log)
		}
		b.world.MendLink("pve3")
		b.expect([]probe{{"pve1", "GET", "/nodes/pve3/qemu/300/config", "200 OK"}, {"pve3", "POST", "/nodes/pve3/qemu/300/status/start", "200 OK"}})
	})
}

func TestNoQuorum(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bubble) {
		b.world.CutLink("pve2")
		b.world.CutLink("pve3")
		const noQuorum = "500 cluster not ready - no quorum?"
		b.expect([]probe{{"pve1", "POST", "/nodes/pve1/qemu", noQuorum}}, "vmid", "101")
		b.expect([]probe{{"pve1", "POST", "/nodes/pve1/qemu/100/clone", noQuorum}}, "newid", "101")
		b.expect([]probe{{"pve1", "POST", "/nodes/pve1/qemu/100/migrate", noQuorum}}, "target", "pve2")
		took := after(func() {
			b.expect([]probe{{"pve1", "POST", "/pools", "500 create pool failed: cfs-lock 'file-user_cfg' error: no quorum!"}}, "poolid", "p")
		})
		if took != 9*time.Second {
			t.Errorf("a lock of the cluster file system is tried for %v", took)
		}
		b.expect([]probe{
			{"pve1", "GET", "/nodes/pve1/qemu/100/config", "200 OK"},
			{"pve1", "GET", "/cluster/resources", "200 OK"},
			{"pve1", "POST", "/nodes/pve1/qemu/100/status/stop", "200 OK"},
			{"pve1", "GET", "/nodes/pve1/qemu/100/firewall/options", "200 OK"},
		})
		b.expect([]probe{
			{"pve1", "PUT", "/nodes/pve1/qemu/100/firewall/options", "500 cfs-lock 'firewall-vm-100' error: no quorum!"},
			{"pve1", "PUT", "/nodes/localhost/firewall/options", "500 cfs-lock 'firewall-host-pve1' error: no quorum!"},
			{"pve1", "PUT", "/cluster/firewall/options", "500 cfs-lock 'firewall-cluster' error: no quorum!"},
		}, "enable", "1")
	})
}

// TestWritesWithoutQuorum: what does not ask for quorum fails when it writes the config, perhaps half way.
func TestWritesWithoutQuorum(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bubble) {
		b.world.StopNode("pve2")
		b.world.StopNode("pve3")
		const denied = `unable to open file '/etc/pve/nodes/pve1/qemu-server/100.conf.tmp.%d' - Permission denied`
		vm := "/nodes/pve1/qemu/100"
		for _, got := range []string{
			b.ask("pve1", "PUT", vm+"/config", "memory", "1024"),
			b.exit("pve1", "POST", vm+"/config", "memory", "1024", "scsi1", "local-lvm:1"),
			b.exit("pve1", "PUT", vm+"/resize", "disk", "scsi0", "size", "2G"),
			b.exit("pve1", "POST", vm+"/snapshot", "snapname", "s1"),
			b.exit("pve1", "POST", vm+"/template"),
			b.exit("pve1", "DELETE", vm),
		} {
			pid := 0
			if _, err := fmt.Sscanf(strings.TrimPrefix(got, "500 "), denied, &pid); err != nil {
				t.Errorf("got %q, want %q", got, denied)
			}
		}
		v, ok := b.world.VM(100)
		if !ok || v.Config["memory"] != "" || v.Config["scsi0"] == "" {
			t.Errorf("config is %v", v.Config)
		}
		if volumes := len(b.world.Volumes()); volumes != 3 {
			t.Errorf("%d volumes, want those of the other VMs: a delete has removed the disks before it fails", volumes)
		}
	})
}

// TestPVEDaemonDown: what pveproxy can do itself goes on.
func TestPVEDaemonDown(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bubble) {
		b.world.StopDaemon("pve2", pvesim.PVEDaemon)
		const refused = "595 Connection refused"
		b.expect([]probe{
			{"pve1", "POST", "/nodes/pve2/qemu/200/status/start", refused},
			{"pve2", "POST", "/nodes/pve2/qemu/200/status/start", refused},
			{"pve1", "GET", "/nodes/pve2/qemu/200/status/current", refused},
			{"pve2", "GET", "/nodes/pve2/storage/local/content", refused},
			{"pve2", "POST", "/access/ticket", refused},
			{"pve1", "GET", "/nodes/pve2/qemu/200/config", "200 OK"},
			{"pve2", "GET", "/nodes/pve2/tasks", "200 OK"},
			{"pve2", "GET", "/nodes/pve2/status", "200 OK"},
			{"pve2", "GET", "/version", "200 OK"},
			{"pve2", "POST", "/nodes/pve1/qemu/100/status/start", "200 OK"},
		})
		b.world.StartDaemon("pve2", pvesim.PVEDaemon)
		b.expect([]probe{{"pve1", "POST", "/nodes/pve2/qemu/200/status/start", "200 OK"}})
	})
}

func TestPVEProxyDown(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bubble) {
		b.world.StopDaemon("pve3", pvesim.PVEProxy)
		b.expect([]probe{
			{"pve1", "GET", "/nodes/pve3/qemu", "595 Connection refused"},
			{"pve1", "DELETE", "/nodes/pve3/qemu/300", "595 Connection refused"},
			{"pve3", "GET", "/version", `0 Get "https://pve/api2/json/version?": dial tcp: connect to pve3: connection refused`},
			{"pve1", "GET", "/cluster/resources", "200 OK"},
		})
		if got := pick(b.data("pve1", "/cluster/status"), "online")[3]; got != "online=1" {
			t.Errorf("a node without pveproxy has %s", got)
		}
		b.world.StartDaemon("pve3", pvesim.PVEProxy)
		b.expect([]probe{{"pve3", "GET", "/version", "200 OK"}})
	})
}

// TestFrozenDaemon: the request is answered with 596, and carried out all the same when the daemon goes on.
func TestFrozenDaemon(t *testing.T) {
	t.Parallel()
	for _, d := range []pvesim.Daemon{pvesim.PVEDaemon, pvesim.PVEProxy} {
		t.Run(string(d), func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(b *bubble) {
				b.world.FreezeDaemon("pve3", d)
				took := after(func() {
					if got := b.ask("pve1", "PUT", "/nodes/pve3/qemu/300/config", "description", "frozen"); got != "596 Connection timed out" {
						t.Errorf("got %s", got)
					}
				})
				if took != 30*time.Second {
					t.Errorf("pveproxy waits %v", took)
				}
				if v, _ := b.world.VM(300); v.Config["description"] != "" {
					t.Error("a frozen daemon has changed the config")
				}
				b.world.ThawDaemon("pve3", d)
				if v, _ := b.world.VM(300); v.Config["description"] != "frozen" {
					t.Error("the request was not carried out after the thaw")
				}
			})
		})
	}
}

// TestFrozenDaemonThatIsThawedInTime answers as usual, and later than usual.
func TestFrozenDaemonThatIsThawedInTime(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bubble) {
		b.world.FreezeDaemon("pve1", pvesim.PVEProxy)
		go func() {
			b.pass(time.Minute)
			b.world.ThawDaemon("pve1", pvesim.PVEProxy)
		}()
		took := after(func() { b.expect([]probe{{"pve1", "GET", "/version", "200 OK"}}) })
		if took != time.Minute {
			t.Errorf("the answer took %v", took)
		}
	})
}

// TestRequestsOfStoppedDaemonsAreLost: who freezes a daemon and stops it will not see its requests carried out.
func TestRequestsOfStoppedDaemonsAreLost(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bubble) {
		b.world.FreezeDaemon("pve3", pvesim.PVEDaemon)
		go func() {
			b.pass(time.Second)
			b.world.StopDaemon("pve3", pvesim.PVEDaemon)
			b.world.StartDaemon("pve3", pvesim.PVEDaemon)
		}()
		if got := b.ask("pve1", "PUT", "/nodes/pve3/qemu/300/config", "description", "lost"); got != "596 Connection reset by peer" {
			t.Errorf("got %s", got)
		}
		if v, _ := b.world.VM(300); v.Config["description"] != "" {
			t.Error("the lost request was carried out")
		}
	})
}

// TestActsOnNothing: names that do not exist do nothing.
func TestActsOnNothing(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bubble) {
		w := b.world
		for _, act := range []func(proxmox.NodeName){w.StopNode, w.StartNode, w.CutLink, w.MendLink} {
			act("pve9")
		}
		for _, act := range []func(proxmox.NodeName, pvesim.Daemon){w.StopDaemon, w.StartDaemon, w.FreezeDaemon, w.ThawDaemon} {
			act("pve9", pvesim.PVEProxy)
			act("pve1", "sshd")
		}
		b.expect([]probe{{"pve1", "GET", "/nodes/pve3/status", "200 OK"}})
	})
}

// TestTroubleIsInTheState: a world that is rebuilt has the same trouble.
func TestTroubleIsInTheState(t *testing.T) {
	t.Parallel()
	first := newWorld(t, pvesim.WithNodes(5))
	first.StopNode("pve2")
	first.CutLink("pve3")
	first.StopDaemon("pve4", pvesim.PVEDaemon)
	first.FreezeDaemon("pve5", pvesim.PVEProxy)
	first.StopDaemon("pve1", pvesim.PVEStatD)
	first.StartDaemon("pve1", pvesim.PVEStatD)
	must(t, first.AddFault(pvesim.Fault{Path: "/version", Percent: 30, Status: 500}))
	again := newWorld(t, pvesim.FromState(first.State()))
	if diff := cmp.Diff(first.State(), again.State()); diff != "" {
		t.Errorf("the world differs (-first +rebuilt):\n%s", diff)
	}
	got := []string{}
	for _, n := range again.State().Nodes {
		got = append(got, fmt.Sprint(n.Offline, n.CutOff, n.Daemons))
	}
	want := []string{"false false map[]", "true false map[]", "false true map[]", "false false map[pvedaemon:stopped]", "false false map[pveproxy:frozen]"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
