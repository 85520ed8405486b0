package pvesim

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// checkIdentities looks for VMs that cannot be told apart.
func (c *checker) checkIdentities() {
	c.checkTwice(SharedMAC, "MAC address", (*vm).macs)
	c.checkTwice(SharedUUID, "SMBIOS UUID", func(v *vm) []string { return []string{string(v.uuid())} })
}

// checkAddresses looks for addresses that two VMs have in one network: set by ipconfigN, allowed by the IP set ipfilter-netN, or had by
// a running guest.
func (c *checker) checkAddresses() {
	c.checkTwice(SharedAddress, "address", func(v *vm) []string {
		if v.isTemplate() {
			return nil
		}
		out := append(v.configuredAddresses(), v.guestAddresses(c.clock.Now())...)
		out = append(out, c.filteredAddresses(v)...)
		slices.Sort(out)
		return slices.Compact(out)
	})
}

// checkTwice reports values that two VMs have.
func (c *checker) checkTwice(kind FindingKind, what string, values func(*vm) []string) {
	seen := map[string]proxmox.VMID{}
	for _, id := range slices.Sorted(maps.Keys(c.vms)) {
		for _, value := range values(c.vms[id]) {
			value = strings.ToLower(value)
			if other, ok := seen[value]; ok && value != "" {
				c.report(kind, guestObject(id), "%s %s is used by VM %d and VM %d", what, value, other, id)
			}
			seen[value] = id
		}
	}
}

// network names the bridge and VLAN of a network device, as far as they are the same for all hosts.
func network(device string) string {
	format := netFormat()
	p, _ := format.Parse(device)
	if p["tag"] == "" {
		return p["bridge"]
	}
	return p["bridge"] + " VLAN " + p["tag"]
}

// configuredAddresses are those of the ipconfigN whose netN is there.
func (v *vm) configuredAddresses() []string {
	var out []string
	for i := range 32 {
		device := v.config[fmt.Sprintf("net%d", i)]
		for _, part := range strings.Split(v.config[fmt.Sprintf("ipconfig%d", i)], ",") {
			key, value, _ := strings.Cut(part, "=")
			prefix, err := netip.ParsePrefix(value)
			if err == nil && (key == "ip" || key == "ip6") && device != "" {
				out = append(out, prefix.Addr().String()+" on "+network(device))
			}
		}
	}
	return out
}

// guestAddresses are those that the running guest has on its network devices.
func (v *vm) guestAddresses(now time.Time) []string {
	if !v.running || v.guest == nil {
		return nil
	}
	networks := map[string]string{}
	format := netFormat()
	for i := range 32 {
		device := v.config[fmt.Sprintf("net%d", i)]
		if p, _ := format.Parse(device); p["macaddr"] != "" {
			networks[strings.ToLower(p["macaddr"])] = network(device)
		}
	}
	var out []string
	interfaces, _ := v.guest.Agent(AgentCommand{Name: "network-get-interfaces", Now: now}).Result.([]NetworkInterface)
	for _, nic := range interfaces {
		on, ok := networks[strings.ToLower(nic.MAC)]
		for _, prefix := range nic.Addresses {
			if ok && prefix.Addr().IsGlobalUnicast() {
				out = append(out, prefix.Addr().String()+" on "+on)
			}
		}
	}
	return out
}

// checkCPUs looks for host CPUs that are pinned to two running VMs.
func (c *checker) checkCPUs() {
	for _, n := range c.state.Nodes {
		owner := map[int]proxmox.VMID{}
		for _, v := range c.state.VMs {
			if v.Node != n.Name || v.State != "running" {
				continue
			}
			shared := map[proxmox.VMID]bool{}
			for _, cpu := range cpuSet(v.Config["affinity"]) {
				if other, ok := owner[cpu]; ok && other != v.VMID && !shared[other] {
					shared[other] = true
					c.report(SharedCPU, guestObject(v.VMID), "CPU %d of %s is pinned to VM %d and VM %d", cpu, n.Name, other, v.VMID)
				}
				owner[cpu] = v.VMID
			}
		}
	}
}
