package pvesim_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

const (
	clonePath  = "/nodes/{node}/qemu/{vmid}/clone"
	configPath = "/nodes/{node}/qemu/{vmid}/config"
	startPath  = "/nodes/{node}/qemu/{vmid}/status/start"
)

func (b *bubble) fault(f pvesim.Fault) {
	b.t.Helper()
	if err := b.world.AddFault(f); err != nil {
		b.t.Fatal(err)
	}
}

// tally makes a request some times and returns the answers in short: . for a success, x for a failure.
func (b *bubble) tally(times int, method, path string) string {
	b.t.Helper()
	out := ""
	for range times {
		mark := "x"
		if b.ask("pve1", method, path) == "200 OK" {
			mark = "."
		}
		out += mark
	}
	return out
}

func TestFaultChoosesRequests(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fault pvesim.Fault
		want  string
	}{
		"all":               {pvesim.Fault{}, "xxxxxx"},
		"the third":         {pvesim.Fault{Nth: 3}, "..x..."},
		"two":               {pvesim.Fault{Count: 2}, "xx...."},
		"two from third":    {pvesim.Fault{Nth: 3, Count: 2}, "..xx.."},
		"this path":         {pvesim.Fault{Path: "/version"}, "xxxxxx"},
		"any path":          {pvesim.Fault{Path: "*", Method: "*"}, "xxxxxx"},
		"another path":      {pvesim.Fault{Path: "/cluster/status"}, "......"},
		"another method":    {pvesim.Fault{Method: "POST"}, "......"},
		"another VM":        {pvesim.Fault{VMID: 100}, "......"},
		"another node":      {pvesim.Fault{Node: "pve2"}, "......"},
		"always by percent": {pvesim.Fault{Percent: 100, Count: 3}, "xxx..."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(b *bubble) {
				tt.fault.Status = 500
				b.fault(tt.fault)
				if got := b.tally(6, "GET", "/version"); got != tt.want {
					t.Errorf("got %s, want %s", got, tt.want)
				}
			})
		})
	}
}

// TestFaultsByChanceAreRepeatable: the seed decides, whatever else the world draws.
func TestFaultsByChanceAreRepeatable(t *testing.T) {
	t.Parallel()
	run := func(seed uint64, draws int) (out string) {
		inBubble(t, func(b *bubble) {
			for range draws {
				b.exit("pve1", "POST", "/nodes/pve1/qemu/100/status/start")
			}
			b.fault(pvesim.Fault{Path: "/version", Status: 500, Percent: 40})
			out = b.tally(60, "GET", "/version")
		}, pvesim.WithSeed(seed))
		return out
	}
	first := run(1, 0)
	if again := run(1, 5); first != again {
		t.Errorf("one seed gave %s and %s", first, again)
	}
	if other := run(2, 0); first == other {
		t.Errorf("two seeds gave %s", other)
	}
	if struck := strings.Count(first, "x"); struck < 12 || struck > 36 {
		t.Errorf("40 percent struck %d of 60", struck)
	}
}

func TestFaultAnswers(t *testing.T) {
	t.Parallel()
	for want, fault := range map[string]pvesim.Fault{
		"500 no":                             {Status: 500, Reason: "no"},
		"503 Service Unavailable":            {Status: 503},
		"595 Connection refused":             {Status: 595},
		"596 Connection timed out":           {Status: 596, When: pvesim.AfterEffect},
		"400 Parameter verification failed.": {Status: 400, Errors: map[string]string{"newid": "is bad"}},
		"0 Post \"https://pve/api2/json/nodes/pve1/qemu/100/config\": unexpected EOF": {When: pvesim.DropReply},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(b *bubble) {
				fault.Method, fault.Path = "POST", configPath
				b.fault(fault)
				if got := b.ask("pve1", "POST", "/nodes/pve1/qemu/100/config", "cores", "3"); got != want {
					t.Errorf("got %s", got)
				}
				b.pass(time.Minute)
				v, _ := b.world.VM(100)
				if applied := v.Config["cores"] == "3"; applied != (fault.When == pvesim.AfterEffect || fault.When == pvesim.DropReply) {
					t.Errorf("applied: %t", applied)
				}
			})
		})
	}
}

