package schema

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// checkNetworkFormat checks the formats of the firewall and of SDN. It returns why the value is refused, or "".
func checkNetworkFormat(format, value string) string {
	switch format {
	case "IPorCIDR":
		return CheckIPOrCIDR(value)
	case "IPorCIDRorAlias":
		return unless(IsAlias(value), CheckIPOrCIDR(value))
	case "pve-fw-addr-spec":
		_, msg := AddressVersion(value)
		return msg
	case "pve-fw-sport-spec":
		return CheckPorts(value)
	case "pve-fw-dport-spec":
		return CheckDestinationPorts(value)
	case "pve-fw-protocol-spec":
		return CheckProtocol(value)
	case "pve-fw-icmp-type-spec":
		return unless(value == "" || IsICMPType(value) || IsICMPv6Type(value), fmt.Sprintf("invalid icmp-type value '%s'", value))
	case "pve-fw-conntrack-helper":
		return checkConntrackHelpers(value)
	case "pve-iface":
		return unless(matches(`(?i)[a-z][a-z0-9_]{1,20}([:.]\d+)?`, value), fmt.Sprintf("invalid network interface name '%s'", value))
	}
	return checkSDNFormat(format, value)
}

func checkConntrackHelpers(value string) string {
	known := strings.Fields("amanda ftp irc netbios-ns pptp sane sip snmp tftp")
	for _, name := range SplitList(value) {
		if !slices.Contains(known, name) {
			return fmt.Sprintf("unsupported conntrack helper '%s'", name)
		}
	}
	return ""
}

// checkSDNFormat checks the IDs of zones, vnets and their like as Proxmox VE 8 does; 9 has patterns instead.
func checkSDNFormat(format, value string) string {
	kind, ok := strings.CutPrefix(format, "pve-sdn-")
	if !ok {
		return ""
	}
	switch kind {
	case "zone-id", "vnet-id":
		kind = strings.TrimSuffix(kind, "-id")
		if !matches(`(?i)[a-z][a-z0-9]*[a-z0-9]`, value) {
			return fmt.Sprintf("%s ID '%s' contains illegal characters", kind, value)
		}
		return unless(len(value) <= 8, fmt.Sprintf("%s ID '%s' can't be more length than 8 characters", kind, value))
	case "controller-id":
		if !matches(`(?i)[a-z][a-z0-9_-]*[a-z0-9]`, value) {
			return fmt.Sprintf("controller ID '%s' contains illegal characters", value)
		}
		return unless(len(value) <= 64, fmt.Sprintf("controller ID '%s' can't be more length than 64 characters", value))
	case "ipam-id", "dns-id":
		return unless(matches(`(?i)[a-z][a-z0-9]*[a-z0-9]`, value), fmt.Sprintf("%s ID '%s' contains illegal characters", strings.TrimSuffix(kind, "-id"), value))
	case "subnet-id":
		return unless(validSubnet(value), "value does not look like a valid CIDR network")
	}
	return ""
}

// validSubnet takes a network, or the ID of a subnet: zone-network-length.
func validSubnet(value string) bool {
	if !strings.Contains(value, "/") {
		parts := strings.SplitN(value, "-", 3)
		if len(parts) < 3 {
			return false
		}
		value = parts[1] + "/" + parts[2]
	}
	p, err := netip.ParsePrefix(value)
	return err == nil && p.Bits() > 7
}
