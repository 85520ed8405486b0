package pvesim

import (
	"fmt"
	"slices"
	"strings"
)

// customCPU is what the names of custom CPU models begin with wherever they are used.
const customCPU = "custom-"

// AddCPUModel adds a custom CPU model, named without custom- before it, to cpu-models.conf.
func (w *World) AddCPUModel(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Contains(w.cpuModels, name) {
		w.cpuModels = append(w.cpuModels, name)
	}
}

// missingCPUModel refuses a VM's parameter cpu with a custom model that there is none of.
func (c *call) missingCPUModel() string {
	if !c.has("cpu") || !strings.Contains(c.route.Path, "/qemu") {
		return ""
	}
	name, custom := strings.CutPrefix(propertyOr(c.params["cpu"], "cputype", firstProperty(c.params["cpu"])), customCPU)
	if !custom || slices.Contains(c.cpuModels, name) {
		return ""
	}
	return fmt.Sprintf("invalid format - Custom cputype '%s' not found\n", name)
}

func listCPUModels(c *call) reply {
	out := []map[string]any{}
	for _, name := range cpuModels() {
		vendor := cpuVendor(name)
		if vendor == "" {
			continue
		}
		entry := map[string]any{"name": name, "vendor": vendor, "custom": 0}
		if c.version != V84 && strings.HasPrefix(name, "x86-64-v") {
			entry["abstract"] = 1
		}
		out = append(out, entry)
	}
	for _, name := range c.cpuModels {
		if c.seesCPUModel(name) {
			out = append(out, map[string]any{"name": customCPU + name, "vendor": "default", "custom": 1})
		}
	}
	return ok(out)
}

// seesCPUModel tells whether the caller may see a custom model.
func (c *call) seesCPUModel(name string) bool {
	return c.mayAny(c.who, "/nodes", "Sys.Audit") ||
		c.version != V84 && c.mayAny(c.who, "/mapping/cpu/"+name, "Mapping.Audit", "Mapping.Use", "Mapping.Modify")
}

// cpuVendor is whose processor a model is of; empty for one that x86 hosts do not have.
func cpuVendor(name string) string {
	begins := func(list string) bool {
		return slices.ContainsFunc(strings.Fields(list), func(start string) bool { return strings.HasPrefix(name, start) })
	}
	switch {
	case begins("a64fx cortex- neoverse-"):
		return ""
	case begins("host kvm max qemu x86-64-v"):
		return "default"
	case begins("EPYC Opteron athlon phenom"):
		return "AuthenticAMD"
	}
	return "GenuineIntel"
}
