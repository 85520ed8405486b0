package soak_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// byHand is a key of a VM's config that somebody changed.
type byHand struct {
	value string
	// isCertain says that the VM was as asked, so that the controllers know that somebody changed it; changes counts those of the spec
	// until then.
	isCertain bool
	changes   int
}

// ask sends a request as an administrator, before anything else happens. It reports what came of it.
func (s *simulation) ask(node proxmox.NodeName, method, path string, form url.Values) (answer string, done bool) {
	target, body := "https://pve/api2/json"+path, io.Reader(http.NoBody)
	if method == http.MethodDelete {
		target += "?" + form.Encode()
	} else {
		body = strings.NewReader(form.Encode())
	}
	ctx, cancel := context.WithTimeout(s.ctx, 2*time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, target, body)
	s.must(err)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	s.login(request)
	reply, err := s.world.Transport(node).RoundTrip(request)
	return told(reply, err), err == nil && reply.StatusCode < http.StatusBadRequest
}

// byAdmin is a change of a VM by hand. Nothing of it comes late: no daemon hangs.
func (s *simulation) byAdmin(vm pvesim.VM, method, path string, form url.Values) bool {
	if s.isFrozen() {
		return false
	}
	answer, done := s.ask(vm.Node, method, path, form)
	s.trace.add("admin", "%s %s %s → %s", method, path, form.Encode(), answer)
	return done
}

// specOf is what describes the VM wholly, with what is pending.
func (s *simulation) specOf(id proxmox.VMID) pvesim.VMSpec {
	vms := s.world.State().VMs
	at := slices.IndexFunc(vms, func(vm pvesim.VMSpec) bool { return vm.VMID == id })
	if at < 0 {
		return pvesim.VMSpec{}
	}
	return vms[at]
}

// edit changes the config of a configured VM by hand; its SMBIOS UUID stays.
func (s *simulation) edit(vm pvesim.VM) {
	owner := s.ownerOf(vm)
	if vmconfig.Config(vm.Config).SMBIOSUUID() != proxmox.SMBIOSUUID(owner.uuid) {
		return
	}
	changes := []url.Values{
		{"delete": {"tags"}},
		{"description": {"mine"}},
		{"net0": {"virtio,bridge=vmbr0"}},
		{"tags": {"mine"}, "delete": {"description"}},
		{"name": {"other"}},
		{"cpuunits": {"77"}},
		{"cores": {"3"}},
		{"onboot": {"1"}},
		{"memory": {"5120"}},
	}
	form := changes[s.random.IntN(len(changes))]
	object, found := find[*v1beta1.ProxmoxMachine](s.api, owner.name)
	isAsAsked := found && object.Spec.ProviderID != "" && object.Annotations[v1beta1.AppliedSpecAnnotation] == vmconfig.WriteApplied(object.Spec)
	before := effective(s.specOf(vm.VMID))
	s.byAdmin(vm, http.MethodPut, vmPath(vm)+"/config", form)
	after := effective(s.specOf(vm.VMID))
	for _, key := range []string{"tags", "description", "net0", "name", "cpuunits", "cores", "onboot", "memory"} {
		if before[key] != after[key] {
			owner.byHand[key] = byHand{value: after[key], isCertain: isAsAsked, changes: owner.changes}
		}
	}
}

// breach changes the firewall of a VM by hand.
func (s *simulation) breach(vm pvesim.VM) {
	owner, path := s.ownerOf(vm), vmPath(vm)+"/firewall"
	file := s.world.Firewall(vm.VMID)
	changes := []func(){
		func() {
			s.byAdmin(vm, http.MethodPost, path+"/rules", s.rule())
		},
		func() {
			if at := slices.IndexFunc(file.Rules, func(rule map[string]string) bool { return owner.isOurs(rule["comment"]) }); at >= 0 {
				s.byAdmin(vm, http.MethodDelete, fmt.Sprintf("%s/rules/%d", path, at), nil)
			}
		},
		func() {
			if count := len(file.Rules); count > 0 {
				at := s.random.IntN(count)
				s.byAdmin(vm, http.MethodPut, fmt.Sprintf("%s/rules/%d", path, at), url.Values{"enable": {[]string{"0", "1"}[s.random.IntN(2)]}})
			}
		},
		func() { s.setOption(vm, owner) },
		func() {
			if len(file.IPSets) > 0 {
				set := file.IPSets[s.random.IntN(len(file.IPSets))]
				s.byAdmin(vm, http.MethodPost, path+"/ipset/"+set.Name, url.Values{"cidr": {"192.0.2.0/24"}})
			}
		},
		func() {
			s.byAdmin(vm, http.MethodPost, path+"/ipset", url.Values{"name": {"theirs"}, "comment": {"theirs"}})
		},
	}
	changes[s.random.IntN(len(changes))]()
	owner.isMeddled = true
	s.seeWall(vm.VMID)
}

