package pvesim

import (
	"net/http"
	"slices"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

// clusterTaskCount is how many finished tasks of a node pmxcfs spreads in the cluster (PVE::RESTEnvironment keeps 25).
const clusterTaskCount = 25

func taskRoutes() []Route {
	filter := []schema.Param{
		schema.Boolean("errors"), schema.Integer("limit").Min(0), schema.Integer("since"), schema.Choice("source", "archive", "active", "all"), schema.Integer("start").Min(0),
		schema.Text("statusfilter").Format("pve-task-status-type-list"), schema.Text("typefilter"), schema.Integer("until"), schema.Text("userfilter"), schema.VMID("vmid"),
	}
	return []Route{
		{Method: "GET", Path: "/nodes/{node}/tasks", handle: listTasks, params: filter},
		{Method: "GET", Path: "/nodes/{node}/tasks/{upid}", handle: taskIndex},
		{Method: "GET", Path: "/nodes/{node}/tasks/{upid}/status", handle: taskStatus},
		{Method: "GET", Path: "/nodes/{node}/tasks/{upid}/log", handle: taskLog, params: []schema.Param{
			schema.Boolean("download"), schema.Integer("limit").Min(0), schema.Integer("start").Min(0),
		}},
		{Method: "DELETE", Path: "/nodes/{node}/tasks/{upid}", handle: stopTask},
	}
}

// theTask finds the task of the path; nil with the refusal otherwise. Others' tasks need a privilege on the node.
func (c *call) theTask(privilege string) (*task, reply) {
	upid := proxmox.UPID(c.params["upid"])
	id, err := upid.Parse()
	if err != nil {
		return nil, invalidParam("upid", "unable to parse worker upid")
	}
	t := c.tasks.byUPID[upid]
	if t == nil || id.Node != c.node.Name {
		return nil, invalidParam("upid", "no such task")
	}
	if path := "/nodes/" + string(c.node.Name); !c.owns(t) && !c.mayAny(c.who, path, privilege) {
		return nil, denied(path, privilege)
	}
	return t, reply{}
}

// owns tells whether the task was started by the caller's user or token.
func (c *call) owns(t *task) bool {
	user, _ := t.owner()
	return t.user == c.who.name() || (c.who.token == nil && user == c.who.user.id)
}

func taskIndex(*call) reply { return ok([]map[string]string{{"name": "log"}, {"name": "status"}}) }

// fields are what all views of a task have. A token's task has the user and the token's name apart.
func (t *task) fields() map[string]any {
	user, tokenID := t.owner()
	out := map[string]any{"upid": t.upid, "node": t.node, "type": t.typ, "id": t.id, "user": user, "starttime": t.started.Unix()}
	if tokenID != "" {
		out["tokenid"] = tokenID
	}
	return out
}

func taskStatus(c *call) reply {
	t, refused := c.theTask("Sys.Audit")
	if t == nil {
		return refused
	}
	out := t.fields()
	out["pid"], out["pstart"], out["status"] = t.pid, t.pstart, "running"
	if t.done() {
		out["status"], out["exitstatus"] = "stopped", t.exit
	}
	return ok(out)
}

func taskLog(c *call) reply {
	upid := proxmox.UPID(c.params["upid"])
	if _, err := upid.Parse(); err == nil && c.tasks.byUPID[upid] == nil {
		r := ok([]map[string]any{{"n": 1, "t": "unable to open file - No such file or directory"}})
		r.extra = map[string]any{"total": 1}
		return r
	}
	t, refused := c.theTask("Sys.Audit")
	if t == nil {
		return refused
	}
	if c.flag("download") {
		return reply{status: http.StatusOK, reason: "OK", text: strings.Join(t.log, "\n") + "\n"}
	}
	start, limit := atoi(c.params["start"], 0), atoi(c.params["limit"], 50)
	if limit == 0 {
		limit = len(t.log)
	}
	lines := []map[string]any{}
	for i := start; i < min(len(t.log), start+limit); i++ {
		lines = append(lines, map[string]any{"n": i + 1, "t": t.log[i]})
	}
	r := ok(lines)
	r.extra = map[string]any{"total": len(t.log)}
	return r
}

func stopTask(c *call) reply {
	t, refused := c.theTask("Sys.Modify")
	if t == nil {
		return refused
	}
	t.stop()
	return ok(nil)
}

// clusterTasks lists the running and the last finished tasks of every node.
func clusterTasks(c *call) reply {
	out := []map[string]any{}
	finished := map[proxmox.NodeName]int{}
	for _, t := range slices.Backward(c.tasks.all) {
		if t.done() {
			if finished[t.node]++; finished[t.node] > clusterTaskCount {
				continue
			}
		}
		if !c.owns(t) && !c.mayAny(c.who, "/nodes/"+string(t.node), "Sys.Audit") {
			continue
		}
		entry := t.fields()
		if t.done() {
			entry["saved"], entry["endtime"], entry["status"] = "1", t.ended.Unix(), t.exit
		}
		out = append(out, entry)
	}
	return ok(out)
}

func listTasks(c *call) reply {
	var found []*task
	audit := c.mayAny(c.who, "/nodes/"+string(c.node.Name), "Sys.Audit")
	for _, t := range slices.Backward(c.tasks.all) {
		if t.node == c.node.Name && (audit || c.owns(t)) && c.wants(t) {
			found = append(found, t)
		}
	}
	start, limit := atoi(c.params["start"], 0), atoi(c.params["limit"], 50)
	out := []map[string]any{}
	for i := start; i < min(len(found), start+limit); i++ {
		out = append(out, found[i].listed())
	}
	r := ok(out)
	if len(found) > 0 {
		r.extra = map[string]any{"total": len(found)}
	}
	return r
}

// wants is the filter of a node's task list.
func (c *call) wants(t *task) bool {
	switch c.params["source"] {
	case "active":
		if t.done() {
			return false
		}
	case "all":
	default:
		if !t.done() {
			return false
		}
	}
	return (!c.has("vmid") || t.id == c.params["vmid"]) &&
		(!c.has("typefilter") || t.typ == c.params["typefilter"]) &&
		(!c.has("since") || t.started.Unix() >= int64(atoi(c.params["since"], 0))) &&
		(!c.has("until") || t.started.Unix() <= int64(atoi(c.params["until"], 0))) &&
		strings.Contains(t.user, c.params["userfilter"]) &&
		(!c.flag("errors") || t.outcome() == "error") &&
		(!c.has("statusfilter") || slices.Contains(schema.SplitList(c.params["statusfilter"]), t.outcome()))
}

func (t *task) outcome() string {
	switch {
	case t.exit == "OK":
		return "ok"
	case strings.HasPrefix(t.exit, "WARNINGS: "):
		return "warning"
	case t.exit == "unexpected status" || t.exit == "":
		return "unknown"
	}
	return "error"
}

// listed is a task as a node's list shows it; running ones have another form.
func (t *task) listed() map[string]any {
	out := t.fields()
	out["pid"], out["pstart"] = t.pid, t.pstart
	if t.done() {
		out["endtime"], out["status"] = t.ended.Unix(), t.exit
		return out
	}
	out["user"], out["saved"], out["status"] = t.user, "0", "RUNNING"
	delete(out, "tokenid")
	return out
}
