package firewall

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

// Place is whose rules they are.
type Place string

// The places of rules.
const (
	ClusterPlace Place = "cluster"
	GroupPlace   Place = "group"
	HostPlace    Place = "host"
	GuestPlace   Place = "vm"
	VNetPlace    Place = "vnet"
)

// Problem is what is wrong with one property of a rule.
type Problem struct {
	Property string
	Text     string
}

// Scope is what rules may refer to.
type Scope struct {
	Place Place
	// Cluster has the sets and aliases that all may use; Own those of the file that the rule is in. Both may be the same.
	Cluster, Own *Config
	// SDNSets are the names of the sets that SDN provides.
	SDNSets []string
}

// check is one check of a rule under way.
type check struct {
	Scope
	rule     Rule
	version  int
	problems []Problem
}

// Verify completes a rule, as by the version of IP that its addresses are of, and returns what is wrong with it, in the order of
// PVE::Firewall::verify_rule, which stops at the first in a request and tells all in a list.
func Verify(rule Rule, s Scope) []Problem {
	c := &check{Scope: s, rule: rule}
	delete(rule, "ipversion")
	c.kind()
	c.iface()
	c.macro()
	c.protocol()
	c.ports()
	c.addresses("source")
	c.addresses("dest")
	if c.version != 0 {
		rule["ipversion"] = versionText(c.version)
	}
	if rule["macro"] != "" && len(c.problems) == 0 {
		c.problems = expandProblems(rule, c.version)
	}
	return c.problems
}

func (c *check) add(property, format string, args ...any) {
	c.problems = append(c.problems, Problem{property, fmt.Sprintf(format, args...)})
}

func (c *check) kind() {
	action := c.rule["action"]
	switch typ := c.rule["type"]; typ {
	case "in", "out", "forward":
		if !slices.Contains([]string{"ACCEPT", "DROP", "REJECT"}, action) {
			c.add("action", "unknown action '%s'", action)
		}
	case "group":
		if c.Place == GroupPlace {
			c.add("type", "security groups not allowed")
		}
		if !schema.IsSetName(action) {
			c.add("action", "invalid characters in security group name")
		}
	default:
		c.add("type", "unknown rule type '%s'", typ)
	}
}

func (c *check) iface() {
	name := c.rule["iface"]
	if name == "" {
		return
	}
	if c.Place == GroupPlace || c.Place == VNetPlace {
		c.add("type", "parameter -i not allowed for this rule type")
	}
	if msg := schema.CheckFormat("pve-iface", name); msg != "" {
		c.add("iface", "%s", msg)
	}
	if number, ok := strings.CutPrefix(name, "net"); c.Place == GuestPlace && (!ok || number == "" || strings.Trim(number, "0123456789") != "") {
		c.add("iface", `value does not match the regex pattern 'net\d+'`)
	}
}

func (c *check) macro() {
	name := c.rule["macro"]
	if name == "" {
		return
	}
	if m := macroNamed(name); m != nil {
		c.rule["macro"] = m.name
		return
	}
	c.add("macro", "unknown macro '%s'", name)
}

func (c *check) protocol() {
	proto := c.rule["proto"]
	if msg := schema.CheckProtocol(proto); msg != "" {
		c.add("proto", "%s", msg)
	}
	switch proto {
	case "icmp":
		c.version = 4
	case "icmpv6", "ipv6-icmp":
		c.version = 6
	}
}

// hasPorts tells whether rules for the protocol may name ports.
func hasPorts(proto string) bool {
	return slices.Contains(strings.Fields("udp 17 udplite 136 tcp 6 dccp 33 sctp 132"), proto)
}

func isICMP(proto string) bool {
	return proto == "icmp" || proto == "icmpv6" || proto == "ipv6-icmp"
}

func (c *check) ports() {
	proto := c.rule["proto"]
	if port := c.rule["dport"]; port != "" {
		c.port("dport", schema.CheckDestinationPorts(port), hasPorts(proto) || isICMP(proto))
	}
	c.icmpType(c.rule["icmp-type"], proto)
	if port := c.rule["sport"]; port != "" {
		c.port("sport", schema.CheckPorts(port), hasPorts(proto))
	}
}

func (c *check) port(property, problem string, allowed bool) {
	proto := c.rule["proto"]
	if problem != "" {
		c.add(property, "%s", problem)
	}
	if proto == "" {
		c.add("proto", "missing property - '%s' requires this property", property)
	}
	if !allowed {
		c.add(property, "protocol '%s' does not support ports", proto)
	}
}

func (c *check) icmpType(typ, proto string) {
	switch {
	case typ == "":
		return
	case !isICMP(proto):
		c.add("proto", "missing property - 'icmp-type' requires this property")
	case c.rule["dport"] != "":
		c.add("icmp-type", "'icmp-type' cannot be specified together with 'dport'")
	case proto == "icmp" && !schema.IsICMPType(typ), proto != "icmp" && !schema.IsICMPv6Type(typ):
		c.add("icmp-type", "invalid icmp-type '%s' for proto '%s'", typ, proto)
	}
}

func (c *check) addresses(property string) {
	value := c.rule[property]
	if value == "" {
		return
	}
	version, msg := schema.AddressVersion(value)
	if msg == "" {
		msg = c.setVersion(version)
	}
	if msg != "" {
		c.add(property, "%s", msg)
	}
	switch {
	case strings.HasPrefix(value, "+"):
		c.set(property, value[1:])
	case schema.IsAlias(value):
		c.alias(property, value)
	}
}

// setVersion returns why addresses of that version of IP cannot be in the rule, or "".
func (c *check) setVersion(version int) string {
	if version == 0 {
		return ""
	}
	if c.version != 0 && c.version != version {
		return "detected mixed ipv4/ipv6 addresses in rule"
	}
	c.version = version
	return ""
}

// scopes are the files that a name with that scope in front may be in.
func (c *check) scopes(scope string) []*Config {
	switch scope {
	case "dc":
		return []*Config{c.Cluster}
	case "guest":
		return []*Config{c.Own}
	}
	return []*Config{c.Own, c.Cluster}
}

func (c *check) set(property, ref string) {
	scope, name := cutScope(ref)
	if !schema.IsSetName(name) || !slices.Contains([]string{"", "dc", "guest", "sdn"}, scope) {
		c.add(property, "invalid ipset name '+%s'", ref)
		return
	}
	if scope == "sdn" && slices.Contains(c.SDNSets, name) {
		return
	}
	for _, f := range c.scopes(scope) {
		if scope != "sdn" && f.IPSets[name] != nil {
			return
		}
	}
	c.add(property, "no such ipset '%s'", name)
}

func (c *check) alias(property, ref string) {
	a, ok := c.FindAlias(ref)
	if !ok {
		c.add(property, "no such alias '%s'", ref)
		return
	}
	if msg := c.setVersion(a.version()); msg != "" {
		c.add(property, "%s", msg)
	}
}

// FindAlias resolves the name of an alias, maybe with its scope in front.
func (s Scope) FindAlias(ref string) (Alias, bool) {
	scope, name := cutScope(ref)
	for _, f := range (&check{Scope: s}).scopes(scope) {
		if a, ok := f.Aliases[strings.ToLower(name)]; ok {
			return a, true
		}
	}
	return Alias{}, false
}

func cutScope(ref string) (scope, name string) {
	if scope, name, ok := strings.Cut(ref, "/"); ok {
		return scope, name
	}
	return "", ref
}

func (a Alias) version() int {
	_, v := schema.ShortCIDR(a.CIDR)
	return v
}

func versionText(v int) string { return strconv.Itoa(v) }
