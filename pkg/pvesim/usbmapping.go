package pvesim

import (
	"fmt"
	"slices"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

func usbMappings() mappings[USBMappingSpec, *USBMappingSpec] {
	return mappings[USBMappingSpec, *USBMappingSpec]{
		kind: "usb", of: func(w *World) map[string]*USBMappingSpec { return w.usbMappings }, device: usbMapFormat(),
		options: []schema.Param{schema.Text("description").MaxLength(4096)}, updateNeedsMap: true,
		readers: []string{"Mapping.Audit", "Mapping.Use", "Mapping.Modify"},
	}
}

// usbMapFormat is one device of a mapping.
func usbMapFormat() schema.PropertyString {
	return schema.PropertyString{Params: []schema.Param{
		schema.Text("node").Format("pve-node").Required(), schema.Text("id").Pattern(`[0-9A-Fa-f]{4}:[0-9A-Fa-f]{4}`).Required(),
		schema.Text("path").Pattern(`(\d+)\-(\d+(\.\d+)*)`), schema.Text("description").MaxLength(4096),
	}}
}

func (m *USBMappingSpec) options() map[string]any {
	out := map[string]any{"map": slices.Clone(m.Map)}
	if m.Description != "" {
		out["description"] = m.Description
	}
	return out
}

func (m *USBMappingSpec) given(c *call) {
	m.ID, m.Map = c.params["id"], c.givenDevices()
	if c.has("description") {
		m.Description = c.params["description"]
	}
}

func (m *USBMappingSpec) drop(key string) bool {
	if key == "description" {
		m.Description = ""
	}
	return key == "description"
}

func (m *USBMappingSpec) check(_ *World, node proxmox.NodeName) (key string, faults []map[string]string) {
	key, faults = "error", []map[string]string{}
	if !m.isOn(string(node)) {
		faults = append(faults, notMapped(node))
	}
	return key, faults
}

// isOn tells whether the mapping names a device of a host.
func (m *USBMappingSpec) isOn(node string) bool {
	format := usbMapFormat()
	return slices.ContainsFunc(m.Map, func(value string) bool {
		device, _ := format.Parse(value)
		return device["node"] == node
	})
}

// usbFailure is why a usbN cannot be passed on (PVE::QemuServer::USB, parse_usb_device).
func (w *World) usbFailure(v *vm, value string) string {
	name := propertyOr(value, "mapping", "")
	if m := w.usbMappings[name]; name == "" || m != nil && m.isOn(string(v.node)) {
		return ""
	}
	return fmt.Sprintf("USB device mapping not found for '%s'", name)
}
