package pvesim

import (
	"maps"
	"slices"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

func cloudInitRoutes() []Route {
	const path = "/nodes/{node}/qemu/{vmid}/cloudinit"
	audit := on("/vms/{vmid}", "VM.Audit")
	return []Route{
		{Method: "GET", Path: path, handle: cloudInitPending, permission: audit},
		{Method: "PUT", Path: path, handle: regenerateCloudInit, permission: on("/vms/{vmid}", "VM.Config.Cloudinit")},
		{Method: "GET", Path: path + "/dump", handle: dumpCloudInit, permission: audit, params: []schema.Param{schema.Choice("type", "user", "network", "meta").Required()}},
	}
}

// noteCloudInit records that an option no longer has the value that is on the cloud-init drive. Later changes leave the record
// alone, unless they bring the value of the drive back.
func (ch *change) noteCloudInit(key string, previous staleValue, now string) {
	if base := unnumbered(key); !isCloudInitOption(key) && key != "name" && base != "net" {
		return
	}
	noted, is := ch.cloudInit[key]
	switch {
	case is && noted.added && now == "", is && !noted.added && noted.value == now:
		delete(ch.cloudInit, key)
	case !is && (now != "" || !previous.added):
		ch.cloudInit[key] = previous
	}
}

// cloudInitPending is GET …/cloudinit: the options, with the values that wait for the drive to be made again.
func cloudInitPending(c *call) reply {
	v := c.vm()
	if v == nil {
		return missingVM(c.node.Name, c.vmid())
	}
	out := []map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(v.cloudInit)) {
		noted := v.cloudInit[key]
		value, now := v.config[key]
		switch {
		case noted.added:
			out = append(out, map[string]any{"key": key, "pending": c.routes.jsonValue(key, value)})
		case !now:
			out = append(out, map[string]any{"key": key, "delete": 1})
		}
	}
	for _, key := range cloudInitOptions() {
		value := v.config[key]
		noted, stale := v.cloudInit[key]
		if value == "" || value == "0" || noted.added {
			continue
		}
		entry := map[string]any{"key": key, "value": c.routes.jsonValue(key, value)}
		if stale {
			entry["value"], entry["pending"] = c.routes.jsonValue(key, noted.value), c.routes.jsonValue(key, value)
		}
		out = append(out, entry)
	}
	return ok(out)
}

// regenerateCloudInit is PUT …/cloudinit. A VM without a cloud-init drive has nothing to do.
func regenerateCloudInit(c *call) reply {
	return c.underLock(c.vmid(), func() reply {
		v := c.vm()
		if v == nil {
			return missingVM(c.node.Name, c.vmid())
		}
		if v.lock() != "" {
			return fail("%s", v.lockRefusal())
		}
		if msg := c.snippetProblem(v); msg != "" {
			return fail("%s", msg)
		}
		v.cloudInit = nil
		return ok(nil)
	})
}

// snippetProblem is why a file that the VM brings for its cloud-init drive cannot be read, or "".
func (w *World) snippetProblem(v *vm) string {
	format := ciCustomFormat()
	p, _ := format.Parse(v.config["cicustom"])
	for _, kind := range []string{"network", "user", "vendor", "meta"} {
		id := proxmox.VolumeID(p[kind])
		if _, name, _ := strings.Cut(string(id), ":"); id != "" && !strings.HasPrefix(name, "snippets/") {
			return string(id) + " is not in the snippets directory"
		}
		if id != "" && w.volumeAt(v.node, id) == nil {
			return "volume '" + string(id) + "' does not exist"
		}
	}
	return ""
}

// dumpCloudInit is GET …/cloudinit/dump.
func dumpCloudInit(c *call) reply {
	v := c.vm()
	if v == nil {
		return missingVM(c.node.Name, c.vmid())
	}
	switch c.params["type"] {
	case "user":
		return ok(v.cloudInitUser())
	case "network":
		return ok(v.cloudInitNetwork())
	}
	return ok(v.cloudInitMeta())
}
