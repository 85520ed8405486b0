package contract

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var pathVariables = []struct {
	pattern *regexp.Regexp
	name    string
}{
	{regexp.MustCompile(`UPID[:%][^/]*`), "{upid}"},
	{regexp.MustCompile(`^/nodes/[^/]+`), "/nodes/{node}"},
	{regexp.MustCompile(`/qemu/\d+`), "/qemu/{vmid}"},
	{regexp.MustCompile(`(/nodes/\{node\}/storage)/[^/]+`), "$1/{storage}"},
}

// routeOf is the method and path of a request with the names of its variables, for example GET /nodes/{node}/qemu.
func routeOf(method, path string) string {
	for _, v := range pathVariables {
		path = v.pattern.ReplaceAllString(path, v.name)
	}
	return method + " " + path
}

func isList(body any) bool {
	o, _ := body.(map[string]any)
	_, ok := o["data"].([]any)
	return ok
}

// amended is the answer that the recorder's note says to expect.
func amended(e Exchange) Exchange {
	if m := expected.FindStringSubmatch(e.Note); m != nil {
		_, _ = fmt.Sscan(m[1], &e.Status)
		e.Reason, e.Body = m[2], ""
	}
	return e
}

var expected = regexp.MustCompile(`incidental: .*; expect (\d{3}) (.*)$`)

