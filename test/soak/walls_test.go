package soak_test

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"

	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// wall is a VM's firewall as it was last seen.
type wall struct {
	owner *machine
	file  pvesim.FirewallSpec
}

// firewallOf is the VM whose firewall a path is about.
func firewallOf(path string) (proxmox.VMID, bool) {
	match := targetVM.FindStringSubmatch(path)
	if match == nil || !strings.Contains(path, "/firewall/") {
		return 0, false
	}
	id, err := strconv.Atoi(match[1])
	return proxmox.VMID(id), err == nil
}

// watchWall compares a VM's firewall with what it was last: no edit of the controllers lets anything pass that passed neither before
// nor will in the end, and none touches what is another's.
func (s *simulation) watchWall(t *ticket) {
	if t.method == http.MethodGet {
		return
	}
	id, isFirewall := firewallOf(t.path)
	vm, there := s.world.VM(id)
	if !isFirewall || !there {
		return
	}
	owner, now := s.ownerOf(vm), s.world.Firewall(id)
	last, known := s.walls[id]
	if owner == nil {
		delete(s.walls, id)
		return
	}
	s.walls[id] = wall{owner: owner, file: now}
	if !known || last.owner != owner || reflect.DeepEqual(last.file, now) {
		return
	}
	s.figures.walls++
	if was, is := owner.others(last.file), owner.others(now); was != is {
		s.violate("the firewall of VM %d of %s was changed where it is another's, by %s:\nfrom %s\nto   %s", id, owner.name, t.label, was, is)
	}
	before, after, ends := reach(last.file), reach(now), s.ends(owner, now)
	for _, p := range packets {
		if after[p] && !before[p] && !slices.ContainsFunc(ends, func(end map[packet]bool) bool { return end[p] }) {
			s.violate("the firewall of VM %d of %s lets %+v pass after %s\nfrom %s\nto   %s", id, owner.name, p, t.label, text(last.file), text(now))
			return
		}
	}
}

// seeFirst sees how a firewall is before it is edited for the first time.
func (s *simulation) seeFirst(t *ticket) {
	if id, isFirewall := firewallOf(t.path); isFirewall && t.method != http.MethodGet {
		if vm, _ := s.world.VM(id); s.walls[id].owner == nil || s.walls[id].owner != s.ownerOf(vm) {
			s.seeWall(id)
		}
	}
}

// seeWall takes a VM's firewall as it is for what it was: somebody else has just changed it, or it is about to be edited.
func (s *simulation) seeWall(id proxmox.VMID) {
	if vm, there := s.world.VM(id); there && s.ownerOf(vm) != nil {
		s.walls[id] = wall{owner: s.ownerOf(vm), file: s.world.Firewall(id)}
	}
}

// isOurs reports whether a comment is that of the machine's rules and IP sets.
func (m *machine) isOurs(comment string) bool { return comment == "capve-"+m.uuid }

