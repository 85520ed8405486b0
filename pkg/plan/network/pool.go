package network

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
)

// Problem is something in a spec that cannot be.
type Problem struct {
	// Path leads to the field, from the spec.
	Path []string
	// Index is the place in a list; -1 for what is none.
	Index   int
	Value   string
	Message string
}

// String names the field, the value and what is wrong with it.
func (p Problem) String() string {
	path := "spec." + strings.Join(p.Path, ".")
	if p.Index >= 0 {
		path = fmt.Sprintf("%s[%d]", path, p.Index)
	}
	return fmt.Sprintf("%s: %s: %s", path, p.Value, p.Message)
}

// PoolProblems says what is wrong with the addresses that a ProxmoxCluster has for its machines: those that are none of the
// family or the network, and those that the gateway or the control plane have already.
func PoolProblems(spec v1beta1.ProxmoxClusterSpec) []Problem {
	vip, _ := netip.ParseAddr(spec.ControlPlaneEndpoint.Host)
	if spec.ControlPlaneEndpointPoolRef.Name != "" {
		vip = netip.Addr{} // it is claimed, so that nothing else gets it
	}
	var problems []Problem
	for _, check := range []poolCheck{{family: IPv4, pool: spec.IPv4, vip: vip.Unmap()}, {family: IPv6, pool: spec.IPv6, vip: vip.Unmap()}} {
		check.run()
		problems = append(problems, check.problems...)
	}
	return problems
}

// poolCheck is the check of the addresses of a family.
type poolCheck struct {
	family  Family
	pool    v1beta1.AddressPool
	vip     netip.Addr
	gateway netip.Addr
	// network is the one of the first address.
	network  netip.Prefix
	problems []Problem
}

func (c *poolCheck) field(field, value, format string, args ...any) {
	c.problems = append(c.problems, Problem{Path: []string{string(c.family), field}, Index: -1, Value: value, Message: fmt.Sprintf(format, args...)})
}

func (c *poolCheck) entry(index int, format string, args ...any) {
	c.field("addresses", c.pool.Addresses[index], format, args...)
	c.problems[len(c.problems)-1].Index = index
}

func (c *poolCheck) run() {
	if len(c.pool.Addresses) == 0 {
		return
	}
	c.gateway, _ = netip.ParseAddr(c.pool.Gateway)
	if c.gateway.IsValid() && c.gateway.Is4() != (c.family == IPv4) {
		c.field("gateway", c.pool.Gateway, "is not of the family %s", c.family)
	}
	if c.gateway.IsValid() && c.gateway == c.vip {
		c.field("gateway", c.pool.Gateway, "is the host of controlPlaneEndpoint, too: one of them has to have another address")
	}
	for i, text := range c.pool.Addresses {
		all, err := parseAddresses(text)
		switch {
		case err != nil:
			c.entry(i, "%v", err)
			continue
		case all.from.Is4() != (c.family == IPv4):
			c.entry(i, "is not of the family %s", c.family)
			continue
		case !c.network.IsValid():
			if c.network, err = all.from.Prefix(int(c.pool.Prefix)); err != nil {
				c.field("prefix", fmt.Sprint(c.pool.Prefix), "is too long for the family %s", c.family)
				return
			}
		}
		c.place(i, all)
	}
}

// place checks where addresses are.
func (c *poolCheck) place(index int, all addressRange) {
	if !c.network.Contains(all.from) || !c.network.Contains(all.to) {
		c.entry(index, "is not in %s, the network of the first address: a pool is of one network", c.network)
	}
	if all.contains(c.gateway) {
		c.entry(index, "contains the gateway %s, which no machine may have: %s", c.gateway, leaveOut(c.gateway))
	}
	if all.contains(c.vip) {
		c.entry(index, "contains %s, the host of controlPlaneEndpoint, which no machine may have: %s", c.vip, leaveOut(c.vip))
	}
}

// leaveOut says how a pool goes without an address.
func leaveOut(address netip.Addr) string {
	return fmt.Sprintf("name ranges before and behind it, such as one up to %s and one from %s", address.Prev(), address.Next())
}

// addressRange is addresses that follow each other, both ends included.
type addressRange struct{ from, to netip.Addr }

func (r addressRange) contains(address netip.Addr) bool {
	return address.IsValid() && address.Is4() == r.from.Is4() && r.from.Compare(address) <= 0 && address.Compare(r.to) <= 0
}

// parseAddresses reads an address, a range or a network.
func parseAddresses(text string) (addressRange, error) {
	if strings.Contains(text, "/") {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return addressRange{}, fmt.Errorf("is no network: %w", err)
		}
		return addressRange{prefix.Masked().Addr(), last(prefix)}, nil
	}
	first, end, isRange := strings.Cut(text, "-")
	if !isRange {
		end = first
	}
	from, err := netip.ParseAddr(first)
	if err != nil {
		return addressRange{}, fmt.Errorf("is no address: %w", err)
	}
	to, err := netip.ParseAddr(end)
	switch {
	case err != nil:
		return addressRange{}, fmt.Errorf("is no range: %w", err)
	case from.Is4() != to.Is4():
		return addressRange{}, fmt.Errorf("is no range: %s and %s are of different families", from, to)
	case to.Less(from):
		return addressRange{}, fmt.Errorf("is no range: %s comes after %s", from, to)
	}
	return addressRange{from, to}, nil
}

// last is the last address of a network.
func last(prefix netip.Prefix) netip.Addr {
	bytes := prefix.Masked().Addr().AsSlice()
	for bit := prefix.Bits(); bit < len(bytes)*8; bit++ {
		bytes[bit/8] |= 1 << (7 - bit%8)
	}
	address, _ := netip.AddrFromSlice(bytes)
	return address
}
