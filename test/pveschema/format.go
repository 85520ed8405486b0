package pveschema

import (
	"fmt"
	"net/netip"
	"regexp"
	"strings"
)

// check tests a value against a named format or the keys of a property string. Formats that nothing of ours needs accept
// everything.
func (f format) check(value string) error {
	if f.keys != nil {
		return checkKeys(f.keys, value)
	}
	if f.name == "pve-qm-ipconfig" {
		return checkKeys(ipconfigKeys(), value)
	}
	if list, ok := strings.CutSuffix(f.name, "-list"); ok {
		for _, item := range strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(",; ", r) }) {
			if err := checkFormat(list, item); err != nil {
				return err
			}
		}
		return nil
	}
	return checkFormat(f.name, value)
}

// ipconfigKeys are the keys of ipconfig[n], which the schema only names (PVE::QemuServer::Cloudinit).
func ipconfigKeys() map[string]property {
	key := func(name string, requires ...string) property {
		return property{Type: "string", Optional: true, Format: format{name: name}, Requires: requires}
	}
	return map[string]property{
		"ip": key("pve-ipv4-config"), "gw": key("ipv4", "ip"), "ip6": key("pve-ipv6-config"), "gw6": key("ipv6", "ip6"),
	}
}

func checkFormat(name, value string) error {
	fits := true
	if expression, ok := expressions()[name]; ok {
		fits = regexp.MustCompile("^(?:" + expression + ")$").MatchString(value)
	}
	switch name {
	case "ipv4", "ipv6", "ip":
		address, err := netip.ParseAddr(value)
		fits = err == nil && (name == "ip" || address.Is4() == (name == "ipv4"))
	case "CIDR", "CIDRv4", "CIDRv6":
		prefix, err := netip.ParsePrefix(value)
		fits = err == nil && (name == "CIDR" || prefix.Addr().Is4() == (name == "CIDRv4"))
	case "pve-ipv4-config":
		fits = value == "dhcp" || checkFormat("CIDRv4", value) == nil
	case "pve-ipv6-config":
		fits = value == "dhcp" || value == "auto" || checkFormat("CIDRv6", value) == nil
	}
	if !fits {
		return fmt.Errorf("value %q does not look like a valid %s", value, name)
	}
	return nil
}

// expressions are the formats PVE registers as patterns (PVE::JSONSchema, PVE::QemuServer, PVE::Storage).
func expressions() map[string]string {
	const label = `[a-zA-Z0-9](?:[a-zA-Z0-9\-]*[a-zA-Z0-9])?`
	return map[string]string{
		"pve-node":            label,
		"pve-vmid":            `[1-9][0-9]{2,8}`,
		"dns-name":            `(?:` + label + `\.)*` + label,
		"pve-storage-id":      `[a-zA-Z][a-zA-Z0-9\-_.]*[a-zA-Z0-9]`,
		"pve-configid":        `[a-zA-Z][a-zA-Z0-9\-_]+`,
		"pve-tag":             `[a-zA-Z0-9_][a-zA-Z0-9_\-+.]*`,
		"pve-poolid":          `[A-Za-z0-9.\-_]+(?:/[A-Za-z0-9.\-_]+){0,2}`,
		"pve-bridge-id":       `[-_.\w]+`,
		"pve-cpuset":          `\s*\d+(?:-\d+)?(?:\s*,\s*\d+(?:-\d+)?)*\s*`,
		"mac-addr":            `(?i:[a-f0-9][02468ace](?::[a-f0-9]{2}){5})`,
		"urlencoded":          `(?:[a-zA-Z0-9_.~\-]|%[0-9a-fA-F]{2})*`,
		"pve-storage-content": `[a-z]+`,
	}
}
