package pvesim_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

const (
	haResources = "/cluster/ha/resources"
	haGroups    = "/cluster/ha/groups"
	haRules     = "/cluster/ha/rules"
)

// service is the state of a service as people see it.
func (b *bubble) service(sid string) string {
	b.t.Helper()
	list, _ := b.data("pve1", "/cluster/ha/status/current").([]any)
	for _, x := range list {
		if entry, _ := x.(map[string]any); entry["sid"] == sid {
			return fmt.Sprint(entry["state"])
		}
	}
	return "none"
}

// until waits until the VM has a status and returns how long that took.
func (b *bubble) until(id proxmox.VMID, status string) time.Duration {
	b.t.Helper()
	return after(func() {
		for v, _ := b.world.VM(id); v.Status != status; v, _ = b.world.VM(id) {
			b.pass(100 * time.Millisecond)
		}
	}).Round(time.Second)
}

func TestHAResourcesAreStartedAndStoppedByTheManager(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bubble) {
		b.want("200 OK", "POST", haResources, "sid", "100")
		if got := b.service("vm:100"); got != "queued" {
			t.Errorf("a new service is %s", got)
		}
		if took := b.until(100, "running"); took < 7*time.Second || took > 10*time.Second {
			t.Errorf("a new resource was started after %s", took)
		}
		if got := b.service("vm:100"); got != "starting" {
			t.Errorf("a service that was just started is %s", got)
		}
		b.pass(30 * time.Second)
		if exit := b.exit("pve1", "POST", "/nodes/pve1/qemu/100/status/stop"); exit != "OK" || b.service("vm:100") != "started" {
			t.Errorf("request to stop: %s, the service is %s", exit, b.service("vm:100"))
		}
		if took := b.until(100, "stopped"); took < 5*time.Second {
			t.Errorf("stopped %s after the task", took)
		}
		status, _ := b.data("pve1", "/nodes/pve1/qemu/100/status/current").(map[string]any)
		if diff := cmp.Diff(map[string]any{"managed": 1.0, "state": "request_stop"}, status["ha"]); diff != "" {
			t.Errorf("status (-want +got):\n%s", diff)
		}
		b.pass(30 * time.Second)
		if exit := b.exit("pve1", "POST", "/nodes/pve1/qemu/100/status/start"); exit != "OK" {
			t.Errorf("request to start: %s", exit)
		}
		b.until(100, "running")
		b.want("500 unable to remove VM 100 - used in HA resources and purge parameter not set.", "DELETE", "/nodes/pve1/qemu/100")
		b.want("500 Cannot suspend HA managed VM to disk", "POST", "/nodes/pve1/qemu/100/status/suspend", "todisk", "1")
		b.want("200 OK", "DELETE", haResources+"/vm:100")
		if got := b.service("vm:100"); got != "deleting" {
			t.Errorf("a service whose resource is gone is %s", got)
		}
		b.pass(time.Minute)
		if v, _ := b.world.VM(100); v.Status != "running" || b.service("vm:100") != "none" {
			t.Errorf("without its resource the VM is %s", v.Status)
		}
	})
}

// want makes a request to pve1 and checks its status and reason.
func (b *bubble) want(want, method, path string, params ...string) {
	b.t.Helper()
	if got := b.ask("pve1", method, path, params...); got != want {
		b.t.Errorf("%s %s %q:\n got %s\nwant %s", method, path, params, got, want)
	}
}

func TestHARestartsWhatDies(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bubble) {
		b.want("200 OK", "POST", haResources, "sid", "vm:301")
		b.pass(time.Minute)
		b.world.Kill(301)
		if took := b.until(301, "running"); took < 5*time.Second || took > 30*time.Second {
			t.Errorf("a VM that died was started again after %s", took)
		}
		b.want("200 OK", "PUT", haResources+"/vm:301", "state", "ignored")
		if exit := b.exit("pve3", "POST", "/nodes/pve3/qemu/301/status/stop"); exit != "OK" {
			t.Errorf("stop of an ignored VM: %s", exit)
		}
		b.pass(time.Minute)
		if v, _ := b.world.VM(301); v.Status != "stopped" {
			t.Error("an ignored VM was started")
		}
	})
}

