package pvesim

import (
	"net/netip"
	"time"
)

// agentDelay is how long qemu-server waits for an agent that does not answer.
const agentDelay = 3 * time.Second

// agentPermission is the privilege for looking into a guest, which 9.x split off VM.Monitor.
func agentPermission(v Version) permission {
	if v == V84 {
		return on("/vms/{vmid}", "VM.Monitor")
	}
	return on("/vms/{vmid}", "VM.GuestAgent.Audit", "VM.GuestAgent.Unrestricted")
}

// NetworkInterface is one interface as the guest agent reports it.
type NetworkInterface struct {
	Name string
	MAC  string
	// Addresses with their prefix length.
	Addresses []netip.Prefix
}

// withAgent runs do with the guest's interfaces if its agent answers.
func withAgent(c *call, do func([]NetworkInterface) reply) reply {
	v := c.vm()
	switch {
	case v == nil:
		return missingVM(c.node.Name, c.vmid())
	case !v.running:
		return fail("VM %d is not running", v.id)
	case v.config["agent"] == "":
		return fail("No QEMU guest agent configured")
	}
	if v.agent && v.guest != nil {
		if list, running := v.guest.Interfaces(); running {
			return do(list)
		}
	}
	r := fail("QEMU guest agent is not running")
	if v.agent {
		r.delay = agentDelay
	}
	return r
}

func agentPing(c *call) reply {
	return withAgent(c, func([]NetworkInterface) reply { return ok(map[string]any{"result": map[string]any{}}) })
}

func agentInterfaces(c *call) reply {
	return withAgent(c, func(list []NetworkInterface) reply {
		out := []map[string]any{}
		for _, i := range list {
			out = append(out, i.entry())
		}
		return ok(map[string]any{"result": out})
	})
}

func (i NetworkInterface) entry() map[string]any {
	addresses := []map[string]any{}
	for _, p := range i.Addresses {
		family := "ipv6"
		if p.Addr().Is4() {
			family = "ipv4"
		}
		addresses = append(addresses, map[string]any{"ip-address": p.Addr().String(), "ip-address-type": family, "prefix": p.Bits()})
	}
	return map[string]any{"name": i.Name, "hardware-address": i.MAC, "ip-addresses": addresses, "statistics": map[string]any{"rx-bytes": 0, "tx-bytes": 0}}
}
