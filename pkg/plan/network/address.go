package network

import (
	"fmt"
	"net/netip"
)

// Address is an address of a machine that is known before its VM is made.
type Address struct {
	// Claim is what it was given for. An address that is made, and not given, has a claim without a name.
	Claim Claim
	// Prefix is the address with the length of its network's prefix.
	Prefix netip.Prefix
	// Gateway is the router of the network; the zero Addr when there is none.
	Gateway netip.Addr
}

// NewAddress checks what an IPAM provider gave to a claim. An address that is of the other family, that stands for the
// network or its broadcast, or that is the gateway's own, cannot be a machine's; the error says which it is.
func NewAddress(claim Claim, address string, prefix int32, gateway string) (Address, error) {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return Address{}, fmt.Errorf("IPAddress %s: spec.address %q: %w", claim.Name, address, err)
	}
	network := netip.PrefixFrom(ip.Unmap().WithZone(""), int(prefix))
	if !network.IsValid() {
		return Address{}, fmt.Errorf("IPAddress %s: spec.prefix %d does not fit address %s", claim.Name, prefix, address)
	}
	result := Address{Claim: claim, Prefix: network}
	if gateway != "" {
		if result.Gateway, err = netip.ParseAddr(gateway); err != nil {
			return Address{}, fmt.Errorf("IPAddress %s: spec.gateway %q: %w", claim.Name, gateway, err)
		}
		result.Gateway = result.Gateway.Unmap().WithZone("")
	}
	return result, result.check()
}

func (a Address) check() error {
	ip := a.Prefix.Addr()
	switch {
	case a.Claim.Family != "" && (a.Claim.Family == IPv4) != ip.Is4():
		return fmt.Errorf("IPAddress %s: %s is not an %s address: check the family of pool %s", a.Claim.Name, ip, a.Claim.Family, a.Claim.Pool.Name)
	case a.Gateway.IsValid() && a.Gateway.Is4() != ip.Is4():
		return fmt.Errorf("IPAddress %s: gateway %s is of another family than %s: check pool %s", a.Claim.Name, a.Gateway, ip, a.Claim.Pool.Name)
	case ip == a.Gateway:
		return fmt.Errorf("IPAddress %s: %s is the gateway's own address: exclude it from pool %s", a.Claim.Name, ip, a.Claim.Pool.Name)
	case ip.IsUnspecified() || ip.IsMulticast() || ip.IsLoopback():
		return fmt.Errorf("IPAddress %s: %s cannot be a machine's address: correct pool %s", a.Claim.Name, ip, a.Claim.Pool.Name)
	case hasHostBits(a.Prefix) && ip == a.Prefix.Masked().Addr():
		return fmt.Errorf("IPAddress %s: %s stands for the network %s: exclude it from pool %s", a.Claim.Name, ip, a.Prefix.Masked(), a.Claim.Pool.Name)
	case hasHostBits(a.Prefix) && ip.Is4() && ip == last(a.Prefix):
		return fmt.Errorf("IPAddress %s: %s is the broadcast address of %s: exclude it from pool %s", a.Claim.Name, ip, a.Prefix.Masked(), a.Claim.Pool.Name)
	}
	return nil
}

// hasHostBits reports whether the network is large enough to have a network address of its own: a /31 and a /32 have
// none (RFC 3021), nor have a /127 and a /128 (RFC 6164).
func hasHostBits(prefix netip.Prefix) bool {
	return prefix.Addr().BitLen()-prefix.Bits() >= 2
}
