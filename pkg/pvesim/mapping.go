package pvesim

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

func mappingRoutes() []Route {
	const pci = "/cluster/mapping/pci"
	id := schema.Text("id").Format("pve-configid").Required()
	device := schema.List("map").Of(pciMapFormat())
	options := []schema.Param{schema.Text("description").MaxLength(4096), schema.Boolean("mdev"), schema.Boolean("live-migration-capable")}
	node := []schema.Param{schema.Text("check-node").Format("pve-node")}
	use := anyOf{on(pciPath("{id}"), "Mapping.Use"), on(pciPath("{id}"), "Mapping.Modify"), on(pciPath("{id}"), "Mapping.Audit")}
	create := slices.Concat(options, []schema.Param{id, device.Required()})
	update := slices.Concat(options, []schema.Param{id, device, schema.Text("digest").MaxLength(64), schema.Text("delete").Format("pve-configid-list").MaxLength(4096)})
	return append(usbMappingRoutes(), []Route{
		{Method: "GET", Path: "/cluster/mapping", handle: index("name", "dir", "pci", "usb")},
		{Method: "GET", Path: pci, handle: listMappings, params: node},
		{Method: "POST", Path: pci, handle: createMapping, permission: on("/mapping/pci", "Mapping.Modify"), params: create},
		{Method: "GET", Path: pci + "/{id}", handle: getMapping, permission: use, params: []schema.Param{id}},
		{Method: "PUT", Path: pci + "/{id}", handle: updateMapping, permission: on(pciPath("{id}"), "Mapping.Modify"), params: update},
		{Method: "DELETE", Path: pci + "/{id}", handle: deleteMapping, permission: on("/mapping/pci", "Mapping.Modify"), params: []schema.Param{id}},
		{Method: "GET", Path: "/cluster/mapping/dir", handle: noMappings, params: node},
	}...)
}

// pciPath is where the rights on a mapping are held.
func pciPath(id string) string { return "/mapping/pci/" + id }

// pciMapFormat is one device of a mapping.
func pciMapFormat() schema.PropertyString {
	id, path := `[0-9A-Fa-f]{4}:[0-9A-Fa-f]{4}`, `[a-f0-9]{4,}:[a-f0-9]{2}:[a-f0-9]{2}(?:.[a-f0-9])?`
	return schema.PropertyString{Params: []schema.Param{
		schema.Text("node").Format("pve-node").Required(), schema.Text("id").Pattern(id).Required(), schema.Text("subsystem-id").Pattern(id),
		schema.Text("path").Pattern("(?:" + path + ";)*" + path).Required(), schema.Integer("iommugroup"), schema.Text("description").MaxLength(4096),
	}}
}

// noMappings answers for mappings of directories, of which there are none.
func noMappings(*call) reply { return ok([]any{}) }

// options of a mapping as the API shows them.
func (m *PCIMappingSpec) options() map[string]any {
	out := map[string]any{"type": "pci", "map": slices.Clone(m.Map)}
	if m.Description != "" {
		out["description"] = m.Description
	}
	if m.Mdev {
		out["mdev"] = 1
	}
	if m.LiveMigration {
		out["live-migration-capable"] = 1
	}
	return out
}

// mappingDigest is the checksum of the file with all mappings.
func (w *World) mappingDigest() string {
	h := sha1.New()
	for _, id := range slices.Sorted(maps.Keys(w.mappings)) {
		_, _ = fmt.Fprintf(h, "%s %v\n", id, *w.mappings[id])
	}
	return hex.EncodeToString(h.Sum(nil))
}

func listMappings(c *call) reply {
	out := []map[string]any{}
	for _, id := range slices.Sorted(maps.Keys(c.mappings)) {
		if !c.mayAny(c.who, pciPath(id), "Mapping.Use", "Mapping.Modify", "Mapping.Audit") {
			continue
		}
		entry := c.mappings[id].options()
		entry["id"], entry["digest"] = id, c.mappingDigest()
		if name := c.params["check-node"]; name != "" {
			entry["checks"] = c.checkMapping(c.mappings[id], proxmox.NodeName(name))
		}
		out = append(out, entry)
	}
	return ok(out)
}

