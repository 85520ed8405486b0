package pvesim

import (
	"slices"
	"strings"
)

// isProtected tells whether pvedaemon runs the endpoint. All that writes is protected, and the reads that need root.
func isProtected(method, path string) bool {
	return method != "GET" || slices.Contains(protectedReads(), path)
}

// isProxied tells whether the node that is asked passes the request on to the one that the path names.
func isProxied(method, path string) bool {
	if path == sdnDryRun {
		return true
	}
	rest, ok := strings.CutPrefix(path, "/nodes/{node}/")
	if !ok || slices.Contains(unproxied(), method+" "+rest) {
		return false
	}
	guest, inGuest := cutGuest(rest)
	if method+" "+guest == "GET snapshot/{snapname}" {
		return false
	}
	return !inGuest || !unproxiedOfGuest(guest)
}

// cutGuest returns what follows qemu/{vmid}/ or lxc/{vmid}/.
func cutGuest(path string) (rest string, ok bool) {
	if rest, ok = strings.CutPrefix(path, "qemu/{vmid}/"); ok {
		return rest, true
	}
	return strings.CutPrefix(path, "lxc/{vmid}/")
}

// unproxiedOfGuest are the endpoints of a guest that any node can serve from the cluster file system.
func unproxiedOfGuest(path string) bool {
	if path == "firewall/options" || path == "firewall/log" {
		return false
	}
	return path == "firewall" || strings.HasPrefix(path, "firewall/") || slices.Contains([]string{
		"rrd", "rrddata", "vncproxy", "termproxy", "vncwebsocket", "mtunnel", "mtunnelwebsocket",
	}, path)
}

// unproxied are other endpoints below /nodes/{node}/ that the node that is asked serves itself.
func unproxied() []string {
	return []string{
		"GET capabilities/qemu/cpu", "GET capabilities/qemu/cpu-flags", "GET certificates", "GET firewall", "GET hardware",
		"GET hardware/pci/{pci-id-or-mapping}", "GET replication/{id}", "GET rrd", "GET rrddata", "GET scan", "GET sdn/vnets/{vnet}",
		"GET sdn/zones/{zone}", "GET services/{service}", "GET storage/{storage}", "GET tasks/{upid}", "GET vncwebsocket",
		"POST storage/{storage}/upload", "POST termproxy", "POST vncshell", "POST wakeonlan",
	}
}

// protectedReads are the endpoints that only read and that pvedaemon runs all the same.
func protectedReads() []string {
	agent, guest, storage := "/nodes/{node}/qemu/{vmid}/agent/", "/nodes/{node}/qemu/{vmid}/", "/nodes/{node}/storage/{storage}/"
	return []string{
		"/access/tfa", "/access/tfa/{userid}", "/access/tfa/{userid}/{id}", "/access/users", "/access/users/{userid}/tfa",
		"/cluster/firewall/ipset/{name}/{cidr}", "/cluster/mapping/dir/{id}", "/cluster/mapping/pci/{id}", "/cluster/mapping/usb/{id}",
		sdnDryRun, "/cluster/sdn/ipams/{ipam}/status", "/cluster/status",
		agent + "exec-status", agent + "file-read", agent + "get-fsinfo", agent + "get-host-name", agent + "get-memory-block-info",
		agent + "get-memory-blocks", agent + "get-osinfo", agent + "get-time", agent + "get-timezone", agent + "get-users",
		agent + "get-vcpus", agent + "info", agent + "network-get-interfaces",
		"/nodes/{node}/qemu", guest + "feature", guest + "firewall/ipset/{name}/{cidr}", guest + "firewall/log", guest + "migrate",
		guest + "rrd", guest + "rrddata", guest + "snapshot", guest + "status/current",
		"/nodes/{node}/lxc", "/nodes/{node}/lxc/{vmid}/feature", "/nodes/{node}/lxc/{vmid}/firewall/ipset/{name}/{cidr}", "/nodes/{node}/lxc/{vmid}/firewall/log",
		"/nodes/{node}/lxc/{vmid}/interfaces", "/nodes/{node}/lxc/{vmid}/rrd", "/nodes/{node}/lxc/{vmid}/rrddata",
		"/nodes/{node}/lxc/{vmid}/snapshot", "/nodes/{node}/lxc/{vmid}/status/current",
		"/nodes/{node}/apt/update", "/nodes/{node}/disks/list", "/nodes/{node}/firewall/log", "/nodes/{node}/hardware/pci",
		"/nodes/{node}/hardware/usb", "/nodes/{node}/hosts", "/nodes/{node}/journal", "/nodes/{node}/replication", "/nodes/{node}/report",
		"/nodes/{node}/rrd", "/nodes/{node}/rrddata", "/nodes/{node}/sdn/zones", "/nodes/{node}/sdn/zones/{zone}/content",
		"/nodes/{node}/sdn/zones/{zone}/bridges", "/nodes/{node}/services", "/nodes/{node}/services/{service}/state", "/nodes/{node}/syslog",
		"/nodes/{node}/tasks/{upid}/log", "/nodes/{node}/tasks/{upid}/status",
		"/nodes/{node}/storage", storage + "content", storage + "content/{volume}", storage + "file-restore/list",
		storage + "import-metadata", storage + "prunebackups", storage + "rrd", storage + "rrddata", storage + "status",
	}
}