func TestHAGivesUpOnWhatItCannotStop(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bubble) {
		b.want("200 OK", "POST", haResources, "sid", "vm:301")
		b.pass(time.Minute)
		release := b.world.HoldLock(301)
		b.exit("pve3", "POST", "/nodes/pve3/qemu/301/status/stop")
		b.pass(2 * time.Minute)
		release()
		for _, request := range []string{"stop", "start", "stop"} {
			b.exit("pve3", "POST", "/nodes/pve3/qemu/301/status/"+request)
			b.pass(2 * time.Minute)
			if v, _ := b.world.VM(301); v.Status != "running" || b.service("vm:301") != "error" {
				t.Errorf("after a request to %s the VM is %s, its service %s", request, v.Status, b.service("vm:301"))
			}
		}
		b.want("200 OK", "PUT", haResources+"/vm:301", "state", "disabled")
		b.until(301, "stopped")
		b.pass(time.Minute)
		if got := b.service("vm:301"); got != "disabled" {
			t.Errorf("a disabled service is %s", got)
		}
	})
}

func TestHARecoversTheServicesOfALostNode(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bubble) {
		b.want("200 OK", "POST", haResources, "sid", "vm:301")
		b.want("200 OK", "POST", haRules, "rule", "r1", "type", "node-affinity", "resources", "vm:301", "nodes", "pve2:2,pve3:1")
		b.pass(time.Minute)
		b.world.StopNode("pve3")
		b.pass(time.Minute)
		if got := b.service("vm:301"); got != "fence" {
			t.Errorf("the service of a lost node is %s", got)
		}
		b.until(301, "running")
		if v, _ := b.world.VM(301); v.Node != "pve2" {
			t.Errorf("the service was recovered on %s", v.Node)
		}
	})
}

func TestHAMigratesOnRequest(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bubble) {
		b.want("200 OK", "POST", haResources, "sid", "vm:301")
		b.pass(time.Minute)
		if exit := b.exit("pve3", "POST", "/nodes/pve3/qemu/301/migrate", "target", "pve1", "online", "1"); exit != "OK" {
			t.Errorf("request to migrate: %s", exit)
		}
		if v, _ := b.world.VM(301); v.Node != "pve3" {
			t.Error("migrated at once")
		}
		b.pass(time.Minute)
		b.want("200 OK", "POST", haResources+"/301/relocate", "node", "pve2")
		b.want("200 OK", "POST", haResources+"/301/migrate", "node", "pve9")
		b.want("200 OK", "POST", haResources+"/301/migrate", "node", "pve2")
		b.pass(time.Minute)
		if v, _ := b.world.VM(301); v.Node != "pve2" || v.Status != "running" || b.service("vm:301") != "started" {
			t.Errorf("VM 301 is %+v, its service %s", v, b.service("vm:301"))
		}
	})
}

func TestHAResourceErrors(t *testing.T) {
	t.Parallel()
	a := newAPI(t, pvesim.WithTemplates())
	a.withVM(100, "", nil)
	a.withVM(101, "", nil)
	a.expect("500 resource 'vm:199' does not exist in cluster", "POST", haResources, "sid", "vm:199")
	a.expect("500 types does not match", "POST", haResources, "sid", "vm:100", "type", "ct")
	a.expect("400 map[sid:invalid format - value does not look like a valid ha resource id\n]", "POST", haResources, "sid", "foo")
	a.expect("500 invalid parameter 'group': ha groups have been migrated to rules", "POST", haResources, "sid", "100", "group", "g1")
	a.must("POST", haResources, "sid", "100", "state", "stopped", "max_restart", "2", "comment", "c")
	a.expect("500 create resource failed: resource ID 'vm:100' already defined", "POST", haResources, "sid", "vm:100")
	got := a.object(haResources + "/100")
	digest := got["digest"]
	delete(got, "digest")
	if diff := cmp.Diff(map[string]any{"sid": "vm:100", "type": "vm", "state": "stopped", "max_restart": 2.0, "comment": "c"}, got); diff != "" {
		t.Errorf("resource (-want +got):\n%s", diff)
	}
	a.expect("500 no such resource 'vm:101'", "GET", haResources+"/vm:101")
	a.expect("500 update resources config failed: no such resource 'vm:101'", "PUT", haResources+"/vm:101", "state", "stopped")
	a.expect("500 update resources config failed: detected modified configuration - file changed by other user? Try again.", "PUT", haResources+"/100", "digest", "0")
	a.expect("500 update resources config failed: no such option 'foo'", "PUT", haResources+"/100", "delete", "foo")
	a.expect("500 update resources config failed: unable to delete required option 'sid'", "PUT", haResources+"/100", "delete", "sid")
	a.expect("500 update resources config failed: cannot set and delete property 'comment' at the same time!", "PUT", haResources+"/100", "delete", "comment", "comment", "x")
	a.must("PUT", haResources+"/100", "delete", "comment,max_restart", "digest", fmt.Sprint(digest), "state", "disabled")
	if diff := cmp.Diff([]string{"vm:100/disabled/<nil>"}, columns(a.must("GET", haResources, "type", "vm"), "sid", "state", "comment")); diff != "" {
		t.Errorf("resources (-want +got):\n%s", diff)
	}
	a.expect("500 cannot delete service 'vm:101', not HA managed!", "DELETE", haResources+"/101")
	if got := a.logOf("DELETE", "/nodes/pve1/qemu/100", "purge", "1"); got != "purging VM 100 from related configurations.. / NOTE: removed VM 100 from HA resource configuration. / TASK OK" {
		t.Errorf("destroy with purge: %s", got)
	}
}

