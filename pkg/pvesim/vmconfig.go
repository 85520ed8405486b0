package pvesim

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

func vmRoutes(v Version) []Route {
	const vmPath = "/nodes/{node}/qemu/{vmid}"
	audit := on("/vms/{vmid}", "VM.Audit")
	edit := append(configParams(v), editParams()...)
	post := append(slices.Clone(edit), schema.Integer("background_delay").Min(1).Max(30), schema.Text("import-working-storage").Format("pve-storage-id"))
	return []Route{
		{Method: "GET", Path: "/nodes/{node}/qemu", handle: listVMs, params: []schema.Param{schema.Boolean("full")}},
		{Method: "POST", Path: "/nodes/{node}/qemu", handle: createVM, params: createParams(v)},
		{Method: "DELETE", Path: vmPath, handle: destroyVM, permission: on("/vms/{vmid}", "VM.Allocate"), params: []schema.Param{
			schema.Boolean("destroy-unreferenced-disks"), schema.Boolean("purge"), schema.Boolean("skiplock"),
		}},
		{Method: "GET", Path: vmPath + "/config", handle: getConfig, permission: audit, params: []schema.Param{
			schema.Boolean("current"), schema.Text("snapshot").Format("pve-configid").MaxLength(40),
		}},
		{Method: "PUT", Path: vmPath + "/config", handle: putConfig, permission: configPermission(), params: edit},
		{Method: "POST", Path: vmPath + "/config", handle: postConfig, permission: configPermission(), params: post},
		{Method: "GET", Path: vmPath + "/pending", handle: getPending, permission: audit},
		{Method: "PUT", Path: vmPath + "/unlink", handle: unlinkDisks, permission: on("/vms/{vmid}", "VM.Config.Disk"), params: []schema.Param{
			schema.Text("idlist").Format("pve-configid-list").Required(), schema.Boolean("force"),
		}},
		moveDiskRoute(),
		{Method: "PUT", Path: vmPath + "/resize", handle: resizeDisk(), permission: on("/vms/{vmid}", "VM.Config.Disk"), params: []schema.Param{
			schema.Text("digest").MaxLength(40), schema.Choice("disk", diskNames()...).Required(), schema.Text("size").Pattern(`\+?\d+(\.\d+)?[KMGT]?`).Required(), schema.Boolean("skiplock"),
		}},
	}
}

// digest is the checksum of the config file, with which a write can demand that nothing has changed.
func (v *vm) digest() string {
	h := sha1.New()
	for _, key := range slices.Sorted(maps.Keys(v.config)) {
		_, _ = fmt.Fprintf(h, "%s: %s\n", key, v.config[key])
	}
	for _, key := range slices.Sorted(maps.Keys(v.pending)) {
		_, _ = fmt.Fprintf(h, "[PENDING] %s: %v\n", key, v.pending[key])
	}
	for _, s := range v.snapshots {
		_, _ = fmt.Fprintf(h, "[%s] %v\n", s.name, s.section())
	}
	return hex.EncodeToString(h.Sum(nil))
}

// jsonValue is a config value as the API writes it: numbers for integers and booleans, text for the rest.
func (t *routeTable) jsonValue(key, value string) any {
	if key == "cipassword" {
		return hiddenPassword
	}
	if !schema.IsInteger(value) || !t.numeric[key] {
		return value
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return value
	}
	return n
}

func (t *routeTable) collectNumeric() {
	t.numeric = map[string]bool{}
	t.options = configParams(t.version)
	for _, p := range t.options {
		if p.Count == 0 && (p.Kind == schema.IntegerKind || p.Kind == schema.BooleanKind) {
			t.numeric[p.Name] = true
		}
	}
}

// getConfig shows values as they will be after the next start, or the present ones with current=1.
func getConfig(c *call) reply {
	v := c.vm()
	if v == nil {
		return missingVM(c.node.Name, c.vmid())
	}
	if c.has("snapshot") && c.flag("current") {
		const msg = "cannot use 'snapshot' parameter with 'current'"
		return invalid(map[string]string{"snapshot": msg, "current": msg})
	}
	if name := c.params["snapshot"]; name != "" {
		return c.configAt(v, name)
	}
	out := map[string]any{"digest": v.digest()}
	for key, value := range v.config {
		out[key] = c.routes.jsonValue(key, value)
	}
	if c.flag("current") {
		return ok(out)
	}
	for key, p := range v.pending {
		// A value that Perl takes for false is not hidden.
		if p.delete && v.config[key] == "0" {
			continue
		}
		if p.delete {
			delete(out, key)
		} else {
			out[key] = c.routes.jsonValue(key, p.value)
		}
	}
	return ok(out)
}

func getPending(c *call) reply {
	v := c.vm()
	if v == nil {
		return missingVM(c.node.Name, c.vmid())
	}
	keys := maps.Clone(v.config)
	for key := range v.pending {
		keys[key] = v.config[key]
	}
	out := []map[string]any{{"key": "digest", "value": v.digest()}}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		out = append(out, c.pendingEntry(v, key))
	}
	return ok(out)
}

// pendingEntry is an option with what waits for it: a value, or a deletion, which is 2 if it is forced.
func (c *call) pendingEntry(v *vm, key string) map[string]any {
	entry := map[string]any{"key": key}
	if value, now := v.config[key]; now {
		entry["value"] = c.routes.jsonValue(key, value)
	}
	switch p, waiting := v.pending[key]; {
	case waiting && p.delete:
		entry["delete"] = 1 + pveBool(p.force)
	case waiting && key == "cipassword":
		entry["pending"] = hiddenPassword + " "
	case waiting:
		entry["pending"] = c.routes.jsonValue(key, p.value)
	}
	return entry
}

// hiddenPassword stands for a cloud-init password.
const hiddenPassword = "**********"

func listVMs(c *call) reply {
	out := []map[string]any{}
	for _, id := range slices.Sorted(maps.Keys(c.vms)) {
		v := c.vms[id]
		if v.node != c.node.Name || !c.canSee(id) {
			continue
		}
		entry := c.vmStatus(v)
		for _, key := range []string{"ha", "agent", "serial"} {
			delete(entry, key)
		}
		if !c.flag("full") {
			delete(entry, "qmpstatus")
		}
		out = append(out, entry)
	}
	return ok(out)
}
