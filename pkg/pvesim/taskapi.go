package pvesim

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

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
	id, refused := c.taskID()
	if refused.failed() {
		return nil, refused
	}
	t := c.tasks.byUPID[proxmox.UPID(c.params["upid"])]
	if t == nil || id.Node != c.node.Name {
		return nil, invalidParam("upid", "no such task")
	}
	if path := "/nodes/" + string(c.node.Name); !c.owns(id.User) && !c.mayAny(c.who, path, privilege) {
		return nil, denied(path, privilege)
	}
	return t, reply{}
}

// taskID takes the UPID of the path apart.
func (c *call) taskID() (proxmox.TaskID, reply) {
	id, err := proxmox.UPID(c.params["upid"]).Parse()
	if err != nil || id.Type == "" || id.User == "" {
		return id, invalidParam("upid", "unable to parse worker upid")
	}
	return id, reply{}
}

// owns tells whether a task of that user is the caller's: a token has its own, a user those of its tokens, too.
func (c *call) owns(user string) bool {
	name, _, _ := strings.Cut(user, "!")
	return user == c.who.name() || (c.who.token == nil && name == c.who.user.id)
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

// taskLog returns lines of a task's log. A task that has said nothing yet has one line that says so, because ExtJS does not
// like empty lists (PVE::Tools::dump_logfile).
func taskLog(c *call) reply {
	id, refused := c.taskID()
	if refused.failed() {
		return refused
	}
	if path := "/nodes/" + string(c.node.Name); !c.owns(id.User) && !c.mayAny(c.who, path, "Sys.Audit") {
		return denied(path, "Sys.Audit")
	}
	t := c.tasks.byUPID[proxmox.UPID(c.params["upid"])]
	switch {
	case t == nil || t.node != c.node.Name:
		return c.missingLog()
	case c.flag("download"):
		return reply{status: http.StatusOK, reason: "OK", text: strings.Join(t.log, "\n") + "\n"}
	case len(t.log) == 0:
		return logLines([]string{"no content"}, 0, 1)
	}
	start, limit := atoi(c.params["start"], 0), atoi(c.params["limit"], 50)
	if limit == 0 {
		limit = len(t.log)
	}
	return logLines(t.log, start, limit)
}

func logLines(log []string, start, limit int) reply {
	lines := []map[string]any{}
	for i := start; i < min(len(log), start+limit); i++ {
		lines = append(lines, map[string]any{"n": i + 1, "t": log[i]})
	}
	r := ok(lines)
	r.extra = map[string]any{"total": len(log)}
	return r
}

// missingLog is the log of a task that the node does not know: one line, and on 8.4 not in a list.
func (c *call) missingLog() reply {
	r := logLines([]string{"unable to open file - No such file or directory"}, 0, 1)
	if lines, isList := r.data.([]map[string]any); isList && c.version == V84 {
		r.data = lines[0]
	}
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

// clusterTasks lists the running and the last finished tasks of every node. Who may not audit the whole cluster sees the
// tasks of its user; a token sees none, because the tasks are compared without their tokens.
func clusterTasks(c *call) reply {
	out := []map[string]any{}
	audit := c.mayAny(c.who, "/", "Sys.Audit")
	for _, n := range c.nodes {
		for _, t := range c.tasks.spread(n.Name) {
			if user, _ := t.owner(); audit || user == c.who.name() {
				out = append(out, t.summary())
			}
		}
	}
	return ok(out)
}

// spread are the tasks of a node that all nodes know of, the latest first.
func (l *taskList) spread(name proxmox.NodeName) []*task {
	out := slices.Clone(l.recent[name])
	for t := range l.active {
		if t.node == name {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b *task) int {
		return cmp.Or(b.started.Compare(a.started), cmp.Compare(b.pid, a.pid))
	})
	return out
}

// summary is a task as the cluster's list shows it.
func (t *task) summary() map[string]any {
	out := t.fields()
	if t.done() {
		out["saved"], out["endtime"], out["status"] = "1", t.ended.Unix(), t.exit
	} else {
		out["pid"] = t.pid
	}
	return out
}

func listTasks(c *call) reply {
	var found []*task
	audit := c.mayAny(c.who, "/nodes/"+string(c.node.Name), "Sys.Audit")
	for _, t := range slices.Backward(c.tasks.all) {
		if t.node == c.node.Name && (audit || c.listsAsOwn(t)) && c.wants(t) {
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

// listsAsOwn tells whether a list shows the task to the caller as its own. The user of a running task is listed with the
// token's name and compared so: a user sees the running tasks of its tokens only when they have ended.
func (c *call) listsAsOwn(t *task) bool {
	if t.done() {
		return c.owns(t.user)
	}
	return t.user == c.who.name()
}

// wants is the filter of a node's task list.
func (c *call) wants(t *task) bool {
	shown, _ := t.owner()
	if !t.done() {
		shown = t.user
	}
	return c.wantsSource(t.done()) &&
		(!c.has("vmid") || t.id == c.params["vmid"]) &&
		(c.params["typefilter"] == "" || t.typ == c.params["typefilter"]) &&
		(!c.has("since") || t.started.Unix() >= int64(atoi(c.params["since"], 0))) &&
		(!c.has("until") || t.started.Unix() <= int64(atoi(c.params["until"], 0))) &&
		strings.Contains(strings.ToLower(shown), strings.ToLower(c.params["userfilter"])) &&
		c.wantsOutcome(t)
}

// wantsSource tells whether running or finished tasks are asked for.
func (c *call) wantsSource(finished bool) bool {
	switch c.params["source"] {
	case "active":
		return !finished
	case "all":
		return true
	}
	return finished
}

func (c *call) wantsOutcome(t *task) bool {
	if c.flag("errors") {
		return t.done() && t.outcome() != "ok" && t.outcome() != "warning"
	}
	return !c.has("statusfilter") || slices.Contains(schema.SplitList(c.params["statusfilter"]), t.outcome())
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
