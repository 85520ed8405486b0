package pvesim

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/sdn"
)

// sdnState is the software-defined network of a cluster.
type sdnState struct {
	// config is what is configured, running what is in force. A change counts for guests and rights when it is in force.
	config, running sdn.Config
	// version counts how often the configuration was put in force.
	version int
	// lockToken is held by who may change the configuration; empty if all may.
	lockToken string
	// addresses are those that the IPAM of Proxmox VE gave out.
	addresses []sdnAddress
	// applied are the versions that the hosts have made bridges of, vnets their bridges.
	applied map[proxmox.NodeName]int
	vnets   map[proxmox.NodeName][]string
}

func newSDN() sdnState {
	return sdnState{config: sdn.Empty(), running: sdn.Empty(), applied: map[proxmox.NodeName]int{}, vnets: map[proxmox.NodeName][]string{}}
}

// localZone is the zone of bridges that are not made by SDN.
const localZone = "localnetwork"

// zoneOf is the zone that a bridge is in, for permissions on /sdn/zones/{zone}/{bridge}: that of a vnet in force, otherwise the
// one of local bridges.
func (w *World) zoneOf(bridge string) string {
	if v := w.sdn.running.VNets[bridge]; v != nil && v["zone"] != "" {
		return v["zone"]
	}
	return localZone
}

// bridgeExists tells whether a guest can be plugged into the bridge on that host.
func (w *World) bridgeExists(n *node, bridge proxmox.BridgeName) bool {
	return slices.Contains(n.Bridges, bridge) || slices.Contains(n.madeByHand, bridge) || slices.Contains(w.sdn.vnets[n.Name], string(bridge))
}

// AddBridge makes a bridge on a host by hand, as `ip link add … type bridge` does: guests can use it, but no file names it. Unknown
// hosts are ignored.
func (w *World) AddBridge(name proxmox.NodeName, bridge proxmox.BridgeName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := w.node(name); n != nil && !w.bridgeExists(n, bridge) {
		n.madeByHand = append(n.madeByHand, bridge)
	}
}

// firewallSets are the IP sets that SDN provides for rules.
func (s *sdnState) firewallSets() []string {
	var out []string
	for _, id := range slices.Sorted(maps.Keys(s.running.VNets)) {
		out = append(out, id+"-all", id+"-gateway", id+"-no-gateway", id+"-dhcp")
	}
	return out
}

// sdnKind is one kind of objects in the API.
type sdnKind struct {
	// name is that of the ID, plural that of the list in the path.
	name, plural string
	sections     func(*sdn.Config) sdn.Sections
	kind         func(typ string) sdn.Kind
	// path is where rights on an object are given.
	path func(id string, options sdn.Section) string
	// missing is what is said of an object that is not there.
	missing string
}

func zoneKind() sdnKind {
	return sdnKind{
		name: "zone", plural: "zones", kind: sdn.ZoneKind, missing: "sdn '%s' does not exist",
		sections: func(c *sdn.Config) sdn.Sections { return c.Zones },
		path:     func(id string, _ sdn.Section) string { return "/sdn/zones/" + id },
	}
}

func vnetKind() sdnKind {
	return sdnKind{
		name: "vnet", plural: "vnets", kind: func(string) sdn.Kind { return sdn.VNetKind() }, missing: "sdn vnet '%s' does not exist",
		sections: func(c *sdn.Config) sdn.Sections { return c.VNets },
		path:     func(id string, o sdn.Section) string { return "/sdn/zones/" + o["zone"] + "/" + id },
	}
}

func subnetKind() sdnKind {
	return sdnKind{
		name: "subnet", plural: "subnets", kind: func(string) sdn.Kind { return sdn.SubnetKind() }, missing: "sdn subnet '%s' does not exist",
		sections: func(c *sdn.Config) sdn.Sections { return c.Subnets },
	}
}

func controllerKind() sdnKind {
	return sdnKind{
		name: "controller", plural: "controllers", kind: sdn.ControllerKind, missing: "sdn '%s' does not exist",
		sections: func(c *sdn.Config) sdn.Sections { return c.Controllers },
		path:     func(id string, _ sdn.Section) string { return "/sdn/controllers/" + id },
	}
}

func ipamKind() sdnKind {
	return sdnKind{
		name: "ipam", plural: "ipams", kind: sdn.IPAMKind, missing: "sdn '%s' does not exist",
		sections: func(c *sdn.Config) sdn.Sections { return c.IPAMs },
		path:     func(id string, _ sdn.Section) string { return "/sdn/ipams/" + id },
	}
}

func dnsKind() sdnKind {
	return sdnKind{
		name: "dns", plural: "dns", kind: func(string) sdn.Kind { return sdn.DNSKind() }, missing: "sdn '%s' does not exist",
		sections: func(c *sdn.Config) sdn.Sections { return c.DNS },
		path:     func(id string, _ sdn.Section) string { return "/sdn/dns/" + id },
	}
}

