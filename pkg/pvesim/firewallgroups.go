package pvesim

import (
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/firewall"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

// firewallName is a parameter that names a group, a set or an alias.
func firewallName(name string, longest int) schema.Param {
	return schema.Text(name).Pattern(`[A-Za-z][A-Za-z0-9\-_]+`).MinLength(2).MaxLength(longest)
}

// maxGroupName is short because iptables chains are named after groups.
const maxGroupName = 18

func groupRoutes() []Route {
	p, l := clusterFirewall(), groupRules()
	id := firewallName("group", maxGroupName)
	list := p.route("GET", "/groups", listGroups)
	list.permission = nil
	return append(l.routes(), list,
		p.route("POST", "/groups", createGroup, id.Required(), schema.Text("comment"), firewallName("rename", maxGroupName), schema.Text("digest").MaxLength(64)),
		l.route("DELETE", "", deleteGroup))
}

// groupRules are the rules of a security group.
func groupRules() ruleList {
	p := clusterFirewall()
	p.path, p.place, p.params = "/cluster/firewall/groups/{group}", firewall.GroupPlace, []schema.Param{firewallName("group", maxGroupName).Required()}
	return ruleList{
		firewallPlace: p,
		get: func(c *call) ([]firewall.Rule, string) {
			if g := c.firewalls.cluster.Groups[c.params["group"]]; g != nil {
				return g.Rules, ""
			}
			return nil, "no such security group '" + c.params["group"] + "'"
		},
		set: func(c *call, rules []firewall.Rule) { c.firewalls.cluster.Groups[c.params["group"]].Rules = rules },
	}
}

func listGroups(c *call) reply {
	return ok(objects(c.firewalls.cluster.GroupList(), isFirewallNumber))
}

func createGroup(c *call) reply {
	name, file := c.params["group"], c.firewalls.cluster
	if c.params["rename"] != "" {
		return renameGroup(c)
	}
	if file.Groups[name] != nil {
		return invalidParam("group", "Security group '%s' already exists", name)
	}
	// The file is read without regard to case: a group that differs in case alone is the one that there is.
	if file.Groups[strings.ToLower(name)] == nil {
		file.AddGroup(name, &firewall.Group{Comment: firewall.Comment(c.params["comment"])})
	}
	return ok(nil)
}

// renameGroup gives a group another name, or another comment when both names are the same. Rules that name it follow.
func renameGroup(c *call) reply {
	from, to, file := c.params["rename"], c.params["group"], c.firewalls.cluster
	if r, is := c.modified(firewall.Digest(file.GroupList()...)); is {
		return r
	}
	g := file.Groups[from]
	if g == nil {
		return invalidParam("group", "Security group '%s' does not exist", from)
	}
	if file.Groups[to] != nil && to != from {
		return invalidParam("group", "Security group '%s' does already exist", to)
	}
	delete(file.Groups, from)
	if c.has("comment") {
		g.Comment = firewall.Comment(c.params["comment"])
	}
	file.AddGroup(to, g)
	file.RenameGroup(from, to)
	for _, f := range c.firewalls.guests {
		f.RenameGroup(from, to)
	}
	for _, f := range c.firewalls.hosts {
		f.RenameGroup(from, to)
	}
	return ok(nil)
}

func deleteGroup(c *call) reply {
	name := c.params["group"]
	g := c.firewalls.cluster.Groups[name]
	switch {
	case g == nil:
		return fail("no such security group '%s'", name)
	case len(g.Rules) > 0:
		return fail("Security group '%s' is not empty", name)
	}
	delete(c.firewalls.cluster.Groups, name)
	return ok(nil)
}
