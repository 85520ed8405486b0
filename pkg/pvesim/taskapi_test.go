package pvesim_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// finishedTasks is a world's history: tasks of pve1 with their ends.
func finishedTasks(exits ...string) pvesim.Option {
	s := pvesim.State{Nodes: []pvesim.NodeSpec{{Name: "pve1"}, {Name: "pve2"}}, Users: []pvesim.UserSpec{{ID: "root@pam", Password: "pvesim"}, {ID: "a@pve", Password: "a"}}}
	for i, exit := range exits {
		typ, user := "qmstart", "root@pam"
		if i%2 == 1 {
			typ, user = "qmstop", "A@pve!t1"
		}
		started := time.Date(2026, 1, 1, 0, 0, i, 0, time.UTC)
		s.Tasks = append(s.Tasks, pvesim.TaskSpec{UPID: upidAt(typ, user, 100+i%3, started), Exit: exit, Ended: started.Add(time.Second), Log: []string{"one", "two", "three"}})
	}
	return pvesim.FromState(s)
}

func upidAt(typ, user string, vmid int, started time.Time) proxmox.UPID {
	return proxmox.UPID(fmt.Sprintf("UPID:pve1:00000001:00000002:%08X:%s:%d:%s:", started.Unix(), typ, vmid, user))
}

func TestTaskListIsFiltered(t *testing.T) {
	t.Parallel()
	a := newAPI(t, finishedTasks("OK", "VM 101 already running", "WARNINGS: 2", "unexpected status", "OK"))
	const none, latestFirst = "", "4 3 2 1 0"
	for query, want := range map[string]string{
		"":                                 latestFirst,
		"limit=2":                          "4 3",
		"limit=0":                          none,
		"limit=2&start=1":                  "3 2",
		"vmid=101":                         "4 1",
		"typefilter=qmstop":                "3 1",
		"userfilter=ROOT":                  "4 2 0",
		"userfilter=t1":                    none,
		"since=1767225602":                 "4 3 2",
		"until=1767225601":                 "1 0",
		"errors=1":                         "3 1",
		"statusfilter=error":               "1",
		"statusfilter=warning,unknown":     "3 2",
		"statusfilter=ok&source=all":       "4 0",
		"source=active":                    none,
		"errors=1&statusfilter=ok&start=1": "1",
	} {
		values := []string{}
		for pair := range strings.SplitSeq(query, "&") {
			key, value, _ := strings.Cut(pair, "=")
			if key != "" {
				values = append(values, key, value)
			}
		}
		if got := seconds(a.list("/nodes/pve1/tasks", values...)); got != want {
			t.Errorf("%s: tasks %q, want %q", query, got, want)
		}
	}
	if r := a.do("GET", "/nodes/pve1/tasks", "statusfilter", "foo"); r.errors["statusfilter"] != "invalid format - invalid status 'foo'\n" {
		t.Errorf("unknown status: %+v", r)
	}
}

// list gets a list of objects.
func (a *api) list(path string, pairs ...string) []map[string]any {
	a.t.Helper()
	list, isList := a.must(http.MethodGet, path, pairs...).([]any)
	if !isList {
		a.t.Fatalf("GET %s gave no list", path)
	}
	out := make([]map[string]any, len(list))
	for i := range list {
		out[i], _ = list[i].(map[string]any)
	}
	return out
}

// as speaks with another token.
func (a *api) as(token pvesim.Token) *api {
	return &api{t: a.t, server: a.server, client: &http.Client{Transport: signed{a.server.World.Transport("pve1"), token}}, patience: a.patience, every: a.every}
}

// seconds are the starts of tasks after that of the first.
func seconds(tasks []map[string]any) string {
	var out []string
	for _, x := range tasks {
		out = append(out, fmt.Sprint(x["starttime"].(float64)-1767225600))
	}
	return strings.Join(out, " ")
}

