package pvesim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

func hardwareRoutes(v Version) []Route {
	audit := on("/nodes/{node}", "Sys.Audit")
	service := schema.Choice("service", services(v)...).Required()
	var arch []schema.Param
	if v != V84 {
		arch = []schema.Param{schema.Choice("arch", "x86_64", "aarch64")}
	}
	routes := []Route{
		{Method: "GET", Path: "/nodes/{node}/hardware", handle: index("type", "pci", "usb")},
		{Method: "GET", Path: "/nodes/{node}/hardware/pci", handle: listPCI, permission: on("/", "Sys.Audit", "Sys.Modify"), params: []schema.Param{
			schema.Text("pci-class-blacklist").Format("string-list"), schema.Boolean("verbose"),
		}},
		{Method: "GET", Path: "/nodes/{node}/hardware/usb", handle: noRRDData, permission: on("/", "Sys.Modify")},
		{Method: "GET", Path: "/nodes/{node}/capabilities/qemu/cpu", handle: listCPUModels, params: arch},
		{Method: "GET", Path: "/nodes/{node}/capabilities/qemu/machines", handle: listMachines, params: arch},
		{Method: "GET", Path: "/nodes/{node}/services", handle: listServices, permission: audit},
		{Method: "GET", Path: "/nodes/{node}/services/{service}", handle: index("subdir", "state", "start", "stop", "restart", "reload"), permission: audit, params: []schema.Param{service}},
		{Method: "GET", Path: "/nodes/{node}/services/{service}/state", handle: serviceState, permission: audit, params: []schema.Param{service}},
	}
	if v != V84 {
		routes = append(routes, Route{Method: "GET", Path: "/nodes/{node}/capabilities/qemu/cpu-flags", handle: listCPUFlags, params: append(arch, schema.Choice("accel", "kvm", "tcg"))})
	}
	return routes
}

// listCPUFlags lists the flags that a VM may switch. aarch64 has none.
func listCPUFlags(c *call) reply {
	out := []map[string]any{}
	if c.params["arch"] == "aarch64" {
		return ok(out)
	}
	for _, flag := range c.version.cpuFlags() {
		out = append(out, map[string]any{"name": flag})
	}
	return ok(out)
}

// unlistedClasses are the kinds of PCI devices that the list leaves out by default: memory controllers, bridges, processors.
func unlistedClasses() []string { return []string{"05", "06", "0b"} }

func listPCI(c *call) reply {
	blacklist := unlistedClasses()
	if c.has("pci-class-blacklist") {
		blacklist = schema.SplitList(c.params["pci-class-blacklist"])
	}
	out := []map[string]any{}
	for _, d := range c.node.PCI {
		class := strings.TrimPrefix(d.Class, "0x")
		if slices.ContainsFunc(blacklist, func(p string) bool { return strings.HasPrefix(class, strings.TrimPrefix(p, "0x")) }) {
			continue
		}
		out = append(out, d.entry(c.params["verbose"] != "0"))
	}
	return ok(out)
}

// entry is the device as the list has it; the long form tells what it is.
func (d PCIDeviceSpec) entry(long bool) map[string]any {
	out := map[string]any{"id": d.ID}
	if !long {
		return out
	}
	out["class"], out["vendor"], out["device"], out["iommugroup"] = d.Class, d.Vendor, d.Device, d.IOMMUGroup-1
	for key, value := range map[string]string{
		"subsystem_vendor": d.SubsystemVendor, "subsystem_device": d.SubsystemDevice, "vendor_name": d.VendorName, "device_name": d.DeviceName,
	} {
		if value != "" {
			out[key] = value
		}
	}
	if d.Mdev {
		out["mdev"] = 1
	}
	return out
}

// machineVersions are those of the QEMU that new guests get, the latest first.
func machineVersions() []string {
	return strings.Fields(`10.0+pve1 10.0 9.2+pve1 9.2 9.1 9.0 8.2 8.1 8.0 7.2 7.1 7.0 6.2 6.1 6.0 5.2 5.1 5.0 4.2 4.1+pve2 4.1+pve1 4.1 4.0 3.1 3.0
		2.12 2.11 2.10 2.9 2.8 2.7 2.6 2.5 2.4`)
}

func listMachines(*call) reply {
	changes := map[string]string{
		"4.1+pve1": "Introduction of pveX versioning, no changes.", "4.1+pve2": "Increases the number of SCSI drives supported.",
		"9.2+pve1": "Disables S3/S4 power states by default.", "10.0+pve1": "Sets host_mtu of virtio-net devices by the bridge.",
	}
	out := []map[string]string{}
	for _, kind := range []string{"q35", "i440fx"} {
		for _, version := range machineVersions() {
			entry := map[string]string{"id": "pc-" + kind + "-" + version, "type": kind, "version": version}
			if text := changes[version]; text != "" {
				entry["changes"] = text
			}
			out = append(out, entry)
		}
	}
	return ok(out)
}

// services are the systemd units that the API knows.
func services(v Version) []string {
	list := strings.Fields(`chrony corosync cron ksmtuned lxcfs postfix proxmox-firewall pve-cluster pve-firewall pve-ha-crm pve-ha-lrm pve-lxc-syscalld pvedaemon pvefw-logger
		pveproxy pvescheduler pvestatd qmeventd spiceproxy sshd syslog systemd-journald systemd-timesyncd`)
	if v == V84 {
		list = slices.DeleteFunc(list, func(s string) bool {
			return slices.Contains([]string{"lxcfs", "proxmox-firewall", "pve-lxc-syscalld", "qmeventd"}, s)
		})
	}
	return list
}

func listServices(c *call) reply {
	out := []map[string]any{}
	for _, name := range services(c.version) {
		out = append(out, c.service(name))
	}
	return ok(out)
}

func serviceState(c *call) reply { return ok(c.service(c.params["service"])) }

// service is the state of a unit. Of the daemons that can be stopped it is the true one, of the others that all is well.
func (c *call) service(name string) map[string]any {
	out := map[string]any{"service": name, "name": name, "desc": fmt.Sprintf("Proxmox VE %s", name), "state": "running", "active-state": "active", "unit-state": "enabled"}
	if c.node.Daemons[Daemon(name)] == DaemonStopped {
		out["state"], out["active-state"] = "dead", "inactive"
	}
	return out
}
