package pvesim

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

// This file is what qemu-server asks of those who make and change VMs, beyond the permissions that its endpoints declare.

// configPermission is that of PUT and POST …/config: any right to change the VM. Which one an option takes is looked at later.
func configPermission() permission {
	return on("/vms/{vmid}", "VM.Config.Disk", "VM.Config.CDROM", "VM.Config.CPU", "VM.Config.Memory", "VM.Config.Network", "VM.Config.HWType",
		"VM.Config.Options", "VM.Config.Cloudinit")
}

// clonePermission asks for VM.Clone on the source, and for VM.Allocate on the new VM or on its pool.
func clonePermission() permission {
	return allOf{on("/vms/{vmid}", "VM.Clone"), anyOf{
		on("/vms/{newid}", "VM.Allocate"), perm{path: "/pool/{pool}", privileges: []string{"VM.Allocate"}, param: "pool"},
	}}
}

// mayCreate asks for VM.Allocate on the new VM or on the pool that it will be in.
func (c *call) mayCreate() reply {
	if pool := c.params["pool"]; pool != "" && c.pools[proxmox.PoolID(pool)] == nil {
		return missingPool(pool)
	}
	if id := c.params["storage"]; id != "" {
		if r := c.need("/storage/"+id, "Datastore.AllocateSpace"); r.failed() {
			return r
		}
	}
	if c.mayOnVM("VM.Allocate") {
		return reply{}
	}
	return reply{status: http.StatusForbidden, reason: "Permission check failed"}
}

func missingPool(pool string) reply {
	return reply{status: http.StatusForbidden, reason: fmt.Sprintf("Permission check failed (pool '%s' does not exist)", pool)}
}

// need refuses unless one of the privileges is held on the path.
func (c *call) need(path string, privileges ...string) reply {
	if c.mayAny(c.who, path, privileges...) {
		return reply{}
	}
	return denied(path, strings.Join(privileges, "|"))
}

// mayOnVM tells whether one of the privileges is held on the VM of the request, or on the pool that it is made in.
func (c *call) mayOnVM(privileges ...string) bool {
	return c.mayInPool(privileges...) || c.mayAny(c.who, "/vms/"+c.params["vmid"], privileges...)
}

// mayInPool is for a VM that is just being made in a pool.
func (c *call) mayInPool(privileges ...string) bool {
	return c.params["pool"] != "" && c.mayAny(c.who, "/pool/"+c.params["pool"], privileges...)
}

func (c *call) needOnVM(privileges ...string) reply {
	if c.mayOnVM(privileges...) {
		return reply{}
	}
	return denied("/vms/"+c.params["vmid"], strings.Join(privileges, "|"))
}

// mayEdit is what is asked for before the VM is looked at: a privilege per option, the right to use the storages of drives and the
// bridges of network devices. Some options are for a ticket of root@pam alone.
func (c *call) mayEdit(e *edit) reply {
	if c.who.isRoot() {
		return reply{}
	}
	for _, keys := range [][]string{e.remove, slices.Sorted(maps.Keys(e.set))} {
		for _, key := range keys {
			if r := c.mayEditOption(key); r.failed() {
				return r
			}
		}
	}
	if r := c.mayUseStorages(e.set); r.failed() {
		return r
	}
	return c.mayUseBridges(e.set)
}

// mayEditNew is for a VM that is made: the storages come first, and devices of the host are checked at once. Drives and the
// options of cloud-init's drive need no more than that.
func (c *call) mayEditNew(e *edit) reply {
	if c.who.isRoot() {
		return reply{}
	}
	if r := c.mayUseStorages(e.set); r.failed() {
		return r
	}
	if r := c.mayEdit(e); r.failed() {
		return r
	}
	for _, key := range slices.Sorted(maps.Keys(e.set)) {
		if isDrive(key) || key == "cdrom" || strings.HasPrefix(key, "unused") {
			continue
		}
		if r := c.mayUseDevice(key, e.set[key]); r.failed() {
			return r
		}
	}
	return reply{}
}

// mayEditOption is check_vm_modify_config_perm. Options whose right depends on their value are left to mayUseDevice.
func (c *call) mayEditOption(key string) reply {
	base := unnumbered(key)
	if isDrive(key) || key == "tags" || slices.Contains([]string{"cdrom", "unused", "serial", "usb", "hostpci", "virtiofs"}, base) {
		return reply{}
	}
	privileges := optionPrivileges(key)
	if privileges == nil {
		return fail("only root can set '%s' config", key)
	}
	if r := c.needOnVM(privileges...); r.failed() {
		return r
	}
	if key == "startup" {
		return c.need("/", "Sys.Modify")
	}
	return reply{}
}

