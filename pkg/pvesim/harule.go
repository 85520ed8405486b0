package pvesim

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

// The types of HA rules.
const (
	nodeAffinity     = "node-affinity"
	resourceAffinity = "resource-affinity"
)

func haRuleRoutes() []Route {
	const path = "/cluster/ha/rules"
	audit, console := on("/", "Sys.Audit"), on("/", "Sys.Console")
	return []Route{
		{Method: "GET", Path: path, handle: listHARules, permission: audit, params: []schema.Param{
			schema.Text("resource"), schema.Choice("type", nodeAffinity, resourceAffinity),
		}},
		{Method: "POST", Path: path, handle: addHARule, permission: console, params: haRuleParams()},
		{Method: "GET", Path: path + "/{rule}", handle: getHARule, permission: audit},
		{Method: "PUT", Path: path + "/{rule}", handle: changeHARule, permission: console, params: append(haRuleParams(), updateParams()...)},
		{Method: "DELETE", Path: path + "/{rule}", handle: deleteHARule, permission: console},
	}
}

// haRuleParams are those of rules of all types; which of them one type has is checked with the rule.
func haRuleParams() []schema.Param {
	return []schema.Param{
		schema.Text("rule").Format("pve-configid").Required(), schema.Choice("type", nodeAffinity, resourceAffinity).Required(),
		schema.Text("resources").Format("pve-ha-resource-id-list"), schema.Text("nodes").Format("pve-ha-node-list"), schema.Boolean("strict"),
		schema.Choice("affinity", "positive", "negative"), schema.Boolean("disable"), schema.Text("comment").MaxLength(4096),
	}
}

// haRuleKeys are the options that a type of rules has, those that it must have first.
func haRuleKeys(typ string) (required, optional []string) {
	if typ == nodeAffinity {
		return []string{"resources", "nodes"}, []string{"strict", "disable", "comment"}
	}
	return []string{"resources", "affinity"}, []string{"disable", "comment"}
}

// haRule is a rule as the API shows it. Rules are numbered in their order.
func (c *call) haRule(name string) map[string]any {
	out := section(c.ha.rules[name], "strict", "disable")
	out["rule"], out["digest"] = name, sectionsDigest(c.ha.rules)
	out["order"] = 1 + slices.Index(slices.Sorted(maps.Keys(c.ha.rules)), name)
	return out
}

func listHARules(c *call) reply {
	out := []map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(c.ha.rules)) {
		rule := c.ha.rules[name]
		if c.has("type") && rule["type"] != c.params["type"] ||
			c.has("resource") && !slices.Contains(schema.SplitList(rule["resources"]), c.params["resource"]) {
			continue
		}
		out = append(out, c.haRule(name))
	}
	return ok(out)
}

func getHARule(c *call) reply {
	name := c.params["rule"]
	if c.ha.rules[name] == nil {
		return fail("no such ha rule '%s'", name)
	}
	return ok(c.haRule(name))
}

// haRuleOptions are the options of the form; the errors name those that are missing or of another type of rules.
func (c *call) haRuleOptions() (options, errors map[string]string) {
	required, optional := haRuleKeys(c.params["type"])
	options, errors = map[string]string{"type": c.params["type"]}, map[string]string{}
	for _, p := range haRuleParams()[2:] {
		if !c.has(p.Name) {
			continue
		}
		if !slices.Contains(required, p.Name) && !slices.Contains(optional, p.Name) {
			errors[p.Name] = "property is not defined in schema and the schema does not allow additional properties"
		}
		options[p.Name] = c.params[p.Name]
	}
	return options, errors
}

func addHARule(c *call) reply {
	name := c.params["rule"]
	options, errors := c.haRuleOptions()
	required, _ := haRuleKeys(c.params["type"])
	for _, key := range required {
		if options[key] == "" {
			errors[key] = "property is missing and it is not optional"
		}
	}
	if len(errors) > 0 {
		return invalid(errors)
	}
	if c.ha.rules[name] != nil {
		return fail("create ha rule failed: HA rule '%s' already defined", name)
	}
	if msg := c.haRuleFailure(name, options); msg != "" {
		return fail("create ha rule failed: %s", msg)
	}
	c.ha.rules[name] = options
	return ok(nil)
}