func TestHAGroupsOf84(t *testing.T) {
	t.Parallel()
	a := newAPI(t, pvesim.WithVersion(pvesim.V84))
	a.must("POST", haGroups, "group", "g1", "nodes", "pve1:2,pve2", "restricted", "1", "comment", "c")
	a.expect("500 create ha group failed: ha group ID 'g1' already defined", "POST", haGroups, "group", "g1", "nodes", "pve1")
	a.expect("400 map[nodes:property is missing and it is not optional]", "POST", haGroups, "group", "g2")
	a.expect("500 no such ha group 'g2'", "GET", haGroups+"/g2")
	a.must("POST", haResources, "sid", "9001", "state", "disabled", "group", "nope")
	if got := fmt.Sprint(a.list(haResources)[0]["errors"]); got != "map[group:group 'nope' does not exist]" {
		t.Errorf("errors of a resource in an unknown group: %s", got)
	}
	a.expect("500 HA group 'g9' does not exist", "PUT", haResources+"/9001", "group", "g9")
	a.must("PUT", haResources+"/9001", "group", "g1")
	a.expect("500 delete ha group failed: ha group is used by service 'vm:9001'", "DELETE", haGroups+"/g1")
	a.expect("500 update ha group failed: no such ha group 'g2'", "PUT", haGroups+"/g2", "nodes", "pve2")
	a.must("PUT", haGroups+"/g1", "nodes", "pve2", "delete", "restricted")
	if diff := cmp.Diff([]string{"g1/pve2/c/<nil>"}, columns(a.must("GET", haGroups), "group", "nodes", "comment", "restricted")); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
	if status := a.object("/nodes/pve1/qemu/9001/status/current")["ha"].(map[string]any); status["group"] != "g1" {
		t.Errorf("status says %v", status)
	}
	a.must("PUT", haResources+"/9001", "delete", "group")
	a.must("DELETE", haGroups+"/g1")
	a.expect("501 Method 'GET /cluster/ha/rules' not implemented", "GET", haRules)
}

func TestHAGroupsAreRulesSince9(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for act, call := range map[string][]string{
		"index groups": {"GET", ""}, "create group": {"POST", "", "group", "g1", "nodes", "pve1"}, "read group": {"GET", "/g1"}, "update group": {"PUT", "/g1"}, "delete group": {"DELETE", "/g1"},
	} {
		a.expect("500 cannot "+act+": ha groups have been migrated to rules", call[0], haGroups+call[1], call[2:]...)
	}
}

