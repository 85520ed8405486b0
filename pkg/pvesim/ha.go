package pvesim

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

// States that are requested of HA resources, and some of the services that the HA manager makes of them.
const (
	haStarted     = "started"
	haStopped     = "stopped"
	haDisabled    = "disabled"
	haIgnored     = "ignored"
	haRequestStop = "request_stop"
	haError       = "error"
)

// haManager is what is configured for high availability, and what the manager makes of it.
type haManager struct {
	master    proxmox.NodeName
	resources map[string]map[string]string
	groups    map[string]map[string]string
	rules     map[string]map[string]string
	// services are the resources that the manager has taken over, by their ID.
	services map[string]*haService
	// commands wait for the manager's next round, by the ID of the resource.
	commands map[string]haCommand
	// planned are the resources that the manager will look at.
	planned map[string]bool
	// rounds are when it last looked at a resource.
	rounds map[string]time.Time
}

func newHAManager() *haManager {
	return &haManager{
		resources: map[string]map[string]string{}, groups: map[string]map[string]string{}, rules: map[string]map[string]string{},
		services: map[string]*haService{}, commands: map[string]haCommand{}, planned: map[string]bool{}, rounds: map[string]time.Time{},
	}
}

func haRoutes(v Version) []Route {
	const path = "/cluster/ha"
	audit, console := on("/", "Sys.Audit"), on("/", "Sys.Console")
	move := []schema.Param{schema.Text("node").Format("pve-node").Required()}
	out := []Route{
		{Method: "GET", Path: path, handle: haIndex, permission: audit},
		{Method: "GET", Path: path + "/resources", handle: listHAResources, permission: audit, params: []schema.Param{schema.Choice("type", "ct", "vm")}},
		{Method: "POST", Path: path + "/resources", handle: addHAResource, permission: console, params: append(haResourceParams(v), schema.Choice("type", "ct", "vm"))},
		{Method: "GET", Path: path + "/resources/{sid}", handle: getHAResource, permission: audit},
		{Method: "PUT", Path: path + "/resources/{sid}", handle: changeHAResource, permission: console, params: append(haResourceParams(v), updateParams()...)},
		{Method: "DELETE", Path: path + "/resources/{sid}", handle: deleteHAResource, permission: console, params: haDeleteParams(v)},
		{Method: "POST", Path: path + "/resources/{sid}/migrate", handle: moveHAResource("migrate"), permission: console, params: move},
		{Method: "POST", Path: path + "/resources/{sid}/relocate", handle: moveHAResource("relocate"), permission: console, params: move},
		{Method: "GET", Path: path + "/status", handle: haStatusIndex},
		{Method: "GET", Path: path + "/status/current", handle: haCurrent, permission: audit},
		{Method: "GET", Path: path + "/status/manager_status", handle: haManagerStatus, permission: audit},
	}
	out = append(out, haGroupRoutes(v)...)
	if v == V92 {
		out = append(out, haRuleRoutes()...)
	}
	return out
}

func haIndex(c *call) reply {
	out := []map[string]string{{"id": "status"}, {"id": "resources"}, {"id": "groups"}}
	if c.version == V92 {
		out = append(out, map[string]string{"id": "rules"})
	}
	return ok(out)
}

// haID is the ID of the VM as an HA resource.
func haID(id proxmox.VMID) string { return "vm:" + id.String() }

// haConfigured tells whether the VM is an HA resource, in whatever state.
func (w *World) haConfigured(id proxmox.VMID) bool { return w.ha.resources[haID(id)] != nil }

// haManaged tells whether the HA manager looks after the VM, so that the API may only ask it for changes.
func (w *World) haManaged(id proxmox.VMID) bool {
	r := w.ha.resources[haID(id)]
	return r != nil && r["state"] != haIgnored
}

// haPurge takes a VM that is destroyed out of the HA resources and the rules; false if it was in none.
func (w *World) haPurge(id proxmox.VMID) bool {
	sid := haID(id)
	if w.ha.resources[sid] == nil {
		return false
	}
	w.haForget(sid)
	return true
}

// haForget removes a resource and what names it. The manager notices later.
func (w *World) haForget(sid string) {
	delete(w.ha.resources, sid)
	for name, rule := range w.ha.rules {
		left := slices.DeleteFunc(schema.SplitList(rule["resources"]), func(s string) bool { return s == sid })
		if len(left) == 0 {
			delete(w.ha.rules, name)
			continue
		}
		rule["resources"] = strings.Join(left, ",")
	}
	w.haTouch(sid)
}

// haStatus is what a VM's status says of high availability.
func (w *World) haStatus(id proxmox.VMID) map[string]any {
	r := w.ha.resources[haID(id)]
	if r == nil {
		return map[string]any{"managed": 0}
	}
	out := map[string]any{"managed": 1, "state": nil}
	if s := w.ha.services[haID(id)]; s != nil {
		out["state"] = s.state
	}
	if w.version == V84 {
		out["group"] = nil
		if r["group"] != "" {
			out["group"] = r["group"]
		}
	}
	return out
}

// haState is the state of the VM's service; empty if the manager has none.
func (w *World) haState(id proxmox.VMID) string {
	if s := w.ha.services[haID(id)]; s != nil {
		return s.state
	}
	return ""
}

// loadHA enters what is configured; the manager takes it over as if it were new.
func (w *World) loadHA(s HASpec) {
	w.ha.master = s.Master
	for sid, r := range s.Resources {
		w.ha.resources[sid] = maps.Clone(r)
		if w.ha.resources[sid] == nil {
			w.ha.resources[sid] = map[string]string{}
		}
	}
	for name, g := range s.Groups {
		w.ha.groups[name] = maps.Clone(g)
	}
	for name, r := range s.Rules {
		w.ha.rules[name] = maps.Clone(r)
	}
	for _, sid := range slices.Sorted(maps.Keys(w.ha.resources)) {
		w.haTouch(sid)
	}
}

func (w *World) dumpHA() HASpec {
	return HASpec{Master: w.ha.master, Resources: cloneOptions(w.ha.resources), Groups: cloneOptions(w.ha.groups), Rules: cloneOptions(w.ha.rules)}
}

// cloneOptions copies named options; of none it is nil.
func cloneOptions(in map[string]map[string]string) map[string]map[string]string {
	if len(in) == 0 {
		return nil
	}
	out := map[string]map[string]string{}
	for name, options := range in {
		out[name] = maps.Clone(options)
	}
	return out
}
