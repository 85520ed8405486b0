package schema

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestAddressLists(t *testing.T) {
	t.Parallel()
	for list, want := range map[string]struct {
		version int
		problem string
	}{
		"10.0.0.1":                      {4, ""},
		"10.0.0.0/24,10.1.0.0/16":       {4, ""},
		"fd00::1":                       {6, ""},
		"10.0.0.1-10.0.0.9":             {4, ""},
		"+nodes":                        {0, ""},
		"dc/lan":                        {0, ""},
		"+" + strings.Repeat("a", 65):   {0, "ipset name too long"},
		strings.Repeat("a", 65):         {0, "alias name too long"},
		"300.1.1.1":                     {0, "invalid IP address: Invalid quad in IP address 300.1.1.1 - 300"},
		"foo.bar":                       {0, "invalid IP address: Invalid chars in IP foo.bar"},
		".1.1.1":                        {0, "invalid IP address: Invalid IP .1.1.1 - starts with a dot"},
		"1.1.1.":                        {0, "invalid IP address: Invalid IP 1.1.1. - ends with a dot"},
		"1..1.1":                        {0, "invalid IP address: Empty quad in IP address 1..1.1"},
		"1.1.1.1.1":                     {0, "invalid IP address: Invalid IP address 1.1.1.1.1"},
		"fd00::g":                       {0, "invalid IP address: Invalid address fd00::g"},
		"10.0.0.1/24":                   {0, "invalid IP address: Invalid prefix 00001010000000000000000000000001/24"},
		"10.0.0.0/33":                   {0, "invalid IP address: Prefix length 33 is longer than IP address (32)"},
		"10.0.0.0/x":                    {0, "invalid IP address: Invalid prefix length /x"},
		"10.0.0.9-10.0.0.1":             {0, "invalid IP address: Begin address is greater than End address 10.0.0.9-10.0.0.1"},
		"10.0.0.1,fd00::1":              {0, "detected mixed ipv4/ipv6 addresses in address list '10.0.0.1,fd00::1'"},
		"10.0.0.1,":                     {0, "extraneous commas in list"},
		"10.0.0.1-10.0.0.2,10.0.0.3":    {4, "you can't use a range in a list"},
		"10.0.0.1-x.y":                  {0, "invalid IP address: Invalid chars in IP x.y"},
		"+guest/ipfilter-net0":          {0, ""},
		"10.0.0.1 - 10.0.0.5":           {4, ""},
		"fd00::/8,fd01::/16,fe80::1/64": {0, "invalid IP address: Invalid prefix " + binaryOf("fe80::1") + "/64"},
	} {
		if version, problem := AddressVersion(list); version != want.version || problem != want.problem {
			t.Errorf("%q: %d %q, want %d %q", list, version, problem, want.version, want.problem)
		}
	}
}

func binaryOf(s string) string {
	a, _ := parseAddress(s)
	return binary(a)
}

func TestAddressesAndNetworks(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"10.77.0.60": "", "10.77.0.61/24": "", "fd00::1": "", "fd00::1/64": "", "0.0.0.0/0": "",
		"10.0.0.0/33": "Prefix length 33 is longer than IP address (32)",
		"10.0.0.1-10": "value does not look like a valid IP address or CIDR network",
		"300.0.0.1":   "value does not look like a valid IP address or CIDR network",
		"10.0.0.1/":   "value does not look like a valid IP address or CIDR network",
	} {
		if got := CheckIPOrCIDR(value); got != want {
			t.Errorf("%q: %q, want %q", value, got, want)
		}
	}
	for value, want := range map[string]string{
		"10.77.0.61/24": "10.77.0.0/24", "10.77.0.61": "10.77.0.61", "fd00::1/64": "fd00::/64", "x": "x", "10.0.0.1/0": "10.0.0.1/0",
	} {
		if got := CleanCIDR(value); got != want {
			t.Errorf("clean %q: %q, want %q", value, got, want)
		}
	}
	if cidr, version := ShortCIDR("10.0.0.1/32"); cidr != "10.0.0.1" || version != 4 {
		t.Errorf("short: %s %d", cidr, version)
	}
	if cidr, version := ShortCIDR("fd00::1/128"); cidr != "fd00::1" || version != 6 {
		t.Errorf("short: %s %d", cidr, version)
	}
}