// view are the objects that the request asks for: what is configured, what is in force, or both compared. The digest is that of what
// is configured, and nil otherwise.
func (k sdnKind) view(c *call) (objects []sdn.Object, digest any) {
	configured, running := k.sections(&c.sdn.config), k.sections(&c.sdn.running)
	switch {
	case c.flag("pending"):
		return sdn.Pending(running, configured), nil
	case c.flag("running"):
		configured = running
	default:
		digest = k.digest(c)
	}
	for _, id := range slices.Sorted(maps.Keys(configured)) {
		objects = append(objects, sdn.Object{ID: id, Options: configured[id]})
	}
	return objects, digest
}

func (k sdnKind) digest(c *call) string {
	return k.sections(&c.sdn.config).Digest(k.kind)
}

// objectOptions are the options of an object with its zone, also when that is not in force.
func objectOptions(o sdn.Object) sdn.Section {
	out := maps.Clone(o.Options)
	if out["zone"] == "" && o.Changes != nil {
		out["zone"] = o.Changes["zone"]
	}
	return out
}

func (k sdnKind) entry(o sdn.Object, digest any) map[string]any {
	out := typed(o.Options, isSDNNumber)
	out[k.name], out["digest"] = o.ID, digest
	if o.State != "" {
		out["state"] = o.State
	}
	if o.Changes != nil {
		out["pending"] = typed(o.Changes, isSDNNumber)
	}
	return out
}

func isSDNNumber(key string) bool {
	return slices.Contains(strings.Fields(`tag mtu vlanaware isolate-ports snat vxlan-port vrf-vxlan dp-id advertise-subnets exitnodes-local-routing
		bridge-disable-mac-learning disable-arp-nd-suppression asn ebgp ebgp-multihop bgp-multipath-as-path-relax ttl reversemaskv6 reversev6mask
		section`), key)
}

func (k sdnKind) list(c *call) reply {
	objects, digest := k.view(c)
	out := []map[string]any{}
	for _, o := range objects {
		if wanted := c.params["type"]; wanted != "" && o.Options["type"] != wanted {
			continue
		}
		if c.mayAny(c.who, k.path(o.ID, objectOptions(o)), "SDN.Audit", "SDN.Allocate") {
			out = append(out, k.entry(o, digest))
		}
	}
	return ok(out)
}

func (k sdnKind) show(c *call) reply {
	objects, digest := k.view(c)
	for _, o := range objects {
		if o.ID == c.params[k.name] {
			return ok(k.entry(o, digest))
		}
	}
	return fail(k.missing, c.params[k.name])
}

// options are those that the request sets.
func (k sdnKind) options(c *call) sdn.Section {
	out := sdn.Section{}
	for key, value := range c.params {
		switch key {
		case k.name, "type", "digest", "delete", "lock-token":
		case "nodes", "exitnodes":
			out[key] = sdn.NodeList(value)
		default:
			out[key] = value
		}
	}
	return out
}

// lockedSDN does something to the configuration under its lock. The text that it returns is the error, after the prefix.
func (c *call) lockedSDN(prefix string, do func() string) reply {
	text := ""
	if c.sdn.lockToken != "" && c.params["lock-token"] != c.sdn.lockToken {
		text = "invalid lock token provided! at /usr/share/perl5/PVE/Network/SDN.pm line 291."
	} else {
		text = do()
	}
	if text != "" {
		return fail("%s: %s", prefix, text)
	}
	return ok(nil)
}

// refusal is the text of a refusal, or "".
func refusal(r *sdn.Refusal) string {
	if r == nil {
		return ""
	}
	return r.String()
}

// create adds an object. The check sees the configuration with the object in it; what it refuses is not added.
func (k sdnKind) create(c *call, id string, section sdn.Section, check func() string) string {
	sections := k.sections(&c.sdn.config)
	if sections[id] != nil {
		return fmt.Sprintf("sdn %s object ID '%s' already defined", k.name, id)
	}
	sections[id] = section
	if text := check(); text != "" {
		delete(sections, id)
		return text
	}
	return ""
}

// update changes an object. The check sees the configuration with the change in it; what it refuses is taken back.
func (k sdnKind) update(c *call, id string, check func(before sdn.Section) string) string {
	sections := k.sections(&c.sdn.config)
	if r, is := c.modified(k.digest(c)); is {
		return r.reason
	}
	before := sections[id]
	if before == nil {
		return fmt.Sprintf(k.missing, id)
	}
	kind, set := k.kind(before["type"]), k.options(c)
	if text := kind.CheckChange(set); text != "" {
		return text
	}
	after := maps.Clone(before)
	if text := after.Update(set, c.params["delete"], kind); text != "" {
		return text
	}
	sections[id] = after
	text := check(before)
	if text != "" {
		sections[id] = before
	}
	return text
}

// sdnID is a parameter that names a zone or a vnet.
func sdnID(v Version, name string) schema.Param {
	if v == V84 {
		return schema.Text(name).Format("pve-sdn-" + name + "-id").Required()
	}
	return schema.Text(name).Pattern(`[a-zA-Z][a-zA-Z0-9]*[a-zA-Z0-9]`).MinLength(2).MaxLength(8).Required()
}
