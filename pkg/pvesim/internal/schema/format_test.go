package schema_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

// formatCase is what a format takes, and what it refuses in which words.
type formatCase struct {
	good []string
	bad  map[string]string
}

func formats() map[string]formatCase {
	const node, dns = "value does not look like a valid node name", "value does not look like a valid DNS name"
	const ipv4 = "value does not look like a valid ipv4 network configuration"
	const mac = "value does not look like a valid unicast MAC address"
	return map[string]formatCase{
		"pve-vmid":        {[]string{"100", "999999999"}, map[string]string{"99": "value does not look like a valid VM ID", "0100": "value does not look like a valid VM ID"}},
		"pve-node":        {[]string{"pve-1", "A"}, map[string]string{"": node, "-a": node, "a-": node, "a.b": node}},
		"dns-name":        {[]string{"a.b-c.d", "vm1"}, map[string]string{"a..b": dns, "a_b": dns, "-a": dns}},
		"pve-storage-id":  {[]string{"local-lvm"}, map[string]string{"1a": "storage ID '1a' contains illegal characters"}},
		"pve-poolid":      {[]string{"a/b/c"}, map[string]string{"a/b/c/d": "value 'a/b/c/d' does not look like a valid pool name"}},
		"pve-tag-list":    {[]string{"", "a;B,c d", "x-1.2+3"}, map[string]string{"a;-b": "invalid characters in tag"}},
		"mac-addr":        {[]string{"BC:24:11:00:00:01"}, map[string]string{"BD:24:11:00:00:01": mac, "BC-24-11-00-00-01": mac}},
		"pve-ipv4-config": {[]string{"dhcp", "10.0.0.1/24"}, map[string]string{"auto": ipv4, "10.0.0.1": ipv4, "fd00::1/64": ipv4}},
		"pve-ipv6-config": {[]string{"dhcp", "auto", "fd00::1/64"}, map[string]string{"10.0.0.1/24": "value does not look like a valid ipv6 network configuration"}},
		"pve-cpuset":      {[]string{"0-3,5", "1,1"}, map[string]string{"3-1": "unable to parse cpuset option", "a": "unable to parse cpuset option"}},
		"pve-configid":    {[]string{"gpu"}, map[string]string{"x": "invalid configuration ID 'x'"}},
		"pve-volume-id":   {[]string{"local:iso/a.iso"}, map[string]string{"local": "unable to parse volume ID 'local'", "l:x": "unable to parse volume ID 'l:x'"}},
		"pve-bridge-id":   {[]string{"vmbr0", "my.net-1"}, map[string]string{"a b": "invalid bridge ID 'a b'"}},
		"pve-phys-bits":   {[]string{"host", "40"}, map[string]string{"65": "value must be an integer between 8 and 64 or 'host'"}},
		"disk-size":       {[]string{"1", "1.5G"}, map[string]string{"1g": "value does not look like a valid disk size: 1g"}},
		"ipv4":            {[]string{"10.0.0.1"}, map[string]string{"fd00::1": "value does not look like a valid IPv4 address"}},
		"ipv6":            {[]string{"fd00::1"}, map[string]string{"10.0.0.1": "value does not look like a valid IPv6 address", "fe80::1%1": "value does not look like a valid IPv6 address"}},
		"ip":              {[]string{"fd00::1", "10.0.0.1"}, map[string]string{"x": "value does not look like a valid IP address"}},
		"address-list":    {[]string{"", "10.0.0.1 fd00::1", "x,y"}, map[string]string{"x _": "value does not look like a valid address: _"}},
		"pve-node-opt":    {[]string{"", "pve1"}, map[string]string{"-": node}},
		"urlencoded":      {[]string{"a%20b"}, map[string]string{"a b": "invalid urlencoded string: a b"}},

		"pve-storage-content":            {[]string{"images", "import"}, map[string]string{"cake": "invalid content type 'cake'"}},
		"pve-volume-id-or-qm-path":       {[]string{"none", "cdrom", "/dev/sda", "local:1"}, map[string]string{"x": "unable to parse volume ID 'x'"}},
		"pve-volume-id-or-absolute-path": {[]string{"/x", "local:1"}, map[string]string{"none": "unable to parse volume ID 'none'"}},
		"pve-qm-bootdisk":                {[]string{"scsi30"}, map[string]string{"scsi31": "invalid boot disk 'scsi31'"}},
		"pve-qm-bootdev-list":            {[]string{"scsi0;net9", "hostpci15"}, map[string]string{"cake": "invalid boot device 'cake'"}},

		"pve-hotplug-features":      {[]string{"1", "disk,network"}, map[string]string{"disk,cake": "invalid hotplug feature 'cake'"}},
		"pve-startup-order":         {[]string{"order=1,up=2", "3"}, map[string]string{"cake": "unable to parse startup options", "": "unable to parse startup options"}},
		"pve-task-status-type-list": {[]string{"ok,error"}, map[string]string{"ok,cake": "invalid status 'cake'"}},
	}
}

func TestFormats(t *testing.T) {
	t.Parallel()
	for name, c := range formats() {
		for _, value := range c.good {
			if msg := schema.CheckFormat(name, value); msg != "" {
				t.Errorf("%s %q: %s", name, value, msg)
			}
		}
		for value, want := range c.bad {
			if msg := schema.CheckFormat(name, value); msg != want {
				t.Errorf("%s %q: got %q, want %q", name, value, msg, want)
			}
		}
	}
	if msg := schema.CheckFormat("no-such-format", "x"); msg != "" {
		t.Errorf("an unknown format: %q", msg)
	}
}

func TestLists(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff([]string{"a", "b", "c", "d"}, schema.SplitList("a,b; c\td,")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for tags, want := range map[string]string{"": " ", "B;a,b": "a;b", "x": "x"} {
		if got := schema.NormalTags(tags); got != want {
			t.Errorf("%q is stored as %q, want %q", tags, got, want)
		}
	}
}

func TestSSHKeys(t *testing.T) {
	t.Parallel()
	const key = "ssh-ed25519%20AAAAC3NzaC1lZDI1NTE5AAAAIE%20me"
	for keys, valid := range map[string]bool{"": true, key: true, key + "%0A" + key: true, "cake": false, key + "%0Acake": false, "%zz": false} {
		if got := schema.ValidSSHKeys(keys); got != valid {
			t.Errorf("%q is valid: %t", keys, got)
		}
	}
}