// others is what of a firewall is not the machine's: rules and IP sets of others, and options that no spec ever set.
func (m *machine) others(file pvesim.FirewallSpec) string {
	var kept []string
	for _, rule := range file.Rules {
		if !m.isOurs(rule["comment"]) || rule["type"] != "group" {
			kept = append(kept, text(rule))
		}
	}
	for _, set := range file.IPSets {
		isStage := strings.HasPrefix(set.Name, "capve-") && strings.HasSuffix(set.Name, m.uuid)
		if !m.isOurs(set.Comment) && !isStage && !strings.HasPrefix(set.Name, "ipfilter-") {
			kept = append(kept, text(set))
		}
	}
	said := map[string]bool{}
	for _, spec := range m.firewalls {
		for name := range firewallOptions(spec) {
			said[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(file.Options)) {
		if !said[name] {
			kept = append(kept, name+"="+file.Options[name])
		}
	}
	return strings.Join(kept, "\n")
}

// firewallOptions are the options that a spec sets.
func firewallOptions(spec v1beta1.Firewall) map[string]string {
	options := map[string]string{}
	for name, value := range map[string]*bool{
		"enable": spec.Enabled, "ipfilter": spec.IPFilter, "macfilter": spec.MACFilter, "dhcp": spec.DHCP, "ndp": spec.NDP, "radv": spec.RouterAdvertisement,
	} {
		if value != nil {
			options[name] = map[bool]string{true: "1", false: "0"}[*value]
		}
	}
	for name, value := range map[string]string{
		"policy_in": string(spec.PolicyIn), "policy_out": string(spec.PolicyOut), "log_level_in": string(spec.LogLevelIn), "log_level_out": string(spec.LogLevelOut),
	} {
		if value != "" {
			options[name] = value
		}
	}
	return options
}

// ends are what passes in the end, by any of the specs that the machine had: an edit may have been on its way for long.
func (s *simulation) ends(m *machine, now pvesim.FirewallSpec) []map[packet]bool {
	var ends []map[packet]bool
	for _, spec := range m.firewalls {
		ends = append(ends, reach(s.finally(m, spec, now)))
	}
	return ends
}

// finally is a firewall as it is to be by a spec.
func (s *simulation) finally(m *machine, spec v1beta1.Firewall, now pvesim.FirewallSpec) pvesim.FirewallSpec {
	file := pvesim.FirewallSpec{Options: map[string]string{}}
	maps.Copy(file.Options, now.Options)
	maps.Copy(file.Options, s.firewallBefore(m))
	maps.Copy(file.Options, firewallOptions(spec))
	for _, group := range spec.SecurityGroups {
		rule := map[string]string{"type": "group", "action": group.Name, "enable": "1"}
		if group.Device != "" {
			rule["iface"] = group.Device
		}
		file.Rules = append(file.Rules, rule)
	}
	for _, rule := range now.Rules {
		if !m.isOurs(rule["comment"]) {
			file.Rules = append(file.Rules, rule)
		}
	}
	for _, set := range now.IPSets {
		if !m.isOurs(set.Comment) {
			file.IPSets = append(file.IPSets, set)
		}
	}
	if file.Options["ipfilter"] == "1" && spec.IPFilter != nil {
		for _, device := range devices {
			file.IPSets = slices.DeleteFunc(file.IPSets, func(set pvesim.IPSetSpec) bool { return set.Name == "ipfilter-"+device })
			file.IPSets = append(file.IPSets, s.filterOf(m, device))
		}
	}
	return file
}

// filterOf is the IP set with the addresses of a device.
func (s *simulation) filterOf(m *machine, device string) pvesim.IPSetSpec {
	set := pvesim.IPSetSpec{Name: "ipfilter-" + device}
	for _, address := range all[*ipamv1.IPAddress](s.api) {
		if strings.HasPrefix(address.Name, m.name+"-"+device) {
			set.Entries = append(set.Entries, pvesim.IPSetEntrySpec{CIDR: address.Spec.Address})
		}
	}
	return set
}

// packet is what a firewall decides about.
type packet struct {
	out     bool
	device  string
	kind    string // dhcp, ndp, ra, or empty for any other
	source  string // of a packet from the VM
	spoofed bool   // it has another's MAC address
	port    string
}

// The devices that firewalls are drawn for; the addresses that a VM may send from, but for its own, which are 10.1.0.N.
var (
	devices = []string{"net0", "net1"}
	packets = allPackets()
)

func allPackets() []packet {
	var all []packet
	for _, device := range devices {
		for _, kind := range []string{"dhcp", "ndp", "ra", ""} {
			for _, port := range []string{"80", "5432", "9100", "22"} {
				all = append(all, packet{device: device, kind: kind, port: port})
				for source := range sources {
					for _, spoofed := range []bool{false, true} {
						all = append(all, packet{out: true, device: device, kind: kind, source: source, spoofed: spoofed, port: port})
					}
				}
			}
		}
	}
	return all
}

// sources are the addresses that packets are tried with.
var sources = map[string]netip.Addr{
	"first": netip.MustParseAddr("10.1.0.10"), "second": netip.MustParseAddr("10.1.0.11"), "third": netip.MustParseAddr("10.1.0.12"), "another's": netip.MustParseAddr("192.0.2.7"),
}

// reach is what a firewall lets pass, by the rules of PVE::Firewall.
func reach(file pvesim.FirewallSpec) map[packet]bool {
	passes := map[packet]bool{}
	for _, p := range packets {
		passes[p] = accepts(file, p)
	}
	return passes
}

func accepts(file pvesim.FirewallSpec, p packet) bool {
	option := func(name, unset string) bool { return cmp.Or(file.Options[name], unset) == "1" }
	set, isFiltered := filter(file, p.device)
	switch {
	case !option("enable", "0"):
		return true
	case p.kind == "dhcp" && option("dhcp", "1"):
		return true
	case p.out && p.spoofed && option("macfilter", "1"):
		return false
	case p.out && p.kind == "ra" && !option("radv", "0"):
		return false
	case p.out && (isFiltered || option("ipfilter", "0")) && !slices.ContainsFunc(set.Entries, func(e pvesim.IPSetEntrySpec) bool { return holds(e, sources[p.source]) }):
		return false
	case p.kind == "ndp" && option("ndp", "1"):
		return true
	}
	for _, rule := range file.Rules {
		if verdict := decides(rule, p); verdict != "" {
			return verdict == "ACCEPT"
		}
	}
	if p.out {
		return cmp.Or(file.Options["policy_out"], "ACCEPT") == "ACCEPT"
	}
	return cmp.Or(file.Options["policy_in"], "DROP") == "ACCEPT"
}

func filter(file pvesim.FirewallSpec, device string) (pvesim.IPSetSpec, bool) {
	at := slices.IndexFunc(file.IPSets, func(set pvesim.IPSetSpec) bool { return set.Name == "ipfilter-"+device })
	if at < 0 {
		return pvesim.IPSetSpec{}, false
	}
	return file.IPSets[at], true
}

func holds(entry pvesim.IPSetEntrySpec, address netip.Addr) bool {
	prefix, err := netip.ParsePrefix(entry.CIDR)
	if err != nil {
		return entry.CIDR == address.String() && !entry.NoMatch
	}
	return prefix.Contains(address) && !entry.NoMatch
}

// decides is what a rule does about a packet; empty if it is not about it. Groups open their port to the VM.
func decides(rule map[string]string, p packet) string {
	port, direction, action := rule["dport"], rule["type"], rule["action"]
	if direction == "group" {
		port, direction, action = groups[action], "in", "ACCEPT"
	}
	isAbout := rule["enable"] == "1" && (rule["iface"] == "" || rule["iface"] == p.device) && (direction == "out") == p.out && (port == "" || port == p.port)
	if !isAbout {
		return ""
	}
	return action
}

// unlikeFirewall compares a VM's firewall with the spec.
func (s *simulation) unlikeFirewall(g guest) string {
	asked := g.object.Spec.Firewall
	file := g.vm.Firewall
	for name, value := range firewallOptions(asked) {
		if file.Options[name] != value {
			return fmt.Sprintf("its firewall has %s=%q, and is to have %q: %s", name, file.Options[name], value, reasons(g.object, true))
		}
	}
	var ours []string
	for i, rule := range file.Rules {
		if !g.isOurs(rule["comment"]) || rule["type"] != "group" {
			continue
		}
		ours = append(ours, rule["action"]+" "+rule["iface"])
		if i != len(ours)-1 || rule["enable"] != "1" {
			return "its firewall rules are out of order, or disabled: " + text(file.Rules)
		}
	}
	var wanted []string
	for _, group := range asked.SecurityGroups {
		wanted = append(wanted, group.Name+" "+group.Device)
	}
	if !slices.Equal(ours, wanted) {
		return fmt.Sprintf("its security groups are %q, and are to be %q: %s", ours, wanted, reasons(g.object, true))
	}
	return s.unlikeFilters(g)
}

// unlikeFilters compares the IP sets with the machine's addresses, and the options that are not asked for with what they were.
func (s *simulation) unlikeFilters(g guest) string {
	file, filters := g.vm.Firewall, firewallOptions(g.object.Spec.Firewall)["ipfilter"] == "1"
	for _, device := range g.object.Spec.Network.Devices {
		set, there := filter(file, device.Name)
		wanted := s.filterOf(g.machine, device.Name)
		switch {
		case filters && there == (len(wanted.Entries) == 0), filters && len(set.Entries) != len(wanted.Entries):
			return fmt.Sprintf("%s is filtered by %s, and has %s", device.Name, text(set), text(wanted))
		case !filters && there && g.isOurs(set.Comment):
			return "the IP set " + set.Name + " is left"
		}
	}
	for _, set := range file.IPSets {
		if strings.HasPrefix(set.Name, "capve-") {
			return "the IP set " + set.Name + " is left"
		}
	}
	asked, before := firewallOptions(g.object.Spec.Firewall), s.firewallBefore(g.machine)
	for _, name := range []string{"enable", "policy_in", "policy_out", "macfilter", "dhcp", "radv", "log_level_in", "log_level_out"} {
		if asked[name] == "" && file.Options[name] != g.options[name] {
			return fmt.Sprintf("the firewall option %s is %q, was %q before it was asked for, and %q is written down: %s", name, file.Options[name], g.options[name], before[name], reasons(g.object, true))
		}
	}
	return ""
}
