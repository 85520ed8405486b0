package pvesim

import (
	"strconv"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/firewall"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

// ruleList is a list of rules in the API: of a firewall file or of a security group.
type ruleList struct {
	firewallPlace
	// get returns the rules as they are kept, or why there are none.
	get func(*call) ([]firewall.Rule, string)
	set func(*call, []firewall.Rule)
}

// rules are those of the file itself.
func (p firewallPlace) rules() ruleList {
	below := p
	below.path += "/rules"
	return ruleList{
		firewallPlace: below,
		get:           func(c *call) ([]firewall.Rule, string) { return p.find(c).Rules, "" },
		set: func(c *call, rules []firewall.Rule) {
			f := p.find(c)
			f.Rules = rules
			p.keep(c, f)
		},
	}
}

func ruleParams() []schema.Param {
	address := func(name string) schema.Param { return schema.Text(name).Format("pve-fw-addr-spec").MaxLength(512) }
	return []schema.Param{
		schema.Text("action").Pattern(`[A-Za-z][A-Za-z0-9\-_]+`).MaxLength(20).MinLength(2), schema.Text("comment"), address("dest"),
		schema.Text("digest").MaxLength(64), schema.Text("dport").Format("pve-fw-dport-spec"), schema.Integer("enable").Min(0),
		schema.Text("icmp-type").Format("pve-fw-icmp-type-spec"), schema.Text("iface").Format("pve-iface").MinLength(2).MaxLength(20),
		schema.Choice("log", logLevels()...), schema.Text("macro").MaxLength(128), schema.Integer("pos").Min(0),
		schema.Text("proto").Format("pve-fw-protocol-spec"), address("source"), schema.Text("sport").Format("pve-fw-sport-spec"),
		schema.Choice("type", "in", "out", "forward", "group"),
	}
}

// newRuleParams are those of a rule that is made: it needs a type and an action.
func newRuleParams() []schema.Param {
	out := ruleParams()
	for i := range out {
		if out[i].Name == "type" || out[i].Name == "action" {
			out[i].Optional = false
		}
	}
	return out
}

func (l ruleList) routes() []Route {
	pos := schema.Integer("pos").Min(0)
	changes := append(ruleParams(), schema.Integer("moveto").Min(0), schema.Text("delete").Format("pve-configid-list"))
	return []Route{
		l.route("GET", "", l.list),
		l.route("POST", "", l.create, newRuleParams()...),
		l.route("GET", "/{pos}", l.show, pos),
		l.route("PUT", "/{pos}", l.update, changes...),
		l.route("DELETE", "/{pos}", l.remove, pos, schema.Text("digest").MaxLength(64)),
	}
}

// load reads the rules as they are now, with what is wrong with each.
func (l ruleList) load(c *call) (rules []firewall.Rule, problems [][]firewall.Problem, refused string) {
	kept, refused := l.get(c)
	for _, r := range kept {
		r = r.Stored()
		problems = append(problems, firewall.Verify(r, l.scope(c)))
		rules = append(rules, r)
	}
	return rules, problems, refused
}

func (l ruleList) save(c *call, rules []firewall.Rule) reply {
	for i := range rules {
		rules[i] = rules[i].Stored()
	}
	l.set(c, rules)
	return ok(nil)
}

func (l ruleList) list(c *call) reply {
	rules, problems, msg := l.load(c)
	if msg != "" {
		return fail("%s", msg)
	}
	out := []map[string]any{}
	for i := range rules {
		out = append(out, shownRule(rules, problems[i], i))
	}
	return ok(out)
}

func shownRule(rules []firewall.Rule, problems []firewall.Problem, pos int) map[string]any {
	out := typed(rules[pos], isFirewallNumber)
	out["pos"], out["digest"] = pos, firewall.RulesDigest(rules)
	errors := map[string]string{}
	for _, p := range problems {
		if errors[p.Property] == "" {
			errors[p.Property] = p.Text
		}
	}
	if len(errors) > 0 {
		out["errors"] = errors
	}
	return out
}

// at loads the rules and finds the position that the path names.
func (l ruleList) at(c *call) (rules []firewall.Rule, pos int, refused *reply) {
	rules, _, msg := l.load(c)
	if msg != "" {
		r := fail("%s", msg)
		return nil, 0, &r
	}
	if r, is := c.modified(firewall.RulesDigest(rules)); is {
		return nil, 0, &r
	}
	pos, err := strconv.Atoi(c.params["pos"])
	if err != nil || pos >= len(rules) {
		r := fail("no rule at position %s", c.params["pos"])
		return nil, 0, &r
	}
	return rules, pos, nil
}

func (l ruleList) show(c *call) reply {
	rules, problems, msg := l.load(c)
	if msg != "" {
		return fail("%s", msg)
	}
	pos, err := strconv.Atoi(c.params["pos"])
	if err != nil || pos >= len(rules) {
		return fail("no rule at position %s", c.params["pos"])
	}
	out := shownRule(rules, problems[pos], pos)
	out["pos"] = c.params["pos"]
	return ok(out)
}

func (l ruleList) create(c *call) reply {
	rules, _, msg := l.load(c)
	if msg != "" {
		return fail("%s", msg)
	}
	rule := firewall.Rule{}
	rule.Apply(c.params)
	if problems := firewall.Verify(rule, l.scope(c)); len(problems) > 0 {
		return invalidParam(problems[0].Property, "%s", problems[0].Text)
	}
	if !c.has("enable") {
		rule["enable"] = "0"
	}
	return l.save(c, append([]firewall.Rule{rule}, rules...))
}

func (l ruleList) update(c *call) reply {
	rules, pos, refused := l.at(c)
	if refused != nil {
		return *refused
	}
	if to, err := strconv.Atoi(c.params["moveto"]); err == nil && to != pos {
		return l.save(c, firewall.Move(rules, pos, to))
	}
	rules[pos].Apply(c.params)
	if msg := rules[pos].Delete(c.params["delete"]); msg != "" {
		return invalidParam("delete", "%s", msg)
	}
	if problems := firewall.Verify(rules[pos], l.scope(c)); len(problems) > 0 {
		return invalidParam(problems[0].Property, "%s", problems[0].Text)
	}
	return l.save(c, rules)
}

func (l ruleList) remove(c *call) reply {
	rules, pos, refused := l.at(c)
	if refused != nil {
		return *refused
	}
	return l.save(c, append(rules[:pos:pos], rules[pos+1:]...))
}
