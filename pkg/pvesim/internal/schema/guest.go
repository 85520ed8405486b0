package schema

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// checkGuestFormat checks the formats that are qemu-server's own.
func checkGuestFormat(format, value string) (msg string, known bool) {
	switch format {
	case "pve-cpuset":
		return unless(validCPUSet(value), "unable to parse cpuset option"), true
	case "pve-hotplug-features":
		return checkHotplug(value), true
	case "pve-startup-order":
		return unless(validStartup(value), "unable to parse startup options"), true
	case "pve-phys-bits":
		return unless(validPhysBits(value), "value must be an integer between 8 and 64 or 'host'"), true
	}
	return "", false
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

// validCPUSet is PVE::CpuSet's parser: numbers and ranges, separated by commas.
func validCPUSet(value string) bool {
	for _, part := range strings.Split(value, ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(part), "-")
		from, err := strconv.ParseUint(first, 10, 32)
		if err != nil {
			return false
		}
		if !isRange {
			continue
		}
		if to, err := strconv.ParseUint(last, 10, 32); err != nil || to < from {
			return false
		}
	}
	return true
}

// validStartup is PVE::JSONSchema::pve_parse_startup_order.
func validStartup(value string) bool {
	for _, part := range strings.Split(value, ",") {
		if strings.TrimSpace(part) != "" && !matches(`(order=)?\d+|up=\d+|down=\d+`, part) {
			return false
		}
	}
	return value != ""
}

func validPhysBits(value string) bool {
	n, err := strconv.Atoi(value)
	return value == "host" || (err == nil && n >= 8 && n <= 64)
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
