package pvesim

import (
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/firewall"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

// maxSetName is how long names of IP sets and aliases may be.
const maxSetName = 64

// objectRoutes are those of the IP sets and the aliases of a place.
func (p firewallPlace) objectRoutes() []Route {
	name, rename, comment := firewallName("name", maxSetName).Required(), firewallName("rename", maxSetName), schema.Text("comment")
	digest, noMatch, cidr := schema.Text("digest").MaxLength(64), schema.Boolean("nomatch"), schema.Text("cidr").Format("IPorCIDRorAlias").Required()
	address := schema.Text("cidr").Format("IPorCIDR").Required()
	return []Route{
		p.route("GET", "/ipset", p.listSets),
		p.route("POST", "/ipset", p.createSet, name, rename, comment, digest),
		p.route("GET", "/ipset/{name}", p.showSet, name),
		p.route("POST", "/ipset/{name}", p.addEntry, name, cidr, comment, noMatch),
		p.route("DELETE", "/ipset/{name}", p.deleteSet, name, schema.Boolean("force")),
		p.route("GET", "/ipset/{name}/{cidr}", p.showEntry, name, cidr),
		p.route("PUT", "/ipset/{name}/{cidr}", p.updateEntry, name, cidr, comment, noMatch, digest),
		p.route("DELETE", "/ipset/{name}/{cidr}", p.removeEntry, name, cidr, digest),
		p.route("GET", "/aliases", p.listAliases),
		p.route("POST", "/aliases", p.createAlias, name, address, comment),
		p.route("GET", "/aliases/{name}", p.showAlias, name),
		p.route("PUT", "/aliases/{name}", p.updateAlias, name, address, comment, rename, digest),
		p.route("DELETE", "/aliases/{name}", p.deleteAlias, name, digest),
	}
}

func (p firewallPlace) listSets(c *call) reply {
	return ok(objects(p.find(c).IPSetList(), isFirewallNumber))
}

func (p firewallPlace) createSet(c *call) reply {
	file, name := p.find(c), c.params["name"]
	set := &firewall.IPSet{}
	if from := c.params["rename"]; from != "" {
		if r, is := c.modified(firewall.Digest(file.IPSetList()...)); is {
			return r
		}
		if set = file.IPSets[from]; set == nil {
			return invalidParam("name", "IPSet '%s' does not exist", from)
		}
		if file.IPSets[name] != nil && name != from {
			return invalidParam("name", "IPSet '%s' does already exist", name)
		}
		delete(file.IPSets, from)
	} else if file.IPSets[name] != nil {
		return invalidParam("name", "IPSet '%s' already exists", name)
	}
	if c.has("comment") {
		set.Comment = firewall.Comment(c.params["comment"])
	}
	// As with groups, a set that differs in case alone is the one that there is.
	if file.IPSets[strings.ToLower(name)] == nil {
		file.AddIPSet(name, set)
	}
	p.keep(c, file)
	return ok(nil)
}

// onSet runs a handler on the set that the path names.
func (p firewallPlace) onSet(c *call, do func(*firewall.IPSet) reply) reply {
	set := p.find(c).IPSets[c.params["name"]]
	if set == nil {
		return fail("no such IPSet '%s'", c.params["name"])
	}
	return do(set)
}

func entryFields(set *firewall.IPSet) []map[string]string {
	out := []map[string]string{}
	for _, e := range set.Entries {
		out = append(out, e.Fields())
	}
	return out
}

func (p firewallPlace) showSet(c *call) reply {
	return p.onSet(c, func(set *firewall.IPSet) reply { return ok(objects(entryFields(set), isFirewallNumber)) })
}

func (p firewallPlace) deleteSet(c *call) reply {
	return p.onSet(c, func(set *firewall.IPSet) reply {
		if len(set.Entries) > 0 && !c.flag("force") {
			return fail("IPSet '%s' is not empty", c.params["name"])
		}
		delete(p.find(c).IPSets, c.params["name"])
		return ok(nil)
	})
}

func (p firewallPlace) addEntry(c *call) reply {
	return p.onSet(c, func(set *firewall.IPSet) reply {
		cidr := c.params["cidr"]
		if schema.IsAlias(cidr) {
			if _, known := p.scope(c).FindAlias(cidr); !known {
				return fail("no such alias '%s'", cidr[strings.Index(cidr, "/")+1:])
			}
		} else {
			cidr, _ = schema.ShortCIDR(schema.CleanCIDR(cidr))
		}
		if set.Find(cidr) != nil {
			return invalidParam("cidr", "address '%s' already exists", cidr)
		}
		if strings.HasSuffix(cidr, "/0") {
			return invalidParam("cidr", "a zero prefix is not allowed in ipset entries")
		}
		set.Add(firewall.Entry{CIDR: cidr, Comment: firewall.Comment(c.params["comment"]), NoMatch: c.flag("nomatch")})
		return ok(nil)
	})
}

func (p firewallPlace) showEntry(c *call) reply {
	return p.onSet(c, func(set *firewall.IPSet) reply {
		for _, o := range objects(entryFields(set), isFirewallNumber) {
			if o["cidr"] == c.params["cidr"] {
				return ok(o)
			}
		}
		return invalidParam("cidr", "no such IP/Network")
	})
}

func (p firewallPlace) updateEntry(c *call) reply {
	return p.onSet(c, func(set *firewall.IPSet) reply {
		if r, is := c.modified(firewall.Digest(entryFields(set)...)); is {
			return r
		}
		e := set.Find(c.params["cidr"])
		if e == nil {
			return invalidParam("cidr", "no such IP/Network")
		}
		e.NoMatch, e.Comment = c.flag("nomatch"), firewall.Comment(c.params["comment"])
		return ok(nil)
	})
}

// removeEntry removes a network from the set; one that is not in it as well.
func (p firewallPlace) removeEntry(c *call) reply {
	return p.onSet(c, func(set *firewall.IPSet) reply {
		if r, is := c.modified(firewall.Digest(entryFields(set)...)); is {
			return r
		}
		set.Remove(c.params["cidr"])
		return ok(nil)
	})
}

func (p firewallPlace) listAliases(c *call) reply {
	return ok(objects(p.find(c).AliasList(), isFirewallNumber))
}

func (c *call) aliasParam(name string) firewall.Alias {
	cidr, _ := schema.ShortCIDR(c.params["cidr"])
	return firewall.Alias{Name: name, CIDR: cidr, Comment: firewall.Comment(c.params["comment"])}
}

func (p firewallPlace) createAlias(c *call) reply {
	file, name := p.find(c), c.params["name"]
	if _, exists := file.Aliases[strings.ToLower(name)]; exists {
		return invalidParam("name", "alias '%s' already exists", name)
	}
	file.AddAlias(c.aliasParam(name))
	p.keep(c, file)
	return ok(nil)
}

func (p firewallPlace) showAlias(c *call) reply {
	a, exists := p.find(c).Aliases[strings.ToLower(c.params["name"])]
	if !exists {
		return invalidParam("name", "no such alias")
	}
	return ok(typed(a.Fields(), isFirewallNumber))
}

func (p firewallPlace) updateAlias(c *call) reply {
	file, name, to := p.find(c), c.params["name"], c.params["rename"]
	if r, is := c.modified(firewall.Digest(file.AliasList()...)); is {
		return r
	}
	if _, exists := file.Aliases[strings.ToLower(name)]; !exists {
		return invalidParam("name", "no such alias")
	}
	if to != "" && !strings.EqualFold(to, name) {
		if _, exists := file.Aliases[strings.ToLower(to)]; exists {
			return invalidParam("name", "alias '%s' already exists", to)
		}
		delete(file.Aliases, strings.ToLower(name))
		name = to
	}
	file.AddAlias(c.aliasParam(name))
	return ok(nil)
}

// deleteAlias removes an alias; one that is not there as well.
func (p firewallPlace) deleteAlias(c *call) reply {
	file := p.find(c)
	if r, is := c.modified(firewall.Digest(file.AliasList()...)); is {
		return r
	}
	delete(file.Aliases, strings.ToLower(c.params["name"]))
	return ok(nil)
}