func TestFaultNamesParameters(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	if err := a.server.World.AddFault(pvesim.Fault{Path: "/version", Status: 400, Errors: map[string]string{"x": "is bad"}}); err != nil {
		t.Fatal(err)
	}
	if r := a.do("GET", "/version"); r.errors["x"] != "is bad" {
		t.Errorf("%+v", r)
	}
}

func TestDelayAndHang(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bubble) {
		b.fault(pvesim.Fault{Path: "/version", Nth: 1, Delay: pvesim.Duration(5 * time.Second)})
		b.fault(pvesim.Fault{Method: "PUT", Hang: true, When: pvesim.AfterEffect})
		if took := after(func() { b.expect([]probe{{"pve1", "GET", "/version", "200 OK"}}) }); took != 5*time.Second {
			t.Errorf("a delay of 5 s took %v at tenfold speed", took)
		}
		ctx, cancel := context.WithTimeout(b.t.Context(), time.Hour)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, http.MethodPut, "https://pve/api2/json/nodes/pve1/qemu/100/config?cores=3", nil)
		if err != nil {
			t.Fatal(err)
		}
		took := after(func() { _, err = signed{b.world.Transport("pve1"), b.token}.RoundTrip(r) })
		if took != time.Hour || err == nil {
			t.Errorf("a hanging request ended after %v: %v", took, err)
		}
		if v, _ := b.world.VM(100); v.Config["cores"] != "3" {
			t.Error("the hanging request had no effect")
		}
	}, pvesim.WithSpeed(10))
}

// TestTaskError: the request succeeds and its task fails, before its work or after it.
func TestTaskError(t *testing.T) {
	t.Parallel()
	for when, running := range map[pvesim.When]string{pvesim.Before: "stopped", pvesim.AfterEffect: "running"} {
		t.Run(string(when), func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(b *bubble) {
				b.fault(pvesim.Fault{Path: startPath, Nth: 2, When: when, TaskError: "start failed: out of luck"})
				if exit := b.exit("pve2", "POST", "/nodes/pve2/qemu/200/status/start"); exit != "OK" {
					t.Errorf("the first start: %s", exit)
				}
				if exit := b.exit("pve1", "POST", "/nodes/pve1/qemu/100/status/start"); exit != "start failed: out of luck" {
					t.Errorf("the second start: %s", exit)
				}
				if v, _ := b.world.VM(100); v.Status != running {
					t.Errorf("the VM is %s", v.Status)
				}
				if exit := b.exit("pve3", "POST", "/nodes/pve3/qemu/300/status/start"); exit != "OK" {
					t.Errorf("the third start: %s", exit)
				}
				if broken := b.world.Check(); len(broken) > 0 {
					t.Error(broken)
				}
			})
		})
	}
}

// TestFaultsAreReported tells how often a fault was met, so that a test can see that its fault struck.
func TestFaultsAreReported(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bubble) {
		b.fault(pvesim.Fault{Path: "/version", Nth: 2, Status: 500})
		b.fault(pvesim.Fault{Status: 503})
		b.tally(3, "GET", "/version")
		got := []string{}
		for _, f := range b.world.Faults() {
			got = append(got, fmt.Sprint(f.Matched, f.Struck))
		}
		if diff := cmp.Diff([]string{"3 1", "3 2"}, got); diff != "" {
			t.Error(diff)
		}
		b.world.ClearFaults()
		if got := b.tally(2, "GET", "/version"); got != ".." || len(b.world.Faults()) > 0 {
			t.Errorf("after the faults are gone: %s", got)
		}
	})
}