func replaceTexts(v any, pattern *regexp.Regexp, with string) any {
	switch x := v.(type) {
	case string:
		return pattern.ReplaceAllString(x, with)
	case []any:
		out := make([]any, len(x))
		for i := range x {
			out[i] = replaceTexts(x[i], pattern, with)
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for k := range x {
			out[k] = replaceTexts(x[k], pattern, with)
		}
		return out
	}
	return v
}

// cut matches the note on a long log of which only the end was recorded.
var cut = regexp.MustCompile(`log cut here to its last \d+ of \d+ lines`)

// log compares the log of a task without the lines that are noise.
func (c *comparison) log(want Exchange, got Answer) {
	a, _ := want.Body.(map[string]any)
	b, _ := got.Body.(map[string]any)
	wanted, less := lines(a["data"])
	given, also := lines(b["data"])
	short := cut.MatchString(want.Note)
	if short && len(given) > len(wanted) && !strings.Contains(want.Path, ":reloadnetworkall:") {
		given = given[len(given)-len(wanted):]
	}
	if strings.Contains(want.Path, ":reloadnetworkall:") {
		c.unordered(wanted, given)
		wanted, given = nil, nil
	}
	for i := range max(len(wanted), len(given)) {
		c.logLine(i, wanted, given)
	}
	left := []string{"data"}
	if short || less || also || len(wanted) != len(given) {
		left = append(left, "total")
	}
	a, b = without(a, left), without(b, left)
	c.value("", a, b)
}

// unordered compares the log of a task that goes through the nodes in an order of chance: the recorded lines, of which there may be
// the last ones alone, must be there.
func (c *comparison) unordered(want, got []string) {
	for _, line := range want {
		if !slices.Contains(got, line) {
			c.diffs = append(c.diffs, "log: missing, want "+brief(line))
		}
	}
}

func (c *comparison) logLine(i int, want, got []string) {
	switch field := fmt.Sprintf("log line %d", i+1); {
	case i >= len(want):
		c.diffs = append(c.diffs, fmt.Sprintf("%s: not wanted, got %s", field, brief(got[i])))
	case i >= len(got):
		c.diffs = append(c.diffs, fmt.Sprintf("%s: missing, want %s", field, brief(want[i])))
	default:
		c.text(field, want[i], got[i])
	}
}

// lines are the texts of a log, and whether some were left out because they are noise.
func lines(data any) (texts []string, less bool) {
	list, _ := data.([]any)
	for _, x := range list {
		line, _ := x.(map[string]any)
		if text := fmt.Sprint(line["t"]); isNoise(text) {
			less = true
		} else {
			texts = append(texts, text)
		}
	}
	return texts, less
}

// tasks takes those tasks out of two lists that only one side can know: of earlier scenarios, or started by calls whose
// answers were held back.
func (c *comparison) tasks(want, got any) (wanted, given any) {
	a, ok := want.(map[string]any)
	b, both := got.(map[string]any)
	if !ok || !both {
		return want, got
	}
	wantedTasks := withUPID(a["data"], func(upid string) bool { _, known := c.pairs.Here("upid", upid); return known })
	givenTasks := withUPID(b["data"], func(upid string) bool { return c.pairs.Known("upid", upid) })
	return replaced(a, wantedTasks), replaced(b, givenTasks)
}

// replaced is the body of a list of tasks with other tasks, and without their number.
func replaced(body map[string]any, tasks any) map[string]any {
	out := without(body, []string{"total"})
	out["data"] = tasks
	return out
}

func withUPID(data any, keep func(string) bool) any {
	list, ok := data.([]any)
	if !ok {
		return data
	}
	return slices.DeleteFunc(slices.Clone(list), func(x any) bool {
		o, _ := x.(map[string]any)
		return !keep(fmt.Sprint(o["upid"]))
	})
}

// isCached tells whether an object is an entry of an inventory that shows what pvestatd said last.
func isCached(route string, entry map[string]any) bool {
	kind := fmt.Sprint(entry["type"])
	if kind == "master" || kind == "lrm" || kind == "fencing" {
		return route == "GET /cluster/ha/status/current"
	}
	if kind == "node" {
		return route == "GET /cluster/resources" || route == "GET /nodes"
	}
	return kind == "qemu" && (route == "GET /cluster/resources" || strings.HasPrefix(route, "GET /pools"))
}

// ofHost is what an inventory says of a node only when there are rrd data; the recorded 9.2 had none and said unknown.
var ofHost = []string{"cpu", "maxcpu", "mem", "maxmem", "disk", "maxdisk", "uptime", "level", "cgroup-mode"}

// ofHA is what tells of the managers of HA: it comes from earlier scenarios, see haHistory.
var ofHA = []string{"node", "status"}

// ofMachine is what an inventory says of the test machine: how large it is. Without a manager of HA, see haHistory, nodes have
// no hastate.
var ofMachine = []string{"maxmem", "maxdisk"}

// ofStatus is what pvestatd tells of a VM; the rest comes from its config at once.
var ofStatus = []string{
	"status", "name", "template", "cpu", "maxcpu", "mem", "maxmem", "memhost", "disk", "maxdisk", "uptime", "netin", "netout", "diskread", "diskwrite", "lock",
}

// cachedEntry takes out of two entries what cannot be compared: of nodes what needs rrd data, of VMs that are not settled
// what pvestatd has told one side but not yet the other. A status unknown says that it has told the recorded node nothing.
func (c *comparison) cachedEntry(want, got map[string]any) (wanted, given map[string]any) {
	switch {
	case want["type"] == "master" || want["type"] == "lrm" || want["type"] == "fencing":
		return without(want, ofHA), without(got, ofHA)
	case want["type"] == "node":
		unfit := unfitOfNode(want, got)
		return without(want, unfit), without(got, unfit)
	case want["status"] != "unknown" && c.settled(fmt.Sprint(want["vmid"])):
		return want, got
	}
	return without(want, ofStatus), without(got, ofStatus)
}

// unfitOfNode are the keys of a node's entry that cannot be compared.
func unfitOfNode(want, got map[string]any) []string {
	unfit := slices.Clone(ofMachine)
	if want["maxcpu"] == nil {
		unfit = append(unfit, ofHost...)
	}
	if want["status"] == "unknown" && got["status"] == "online" {
		unfit = append(unfit, "status")
	}
	if got["hastate"] == nil {
		unfit = append(unfit, "hastate")
	}
	return unfit
}

func without(o map[string]any, keys []string) map[string]any {
	out := map[string]any{}
	for k, v := range o {
		if !slices.Contains(keys, k) {
			out[k] = v
		}
	}
	return out
}

// upidOf is the UPID that a body gives, or "".
func upidOf(body any) string {
	o, _ := body.(map[string]any)
	upid, _ := o["data"].(string)
	if strings.HasPrefix(upid, "UPID:") {
		return upid
	}
	return ""
}

// taskStatus is the status that an answer of …/tasks/{upid}/status names: running, stopped or "".
func taskStatus(body any) string {
	o, _ := body.(map[string]any)
	data, _ := o["data"].(map[string]any)
	status, _ := data["status"].(string)
	return status
}

func parseBody(raw []byte) any {
	var body any
	if len(raw) == 0 {
		return ""
	}
	if decodeJSON(raw, &body) != nil || !json.Valid(raw) {
		return string(raw)
	}
	return body
}