func TestHARules(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for _, id := range []string{"9001", "9002", "9003"} {
		a.must("POST", haResources, "sid", id, "state", "disabled")
	}
	node := func(rule, resources, nodes string) []string {
		return []string{"rule", rule, "type", "node-affinity", "resources", resources, "nodes", nodes}
	}
	affinity := func(rule, kind, resources string) []string {
		return []string{"rule", rule, "type", "resource-affinity", "resources", resources, "affinity", kind}
	}
	a.must("POST", haRules, append(node("r1", "vm:9001", "pve1:2,pve2"), "strict", "1", "comment", "c")...)
	a.expect("500 create ha rule failed: HA rule 'r1' already defined", "POST", haRules, node("r1", "vm:9002", "pve1")...)
	a.expect("500 create ha rule failed: cannot use unmanaged resource(s) vm:100.", "POST", haRules, node("r2", "vm:100", "pve1")...)
	a.expect("500 create ha rule failed: cannot use non-existent node(s) pve9.", "POST", haRules, node("r2", "vm:9002", "pve9")...)
	a.expect("400 map[nodes:property is missing and it is not optional]", "POST", haRules, node("r2", "vm:9002", "")[:6]...)
	a.expect("400 map[strict:property is not defined in schema and the schema does not allow additional properties]", "POST", haRules, append(affinity("r2", "positive", "vm:9002,vm:9003"), "strict", "1")...)
	a.expect("400 map[type:value 'foo' does not have a value in the enumeration 'node-affinity, resource-affinity']", "POST", haRules, "rule", "r2", "type", "foo")
	for want, params := range map[string][]string{
		"resource 'vm:9001' is already used in another node affinity rule":                                                        node("r2", "vm:9001", "pve2"),
		"resources are in node affinity rules with multiple priorities":                                                           affinity("r3", "negative", "vm:9001,vm:9002"),
		"rule is ineffective as there are less than two resources":                                                                affinity("r4", "positive", "vm:9003"),
		"rule is ineffective as there are less than two resources, resources are in node affinity rules with multiple priorities": affinity("r5", "positive", "vm:9001"),
	} {
		r := a.do("POST", haRules, params...)
		if want = fmt.Sprintf("create ha rule failed: 400 Rule '%s' is invalid.\\nresources: %s\\n", params[1], want); r.status != 500 || !strings.Contains(r.body, want) {
			t.Errorf("%v: %+v, want %s", params, r, want)
		}
	}
	a.must("POST", haRules, affinity("r6", "negative", "vm:9002,vm:9003")...)
	a.expect("500 create ha rule failed: 400 Rule 'r7' is invalid.", "POST", haRules, affinity("r7", "positive", "vm:9002,vm:9003")...)
	if diff := cmp.Diff([]string{"r1/1/node-affinity/1", "r6/2/resource-affinity/<nil>"}, columns(a.must("GET", haRules), "rule", "order", "type", "strict")); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	if got := len(a.list(haRules, "type", "node-affinity")) + 10*len(a.list(haRules, "resource", "vm:9003")); got != 11 {
		t.Errorf("filters give %d", got)
	}
	a.expect("500 no such ha rule 'nope'", "GET", haRules+"/nope")
	a.expect("500 update HA rules failed: HA rule 'nope' does not exist", "PUT", haRules+"/nope", "type", "node-affinity")
	a.must("PUT", haRules+"/r1", "type", "node-affinity", "nodes", "pve2", "strict", "0", "delete", "comment")
	a.must("PUT", haRules+"/r6", "type", "resource-affinity", "disable", "1")
	a.must("DELETE", haResources+"/9002")
	if got := a.object(haRules + "/r6"); got["resources"] != "vm:9003" || got["disable"] != 1.0 {
		t.Errorf("a rule whose resource went is %v", got)
	}
	a.must("DELETE", haRules+"/r1")
	a.must("DELETE", haRules+"/r1")
}

func TestHAStatus(t *testing.T) {
	t.Parallel()
	for version, want := range map[pvesim.Version][]string{
		pvesim.V84: {"quorum", "master", "lrm:pve1", "lrm:pve2", "lrm:pve3"}, pvesim.V92: {"quorum", "master", "fencing", "lrm:pve1", "lrm:pve2", "lrm:pve3"},
	} {
		a := newAPI(t, pvesim.WithVersion(version))
		if diff := cmp.Diff(want, columns(a.must("GET", "/cluster/ha/status/current"), "id")); diff != "" {
			t.Errorf("%s: status (-want +got):\n%s", version, diff)
		}
		manager := a.object("/cluster/ha/status/manager_status")["manager_status"].(map[string]any)
		if manager["master_node"] != "pve1" || len(manager["node_status"].(map[string]any)) != 3 {
			t.Errorf("%s: manager status is %v", version, manager)
		}
	}
}

func TestHAIsInTheState(t *testing.T) {
	t.Parallel()
	state := pvesim.State{
		Nodes: []pvesim.NodeSpec{{Name: "pve1"}}, VMs: []pvesim.VMSpec{{VMID: 100, Node: "pve1", State: "paused"}},
		HA: pvesim.HASpec{
			Master: "pve1", Resources: map[string]map[string]string{"vm:100": {"state": "stopped"}},
			Groups: map[string]map[string]string{"g": {"nodes": "pve1"}}, Rules: map[string]map[string]string{"r": {"type": "node-affinity", "resources": "vm:100", "nodes": "pve1"}},
		},
	}
	got := newWorld(t, pvesim.FromState(state)).State()
	if diff := cmp.Diff(state.HA, got.HA); diff != "" || got.VMs[0].State != "paused" {
		t.Errorf("VM is %s, HA (-want +got):\n%s", got.VMs[0].State, diff)
	}
}