func changeHARule(c *call) reply {
	name := c.params["rule"]
	options, errors := c.haRuleOptions()
	rule := c.ha.rules[name]
	switch {
	case len(errors) > 0:
		return invalid(errors)
	case c.has("digest") && c.params["digest"] != sectionsDigest(c.ha.rules):
		return fail("update HA rules failed: %s", fileModified)
	case rule == nil:
		return fail("update HA rules failed: HA rule '%s' does not exist", name)
	}
	changed := maps.Clone(rule)
	if msg := updateSection(changed, options, schema.SplitList(c.params["delete"]), haRuleParams()); msg != "" {
		return fail("update HA rules failed: %s", msg)
	}
	if msg := c.haRuleFailure(name, changed); msg != "" {
		return fail("update HA rules failed: %s", msg)
	}
	c.ha.rules[name] = changed
	return ok(nil)
}

func deleteHARule(c *call) reply {
	delete(c.ha.rules, c.params["rule"])
	return ok(nil)
}

// haRuleFailure is why a rule cannot be: what it names is missing, or it does not go together with the others.
func (c *call) haRuleFailure(name string, rule map[string]string) string {
	var unmanaged, missing []string
	for _, sid := range schema.SplitList(rule["resources"]) {
		if c.ha.resources[sid] == nil {
			unmanaged = append(unmanaged, sid)
		}
	}
	for _, entry := range schema.SplitList(rule["nodes"]) {
		if node, _, _ := strings.Cut(entry, ":"); c.World.node(proxmox.NodeName(node)) == nil {
			missing = append(missing, node)
		}
	}
	switch {
	case len(unmanaged) > 0:
		return fmt.Sprintf("cannot use unmanaged resource(s) %s.", strings.Join(unmanaged, ", "))
	case len(missing) > 0:
		return fmt.Sprintf("cannot use non-existent node(s) %s.", strings.Join(missing, ", "))
	case rule["disable"] == "1":
		return ""
	}
	if problems := c.haProblems(name, rule); len(problems) > 0 {
		return fmt.Sprintf("400 Rule '%s' is invalid.\nresources: %s", name, strings.Join(problems, ", "))
	}
	return ""
}

// haProblems are those of the feasibility check of the rules (PVE::HA::Rules), as far as two rules can contradict each other.
func (c *call) haProblems(name string, rule map[string]string) []string {
	mine := schema.SplitList(rule["resources"])
	var out []string
	if rule["type"] == resourceAffinity && len(mine) < 2 {
		out = append(out, "rule is ineffective as there are less than two resources")
	}
	if rule["affinity"] == "negative" && len(mine) > len(c.nodes) {
		out = append(out, "rule defines more resources than available nodes")
	}
	for _, other := range slices.Sorted(maps.Keys(c.ha.rules)) {
		r := c.ha.rules[other]
		if other == name || r["disable"] == "1" {
			continue
		}
		shared := slices.DeleteFunc(schema.SplitList(r["resources"]), func(s string) bool { return !slices.Contains(mine, s) })
		if len(shared) == 0 {
			continue
		}
		if problem := contradiction(rule, r, shared); problem != "" {
			out = append(out, problem)
		}
	}
	return slices.Compact(out)
}

// contradiction is why two rules cannot both hold for the resources that they share; empty if they can.
func contradiction(a, b map[string]string, shared []string) string {
	switch {
	case a["type"] == nodeAffinity && b["type"] == nodeAffinity:
		return fmt.Sprintf("resource '%s' is already used in another node affinity rule", shared[0])
	case a["type"] == resourceAffinity && b["type"] == resourceAffinity:
		if a["affinity"] != b["affinity"] && len(shared) > 1 {
			return fmt.Sprintf("rule shares two or more resources with a %s resource affinity rule", b["affinity"])
		}
		return ""
	}
	if manyPriorities(a["nodes"]) || manyPriorities(b["nodes"]) {
		return "resources are in node affinity rules with multiple priorities"
	}
	return ""
}

// manyPriorities tells whether the nodes have different priorities, with which no resource affinity goes together.
func manyPriorities(nodes string) bool {
	seen := map[int]bool{}
	for _, entry := range schema.SplitList(nodes) {
		_, priority, _ := strings.Cut(entry, ":")
		seen[atoi(priority, 0)] = true
	}
	return len(seen) > 1
}
