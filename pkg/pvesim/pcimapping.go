package pvesim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

func pciMappings() mappings[PCIMappingSpec, *PCIMappingSpec] {
	return mappings[PCIMappingSpec, *PCIMappingSpec]{
		kind: "pci", of: func(w *World) map[string]*PCIMappingSpec { return w.mappings }, device: pciMapFormat(),
		readers: []string{"Mapping.Use", "Mapping.Modify", "Mapping.Audit"},
		options: []schema.Param{schema.Text("description").MaxLength(4096), schema.Boolean("mdev"), schema.Boolean("live-migration-capable")},
	}
}

// pciMapFormat is one device of a mapping.
func pciMapFormat() schema.PropertyString {
	id, path := `[0-9A-Fa-f]{4}:[0-9A-Fa-f]{4}`, `[a-f0-9]{4,}:[a-f0-9]{2}:[a-f0-9]{2}(?:.[a-f0-9])?`
	return schema.PropertyString{Params: []schema.Param{
		schema.Text("node").Format("pve-node").Required(), schema.Text("id").Pattern(id).Required(), schema.Text("subsystem-id").Pattern(id),
		schema.Text("path").Pattern("(?:" + path + ";)*" + path).Required(), schema.Integer("iommugroup"), schema.Text("description").MaxLength(4096),
	}}
}

func (m *PCIMappingSpec) options() map[string]any {
	out := map[string]any{"map": slices.Clone(m.Map)}
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

func (m *PCIMappingSpec) given(c *call) {
	m.ID = c.params["id"]
	if c.has("map") {
		m.Map = c.givenDevices()
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

func (m *PCIMappingSpec) drop(key string) bool {
	switch key {
	case "description":
		m.Description = ""
	case "mdev":
		m.Mdev = false
	case "live-migration-capable":
		m.LiveMigration = false
	default:
		return false
	}
	return true
}

func (m *PCIMappingSpec) check(w *World, name proxmox.NodeName) (string, []map[string]string) {
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
		out = append(out, notMapped(name))
	}
	return "checks", out
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
