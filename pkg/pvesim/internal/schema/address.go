package schema

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// The lengths of names that the firewall allows.
const (
	maxSetName   = 64
	maxAliasName = 64
)

// nameOfAlias is the pattern of names of aliases, IP sets and security groups.
const nameOfAlias = `[A-Za-z][A-Za-z0-9\-_]+`

// IsAlias tells whether an address is the name of an alias, maybe with the scope in front: dc/name or guest/name.
func IsAlias(s string) bool { return matches(`(?:guest/|dc/)?`+nameOfAlias, s) }

// IsSetName tells whether s can be the name of an IP set or of a security group.
func IsSetName(s string) bool { return matches(nameOfAlias, s) }

// AddressVersion reads the source or destination of a firewall rule: a list of addresses and networks, one range, the name of
// an alias, or an IP set after a +. It returns 4, 6 or 0 if it cannot be told, and why the list is refused, or ""
// (PVE::Firewall::parse_address_list).
func AddressVersion(list string) (version int, problem string) {
	if strings.HasPrefix(list, "+") && len(list) > 1 && !strings.ContainsAny(list, " \t\n") {
		return 0, unless(len(list) <= maxSetName+1, "ipset name too long")
	}
	if IsAlias(list) {
		return 0, unless(len(list) <= maxAliasName, "alias name too long")
	}
	elements := strings.Split(list, ",")
	if strings.HasSuffix(list, ",") || list == "" {
		return 0, "extraneous commas in list"
	}
	ranges := 0
	for _, e := range elements {
		v, msg := parseIP(e)
		switch {
		case msg != "":
			return 0, "invalid IP address: " + msg
		case version != 0 && v != version:
			return 0, fmt.Sprintf("detected mixed ipv4/ipv6 addresses in address list '%s'", list)
		case strings.Contains(e, "-"):
			ranges++
		}
		version = v
	}
	return version, unless(ranges == 0 || len(elements) == 1, "you can't use a range in a list")
}

// parseIP reads an address, a network or a range as Perl's Net::IP does, and refuses it with its words.
func parseIP(s string) (version int, problem string) {
	if from, to, isRange := strings.Cut(s, "-"); isRange {
		a, msg := parseAddress(strings.TrimSpace(from))
		if msg != "" {
			return 0, msg
		}
		b, msg := parseAddress(strings.TrimSpace(to))
		if msg != "" {
			return 0, msg
		}
		if b.Less(a) {
			return 0, fmt.Sprintf("Begin address is greater than End address %s", s)
		}
		return versionOf(a), ""
	}
	address, length, isNetwork := strings.Cut(s, "/")
	a, msg := parseAddress(address)
	if msg != "" || !isNetwork {
		return versionOf(a), msg
	}
	return versionOf(a), prefixProblem(a, length)
}

func prefixProblem(a netip.Addr, length string) string {
	bits, err := strconv.Atoi(length)
	if err != nil || bits < 0 {
		return "Invalid prefix length /" + length
	}
	if bits > a.BitLen() {
		return fmt.Sprintf("Prefix length %d is longer than IP address (%d)", bits, a.BitLen())
	}
	if netip.PrefixFrom(a, bits).Masked().Addr() != a {
		return fmt.Sprintf("Invalid prefix %s/%d", binary(a), bits)
	}
	return ""
}

// binary writes an address as its bits, which is how Net::IP names a network with host bits.
func binary(a netip.Addr) string {
	out := ""
	for _, b := range a.AsSlice() {
		out += fmt.Sprintf("%08b", b)
	}
	return out
}

func parseAddress(s string) (netip.Addr, string) {
	if a, err := netip.ParseAddr(s); err == nil && a.Zone() == "" {
		return a, ""
	}
	if strings.Contains(s, ":") {
		return netip.Addr{}, "Invalid address " + s
	}
	return netip.Addr{}, quadProblem(s)
}

// quadProblem tells what is wrong with an IPv4 address (Net::IP::ip_is_ipv4).
func quadProblem(s string) string {
	switch {
	case s == "" || strings.Trim(s, "0123456789.") != "":
		return "Invalid chars in IP " + s
	case strings.HasPrefix(s, "."):
		return fmt.Sprintf("Invalid IP %s - starts with a dot", s)
	case strings.HasSuffix(s, "."):
		return fmt.Sprintf("Invalid IP %s - ends with a dot", s)
	case strings.Contains(s, ".."):
		return "Empty quad in IP address " + s
	}
	for _, quad := range strings.Split(s, ".") {
		if n, err := strconv.Atoi(quad); err != nil || n > 255 {
			return fmt.Sprintf("Invalid quad in IP address %s - %s", s, quad)
		}
	}
	return "Invalid IP address " + s
}

func versionOf(a netip.Addr) int {
	switch {
	case !a.IsValid():
		return 0
	case a.Is4():
		return 4
	}
	return 6
}

// CheckIPOrCIDR returns why the value is no address or network, or "". Host bits of a network are allowed.
func CheckIPOrCIDR(value string) string {
	address, _, _ := strings.Cut(value, "/")
	if a, err := netip.ParseAddr(address); err != nil || a.Zone() != "" || !matches(`[^/]+(/\d+)?`, value) {
		return "value does not look like a valid IP address or CIDR network"
	}
	_, msg := parseIP(CleanCIDR(value))
	return msg
}

// CleanCIDR is a network without its host bits, and other values as they are.
func CleanCIDR(value string) string {
	if p, err := netip.ParsePrefix(value); err == nil && p.Bits() > 0 {
		return p.Masked().String()
	}
	return value
}

// ShortCIDR is a network without a prefix length that stands for one address, and 4 or 6 (PVE::Firewall::parse_ip_or_cidr).
func ShortCIDR(value string) (cidr string, version int) {
	if strings.Contains(value, ":") {
		return strings.TrimSuffix(value, "/128"), 6
	}
	return strings.TrimSuffix(value, "/32"), 4
}
