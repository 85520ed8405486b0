// Package network plans a machine's addresses: which it claims from IPAM pools, whether what it was given can be used,
// which MAC addresses its devices have, and what the guest is told about its network.
package network

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
)

// Family is an IP address family.
type Family string

// The two families, as they stand in the names of claims.
const (
	IPv4 Family = "ipv4"
	IPv6 Family = "ipv6"
)

// Claim is one address that a machine wants: of one family, on one device, from one pool.
type Claim struct {
	// Name is the name of the IPAddressClaim: `<machine>-<device>-<family>`.
	Name   string
	Device string
	Family Family
	Pool   v1beta1.IPPoolReference
}

// Address is what a claim was given.
type Address struct {
	Claim Claim
	// Prefix is the address with the length of its network's prefix.
	Prefix netip.Prefix
	// Gateway is the router of the network; the zero Addr when there is none.
	Gateway netip.Addr
}

// Claims returns the claims of a machine, those of net0 first, IPv4 before IPv6.
func Claims(machine string, spec v1beta1.Network) []Claim {
	var claims []Claim
	for _, device := range Devices(spec) {
		for _, source := range []struct {
			family Family
			pool   v1beta1.IPPoolReference
		}{{IPv4, device.IPv4.PoolRef}, {IPv6, device.IPv6.PoolRef}} {
			if source.pool.Name == "" {
				continue
			}
			claims = append(claims, Claim{
				Name:   fmt.Sprintf("%s-%s-%s", machine, device.Name, source.family),
				Device: device.Name, Family: source.family, Pool: source.pool,
			})
		}
	}
	return claims
}

// Devices returns the devices by number, so that net2 comes before net10.
func Devices(spec v1beta1.Network) []v1beta1.NetworkDevice {
	devices := slices.Clone(spec.Devices)
	slices.SortStableFunc(devices, func(a, b v1beta1.NetworkDevice) int {
		return cmp.Compare(deviceNumber(a.Name), deviceNumber(b.Name))
	})
	return devices
}

func deviceNumber(name string) int {
	number, err := strconv.Atoi(strings.TrimPrefix(name, "net"))
	if err != nil {
		return 1 << 16 // not a name the API accepts; kept, behind all others
	}
	return number
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
	case (a.Claim.Family == IPv4) != ip.Is4():
		return fmt.Errorf("IPAddress %s: %s is not an %s address: check the family of pool %s", a.Claim.Name, ip, a.Claim.Family, a.Claim.Pool.Name)
	case a.Gateway.IsValid() && a.Gateway.Is4() != ip.Is4():
		return fmt.Errorf("IPAddress %s: gateway %s is of another family than %s: check pool %s", a.Claim.Name, a.Gateway, ip, a.Claim.Pool.Name)
	case ip == a.Gateway:
		return fmt.Errorf("IPAddress %s: %s is the gateway's own address: exclude it from pool %s", a.Claim.Name, ip, a.Claim.Pool.Name)
	case ip.IsUnspecified() || ip.IsMulticast() || ip.IsLoopback():
		return fmt.Errorf("IPAddress %s: %s cannot be a machine's address: correct pool %s", a.Claim.Name, ip, a.Claim.Pool.Name)
	case hasHostBits(a.Prefix) && ip == a.Prefix.Masked().Addr():
		return fmt.Errorf("IPAddress %s: %s stands for the network %s: exclude it from pool %s", a.Claim.Name, ip, a.Prefix.Masked(), a.Claim.Pool.Name)
	case hasHostBits(a.Prefix) && ip.Is4() && ip == broadcast(a.Prefix):
		return fmt.Errorf("IPAddress %s: %s is the broadcast address of %s: exclude it from pool %s", a.Claim.Name, ip, a.Prefix.Masked(), a.Claim.Pool.Name)
	}
	return nil
}

// hasHostBits reports whether the network is large enough to have a network address of its own: a /31 and a /32 have
// none (RFC 3021), nor have a /127 and a /128 (RFC 6164).
func hasHostBits(prefix netip.Prefix) bool {
	return prefix.Addr().BitLen()-prefix.Bits() >= 2
}

func broadcast(prefix netip.Prefix) netip.Addr {
	bytes := prefix.Masked().Addr().As4()
	for bit := prefix.Bits(); bit < 32; bit++ {
		bytes[bit/8] |= 1 << (7 - bit%8)
	}
	return netip.AddrFrom4(bytes)
}
