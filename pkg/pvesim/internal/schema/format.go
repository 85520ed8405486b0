package schema

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// CheckFormat is PVE::JSONSchema::check_format. It returns why the value is refused, or "".
func CheckFormat(format, value string) string {
	switch format {
	case "pve-vmid":
		return unless(len(value) >= 3 && len(value) <= 9 && value[0] != '0' && IsInteger(value), "value does not look like a valid VM ID")
	case "pve-node":
		return unless(validLabel(value), "value does not look like a valid node name")
	case "dns-name":
		return unless(matches(`([a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?)(\.[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?)*`, value), "value does not look like a valid DNS name")
	case "pve-storage-id":
		return unless(matches(`[a-zA-Z][a-zA-Z0-9._-]*[a-zA-Z0-9]`, value), fmt.Sprintf("storage ID '%s' contains illegal characters", value))
	case "pve-poolid":
		return unless(matches(`[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+){0,2}`, value), fmt.Sprintf("value '%s' does not look like a valid pool name", value))
	case "pve-tag-list":
		return checkTags(value)
	case "pve-storage-content":
		return checkContent(value)
	case "urlencoded":
		return unless(matches(`[-%a-zA-Z0-9_.!~*'()]*`, value), "invalid urlencoded string: "+value)
	case "pve-cpuset":
		return unless(validCPUSet(value), "unable to parse cpuset option")
	case "mac-addr":
		return checkMAC(value)
	case "pve-ipv4-config":
		return checkIPConfig(value, "ipv4")
	case "pve-ipv6-config":
		return checkIPConfig(value, "ipv6")
	case "pve-hotplug-features":
		return checkHotplug(value)
	case "pve-startup-order":
		return unless(matches(`(order=)?\d+(,(up|down)=\d+)*|(order|up|down)=\d+(,(order|up|down)=\d+)*`, value), "unable to parse startup options")
	case "pve-task-status-type-list":
		return checkTaskStatuses(value)
	}
	if item, ok := strings.CutSuffix(format, "-list"); ok {
		return checkList(item, value)
	}
	if msg := checkAccess(format, value); msg != "" {
		return msg
	}
	return checkNetworkFormat(format, value)
}

// checkList returns why the first refused element of a list is refused, or "".
func checkList(item, value string) string {
	for _, v := range SplitList(value) {
		if msg := CheckFormat(item, v); msg != "" {
			return msg
		}
	}
	return ""
}

// validLabel is the pattern of one DNS label, by hand because every request checks a node name.
func validLabel(s string) bool {
	for _, r := range s {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' {
			return false
		}
	}
	return s != "" && !strings.HasPrefix(s, "-") && !strings.HasSuffix(s, "-")
}

func unless(valid bool, msg string) string {
	if valid {
		return ""
	}
	return msg
}

// SplitList splits a list at the separators that Proxmox VE takes (PVE::Tools::split_list).
func SplitList(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(",; \x00\t\n", r) })
}

func checkTags(value string) string {
	for _, tag := range SplitList(value) {
		if !matches(`(?i)[a-z0-9_][a-z0-9_\-+.]*`, tag) {
			return "invalid characters in tag"
		}
	}
	return ""
}

// NormalTags lower-cases, sorts and deduplicates tags; an empty list is kept as one blank, as PVE stores it.
func NormalTags(value string) string {
	tags := SplitList(strings.ToLower(value))
	slices.Sort(tags)
	if tags = slices.Compact(tags); len(tags) == 0 {
		return " "
	}
	return strings.Join(tags, ";")
}

func checkContent(value string) string {
	if !slices.Contains([]string{"images", "rootdir", "vztmpl", "iso", "backup", "snippets", "import", "none"}, value) {
		return fmt.Sprintf("invalid content type '%s'", value)
	}
	return ""
}

func checkHotplug(value string) string {
	if value == "0" || value == "1" {
		return ""
	}
	for _, feature := range SplitList(value) {
		if !slices.Contains([]string{"network", "disk", "cpu", "memory", "usb", "cloudinit"}, feature) {
			return fmt.Sprintf("invalid hotplug feature '%s'", feature)
		}
	}
	return ""
}

func checkTaskStatuses(value string) string {
	for _, s := range SplitList(value) {
		if !slices.Contains([]string{"ok", "error", "warning", "unknown"}, s) {
			return fmt.Sprintf("invalid status '%s'", s)
		}
	}
	return ""
}

func validCPUSet(value string) bool {
	last := -1
	for _, part := range strings.Split(value, ",") {
		var from, to int
		switch {
		case matches(`\d+-\d+`, part):
			_, _ = fmt.Sscanf(part, "%d-%d", &from, &to)
		case matches(`\d+`, part):
			_, _ = fmt.Sscanf(part, "%d", &from)
			to = from
		default:
			return false
		}
		if to < from || from <= last && last >= 0 && to == last {
			return false
		}
		last = to
	}
	return true
}

func checkMAC(value string) string {
	if !matches(`(?i)[a-f0-9][02468ace](:[a-f0-9]{2}){5}`, value) {
		return "value does not look like a valid unicast MAC address"
	}
	return ""
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

// ValidSSHKeys is the check of the URL-encoded sshkeys option: a public key on every line.
func ValidSSHKeys(encoded string) bool {
	keys, err := url.PathUnescape(encoded)
	if err != nil {
		return false
	}
	for line := range strings.Lines(keys) {
		if line = strings.TrimSpace(line); line != "" && !matches(`(ssh|ecdsa|sk-)\S+ \S{20,}.*`, line) {
			return false
		}
	}
	return true
}