// TestFaultsThatCannotBe are refused with what to write instead, from Go and over HTTP.
func TestFaultsThatCannotBe(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	post := func(path, body string) string {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, a.server.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r := a.send(req)
		return fmt.Sprintf("%d %s", r.status, strings.TrimSpace(r.body))
	}
	for body, want := range map[string]string{
		`{}`:                                    "400 add fault: it does nothing: give status, delay, hang, taskError or when: drop-reply",
		`{"method":"PATCH"}`:                    `400 add fault: method is "PATCH": want GET, POST, PUT or DELETE`,
		`{"path":"/nodes/{node}/ceph"}`:         "400 add fault: path /nodes/{node}/ceph is no route: GET /pvesim/coverage lists them",
		`{"path":"/nodes/pve1/qemu/100/clone"}`: "400 add fault: path /nodes/pve1/qemu/100/clone is no pattern: write " + clonePath + ", with node and vmid to choose one",
		`{"method":"GET","path":"` + clonePath + `"}`: "400 add fault: GET " + clonePath + " is no route: that path has POST",
		`{"when":"later","status":500}`:               `400 add fault: when is "later": want before, after-effect or drop-reply`,
		`{"nth":-1,"status":500}`:                     "400 add fault: nth, count and delay cannot be negative",
		`{"percent":101,"status":500}`:                "400 add fault: percent is 101: want 1 to 100",
		`{"status":200}`:                              "400 add fault: status is 200: want 400 to 599",
		`{"reason":"no"}`:                             "400 add fault: reason and errors need a status, for example 500",
		`{"hang":true,"status":500}`:                  "400 add fault: hang never answers: leave out status and delay",
		`{"when":"drop-reply","hang":true}`:           "400 add fault: drop-reply gives no answer: leave out hang, status and delay, or use after-effect",
		`{"status":500,"taskError":"x"}`:              "400 add fault: no task starts when the request is refused: leave out taskError, or use after-effect",
		`{"delay":"5"}`:                               `400 read fault: error unmarshaling JSON: while decoding JSON: read duration "5": want a number with its unit, for example 5s`,
		`{"hung":true}`:                               `400 read fault: error unmarshaling JSON: while decoding JSON: json: unknown field "hung"`,
		`{"delay":"1m30s","count":2}`:                 `200 [{"count":2,"when":"before","delay":"1m30s","matched":0,"struck":0}]`,
	} {
		if got := post("/pvesim/faults", body); got != want {
			t.Errorf("%s\n got %s\nwant %s", body, got, want)
		}
	}
}

