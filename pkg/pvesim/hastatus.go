package pvesim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

func haStatusIndex(c *call) reply {
	names := []string{"current", "manager_status"}
	if c.version == V92 {
		names = append(names, "disarm-ha", "arm-ha")
	}
	out := []map[string]string{}
	for _, name := range names {
		out = append(out, map[string]string{"name": name})
	}
	return ok(out)
}

// haMaster is the node that is the manager: the one that the state names, else the first that is up.
func (w *World) haMaster() proxmox.NodeName {
	if n := w.node(w.ha.master); n != nil && n.online {
		return n.Name
	}
	for _, n := range w.nodes {
		if n.online {
			return n.Name
		}
	}
	return ""
}

// haActive tells whether the node's agent has services to look after.
func (w *World) haActive(name proxmox.NodeName) bool {
	for _, s := range w.ha.services {
		if s.node == name {
			return true
		}
	}
	return false
}

// haCurrent is GET /cluster/ha/status/current: quorum, manager, agents of the nodes, services.
func haCurrent(c *call) reply {
	now, master := c.clock.Now(), c.haMaster()
	date := now.UTC().Format(time.ANSIC)
	out := []map[string]any{
		{"id": "quorum", "type": "quorum", "node": c.at.Name, "status": "OK", "quorate": 1},
		{"id": "master", "type": "master", "node": master, "status": fmt.Sprintf("%s (active, %s)", master, date), "timestamp": now.Unix()},
	}
	if c.version == V92 {
		out = append(out, map[string]any{
			"id": "fencing", "type": "fencing", "node": master, "status": "armed (CRM watchdog active)", "armed-state": "armed",
		})
	}
	for _, n := range c.nodes {
		out = append(out, map[string]any{
			"id": "lrm:" + string(n.Name), "type": "lrm", "node": n.Name, "timestamp": now.Unix(), "status": fmt.Sprintf("%s (%s, %s)", n.Name, c.haAgent(n), date),
		})
	}
	sids := maps.Clone(c.ha.resources)
	for sid := range c.ha.services {
		sids[sid] = nil
	}
	for _, sid := range slices.Sorted(maps.Keys(sids)) {
		out = append(out, c.haServiceEntry(sid))
	}
	return ok(out)
}

// haAgent is the state of a node's agent as the status words it.
func (c *call) haAgent(n *node) string {
	state, watchdog := "idle", "standby"
	if c.haActive(n.Name) {
		state, watchdog = "active", "active"
	}
	switch {
	case !n.online:
		return "old timestamp - dead?"
	case c.version == V84:
		return state
	}
	return fmt.Sprintf("%s, watchdog %s", state, watchdog)
}

func (c *call) haServiceEntry(sid string) map[string]any {
	r, s := c.ha.resources[sid], c.ha.services[sid]
	node := c.haServiceNode(sid)
	state := haVerboseState(r, s)
	out := map[string]any{
		"id": "service:" + sid, "sid": sid, "type": "service", "node": node, "state": state, "status": fmt.Sprintf("%s (%s, %s)", sid, node, state),
	}
	if s != nil {
		out["crm_state"] = s.state
	}
	if r == nil {
		return out
	}
	out["request_state"], out["max_restart"], out["max_relocate"] = haWanted(r), atoi(r["max_restart"], 1), atoi(r["max_relocate"], 1)
	for _, key := range []string{"group", "comment"} {
		if r[key] != "" {
			out[key] = r[key]
		}
	}
	if c.version == V92 {
		out["failback"] = atoi(r["failback"], 1)
	}
	return out
}

func (c *call) haServiceNode(sid string) proxmox.NodeName {
	_, number, _ := strings.Cut(sid, ":")
	if v := c.vms[toVMID(number)]; v != nil {
		return v.node
	}
	if s := c.ha.services[sid]; s != nil {
		return s.node
	}
	return ""
}

// haWanted is the requested state; enabled is another word for started.
func haWanted(r map[string]string) string {
	switch state := r["state"]; state {
	case "", "enabled":
		return haStarted
	default:
		return state
	}
}

// haVerboseState is the state that people are shown (PVE::HA::Tools::get_verbose_service_state).
func haVerboseState(r map[string]string, s *haService) string {
	if r == nil {
		return "deleting"
	}
	want := haWanted(r)
	switch {
	case want == haIgnored:
		return haIgnored
	case s == nil:
		return "queued"
	case s.state == haStopped && want == haStarted:
		return "starting"
	case s.state == haStopped && want == haDisabled:
		return haDisabled
	case s.state == haStarted && want != haStarted:
		return "stopping"
	case s.state == haStarted && !s.running:
		return "starting"
	}
	return s.state
}

// haManagerStatus is the manager's own view, and that of the nodes' agents.
func haManagerStatus(c *call) reply {
	now := c.clock.Now().Unix()
	services, nodes, agents := map[string]any{}, map[string]string{}, map[string]any{}
	for sid, s := range c.ha.services {
		services[sid] = map[string]any{"node": s.node, "state": s.state, "running": pveBool(s.running)}
	}
	for _, n := range c.nodes {
		nodes[string(n.Name)] = "online"
		if !n.online {
			nodes[string(n.Name)] = "unknown"
		}
		state := "wait_for_agent_lock"
		if c.haActive(n.Name) {
			state = "active"
		}
		agents[string(n.Name)] = map[string]any{"mode": "active", "state": state, "timestamp": now, "results": map[string]any{}}
	}
	return ok(map[string]any{
		"manager_status": map[string]any{"master_node": c.haMaster(), "node_status": nodes, "service_status": services, "timestamp": now},
		"quorum":         map[string]any{"node": c.at.Name, "quorate": "1"},
		"lrm_status":     agents,
	})
}