func TestTaskLogIsReadInParts(t *testing.T) {
	t.Parallel()
	a := newAPI(t, finishedTasks("OK"))
	path := "/nodes/pve1/tasks/" + string(upidAt("qmstart", "root@pam", 100, time.Unix(1767225600, 0))) + "/log"
	for query, want := range map[string][]string{
		"start=0":         {"one", "two", "three"},
		"start=1&limit=1": {"two"},
		"start=3":         nil,
		"limit=0":         {"one", "two", "three"},
	} {
		key, rest, _ := strings.Cut(query, "=")
		value, more, _ := strings.Cut(rest, "&")
		pairs := []string{key, value}
		if k, v, found := strings.Cut(more, "="); found {
			pairs = append(pairs, k, v)
		}
		var got []string
		for _, line := range a.list(path, pairs...) {
			got = append(got, line["t"].(string))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	if r := a.do("GET", path, "download", "1"); r.body != "one\ntwo\nthree\n" {
		t.Errorf("download is %q", r.body)
	}
}

// TestUnknownTask shows what is said of a UPID that names no task, or is none.
func TestUnknownTask(t *testing.T) {
	t.Parallel()
	for _, version := range []pvesim.Version{pvesim.V84, pvesim.V92} {
		a := newAPI(t, pvesim.WithVersion(version))
		for path, want := range map[string]string{
			"GET /nodes/pve1/tasks/UPID:pve1:0000FFFF:0FFFFFFF:6B000000:qmclone:100:root@pam:/status": "no such task",
			"GET /nodes/pve2/tasks/UPID:pve1:0000FFFF:0FFFFFFF:6B000000:qmclone:100:root@pam:/status": "no such task",
			"DELETE /nodes/pve1/tasks/UPID:pve1:0000FFFF:0FFFFFFF:6B000000:qmclone:100:root@pam:":     "no such task",
			"GET /nodes/pve1/tasks/UPID:foo/log":                                                      "unable to parse worker upid",
			"GET /nodes/pve1/tasks/UPID:pve1:0000FFFF:0FFFFFFF:6B000000::100:root@pam:/status":        "unable to parse worker upid",
			"DELETE /nodes/pve1/tasks/foo":                                                            "unable to parse worker upid",
		} {
			method, path, _ := strings.Cut(path, " ")
			if r := a.do(method, path); r.status != http.StatusBadRequest || r.errors["upid"] != want {
				t.Errorf("%s %s %s: %+v", version, method, path, r)
			}
		}
		missing := any(map[string]any{"n": 1.0, "t": "unable to open file - No such file or directory"})
		if version == pvesim.V92 {
			missing = []any{missing}
		}
		r := a.do("GET", "/nodes/pve1/tasks/UPID:pve1:0000FFFF:0FFFFFFF:6B000000:qmclone:100:root@pam:/log")
		if diff := cmp.Diff(missing, r.data); diff != "" {
			t.Errorf("%s: log of an unknown task:\n%s", version, diff)
		}
	}
}

// TestTokensSeeTheirOwnTasks starts tasks as a token, and looks at them as it, as its user and as another one.
func TestTokensSeeTheirOwnTasks(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, a *api) {
		w := a.server.World
		token := w.AddToken(pvesim.TokenSpec{User: "capi@pve", Name: "t1", Privileges: map[string][]string{"/vms/9001": {"VM.Clone", "VM.Audit"}}})
		mine := fmt.Sprint(a.must("POST", "/nodes/pve1/qemu/9001/clone", "newid", "200", "full", "1", "bwlimit", slowCopy))
		path := "/nodes/pve1/tasks/" + mine
		other := a.as(token)
		for _, c := range []struct{ method, path, want string }{
			{"GET", path + "/status", "Permission check failed (/nodes/pve1, Sys.Audit)"},
			{"GET", path + "/log", "Permission check failed (/nodes/pve1, Sys.Audit)"},
			{"DELETE", path, "Permission check failed (/nodes/pve1, Sys.Modify)"},
		} {
			if r := other.do(c.method, c.path); r.reason != c.want {
				t.Errorf("%s %s: %s", c.method, c.path, r.reason)
			}
		}
		if r := other.do("POST", "/nodes/pve1/qemu/9001/template"); r.status != http.StatusForbidden {
			t.Fatalf("template: %+v", r)
		}
		if got := other.list("/nodes/pve1/tasks", "source", "all"); len(got) != 0 {
			t.Errorf("the token sees %v", got)
		}
		if running := a.list("/nodes/pve1/tasks", "source", "active"); len(running) != 1 || running[0]["status"] != "RUNNING" || running[0]["saved"] != "0" || running[0]["user"] != "root@pam!pvesim" {
			t.Errorf("running tasks are %v", running)
		}
		for _, entry := range a.list("/cluster/tasks") {
			if entry["upid"] == mine && (entry["pid"] == nil || entry["status"] != nil || entry["tokenid"] != "pvesim") {
				t.Errorf("running task in the cluster's list is %v", entry)
			}
		}
		a.do("DELETE", path)
		a.wait(mine)
	})
}

