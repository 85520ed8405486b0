package pvesim

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

func haResourceParams(v Version) []schema.Param {
	out := []schema.Param{
		schema.Text("sid").Format("pve-ha-resource-or-vm-id").Required(), schema.Choice("state", haStarted, haStopped, "enabled", haDisabled, haIgnored),
		schema.Text("group").Format("pve-configid"), schema.Integer("max_restart").Min(0), schema.Integer("max_relocate").Min(0),
		schema.Text("comment").MaxLength(4096),
	}
	if v == V92 {
		out = append(out, schema.Boolean("failback"))
	}
	return out
}

// updateParams are those of a change of a section of a config file.
func updateParams() []schema.Param {
	return []schema.Param{schema.Text("delete").Format("pve-configid-list").MaxLength(4096), schema.Text("digest").MaxLength(64)}
}

func haDeleteParams(v Version) []schema.Param {
	if v == V92 {
		return []schema.Param{schema.Boolean("purge")}
	}
	return nil
}

// sid is the resource ID of the path or form: a VMID alone means that guest.
func (c *call) sid() string {
	sid := c.params["sid"]
	if !schema.IsInteger(sid) {
		return sid
	}
	return "vm:" + sid
}

// sectionsDigest is the checksum of a config file of sections.
func sectionsDigest(sections map[string]map[string]string) string {
	h := sha1.New()
	for _, name := range slices.Sorted(maps.Keys(sections)) {
		_, _ = fmt.Fprintf(h, "%s\n", name)
		for _, key := range slices.Sorted(maps.Keys(sections[name])) {
			_, _ = fmt.Fprintf(h, "\t%s %s\n", key, sections[name][key])
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// section is a section of a config file as the API shows it, numbers as numbers.
func section(options map[string]string, numeric ...string) map[string]any {
	out := map[string]any{}
	for key, value := range options {
		out[key] = value
		if n, err := strconv.Atoi(value); err == nil && slices.Contains(numeric, key) {
			out[key] = n
		}
	}
	return out
}

func (c *call) haResource(sid string) map[string]any {
	out := section(c.ha.resources[sid], "max_restart", "max_relocate", "failback")
	kind, _, _ := strings.Cut(sid, ":")
	out["sid"], out["type"], out["digest"] = sid, kind, sectionsDigest(c.ha.resources)
	return out
}

func listHAResources(c *call) reply {
	out := []map[string]any{}
	for _, sid := range slices.Sorted(maps.Keys(c.ha.resources)) {
		entry := c.haResource(sid)
		if c.has("type") && entry["type"] != c.params["type"] {
			continue
		}
		if group := c.ha.resources[sid]["group"]; group != "" && c.ha.groups[group] == nil {
			entry["errors"] = map[string]string{"group": fmt.Sprintf("group '%s' does not exist", group)}
		}
		out = append(out, entry)
	}
	return ok(out)
}

func getHAResource(c *call) reply {
	sid := c.sid()
	if c.ha.resources[sid] == nil {
		return fail("no such resource '%s'", sid)
	}
	return ok(c.haResource(sid))
}

// addHAResource is POST /cluster/ha/resources. A resource whose state is not given shall run.
func addHAResource(c *call) reply {
	sid := c.sid()
	kind, name, _ := strings.Cut(sid, ":")
	v := c.vms[toVMID(name)]
	switch {
	case c.has("type") && c.params["type"] != kind:
		return fail("types does not match")
	case kind != "vm" && kind != "ct":
		return fail("unable to parse ha resource '%s'", sid)
	case kind != "vm" || v == nil:
		return fail("resource '%s' does not exist in cluster", sid)
	case c.has("group") && c.version == V92:
		return fail("invalid parameter 'group': ha groups have been migrated to rules")
	case c.ha.resources[sid] != nil:
		return fail("create resource failed: resource ID '%s' already defined", sid)
	}
	c.ha.resources[sid] = c.haOptions()
	c.haTouch(sid)
	return ok(nil)
}

// haOptions are the options of the form.
func (c *call) haOptions() map[string]string {
	out := map[string]string{}
	for _, key := range []string{"state", "group", "max_restart", "max_relocate", "comment", "failback"} {
		if c.has(key) {
			out[key] = c.params[key]
		}
	}
	return out
}

func changeHAResource(c *call) reply {
	sid, group := c.sid(), c.params["group"]
	r := c.ha.resources[sid]
	switch {
	case group != "" && c.version == V92:
		return fail("invalid parameter 'group': ha groups have been migrated to rules")
	case group != "" && c.ha.groups[group] == nil:
		return fail("HA group '%s' does not exist", group)
	case c.has("digest") && c.params["digest"] != sectionsDigest(c.ha.resources):
		return fail("update resources config failed: %s", fileModified)
	case r == nil:
		return fail("update resources config failed: no such resource '%s'", sid)
	}
	known := haResourceParams(c.version)
	if msg := updateSection(r, c.haOptions(), schema.SplitList(c.params["delete"]), known); msg != "" {
		return fail("update resources config failed: %s", msg)
	}
	c.haTouch(sid)
	return ok(nil)
}

// updateSection changes a section of a config file, as delete and the other parameters of a PUT say.
func updateSection(into, set map[string]string, remove []string, known []schema.Param) string {
	for _, key := range remove {
		p := schema.Lookup(known, key)
		switch {
		case p == nil:
			return fmt.Sprintf("no such option '%s'", key)
		case !p.Optional:
			return fmt.Sprintf("unable to delete required option '%s'", key)
		case set[key] != "":
			return fmt.Sprintf("cannot set and delete property '%s' at the same time!", key)
		}
	}
	maps.Copy(into, set)
	for _, key := range remove {
		delete(into, key)
	}
	return ""
}

func deleteHAResource(c *call) reply {
	sid := c.sid()
	if c.ha.resources[sid] == nil {
		return fail("cannot delete service '%s', not HA managed!", sid)
	}
	if c.version == V92 && c.has("purge") && !c.flag("purge") {
		delete(c.ha.resources, sid)
		c.haTouch(sid)
		return ok(nil)
	}
	c.haForget(sid)
	return ok(nil)
}

// moveHAResource queues a command for the manager, which looks at the node only when it gets there.
func moveHAResource(kind string) func(*call) reply {
	return func(c *call) reply {
		sid, node := c.sid(), c.params["node"]
		c.haCommand(sid, haCommand{kind: kind, node: node})
		if c.version == V84 {
			return ok(nil)
		}
		return ok(map[string]string{"sid": sid, "requested-node": node})
	}
}
