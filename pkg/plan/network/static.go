package network

import (
	"encoding/hex"
	"net/netip"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// Static returns all addresses of a machine that are known before its VM is made: those that were given to its claims, with
// the gateways that the spec has in place of the pools', and those that follow from its MAC addresses. They are in the order
// of the devices, IPv4 before IPv6; the first is the Node's.
func Static(uuid proxmox.SMBIOSUUID, spec v1beta1.Network, bound []Address) []Address {
	var all []Address
	for _, device := range Devices(spec) {
		for _, family := range families() {
			all = append(all, static(uuid, device, family, bound)...)
		}
	}
	return all
}

func static(uuid proxmox.SMBIOSUUID, device v1beta1.NetworkDevice, family Family, bound []Address) []Address {
	from := addressingOf(device, family)
	var found []Address
	for _, address := range bound {
		if address.Claim.Device == device.Name && address.Claim.Family == family {
			found = append(found, address)
		}
	}
	if made, ok := eui64Of(uuid, device, from); ok {
		found = append(found, made)
	}
	if gateway, err := netip.ParseAddr(from.Gateway); err == nil && len(found) > 0 {
		found[0].Gateway = gateway.Unmap().WithZone("")
	}
	return found
}

// eui64Of is the address that a device makes of a prefix and its MAC address.
func eui64Of(uuid proxmox.SMBIOSUUID, device v1beta1.NetworkDevice, from addressing) (Address, bool) {
	prefix, err := netip.ParsePrefix(from.prefix)
	if from.method != methodEUI64 || err != nil || uuid == "" && device.MACAddress == "" {
		return Address{}, false
	}
	address, ok := EUI64(prefix, DeviceMAC(uuid, device))
	return Address{Claim: Claim{Device: device.Name, Family: IPv6}, Prefix: netip.PrefixFrom(address, prefix.Bits())}, ok
}

// EUI64 is the address that a device with the MAC address has in an IPv6 network of 64 bits (RFC 4291, appendix A): the same
// one that SLAAC makes without privacy extensions.
func EUI64(prefix netip.Prefix, mac string) (netip.Addr, bool) {
	hardware, err := hex.DecodeString(strings.ReplaceAll(mac, ":", ""))
	if err != nil || len(hardware) != 6 || !prefix.Addr().Is6() || prefix.Bits() != 64 {
		return netip.Addr{}, false
	}
	const universal = 0x02
	bytes := prefix.Masked().Addr().As16()
	copy(bytes[8:], []byte{hardware[0] ^ universal, hardware[1], hardware[2], 0xff, 0xfe, hardware[3], hardware[4], hardware[5]})
	return netip.AddrFrom16(bytes), true
}

// NeedsIdentity reports whether addresses follow from the identity that a machine gets with its place.
func NeedsIdentity(spec v1beta1.Network) bool {
	for _, device := range spec.Devices {
		if addressingOf(device, IPv6).method == methodEUI64 && device.MACAddress == "" {
			return true
		}
	}
	return false
}

// HasDynamic reports whether the guest gets addresses that only it can tell, by DHCP or SLAAC.
func HasDynamic(spec v1beta1.Network) bool {
	for _, device := range spec.Devices {
		for _, family := range families() {
			if addressingOf(device, family).isAutomatic() {
				return true
			}
		}
	}
	return false
}
