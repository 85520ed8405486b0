package pvesim

import (
	"strconv"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

func clusterRoutes(v Version) []Route {
	names := []string{
		"acme", "backup", "backup-info", "ceph", "config", "firewall", "ha", "jobs", "log", "mapping", "metrics", "notifications", "nextid", "options",
		"replication", "resources", "status", "tasks", "sdn",
	}
	if v != V84 {
		names = append(names, "bulk-action", "qemu")
	}
	audit := on("/", "Sys.Audit")
	return []Route{
		{Method: "GET", Path: "/", handle: index("subdir", "version", "cluster", "nodes", "storage", "access", "pools")},
		{Method: "GET", Path: "/version", handle: version},
		{Method: "GET", Path: "/cluster", handle: index("name", names...)},
		{Method: "GET", Path: "/cluster/status", handle: clusterStatus, permission: audit},
		{Method: "GET", Path: "/cluster/config", handle: index("name", "nodes", "totem", "join", "qdevice", "apiversion"), permission: audit},
		{Method: "GET", Path: "/cluster/config/nodes", handle: configNodes, permission: audit},
		{Method: "GET", Path: "/cluster/options", handle: getOptions},
		{Method: "PUT", Path: "/cluster/options", handle: setOptions, permission: on("/", "Sys.Modify"), params: optionParams(v)},
		{Method: "GET", Path: "/cluster/nextid", handle: nextID, params: []schema.Param{schema.VMID("vmid")}},
		{Method: "GET", Path: "/cluster/tasks", handle: clusterTasks},
		{Method: "GET", Path: "/cluster/resources", handle: resources, params: []schema.Param{schema.Choice("type", "vm", "storage", "node", "sdn")}},
	}
}

func version(c *call) reply {
	return ok(map[string]string{"version": c.version.full(), "release": string(c.version), "repoid": "pvesim"})
}

func clusterStatus(c *call) reply {
	list := []map[string]any{}
	for _, n := range c.nodes {
		list = append(list, map[string]any{
			"type": "node", "id": "node/" + string(n.Name), "name": n.Name, "nodeid": n.id, "online": pveBool(c.at.sees(n)),
			"ip": n.Address, "local": pveBool(n == c.at), "level": "",
		})
	}
	head := map[string]any{
		"type": "cluster", "id": "cluster", "name": c.name, "nodes": len(c.nodes), "quorate": pveBool(c.quorate(c.at)), "version": 1,
	}
	return ok(append([]map[string]any{head}, list...))
}

// configNodes is the node list of corosync.conf, whose values are all text.
func configNodes(c *call) reply {
	out := []map[string]string{}
	for _, n := range c.nodes {
		out = append(out, map[string]string{
			"node": string(n.Name), "name": string(n.Name), "nodeid": strconv.Itoa(n.id), "quorum_votes": "1", "ring0_addr": n.Address,
		})
	}
	return ok(out)
}