// checkMapping says what is wrong with a mapping on a node.
func (w *World) checkMapping(m *PCIMappingSpec, name proxmox.NodeName) []map[string]string {
	out, here := []map[string]string{}, 0
	format := pciMapFormat()
	for _, value := range m.Map {
		device, _ := format.Parse(value)
		if device["node"] != string(name) {
			continue
		}
		here++
		if msg := w.node(name).checkDevice(device["path"]); msg != "" {
			out = append(out, map[string]string{"severity": "error", "message": "Invalid configuration: " + msg})
		}
	}
	if here == 0 {
		out = append(out, map[string]string{"severity": "warning", "message": fmt.Sprintf("No mapping for node %s.", name)})
	}
	return out
}

// checkDevice says that a device of a mapping, one address or several with semicolons, is not in the host; or "".
func (n *node) checkDevice(path string) string {
	for _, id := range strings.Split(path, ";") {
		if n == nil || !slices.ContainsFunc(n.PCI, func(d PCIDeviceSpec) bool { return d.ID == id || strings.HasPrefix(d.ID, id+".") }) {
			return fmt.Sprintf("pci device '%s' not found\n", id)
		}
	}
	return ""
}

// given takes the options of the request into a mapping.
func (m *PCIMappingSpec) given(c *call) {
	if c.has("map") {
		m.Map = strings.Split(c.params["map"], "\x00")
	}
	if c.has("description") {
		m.Description = c.params["description"]
	}
	if c.has("mdev") {
		m.Mdev = c.flag("mdev")
	}
	if c.has("live-migration-capable") {
		m.LiveMigration = c.flag("live-migration-capable")
	}
}

func createMapping(c *call) reply {
	id := c.params["id"]
	if c.mappings[id] != nil {
		return fail("create hardware mapping failed: pci ID '%s' already defined", id)
	}
	m := &PCIMappingSpec{ID: id}
	m.given(c)
	c.mappings[id] = m
	return ok(nil)
}

func getMapping(c *call) reply {
	m := c.mappings[c.params["id"]]
	if m == nil {
		return fail("mapping '%s' not found", c.params["id"])
	}
	out := m.options()
	out["digest"] = c.mappingDigest()
	return ok(out)
}

func updateMapping(c *call) reply {
	m := c.mappings[c.params["id"]]
	switch {
	case c.has("digest") && c.params["digest"] != c.mappingDigest():
		return fail("update hardware mapping failed: detected modified configuration - file changed by other user? Try again.")
	case m == nil:
		return fail("update hardware mapping failed: pci ID '%s' does not exist", c.params["id"])
	}
	next := *m
	next.given(c)
	for _, key := range schema.SplitList(c.params["delete"]) {
		if msg := next.drop(c, key); msg != "" {
			return fail("update hardware mapping failed: %s", msg)
		}
	}
	*m = next
	return ok(nil)
}

// drop deletes an option, or says why it cannot be.
func (m *PCIMappingSpec) drop(c *call, key string) string {
	switch {
	case key == "map":
		return "unable to delete required option 'map'"
	case c.has(key):
		return fmt.Sprintf("cannot set and delete property '%s' at the same time!", key)
	case key == "description":
		m.Description = ""
	case key == "mdev":
		m.Mdev = false
	case key == "live-migration-capable":
		m.LiveMigration = false
	default:
		return fmt.Sprintf("no such option '%s'", key)
	}
	return ""
}

// deleteMapping does not mind whether guests use the mapping or whether there is one.
func deleteMapping(c *call) reply {
	delete(c.mappings, c.params["id"])
	return ok(nil)
}
