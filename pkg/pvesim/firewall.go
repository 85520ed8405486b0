package pvesim

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/firewall"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

// firewalls are the firewall files of a cluster. Guests and hosts without a file have none here. A guest's file is found by
// its VMID alone: it can be written before there is such a guest, and through any node.
type firewalls struct {
	cluster *firewall.Config
	guests  map[proxmox.VMID]*firewall.Config
	hosts   map[proxmox.NodeName]*firewall.Config
	vnets   map[string]*firewall.Config
}

func newFirewalls() firewalls {
	return firewalls{
		cluster: &firewall.Config{}, guests: map[proxmox.VMID]*firewall.Config{}, hosts: map[proxmox.NodeName]*firewall.Config{},
		vnets: map[string]*firewall.Config{},
	}
}

// copyGuest gives a clone the firewall of its source.
func (f *firewalls) copyGuest(from, to proxmox.VMID) {
	if c := f.guests[from]; c != nil {
		f.guests[to] = c.Clone()
	}
}

// removeGuest removes the firewall of a guest that is destroyed.
func (f *firewalls) removeGuest(id proxmox.VMID) { delete(f.guests, id) }

// filteredAddresses are those that the IP sets ipfilter-netN of a VM allow its network devices to use. Whole networks do not count.
func (w *World) filteredAddresses(v *vm) []string {
	file := w.firewalls.guests[v.id]
	if file == nil {
		return nil
	}
	var out []string
	for i := range 32 {
		set, device := file.IPSets[fmt.Sprintf("ipfilter-net%d", i)], v.config[fmt.Sprintf("net%d", i)]
		if set == nil || device == "" {
			continue
		}
		for _, e := range set.Entries {
			if address, err := netip.ParseAddr(e.CIDR); err == nil && !e.NoMatch {
				out = append(out, address.String()+" on "+network(device))
			}
		}
	}
	return out
}

// firewallPlace is one place in the API where a firewall is configured.
type firewallPlace struct {
	// path is what comes before /rules, /options …
	path  string
	place firewall.Place
	// find returns the file, an empty one that is not kept if there is none; keep keeps it.
	find   func(*call) *firewall.Config
	keep   func(*call, *firewall.Config)
	audit  permission
	modify permission
	// params are those of the path that need more than pathParams knows.
	params []schema.Param
}

func orEmptyFile(c *firewall.Config) *firewall.Config {
	if c == nil {
		return &firewall.Config{}
	}
	return c
}

func clusterFirewall() firewallPlace {
	return firewallPlace{
		path: "/cluster/firewall", place: firewall.ClusterPlace, audit: on("/", "Sys.Audit"), modify: on("/", "Sys.Modify"),
		find: func(c *call) *firewall.Config { return c.firewalls.cluster },
		keep: func(*call, *firewall.Config) {},
	}
}

func hostFirewall() firewallPlace {
	return firewallPlace{
		path: "/nodes/{node}/firewall", place: firewall.HostPlace, audit: on("/nodes/{node}", "Sys.Audit"), modify: on("/nodes/{node}", "Sys.Modify"),
		find: func(c *call) *firewall.Config { return orEmptyFile(c.firewalls.hosts[c.node.Name]) },
		keep: func(c *call, f *firewall.Config) { c.firewalls.hosts[c.node.Name] = f },
	}
}

// guestFirewall is that of VMs (qemu) or of containers (lxc).
func guestFirewall(kind string) firewallPlace {
	return firewallPlace{
		path: "/nodes/{node}/" + kind + "/{vmid}/firewall", place: firewall.GuestPlace, audit: on("/vms/{vmid}", "VM.Audit"),
		modify: on("/vms/{vmid}", "VM.Config.Network"),
		find:   func(c *call) *firewall.Config { return orEmptyFile(c.firewalls.guests[c.vmid()]) },
		keep:   func(c *call, f *firewall.Config) { c.firewalls.guests[c.vmid()] = f },
	}
}

// route is an endpoint of the place. Reads need the audit privilege, writes the one to modify.
func (p firewallPlace) route(method, path string, handle func(*call) reply, params ...schema.Param) Route {
	r := Route{Method: method, Path: p.path + path, handle: handle, params: append(params, p.params...), permission: p.modify}
	if method == "GET" {
		r.permission = p.audit
	}
	return r
}

func firewallRoutes() []Route {
	cluster, host := clusterFirewall(), hostFirewall()
	out := append(cluster.rules().routes(), cluster.objectRoutes()...)
	out = append(out, cluster.optionRoutes(clusterFirewallOptions())...)
	out = append(out, groupRoutes()...)
	out = append(out, cluster.index("aliases", "rules", "options", "groups", "ipset", "macros", "refs"), macroRoute(), cluster.refsRoute())
	out = append(out, host.rules().routes()...)
	out = append(out, host.optionRoutes(hostFirewallOptions())...)
	out = append(out, host.index("rules", "options", "log"), host.logRoute(on("/nodes/{node}", "Sys.Syslog")))
	for _, kind := range []string{"qemu", "lxc"} {
		guest := guestFirewall(kind)
		out = append(out, guest.rules().routes()...)
		out = append(out, guest.objectRoutes()...)
		out = append(out, guest.optionRoutes(guestFirewallOptions())...)
		out = append(out, guest.index("rules", "aliases", "ipset", "refs", "options"), guest.logRoute(on("/vms/{vmid}", "VM.Console")), guest.refsRoute())
	}
	return out
}

// index lists what is below the place. Any login will do.
func (p firewallPlace) index(names ...string) Route {
	r := p.route("GET", "", func(*call) reply { return ok(named("name", names...)) })
	r.permission = nil
	return r
}

// named is a directory index: a list of objects with one property.
func named(key string, names ...string) []map[string]string {
	out := []map[string]string{}
	for _, n := range names {
		out = append(out, map[string]string{key: n})
	}
	return out
}

// scope is what the rules of the file may refer to.
func (p firewallPlace) scope(c *call) firewall.Scope {
	return firewall.Scope{Place: p.place, Cluster: c.firewalls.cluster, Own: p.find(c), SDNSets: c.sdn.firewallSets()}
}

// fileModified refuses a request that was made for another version of a file (PVE::Tools::assert_if_modified).
const fileModified = "detected modified configuration - file changed by other user? Try again."

// modified refuses a request whose digest is not that of what it changes.
func (c *call) modified(digest string) (refused reply, is bool) {
	if given := c.params["digest"]; given != "" && given != digest {
		return fail(fileModified), true
	}
	return reply{}, false
}

// objects are fields as they are shown: with numbers where Proxmox VE has numbers, and the digest of the list.
func objects(list []map[string]string, isNumber func(key string) bool) []map[string]any {
	digest := firewall.Digest(list...)
	out := []map[string]any{}
	for _, fields := range list {
		o := typed(fields, isNumber)
		o["digest"] = digest
		out = append(out, o)
	}
	return out
}

func typed(fields map[string]string, isNumber func(key string) bool) map[string]any {
	out := map[string]any{}
	for key, value := range fields {
		out[key] = value
		if isNumber(key) && schema.IsInteger(value) {
			out[key] = json.Number(value)
		}
	}
	return out
}

func isFirewallNumber(key string) bool {
	return key == "enable" || key == "ipversion" || key == "nomatch"
}

func optionFields(c *firewall.Config) map[string]string {
	if c.Options == nil {
		return map[string]string{}
	}
	return maps.Clone(c.Options)
}