// TestFaultsReadAndWrite: what is written as JSON or YAML reads as the same fault.
func TestFaultsReadAndWrite(t *testing.T) {
	t.Parallel()
	f := pvesim.Fault{
		Method: "POST", Path: clonePath, VMID: 100, Node: "pve1", Nth: 2, Count: 3, Percent: 50, When: pvesim.AfterEffect, Status: 400, Reason: "no",
		Errors: map[string]string{"newid": "bad"}, Delay: pvesim.Duration(90 * time.Second), TaskError: "lost",
	}
	for name, codec := range map[string]struct {
		write func(any) ([]byte, error)
		read  func([]byte, any) error
	}{
		"JSON": {json.Marshal, json.Unmarshal},
		"YAML": {yaml.Marshal, func(raw []byte, into any) error { return yaml.UnmarshalStrict(raw, into) }},
	} {
		raw, err := codec.write(f)
		if err != nil {
			t.Fatal(err)
		}
		var got pvesim.Fault
		if err := codec.read(raw, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(f, got); diff != "" || !strings.Contains(string(raw), "1m30s") {
			t.Errorf("%s: %s\n%s", name, raw, diff)
		}
	}
}

// TestActsAsData does at a host, over HTTP, what the methods of World do.
func TestActsAsData(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	act := func(body string) string {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, a.server.URL+"/pvesim/acts", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r := a.send(req)
		return fmt.Sprintf("%d %s", r.status, strings.TrimSpace(r.body))
	}
	for _, step := range []struct{ act, want, config string }{
		{`{"act":"stop-daemon","node":"pve2","daemon":"pveproxy"}`, "200", "595 Connection refused"},
		{`{"act":"start-daemon","node":"pve2","daemon":"pveproxy"}`, "200", "200 OK"},
		{`{"act":"cut-link","node":"pve2"}`, "200", "595 No route to host"},
		{`{"act":"mend-link","node":"pve2"}`, "200", "200 OK"},
		{`{"act":"stop-node","node":"pve2"}`, "200", "595 No route to host"},
		{`{"act":"start-node","node":"pve2"}`, "200", "200 OK"},
		{`{"act":"kill-vm","vmid":9002}`, "200", "200 OK"},
		{`{"act":"kill-worker","upid":"UPID:none"}`, `400 kill-worker: no running task "UPID:none"`, "200 OK"},
		{`{"act":"remove-file","node":"pve2","volume":"local:iso/none.iso"}`, `400 remove-file: no volume "local:iso/none.iso" on pve2`, "200 OK"},
		{`{"act":"remove-file","node":"pve2","volume":"local-lvm:base-9002-disk-0"}`, "200", "200 OK"},
		{`{"act":"kill-vm","vmid":99}`, "400 kill-vm: no VM 99", "200 OK"},
		{`{"act":"stop-node","node":"pve9"}`, `400 stop-node: no node "pve9"`, "200 OK"},
		{`{"act":"stop-daemon","node":"pve2","daemon":"sshd"}`, `400 stop-daemon: daemon is "sshd": want pveproxy, pvedaemon or pvestatd`, "200 OK"},
		{`{"act":"burn"}`, `400 act "burn": want stop-node, start-node, cut-link, mend-link, stop-daemon, start-daemon, freeze-daemon, thaw-daemon, kill-vm, unlock-vm, kill-worker, remove-file`, "200 OK"},
		{`{"do":"burn"}`, `400 read act: error unmarshaling JSON: while decoding JSON: json: unknown field "do"`, "200 OK"},
	} {
		if got := act(step.act); !strings.HasPrefix(got, step.want) {
			t.Errorf("%s: %s", step.act, got)
		}
		r := a.do("GET", "/nodes/pve2/qemu/9002/config")
		if got := fmt.Sprintf("%d %s", r.status, r.reason); got != step.config {
			t.Errorf("after %s: %s, want %s", step.act, got, step.config)
		}
	}
}

// TestWorkerIsKilledByItsTask leaves the clone half way, as kill -9 does.
func TestWorkerIsKilledByItsTask(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bubble) {
		_, upid := b.send("pve1", "POST", "/nodes/pve1/qemu/100/clone", "newid", "110", "full", "1")
		must(t, b.world.Do(pvesim.Act{Act: "kill-worker", UPID: proxmox.UPID(fmt.Sprint(upid))}))
		if b.world.RunningTasks() > 0 {
			t.Error("the task goes on")
		}
	})
}

// TestStoppedNodeCanBeStartedThroughItsAddress: what is about the simulator itself answers always.
func TestStoppedNodeCanBeStartedThroughItsAddress(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.server.World.StopNode("pve1")
	if r := a.do("GET", "/version"); r.status != 0 {
		t.Errorf("a stopped node answers %+v", r)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, a.server.URL+"/pvesim/acts", strings.NewReader("act: start-node\nnode: pve1\n"))
	if err != nil {
		t.Fatal(err)
	}
	if r := a.send(req); r.status != http.StatusOK {
		t.Errorf("start: %+v", r)
	}
	a.must("GET", "/version")
	if got := a.server.World.Requests(); !slices.Contains(got, pvesim.Request{Method: "GET", Path: "/version", Status: 200}) {
		t.Errorf("requests are %v", got)
	}
}
