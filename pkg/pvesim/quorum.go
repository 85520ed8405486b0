package pvesim

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// cfsLockTimeout is how long a lock of the cluster file system is tried for (PVE::Cluster::cfs_lock).
const cfsLockTimeout = 9 * time.Second

// workerPID stands for the process of pvedaemon that writes a config.
const workerPID = 998

// quorumChecked are the endpoints that ask for quorum before all else (check_cfs_quorum).
func quorumChecked() []string {
	const guest = "/nodes/{node}/qemu/{vmid}/"
	return []string{
		"POST /nodes/{node}/qemu", "POST " + guest + "clone", "POST " + guest + "status/start", "POST " + guest + "migrate",
		"POST /cluster/ha/resources", "PUT /cluster/ha/resources/{sid}", "DELETE /cluster/ha/resources/{sid}",
		"POST /cluster/ha/resources/{sid}/migrate", "POST /cluster/ha/resources/{sid}/relocate",
		"POST /cluster/ha/groups", "PUT /cluster/ha/groups/{group}", "DELETE /cluster/ha/groups/{group}",
		"POST /cluster/ha/rules", "PUT /cluster/ha/rules/{rule}", "DELETE /cluster/ha/rules/{rule}",
	}
}

// cfsLocks are the endpoints that write a file of the whole cluster, by how their paths begin: the lock that they take, and what
// stands before its error.
func cfsLocks() []cfsLock {
	user := "file-user_cfg"
	return []cfsLock{
		{"POST /pools", user, "create pool failed: "},
		{"PUT /pools", user, "update pools failed: "},
		{"DELETE /pools", user, "delete pool failed: "},
		{"PUT /access/acl", user, "ACL update failed: "},
		{"POST /access/users/{userid}/token", user, "generating token failed: "},
		{"PUT /access/users/{userid}/token", user, "updating token info failed: "},
		{"DELETE /access/users/{userid}/token", user, "deleting token failed: "},
		{"POST /access/users", user, "create user failed: "},
		{"PUT /access/users", user, "update user failed: "},
		{"DELETE /access/users", user, "delete user failed: "},
		{"POST /access/groups", user, "create group failed: "},
		{"PUT /access/groups", user, "update group failed: "},
		{"DELETE /access/groups", user, "delete group failed: "},
		{"POST /access/roles", user, "create role failed: "},
		{"PUT /access/roles", user, "update role failed: "},
		{"DELETE /access/roles", user, "delete role failed: "},
		{"POST /cluster/firewall", "firewall-cluster", ""},
		{"PUT /cluster/firewall", "firewall-cluster", ""},
		{"DELETE /cluster/firewall", "firewall-cluster", ""},
		{"POST /cluster/mapping/pci", "file-mapping_pci_cfg", "create hardware mapping failed: "},
		{"PUT /cluster/mapping/pci", "file-mapping_pci_cfg", "update hardware mapping failed: "},
		{"DELETE /cluster/mapping/pci", "file-mapping_pci_cfg", "delete pci mapping failed: "},
		{"POST /cluster/mapping/usb", "file-mapping_usb_cfg", "create hardware mapping failed: "},
		{"PUT /cluster/mapping/usb", "file-mapping_usb_cfg", "update hardware mapping failed: "},
		{"DELETE /cluster/mapping/usb", "file-mapping_usb_cfg", "delete usb mapping failed: "},
		{"PUT /cluster/options", "file-datacenter_cfg", ""},
		{"POST /storage", "file-storage_cfg", "create storage failed: "},
		{"PUT /storage", "file-storage_cfg", "update storage failed: "},
		{"DELETE /storage", "file-storage_cfg", "delete storage failed: "},
		{"POST /cluster/sdn", "domain-sdn", ""},
		{"PUT /cluster/sdn", "domain-sdn", ""},
		{"DELETE /cluster/sdn", "domain-sdn", ""},
	}
}

type cfsLock struct {
	route  string
	name   string
	prefix string
}

// host is the node that carries the request out.
func (c *call) host() *node {
	if c.route.proxied {
		return c.node
	}
	return c.at
}

// needQuorum refuses what cannot even begin without quorum. Writes that begin all the same fail at writeRefusal.
func (c *call) needQuorum() reply {
	if c.quorate(c.host()) {
		return reply{}
	}
	route := c.route.Method + " " + c.route.Path
	if slices.Contains(quorumChecked(), route) {
		return fail("cluster not ready - no quorum?")
	}
	for _, l := range append(c.firewallLocks(), cfsLocks()...) {
		if route == l.route || strings.HasPrefix(route, l.route+"/") {
			r := fail("%scfs-lock '%s' error: no quorum!", l.prefix, l.name)
			r.delay = cfsLockTimeout
			return r
		}
	}
	return reply{}
}

// firewallLocks are the locks of the firewalls that the request may name: a file each (PVE::Cluster::cfs_lock_firewall).
func (c *call) firewallLocks() []cfsLock {
	if c.route.Method == http.MethodGet {
		return nil
	}
	vm, host := "firewall-vm-"+c.params["vmid"], "firewall-host-"+string(c.host().Name)
	return []cfsLock{
		{c.route.Method + " /nodes/{node}/qemu/{vmid}/firewall", vm, ""},
		{c.route.Method + " /nodes/{node}/lxc/{vmid}/firewall", vm, ""},
		{c.route.Method + " /nodes/{node}/firewall", host, ""},
		{c.route.Method + " /cluster/sdn/vnets/{vnet}/firewall", "firewall-vnet-" + c.params["vnet"], ""},
	}
}

// writeRefusal is the error of writing a VM's config on a node without quorum; empty if it can be written. The pid is that of the
// process that writes.
func (w *World) writeRefusal(v *vm, pid uint32) string {
	n := w.node(v.node)
	if n == nil || w.quorate(n) {
		return ""
	}
	return fmt.Sprintf("unable to open file '/etc/pve/nodes/%s/qemu-server/%d.conf.tmp.%d' - Permission denied", v.node, v.id, pid)
}

// cannotWrite ends a task that would write the VM's config now and has no quorum for it.
func (t *task) cannotWrite(v *vm) bool {
	msg := t.world.writeRefusal(v, t.pid)
	if msg != "" {
		t.end(msg)
	}
	return msg != ""
}