// rule is one of an administrator's.
func (s *simulation) rule() url.Values {
	rule := url.Values{"type": {[]string{"in", "out"}[s.random.IntN(2)]}, "action": {[]string{"ACCEPT", "DROP"}[s.random.IntN(2)]}, "enable": {"1"}, "comment": {"theirs"}}
	if s.oneIn(2) {
		rule.Set("proto", "tcp")
		rule.Set("dport", []string{"22", "80"}[s.random.IntN(2)])
	}
	return rule
}

// setOption sets an option of a VM's firewall by hand. One that nothing asks for is the administrator's.
func (s *simulation) setOption(vm pvesim.VM, owner *machine) {
	options := map[string][]string{"enable": {"0", "1"}, "policy_in": {"ACCEPT", "DROP"}, "log_level_in": {"info", "err"}, "log_level_out": {"err"}, "macfilter": {"0", "1"}}
	names := []string{"enable", "policy_in", "log_level_in", "log_level_out", "macfilter"}
	name := names[s.random.IntN(len(names))]
	value := options[name][s.random.IntN(len(options[name]))]
	object, found := find[*v1beta1.ProxmoxMachine](s.api, owner.name)
	if !found || !s.byAdmin(vm, http.MethodPut, vmPath(vm)+"/firewall/options", url.Values{name: {value}}) {
		return
	}
	_, asked := firewallOptions(object.Spec.Firewall)[name]
	if _, recorded := s.firewallBefore(owner)[name]; !asked && !recorded {
		owner.options[name] = value
	}
}

// firewallBefore is what the controllers wrote down of the options; nil when they did not.
func (s *simulation) firewallBefore(m *machine) map[string]string {
	object, found := find[*v1beta1.ProxmoxMachine](s.api, m.name)
	if !found || object.Annotations[v1beta1.FirewallAnnotation] == "" {
		return nil
	}
	before := map[string]string{}
	s.must(json.Unmarshal([]byte(object.Annotations[v1beta1.FirewallAnnotation]), &before))
	return before
}

// manage gives a VM to the HA manager, if it has nothing on a local storage: what is there stays behind when it is recovered elsewhere. Nor a
// VM that is being cloned: recovered without its lock, nothing tells any more that its config names a part of its disks only.
func (s *simulation) manage(vm pvesim.VM) {
	if vm.Lock != "" {
		return
	}
	for _, value := range vm.Config {
		if strings.HasPrefix(value, "local") {
			return
		}
	}
	sid, owner := fmt.Sprintf("vm:%d", vm.VMID), s.ownerOf(vm)
	switch resource := s.world.HA().Resources[sid]; {
	case resource == nil:
		if s.byAdmin(vm, http.MethodPost, "/cluster/ha/resources", url.Values{"sid": {sid}, "state": {"started"}, "comment": {"theirs"}}) {
			owner.managed = true
		}
	case s.oneIn(2):
		if s.byAdmin(vm, http.MethodDelete, "/cluster/ha/resources/"+sid, nil) {
			owner.managed = false
		}
	default:
		s.byAdmin(vm, http.MethodPut, "/cluster/ha/resources/"+sid, url.Values{"max_restart": {"7"}})
	}
	owner.isMeddled = true
}

// unlikeHA compares what the HA manager is told of a VM with the spec.
func (s *simulation) unlikeHA(g guest) string {
	sid := fmt.Sprintf("vm:%d", g.vm.VMID)
	resource, asked := g.ha.Resources[sid], g.object.Spec.HighAvailability
	if asked.Enabled == nil || !*asked.Enabled {
		for name, rule := range g.ha.Rules {
			if hasResource(rule, sid) {
				return "it is in the HA rule " + name + ", which is not asked for"
			}
		}
		switch {
		case resource == nil && g.managed:
			return "the HA resource that an administrator made is gone"
		case resource != nil && !g.managed:
			return "it is an HA resource, which is not asked for: " + reasons(g.object, true)
		}
		return ""
	}
	if resource == nil {
		return "it is no HA resource: " + reasons(g.object, true)
	}
	wanted := map[string]string{}
	if asked.Group != "" {
		wanted["group"] = asked.Group
	}
	for name, value := range map[string]*int32{"max_restart": asked.MaxRestart, "max_relocate": asked.MaxRelocate} {
		if value != nil {
			wanted[name] = fmt.Sprint(*value)
		}
	}
	if asked.Failback != nil {
		wanted["failback"] = map[bool]string{true: "1", false: "0"}[*asked.Failback]
	}
	for name, value := range wanted {
		if is, set := resource[name]; is != value && (set || value != "1") {
			return fmt.Sprintf("its HA resource has %s=%q, and is to have %q: %s", name, is, value, reasons(g.object, true))
		}
	}
	for _, rule := range asked.Rules {
		if !hasResource(g.ha.Rules[rule.Name], sid) {
			return fmt.Sprintf("it is not in the HA rule %s: %s", rule.Name, reasons(g.object, true))
		}
	}
	return ""
}

func hasResource(rule map[string]string, sid string) bool {
	return slices.Contains(strings.FieldsFunc(rule["resources"], func(c rune) bool { return c == ',' || c == ' ' }), sid)
}
