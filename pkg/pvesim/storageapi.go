package pvesim

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

func storageRoutes(v Version) []Route {
	types := []string{"btrfs", "cephfs", "cifs", "dir", "esxi", "glusterfs", "iscsi", "iscsidirect", "lvm", "lvmthin", "nfs", "pbs", "rbd", "zfs", "zfspool"}
	below := []string{"content", "download-url", "file-restore", "import-metadata", "prunebackups", "rrd", "rrddata", "status", "upload"}
	if v != V84 {
		types = slices.DeleteFunc(types, func(t string) bool { return t == "glusterfs" })
		below = append(below, "identity", "oci-registry-pull")
	}
	audit := on("/storage/{storage}", "Datastore.Audit", "Datastore.AllocateSpace")
	return []Route{
		{Method: "GET", Path: "/storage", handle: listStorageConfig, params: []schema.Param{schema.Choice("type", types...)}},
		{Method: "GET", Path: "/storage/{storage}", handle: storageConfig, permission: on("/storage/{storage}", "Datastore.Allocate")},
		{Method: "GET", Path: "/nodes/{node}/storage", handle: listStorages, params: []schema.Param{
			schema.Text("content").Format("pve-storage-content-list"), schema.Boolean("enabled"), schema.Boolean("format"),
			schema.Text("storage").Format("pve-storage-id"), schema.Text("target").Format("pve-node"),
		}},
		{Method: "GET", Path: "/nodes/{node}/storage/{storage}", handle: index("subdir", below...), permission: audit},
		{Method: "GET", Path: "/nodes/{node}/storage/{storage}/status", handle: storageStatus, permission: audit},
		{Method: "GET", Path: "/nodes/{node}/storage/{storage}/rrddata", handle: noRRDData, permission: audit, params: []schema.Param{
			schema.Choice("cf", "AVERAGE", "MAX"), schema.Choice("timeframe", "hour", "day", "week", "month", "year").Required(),
		}},
	}
}

// config is the storage's entry of storage.cfg.
func (s *storage) config(digest string) map[string]any {
	out := map[string]any{"storage": s.id, "type": s.typ, "content": strings.Join(s.content, ","), "digest": digest}
	for key, value := range s.options {
		out[key] = value
		if value == "0" || value == "1" {
			out[key] = atoi(value, 0)
		}
	}
	if s.path != "" {
		out["path"] = s.path
	}
	if s.shared {
		out["shared"] = 1
	}
	if s.disabled {
		out["disable"] = 1
	}
	if len(s.nodes) > 0 {
		names := make([]string, 0, len(s.nodes))
		for _, n := range s.nodes {
			names = append(names, string(n))
		}
		slices.Sort(names)
		out["nodes"] = strings.Join(names, ",")
	}
	return out
}

// storageDigest is the checksum of storage.cfg.
func (w *World) storageDigest() string {
	h := sha1.New()
	for _, s := range w.storages {
		_, _ = fmt.Fprintf(h, "%v\n", s.config(""))
	}
	return hex.EncodeToString(h.Sum(nil))
}

func listStorageConfig(c *call) reply {
	out, digest := []map[string]any{}, c.storageDigest()
	for _, s := range c.storages {
		if c.canSeeStorage(s.id) && (!c.has("type") || c.params["type"] == string(s.typ)) {
			out = append(out, s.config(digest))
		}
	}
	return ok(out)
}

func storageConfig(c *call) reply {
	s := c.storageByID(proxmox.StorageID(c.params["storage"]))
	if s == nil {
		return fail("storage '%s' does not exist", c.params["storage"])
	}
	return ok(s.config(c.storageDigest()))
}

// status is the storage as seen on a node: one that is disabled or not for that node is shown empty.
func (s *storage) status(name proxmox.NodeName) map[string]any {
	out := map[string]any{
		"type": s.typ, "content": strings.Join(s.content, ","), "shared": pveBool(s.shared), "active": 0, "enabled": 0, "total": 0, "used": 0, "avail": 0,
	}
	if s.usableOn(name) {
		out["active"], out["enabled"] = 1, 1
		out["total"], out["used"], out["avail"] = s.total, s.total-s.free(name), s.free(name)
	}
	return out
}

func (s *storage) usableOn(name proxmox.NodeName) bool { return !s.disabled && s.onNode(name) }

// formats of disks that the storage can have, and the default one; nil where there is no choice.
func (s *storage) formats() []any {
	switch s.typ {
	case dirStorage:
		return []any{map[string]int{"raw": 1, "qcow2": 1, "vmdk": 1, "subvol": 1}, "raw"}
	case nfsStorage:
		return []any{map[string]int{"raw": 1, "qcow2": 1, "vmdk": 1}, "raw"}
	case zfsPoolStorage:
		return []any{map[string]int{"raw": 1, "subvol": 1}, "raw"}
	case lvmThinStorage, rbdStorage:
	}
	return nil
}

// wanted tells whether the storage is in the list that the request asks for, before rights are looked at.
func (c *call) wanted(s *storage) bool {
	content := schema.SplitList(c.params["content"])
	return !c.has("content") || (s.usableOn(c.node.Name) && slices.ContainsFunc(content, s.holds))
}

func listStorages(c *call) reply {
	if id := proxmox.StorageID(c.params["storage"]); id != "" {
		if s := c.storageByID(id); s == nil || !c.wanted(s) {
			return invalidParam("storage", "No such storage.")
		}
	}
	out := []map[string]any{}
	for _, s := range c.storages {
		if c.listed(s) {
			out = append(out, c.storageEntry(s))
		}
	}
	return ok(out)
}

func (c *call) listed(s *storage) bool {
	target := proxmox.NodeName(c.params["target"])
	switch {
	case !c.wanted(s), !c.canSeeStorage(s.id), c.has("storage") && c.params["storage"] != string(s.id), c.flag("enabled") && s.disabled:
		return false
	case target != "":
		return s.usableOn(c.node.Name) && s.usableOn(target)
	}
	return true
}

func (c *call) storageEntry(s *storage) map[string]any {
	out := s.status(c.node.Name)
	out["storage"] = s.id
	if s.usableOn(c.node.Name) {
		out["used_fraction"] = float64(s.total-s.free(c.node.Name)) / float64(max(1, s.total))
	}
	if f := s.formats(); c.flag("format") && f != nil {
		out["format"] = f
	}
	return out
}

func storageStatus(c *call) reply {
	s := c.storageByID(proxmox.StorageID(c.params["storage"]))
	if s == nil {
		return invalidParam("storage", "No such storage.")
	}
	return ok(s.status(c.node.Name))
}
