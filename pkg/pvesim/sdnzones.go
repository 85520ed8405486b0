package pvesim

import (
	"fmt"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/sdn"
)

func zoneRoutes(v Version) []Route {
	k, id, allocate := zoneKind(), sdnID(v, "zone"), on("/sdn/zones/{zone}", "SDN.Allocate")
	return []Route{
		{Method: "GET", Path: "/cluster/sdn/zones", handle: k.list, params: append(viewParams(), schema.Choice("type", zoneTypes()...))},
		{Method: "POST", Path: "/cluster/sdn/zones", handle: createZone, permission: on("/sdn/zones", "SDN.Allocate"), params: newParams(v, zoneOptions(v), id, zoneTypes()...)},
		{Method: "GET", Path: "/cluster/sdn/zones/{zone}", handle: k.show, permission: allocate, params: append(viewParams(), id)},
		{Method: "PUT", Path: "/cluster/sdn/zones/{zone}", handle: updateZone, permission: allocate, params: changeParams(v, zoneOptions(v), id)},
		{Method: "DELETE", Path: "/cluster/sdn/zones/{zone}", handle: deleteZone, permission: allocate, params: append(lockParams(v), id)},
	}
}

func createZone(c *call) reply {
	k, id, section := zoneKind(), c.params["zone"], zoneKind().options(c)
	if text := k.kind(c.params["type"]).Check(section); text != "" {
		return fail("%s", text)
	}
	section["type"] = c.params["type"]
	return c.lockedSDN("create sdn zone object failed", func() string {
		return k.create(c, id, section, func() string { return refusal(c.sdn.config.CheckZone(section)) })
	})
}

func updateZone(c *call) reply {
	k, id := zoneKind(), c.params["zone"]
	return c.lockedSDN("update sdn zone object failed", func() string {
		return k.update(c, id, func(before sdn.Section) string {
			after := c.sdn.config.Zones[id]
			for _, subnet := range c.sdn.config.Subnets {
				if after["ipam"] != before["ipam"] && c.sdn.config.VNets[subnet["vnet"]]["zone"] == id {
					return sdn.Refusal{Option: "ipam", Text: "can't change ipam if a subnet is already defined in this zone"}.String()
				}
			}
			return refusal(c.sdn.config.CheckZone(after))
		})
	})
}

func deleteZone(c *call) reply {
	k, id := zoneKind(), c.params["zone"]
	return c.lockedSDN("delete sdn zone object failed", func() string {
		if c.sdn.config.Zones[id] == nil {
			return fmt.Sprintf(k.missing, id)
		}
		if user := c.sdn.config.UserOfZone(id); user != "" {
			return fmt.Sprintf("zone %s is used by vnet %s%s", id, user, c.diedAt("Network/SDN/Zones/Plugin.pm", 159, 149))
		}
		delete(c.sdn.config.Zones, id)
		return ""
	})
}

// diedAt is what Perl adds to an error without a line end: a file and the line in it, which differs between releases.
func (c *call) diedAt(file string, line84, line92 int) string {
	line := line92
	if c.version == V84 {
		line = line84
	}
	return fmt.Sprintf(" at /usr/share/perl5/PVE/%s line %d.", file, line)
}
