package pvesim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/sdn"
)

// reloadTime is how long a host takes to make the bridges that are configured.
const reloadTime = 800 * time.Millisecond

// applySDN puts the configuration in force at once, and lets one host after the other make its bridges in a task.
func applySDN(c *call) reply {
	r := c.lockedSDN("could not commit SDN config", func() string {
		c.sdn.running = c.sdn.config.Commit()
		c.sdn.version++
		c.releaseSDNLock()
		return ""
	})
	if r.failed() {
		return r
	}
	return c.task("reloadnetworkall", "", func(t *task) { c.reloadNetworks(t, slices.Clone(c.nodes)) })
}

// releaseSDNLock gives the lock back after a change that was made with its token, unless the request asks to keep it.
func (c *call) releaseSDNLock() {
	if c.params["lock-token"] != "" && c.params["release-lock"] != "0" {
		c.sdn.lockToken = ""
	}
}

// reloadNetworks goes on with the task at the first of the hosts.
func (c *call) reloadNetworks(t *task, left []*node) {
	if len(left) == 0 {
		t.end("")
		return
	}
	n := left[0]
	t.logf("%s: reloading network config", n.Name)
	t.after(reloadTime, func() {
		for _, line := range c.reloadNetwork(n, t.node == n.Name) {
			t.logf("%s", line)
		}
		c.reloadNetworks(t, left[1:])
	})
}

// reloadNetwork makes the bridges of the vnets in force on a host. It returns what pvesh says when it cannot.
func (c *call) reloadNetwork(n *node, local bool) []string {
	problem, suffix := "", ""
	switch {
	case n.NoIfupdown2:
		problem = "you need ifupdown2 to reload network configuration"
	case !n.online:
		problem = "No route to host"
	}
	if problem == "" {
		c.start(taskKey{node: n.Name, typ: "srvreload", id: "networking", user: rootUser}, func(t *task) { t.end("") })
		c.sdn.apply(n)
		return nil
	}
	if !local {
		problem = "proxy handler failed: " + problem
	}
	if c.version != V84 {
		suffix = " --regenerate-frr 0"
	}
	return []string{problem, fmt.Sprintf("command 'pvesh set /nodes/%s/network%s' failed: exit code 2", n.Name, suffix)}
}

// apply gives a host the bridges of the vnets in force.
func (s *sdnState) apply(n *node) {
	s.applied[n.Name], s.vnets[n.Name] = s.version, nil
	for _, id := range slices.Sorted(maps.Keys(s.running.VNets)) {
		if zone := s.running.Zones[s.running.VNets[id]["zone"]]; zone != nil && zone.OnNode(string(n.Name)) {
			s.vnets[n.Name] = append(s.vnets[n.Name], id)
		}
	}
}

func lockSDN(c *call) reply {
	token := ""
	r := c.lockedSDN("could not acquire lock for SDN config", func() string {
		if !c.flag("allow-pending") && c.sdn.config.HasPending(c.sdn.running) {
			return "configuration has pending changes" + c.diedAt("API2/Network/SDN.pm", 150, 150)
		}
		token = c.newUUID()
		c.sdn.lockToken = token
		return ""
	})
	if r.failed() {
		return r
	}
	return ok(token)
}

func unlockSDN(c *call) reply {
	if c.flag("force") {
		c.sdn.lockToken = ""
		return ok(nil)
	}
	return c.lockedSDN("could not release lock", func() string {
		c.sdn.lockToken = ""
		return ""
	})
}

// rollbackSDN takes back all that is not in force.
func rollbackSDN(c *call) reply {
	return c.lockedSDN("could not rollback SDN configuration", func() string {
		c.sdn.config.Rollback(c.sdn.running)
		c.releaseSDNLock()
		return ""
	})
}

// sdnDryRun is the one endpoint that names its host in a parameter.
const sdnDryRun = "/cluster/sdn/dry-run"

// dryRunSDN tells what would change in the files of a host.
func dryRunSDN(c *call) reply {
	n := c.node
	before, after := "", fmt.Sprintf("#version:%d\n%s", c.sdn.version, interfaces(c.sdn.config, n))
	if v := c.sdn.applied[n.Name]; v > 0 {
		before = fmt.Sprintf("#version:%d\n%s", v, interfaces(c.sdn.running, n))
	}
	frr := fmt.Sprintf("frr version 10.4.1\nfrr defaults datacenter\nhostname %s\nlog syslog informational\nservice integrated-vtysh-config\n!\nline vty\n!\n", n.Name)
	return ok(map[string]any{"frr-diff": diff("/etc/frr/frr.conf", "", frr), "interfaces-diff": diff("/etc/network/interfaces.d/sdn", before, after)})
}

// interfaces are the bridges of a configuration on a host, as a file of ifupdown has them.
func interfaces(c sdn.Config, n *node) string {
	stanzas := map[string][]string{}
	for _, id := range slices.Sorted(maps.Keys(c.VNets)) {
		if zone := c.Zones[c.VNets[id]["zone"]]; zone != nil && zone.OnNode(string(n.Name)) {
			addStanzas(stanzas, id, c.VNets[id], zone)
		}
	}
	out := ""
	for _, iface := range slices.Sorted(maps.Keys(stanzas)) {
		out += fmt.Sprintf("\nauto %s\niface %s\n", iface, iface)
		for _, line := range stanzas[iface] {
			out += "\t" + line + "\n"
		}
	}
	return out
}

// addStanzas adds what one vnet needs: in a zone of VLANs a bridge of its tag, to which a pair of virtual cables leads.
func addStanzas(stanzas map[string][]string, id string, vnet, zone sdn.Section) {
	bridge := func(ports string) []string { return []string{"bridge_ports " + ports, "bridge_stp off", "bridge_fd 0"} }
	ports := "none"
	if zone["bridge"] != "" {
		ports = "ln_" + id
		stanzas["ln_"+id] = []string{"link-type veth", "veth-peer-name pr_" + id}
		stanzas["pr_"+id] = []string{"link-type veth", "veth-peer-name ln_" + id}
		stanzas[zone["bridge"]+"v"+vnet["tag"]] = bridge(" pr_" + id)
	}
	stanzas[id] = bridge(ports)
	if vnet["alias"] != "" {
		stanzas[id] = append(stanzas[id], "alias "+vnet["alias"])
	}
}

// diff replaces one text by another, in one hunk; nil if they are the same.
func diff(name, before, after string) any {
	if before == after {
		return nil
	}
	old, now := strings.Split(strings.TrimSuffix(before, "\n"), "\n"), strings.Split(strings.TrimSuffix(after, "\n"), "\n")
	if before == "" {
		old = nil
	}
	out := fmt.Sprintf("--- %s\n+++ pending\n@@ -%d,%d +1,%d @@\n", name, min(1, len(old)), len(old), len(now))
	for _, line := range old {
		out += "-" + line + "\n"
	}
	for _, line := range now {
		out += "+" + line + "\n"
	}
	return out
}