// TestClusterTasksAreTheLast25OfEachNode counts them.
func TestClusterTasksAreTheLast25OfEachNode(t *testing.T) {
	t.Parallel()
	a := newAPI(t, finishedTasks(slices.Repeat([]string{"OK"}, 40)...))
	got := a.list("/cluster/tasks")
	if len(got) != 25 || got[0]["starttime"] != 1767225639.0 || got[0]["saved"] != "1" {
		t.Errorf("%d tasks, the first is %v", len(got), got[0])
	}
}

func TestAKilledWorkerCleansNothingUp(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, a *api) {
		upid := fmt.Sprint(a.must("POST", "/nodes/pve1/qemu/9001/clone", "newid", "200", "full", "1", "bwlimit", slowCopy))
		a.begun(200)
		a.server.World.KillWorker(proxmox.UPID(upid))
		a.server.World.KillWorker("UPID:none")
		if exit := a.wait(upid); exit != "unexpected status" {
			t.Error(exit)
		}
		if v, ok := a.server.World.VM(200); !ok || v.Lock != "clone" {
			t.Errorf("VM is %+v", v)
		}
		for _, line := range a.list("/nodes/pve1/tasks/" + upid + "/log") {
			if strings.HasPrefix(line["t"].(string), "TASK") {
				t.Errorf("log of a killed worker says %v", line)
			}
		}
		if len(a.server.World.Check()) == 0 {
			t.Error("nothing is left behind")
		}
	})
}

// TestAHeldLockFileIsWaitedFor lets a write run into its timeout, and another one through.
func TestAHeldLockFileIsWaitedFor(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, a *api) {
		release := a.server.World.HoldLock(9001)
		const refused = "can't lock file '/var/lock/qemu-server/lock-9001.conf' - got timeout"
		if r := a.do("PUT", "/nodes/pve1/qemu/9001/config", "cores", "3"); r.reason != refused {
			t.Errorf("PUT under a foreign lock: %d %s", r.status, r.reason)
		}
		again := a.server.World.HoldLock(9001)
		release()
		release()
		if exit := a.exit("PUT", "/nodes/pve1/qemu/9001/resize", "disk", "scsi0", "size", "11G"); exit != refused {
			t.Errorf("resize under a foreign lock: %s", exit)
		}
		again()
		if r := a.do("PUT", "/nodes/pve1/qemu/9001/config", "cores", "3"); r.status != http.StatusOK {
			t.Errorf("PUT after the release: %d %s", r.status, r.reason)
		}
	})
}

// TestFinishedTasksAreInTheState rebuilds a world with its history, and asks for it by the name that every node has for itself.
func TestFinishedTasksAreInTheState(t *testing.T) {
	t.Parallel()
	a := newAPI(t, finishedTasks("OK", "WARNINGS: 1"))
	a.ok("POST", "/nodes/pve1/qemu", "vmid", "200")
	first := a.server.World.State()
	if len(first.Tasks) != 3 || first.Tasks[2].Exit != "OK" || len(first.Tasks[2].Log) == 0 {
		t.Errorf("tasks in the state: %+v", first.Tasks)
	}
	again := newAPI(t, pvesim.FromState(first))
	if diff := cmp.Diff(first.Tasks, again.server.World.State().Tasks); diff != "" {
		t.Errorf("tasks differ (-first +rebuilt):\n%s", diff)
	}
	if got := again.list("/nodes/localhost/tasks"); len(got) != 3 || got[0]["type"] != "qmcreate" {
		t.Errorf("tasks of localhost: %v", got)
	}
	upid := first.Tasks[0].UPID
	for want, tasks := range map[string][]pvesim.TaskSpec{
		"add task " + string(upid) + ": there is one":                                                                 {{UPID: upid}, {UPID: upid}},
		"add task: parse task identifier \"none\": want the form UPID:node:pid:pstart:starttime:type:id:user: of PVE": {{UPID: "none"}},
	} {
		if _, err := pvesim.NewWorld(pvesim.FromState(pvesim.State{Tasks: tasks})); err == nil || err.Error() != want {
			t.Errorf("error is %v, want %s", err, want)
		}
	}
}
