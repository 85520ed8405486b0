package schema

import (
	"fmt"
	"slices"
	"strings"
)

// CheckFormat is PVE::JSONSchema::check_format. It returns why the value is refused, or "". A format takes lists as NAME-list,
// and nothing at all as NAME-opt. One that this package does not know takes every value.
func CheckFormat(format, value string) string {
	if format == "" {
		return ""
	}
	if name, ok := strings.CutSuffix(format, "-list"); ok {
		for _, item := range SplitList(value) {
			if msg := checkOne(name, item); msg != "" {
				return msg
			}
		}
		return ""
	}
	if name, ok := strings.CutSuffix(format, "-opt"); ok {
		if value == "" {
			return ""
		}
		return checkOne(name, value)
	}
	return checkOne(format, value)
}

func checkOne(format, value string) string {
	for _, family := range []func(string, string) (string, bool){checkName, checkAddress, checkVolumeFormat, checkGuestFormat} {
		if msg, known := family(format, value); known {
			return msg
		}
	}
	if msg := checkAccess(format, value); msg != "" {
		return msg
	}
	return checkNetworkFormat(format, value)
}

// checkName checks the formats of names and IDs.
func checkName(format, value string) (msg string, known bool) {
	switch format {
	case "pve-vmid":
		return unless(len(value) >= 3 && len(value) <= 9 && value[0] != '0' && strings.Trim(value, "0123456789") == "", "value does not look like a valid VM ID"), true
	case "pve-node":
		return unless(validLabel(value), "value does not look like a valid node name"), true
	case "pve-configid":
		return unless(matches(`(?i)[a-z][a-z0-9_-]+`, value), fmt.Sprintf("invalid configuration ID '%s'", value)), true
	case "pve-storage-id":
		return unless(validStorageID(value), fmt.Sprintf("storage ID '%s' contains illegal characters", value)), true
	case "pve-poolid":
		return unless(matches(`[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+){0,2}`, value), fmt.Sprintf("value '%s' does not look like a valid pool name", value)), true
	case "pve-tag":
		return unless(matches(`(?i)[a-z0-9_][a-z0-9_\-+.]*`, value), "invalid characters in tag"), true
	case "pve-ha-resource-or-vm-id":
		return unless(matches(`[a-z]+:\S+|\d+`, value), "value does not look like a valid ha resource id"), true
	case "pve-ha-resource-id":
		return unless(matches(`[a-z]+:\S+`, value), "value does not look like a valid ha resource id"), true
	case "pve-ha-node", "pve-ha-group-node":
		name, priority, _ := strings.Cut(value, ":")
		return unless(validLabel(name) && strings.Trim(priority, "0123456789") == "", "value does not look like a valid ha group node"), true
	case "pve-storage-content":
		return checkContent(value), true
	case "pve-task-status-type":
		return unless(slices.Contains([]string{"ok", "error", "warning", "unknown"}, value), fmt.Sprintf("invalid status '%s'", value)), true
	case "urlencoded":
		return unless(matches(`[-%a-zA-Z0-9_.!~*'()]*`, value), "invalid urlencoded string: "+value), true
	}
	return "", false
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

func checkContent(value string) string {
	if !slices.Contains([]string{"images", "rootdir", "vztmpl", "iso", "backup", "snippets", "import", "none"}, value) {
		return fmt.Sprintf("invalid content type '%s'", value)
	}
	return ""
}

// SplitList splits a list at the separators that Proxmox VE takes (PVE::Tools::split_list).
func SplitList(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(",; \x00\t\n", r) })
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
