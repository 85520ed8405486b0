package schema

import (
	"fmt"
	"net/netip"
)

// checkAddress checks the formats of addresses and names in a network.
func checkAddress(format, value string) (msg string, known bool) {
	switch format {
	case "dns-name":
		return unless(validDNSName(value), "value does not look like a valid DNS name"), true
	case "mac-addr":
		return unless(matches(`(?i)[a-f0-9][02468ace](:[a-f0-9]{2}){5}`, value), "value does not look like a valid unicast MAC address"), true
	case "pve-bridge-id":
		return unless(matches(`[-_.\w]+`, value), fmt.Sprintf("invalid bridge ID '%s'", value)), true
	case "ip":
		return unless(isAddress(value, netip.Addr.IsValid), "value does not look like a valid IP address"), true
	case "ipv4":
		return unless(isAddress(value, netip.Addr.Is4), "value does not look like a valid IPv4 address"), true
	case "ipv6":
		return unless(isAddress(value, netip.Addr.Is6), "value does not look like a valid IPv6 address"), true
	case "address":
		return unless(isAddress(value, netip.Addr.IsValid) || validDNSName(value), "value does not look like a valid address: "+value), true
	case "pve-ipv4-config":
		return checkIPConfig(value, "ipv4"), true
	case "pve-ipv6-config":
		return checkIPConfig(value, "ipv6"), true
	}
	return "", false
}

func validDNSName(value string) bool {
	return matches(`([a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?)(\.[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?)*`, value)
}

func isAddress(value string, family func(netip.Addr) bool) bool {
	addr, err := netip.ParseAddr(value)
	return err == nil && addr.Zone() == "" && family(addr)
}

func checkIPConfig(value, family string) string {
	if value == "dhcp" || (family == "ipv6" && value == "auto") {
		return ""
	}
	prefix, err := netip.ParsePrefix(value)
	if err == nil && prefix.Addr().Is4() == (family == "ipv4") {
		return ""
	}
	return fmt.Sprintf("value does not look like a valid %s network configuration", family)
}