// optionPrivileges are the privileges on the VM of which setting the option takes one; nil for options of root@pam's own.
func optionPrivileges(key string) []string {
	switch unnumbered(key) {
	case "cores", "cpu", "cpulimit", "cpuunits", "numa", "smp", "sockets", "vcpus":
		return []string{"VM.Config.CPU"}
	case "memory", "balloon", "shares", "allow-ksm":
		return []string{"VM.Config.Memory"}
	case "acpi", "audio", "hotplug", "kvm", "machine", "rng", "scsihw", "smbios", "tablet", "vga", "watchdog":
		return []string{"VM.Config.HWType"}
	case "agent", "autostart", "bios", "description", "keyboard", "localtime", "migrate_downtime", "migrate_speed", "name", "onboot", "ostype",
		"protection", "reboot", "startdate", "startup", "tdf", "template":
		return []string{"VM.Config.Options"}
	case "freeze":
		return []string{"VM.PowerMgmt"}
	case "boot", "bootdisk", "vmstatestorage":
		return []string{"VM.Config.Disk"}
	case "net":
		return []string{"VM.Config.Network"}
	case "cicustom", "cipassword", "citype", "ciuser", "ciupgrade", "nameserver", "searchdomain", "sshkeys", "ipconfig":
		return []string{"VM.Config.Cloudinit", "VM.Config.Network"}
	}
	return nil
}

// mayChange is what is asked for when the VM's config is at hand: the rights to set and to delete drives, devices and tags.
func (c *call) mayChange(e *edit, config map[string]string) reply {
	if c.who.isRoot() {
		return reply{}
	}
	for _, key := range e.remove {
		if config[key] == "" {
			continue
		}
		if r := c.mayUseDevice(key, config[key]); r.failed() {
			return r
		}
	}
	for _, key := range slices.Sorted(maps.Keys(e.set)) {
		if r := c.mayUseDevice(key, e.set[key]); r.failed() {
			return r
		}
	}
	return reply{}
}

// mayUseDevice checks an option whose right depends on its value.
func (c *call) mayUseDevice(key, value string) reply {
	switch base := unnumbered(key); {
	case key == "cdrom" || isDrive(key) && isCDROM(value):
		return c.needOnVM("VM.Config.CDROM")
	case isDrive(key) || base == "unused":
		return c.needOnVM("VM.Config.Disk")
	case key == "tags":
		return c.needOnVM("VM.Config.Options")
	case base == "serial" && value != "socket":
		return fail("only root can set '%s' config for real devices", key)
	case base == "serial":
		return c.needOnVM("VM.Config.HWType")
	case base == "usb":
		return c.mayUseHostDevice(key, "usb", value)
	case base == "hostpci":
		return c.mayUseHostDevice(key, "pci", value)
	case base == "virtiofs":
		if r := c.needOnVM("VM.Config.Disk"); r.failed() {
			return r
		}
		return c.need("/mapping/dir/"+propertyOr(value, "dirid", firstProperty(value)), "Mapping.Use")
	}
	return reply{}
}

func isCDROM(value string) bool {
	volume := firstProperty(value)
	return strings.Contains(value, "media=cdrom") || volume == "none" || volume == "cdrom" || strings.HasSuffix(volume, ":cloudinit")
}

// mayUseHostDevice lets tokens and users pass mapped devices on, and SPICE's own; raw ones are for root@pam.
func (c *call) mayUseHostDevice(key, kind, value string) reply {
	mapping := propertyOr(value, "mapping", "")
	host := propertyOr(value, "host", "")
	if host == "" && mapping == "" {
		host = firstProperty(value)
	}
	switch {
	case mapping != "":
		if r := c.need("/mapping/"+kind+"/"+mapping, "Mapping.Use"); r.failed() {
			return r
		}
	case kind == "pci":
		return fail("only root can set '%s' config for non-mapped devices", key)
	case !strings.EqualFold(host, "spice"):
		return fail("only root can set '%s' config for real devices", key)
	}
	return c.needOnVM("VM.Config.HWType")
}

// propertyOr is one property of a value such as mapping=gpu,pcie=1.
func propertyOr(value, name, otherwise string) string {
	for _, part := range strings.Split(value, ",") {
		if v, ok := strings.CutPrefix(part, name+"="); ok {
			return v
		}
	}
	return otherwise
}

// mayUseBridges asks for SDN.Use on the bridges and VLANs of network devices.
func (c *call) mayUseBridges(config map[string]string) reply {
	for _, key := range slices.Sorted(maps.Keys(config)) {
		if unnumbered(key) != "net" || key == "net" {
			continue
		}
		if r := c.mayUseBridge(config[key]); r.failed() {
			return r
		}
	}
	return reply{}
}

func (c *call) mayUseBridge(value string) reply {
	format := netFormat()
	p, _ := format.Parse(value)
	if p["bridge"] == "" {
		return reply{}
	}
	path := "/sdn/zones/" + c.zoneOf(p["bridge"]) + "/" + p["bridge"]
	for _, tag := range append(schema.SplitList(p["tag"]), schema.SplitList(p["trunks"])...) {
		if r := c.need(path+"/"+tag, "SDN.Use"); r.failed() {
			return r
		}
	}
	return c.need(path, "SDN.Use")
}
