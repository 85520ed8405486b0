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
	node := []schema.Param{schema.Text("check-node").Format("pve-node")}
	return slices.Concat(pciMappings().routes(), usbMappings().routes(), []Route{
		{Method: "GET", Path: "/cluster/mapping", handle: index("name", "dir", "pci", "usb")},
		{Method: "GET", Path: "/cluster/mapping/dir", handle: noMappings, params: node},
	})
}

// noMappings answers for mappings of directories, of which there are none.
func noMappings(*call) reply { return ok([]any{}) }

// mapping is the resource mapping *M.
type mapping[M any] interface {
	*M
	// options are shown by the API, beside the kind and the digest.
	options() map[string]any
	// given takes the options of a request.
	given(c *call)
	// drop deletes an option that may be deleted; there may be no such one.
	drop(key string) (found bool)
	// check says under which key what is wrong with the mapping on a node.
	check(w *World, node proxmox.NodeName) (key string, faults []map[string]string)
}

// mappings are the resource mappings of one kind of device.
type mappings[M any, P mapping[M]] struct {
	kind string
	of   func(*World) map[string]P
	// device is the format of one of a mapping's devices, options what else it may have.
	device  schema.PropertyString
	options []schema.Param
	// readers are the privileges of which one is enough to read a mapping.
	readers []string
	// updateNeedsMap says that each change has to name the devices.
	updateNeedsMap bool
}

// path is where they are in the API below /cluster, and where the rights on them are held.
func (k mappings[M, P]) path() string { return "/mapping/" + k.kind }

func (k mappings[M, P]) routes() []Route {
	id, devices := schema.Text("id").Format("pve-configid").Required(), schema.List("map").Of(k.device)
	all, one := k.path(), k.path()+"/{id}"
	read := anyOf{}
	for _, privilege := range k.readers {
		read = append(read, on(one, privilege))
	}
	create := slices.Concat(k.options, []schema.Param{id, devices.Required()})
	update := slices.Concat(k.options, []schema.Param{id, schema.Text("digest").MaxLength(64), schema.Text("delete").Format("pve-configid-list").MaxLength(4096)})
	if k.updateNeedsMap {
		devices = devices.Required()
	}
	return []Route{
		{Method: "GET", Path: "/cluster" + all, handle: k.list, params: []schema.Param{schema.Text("check-node").Format("pve-node")}},
		{Method: "POST", Path: "/cluster" + all, handle: k.create, permission: on(all, "Mapping.Modify"), params: create},
		{Method: "GET", Path: "/cluster" + one, handle: k.get, permission: read, params: []schema.Param{id}},
		{Method: "PUT", Path: "/cluster" + one, handle: k.update, permission: on(one, "Mapping.Modify"), params: append(update, devices)},
		{Method: "DELETE", Path: "/cluster" + one, handle: k.delete, permission: on(all, "Mapping.Modify"), params: []schema.Param{id}},
	}
}

// entry is a mapping as the API shows it.
func (k mappings[M, P]) entry(w *World, m P) map[string]any {
	entry := m.options()
	entry["type"], entry["digest"] = k.kind, k.digest(w)
	return entry
}

// digest is the checksum of the file with all mappings of the kind.
func (k mappings[M, P]) digest(w *World) string {
	h := sha1.New()
	for _, id := range slices.Sorted(maps.Keys(k.of(w))) {
		_, _ = fmt.Fprintf(h, "%s %v\n", id, *k.of(w)[id])
	}
	return hex.EncodeToString(h.Sum(nil))
}

func (k mappings[M, P]) list(c *call) reply {
	out := []map[string]any{}
	for _, id := range slices.Sorted(maps.Keys(k.of(c.World))) {
		if !c.mayAny(c.who, k.path()+"/"+id, k.readers...) {
			continue
		}
		m := k.of(c.World)[id]
		entry := k.entry(c.World, m)
		entry["id"] = id
		if name := c.params["check-node"]; name != "" {
			key, faults := m.check(c.World, proxmox.NodeName(name))
			entry[key] = faults
		}
		out = append(out, entry)
	}
	return ok(out)
}

// notMapped warns of a mapping without a device of the node.
func notMapped(node proxmox.NodeName) map[string]string {
	return map[string]string{"severity": "warning", "message": fmt.Sprintf("No mapping for node %s.", node)}
}

func (k mappings[M, P]) create(c *call) reply {
	id := c.params["id"]
	if k.of(c.World)[id] != nil {
		return fail("create hardware mapping failed: %s ID '%s' already defined", k.kind, id)
	}
	m := P(new(M))
	m.given(c)
	k.of(c.World)[id] = m
	return ok(nil)
}

func (k mappings[M, P]) get(c *call) reply {
	m := k.of(c.World)[c.params["id"]]
	if m == nil {
		return fail("mapping '%s' not found", c.params["id"])
	}
	return ok(k.entry(c.World, m))
}

func (k mappings[M, P]) update(c *call) reply {
	m := k.of(c.World)[c.params["id"]]
	switch {
	case c.has("digest") && c.params["digest"] != k.digest(c.World):
		return fail("update hardware mapping failed: detected modified configuration - file changed by other user? Try again.")
	case m == nil:
		return fail("update hardware mapping failed: %s ID '%s' does not exist", k.kind, c.params["id"])
	}
	next := *m
	P(&next).given(c)
	for _, key := range schema.SplitList(c.params["delete"]) {
		switch {
		case key == "map":
			return fail("update hardware mapping failed: unable to delete required option 'map'")
		case c.has(key):
			return fail("update hardware mapping failed: cannot set and delete property '%s' at the same time!", key)
		case !P(&next).drop(key):
			return fail("update hardware mapping failed: no such option '%s'", key)
		}
	}
	*m = next
	return ok(nil)
}

// delete does not mind whether guests use the mapping or whether there is one.
func (k mappings[M, P]) delete(c *call) reply {
	delete(k.of(c.World), c.params["id"])
	return ok(nil)
}

// givenDevices are the devices of a request.
func (c *call) givenDevices() []string { return strings.Split(c.params["map"], "\x00") }