func TestPortsAndProtocols(t *testing.T) {
	t.Parallel()
	for list, want := range map[string]string{
		"80": "", "http,443,8000:8010": "", "echo-request": "", "70000": "invalid port '70000'", "1:70000": "invalid port '70000'",
		"90:80": "backwards range '90:80' not allowed, did you mean '80:90'?", "foo": "invalid port 'foo'", "80,": "extraneous commas in list",
		"echo-request,80": "ICMP ports not allowed in port range", strings.Repeat("1:2,", 7) + "3:4": "too many entries in port list (> 15 numbers)",
	} {
		if got := CheckDestinationPorts(list); got != want {
			t.Errorf("%q: %q, want %q", list, got, want)
		}
	}
	if got := CheckPorts("echo-request"); got != "invalid port 'echo-request'" {
		t.Errorf("ICMP type as source port: %q", got)
	}
	for value, want := range map[string]string{"tcp": "", "6": "", "icmpv6": "", "": "", "06": "unknown protocol '06'", "300": "unknown protocol '300'"} {
		if got := CheckProtocol(value); got != want {
			t.Errorf("protocol %q: %q, want %q", value, got, want)
		}
	}
}

func TestNetworkFormats(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ format, value, want string }{
		{"IPorCIDRorAlias", "dc/lan", ""},
		{"IPorCIDRorAlias", "10.0.0.0/8", ""},
		{"IPorCIDRorAlias", "1-2", "value does not look like a valid IP address or CIDR network"},
		{"pve-iface", "net0", ""},
		{"pve-iface", "0net", "invalid network interface name '0net'"},
		{"pve-fw-icmp-type-spec", "packet-too-big", ""},
		{"pve-fw-icmp-type-spec", "x", "invalid icmp-type value 'x'"},
		{"pve-fw-conntrack-helper", "ftp,sip", ""},
		{"pve-fw-conntrack-helper", "ftp,foo", "unsupported conntrack helper 'foo'"},
		{"pve-configid-list", "policy_in,log", ""},
		{"pve-configid-list", "a b,1", "invalid configuration ID 'a'"},
		{"ip", "10.0.0.1", ""},
		{"ip-list", "10.0.0.1,x", "value does not look like a valid IP address"},
		{"pve-node-list", "pve1,pve2", ""},
		{"pve-node-list", "pve1,-", "value does not look like a valid node name"},
		{"pve-sdn-zone-id", "toolongzone", "zone ID 'toolongzone' can't be more length than 8 characters"},
		{"pve-sdn-vnet-id", "1a", "vnet ID '1a' contains illegal characters"},
		{"pve-sdn-controller-id", "a_b", ""},
		{"pve-sdn-ipam-id", "a_b", "ipam ID 'a_b' contains illegal characters"},
		{"pve-sdn-subnet-id", "10.9.0.0/24", ""},
		{"pve-sdn-subnet-id", "z1-10.9.0.0-24", ""},
		{"pve-sdn-subnet-id", "x", "value does not look like a valid CIDR network"},
		{"no-such-format", "x", ""},
	} {
		if got := CheckFormat(c.format, c.value); got != c.want {
			t.Errorf("%s %q: %q, want %q", c.format, c.value, got, c.want)
		}
	}
}

func TestNoTextMakesTheNetworkFormatsPanic(t *testing.T) {
	t.Parallel()
	formats := []string{
		"IPorCIDR", "IPorCIDRorAlias", "pve-fw-addr-spec", "pve-fw-sport-spec", "pve-fw-dport-spec", "pve-fw-protocol-spec", "pve-iface",
		"pve-configid-list", "ip-list", "pve-sdn-zone-id", "pve-sdn-subnet-id",
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[0-9a-f.:/,+-]{0,30}`)).Draw(t, "text")
		format := rapid.SampledFrom(formats).Draw(t, "format")
		if msg := CheckFormat(format, text); msg != "" && strings.TrimSpace(msg) == "" {
			t.Fatalf("%s %q is refused without a word", format, text)
		}
	})
}
