package pvesim

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

func usbMappingRoutes() []Route {
	const usb = "/cluster/mapping/usb"
	id := schema.Text("id").Format("pve-configid").Required()
	device, description := schema.List("map").Of(usbMapFormat()), schema.Text("description").MaxLength(4096)
	use := anyOf{on(usbPath("{id}"), "Mapping.Audit"), on(usbPath("{id}"), "Mapping.Use"), on(usbPath("{id}"), "Mapping.Modify")}
	update := []schema.Param{id, description, device.Required(), schema.Text("digest").MaxLength(64), schema.Text("delete").Format("pve-configid-list").MaxLength(4096)}
	return []Route{
		{Method: "GET", Path: usb, handle: listUSBMappings, params: []schema.Param{schema.Text("check-node").Format("pve-node")}},
		{Method: "POST", Path: usb, handle: createUSBMapping, permission: on("/mapping/usb", "Mapping.Modify"), params: []schema.Param{id, description, device.Required()}},
		{Method: "GET", Path: usb + "/{id}", handle: getUSBMapping, permission: use, params: []schema.Param{id}},
		{Method: "PUT", Path: usb + "/{id}", handle: updateUSBMapping, permission: on(usbPath("{id}"), "Mapping.Modify"), params: update},
		{Method: "DELETE", Path: usb + "/{id}", handle: deleteUSBMapping, permission: on("/mapping/usb", "Mapping.Modify"), params: []schema.Param{id}},
	}
}

// usbPath is where the rights on a mapping are held.
func usbPath(id string) string { return "/mapping/usb/" + id }

// usbMapFormat is one device of a mapping.
func usbMapFormat() schema.PropertyString {
	return schema.PropertyString{Params: []schema.Param{
		schema.Text("node").Format("pve-node").Required(), schema.Text("id").Pattern(`[0-9A-Fa-f]{4}:[0-9A-Fa-f]{4}`).Required(),
		schema.Text("path").Pattern(`(\d+)\-(\d+(\.\d+)*)`), schema.Text("description").MaxLength(4096),
	}}
}

// entry is the mapping as the API shows it.
func (m *USBMappingSpec) entry(digest string) map[string]any {
	out := map[string]any{"type": "usb", "map": slices.Clone(m.Map), "digest": digest}
	if m.Description != "" {
		out["description"] = m.Description
	}
	return out
}

// isOn tells whether the mapping names a device of a host.
func (m *USBMappingSpec) isOn(node string) bool {
	format := usbMapFormat()
	return slices.ContainsFunc(m.Map, func(value string) bool {
		device, _ := format.Parse(value)
		return device["node"] == node
	})
}

// usbDigest is the checksum of the file with all mappings of USB devices.
func (w *World) usbDigest() string {
	h := sha1.New()
	for _, id := range slices.Sorted(maps.Keys(w.usbMappings)) {
		_, _ = fmt.Fprintf(h, "%s %v\n", id, *w.usbMappings[id])
	}
	return hex.EncodeToString(h.Sum(nil))
}

func listUSBMappings(c *call) reply {
	out := []map[string]any{}
	for _, id := range slices.Sorted(maps.Keys(c.usbMappings)) {
		if !c.mayAny(c.who, usbPath(id), "Mapping.Use", "Mapping.Modify", "Mapping.Audit") {
			continue
		}
		entry := c.usbMappings[id].entry(c.usbDigest())
		entry["id"] = id
		if name := c.params["check-node"]; name != "" {
			entry["error"] = []map[string]string{}
			if !c.usbMappings[id].isOn(name) {
				entry["error"] = []map[string]string{{"severity": "warning", "message": fmt.Sprintf("No mapping for node %s.", name)}}
			}
		}
		out = append(out, entry)
	}
	return ok(out)
}

func createUSBMapping(c *call) reply {
	id := c.params["id"]
	if c.usbMappings[id] != nil {
		return fail("create hardware mapping failed: usb ID '%s' already defined", id)
	}
	c.usbMappings[id] = &USBMappingSpec{ID: id, Description: c.params["description"], Map: strings.Split(c.params["map"], "\x00")}
	return ok(nil)
}

func getUSBMapping(c *call) reply {
	m := c.usbMappings[c.params["id"]]
	if m == nil {
		return fail("mapping '%s' not found", c.params["id"])
	}
	return ok(m.entry(c.usbDigest()))
}

func updateUSBMapping(c *call) reply {
	m := c.usbMappings[c.params["id"]]
	switch {
	case c.has("digest") && c.params["digest"] != c.usbDigest():
		return fail("update hardware mapping failed: detected modified configuration - file changed by other user? Try again.")
	case m == nil:
		return fail("update hardware mapping failed: usb ID '%s' does not exist", c.params["id"])
	}
	next := *m
	next.Map = strings.Split(c.params["map"], "\x00")
	if c.has("description") {
		next.Description = c.params["description"]
	}
	for _, key := range schema.SplitList(c.params["delete"]) {
		switch {
		case key == "map":
			return fail("update hardware mapping failed: unable to delete required option 'map'")
		case c.has(key):
			return fail("update hardware mapping failed: cannot set and delete property '%s' at the same time!", key)
		case key != "description":
			return fail("update hardware mapping failed: no such option '%s'", key)
		}
		next.Description = ""
	}
	*m = next
	return ok(nil)
}

// deleteUSBMapping does not mind whether guests use the mapping or whether there is one.
func deleteUSBMapping(c *call) reply {
	delete(c.usbMappings, c.params["id"])
	return ok(nil)
}

// usbFailure is why a usbN cannot be passed on (PVE::QemuServer::USB, parse_usb_device).
func (w *World) usbFailure(v *vm, value string) string {
	name := propertyOr(value, "mapping", "")
	if m := w.usbMappings[name]; name == "" || m != nil && m.isOn(string(v.node)) {
		return ""
	}
	return fmt.Sprintf("USB device mapping not found for '%s'", name)
}
