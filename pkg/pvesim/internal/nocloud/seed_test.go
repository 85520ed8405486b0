package nocloud_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/nocloud"
)

func newSeed(t *testing.T, meta, user, network string) *nocloud.Seed {
	t.Helper()
	s, err := nocloud.New(map[string]string{"meta-data": meta, "user-data": user, "network-config": network})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestUserDataIsRenderedAsJinja(t *testing.T) {
	t.Parallel()
	const meta = "instance-id: i-1\nlocal-hostname: web\nx_y: z\n"
	for user, want := range map[string]string{
		"a {{ ds.meta_data.instance_id }}":                           "a {{ ds.meta_data.instance_id }}",
		"## template: jinja\n{{ ds.meta_data.instance_id }}":         "i-1",
		"## template: jinja\n{{ ds.meta_data['instance-id'] }}":      "i-1",
		"## template: jinja\n{{ v1.local_hostname }}/{{v1.x_y}}":     "web/z",
		"## template: jinja\n{{- ds.meta_data.colour -}}":            "CI_MISSING_JINJA_VAR/colour",
		"## Template: Jinja\n{{ other.thing }} {{ v1.instance_id }}": "{{ other.thing }} i-1",
	} {
		if got := newSeed(t, meta, user, "").UserData; got != want {
			t.Errorf("%q became %q, want %q", user, got, want)
		}
	}
}

func TestHostname(t *testing.T) {
	t.Parallel()
	for meta, want := range map[string]string{
		"":                                 "",
		"hostname: a\n":                    "a",
		"local-hostname: b\n":              "b",
		"hostname: a\nlocal-hostname: b\n": "b",
	} {
		s := newSeed(t, meta+"instance-id: i", "", "")
		if s.Hostname() != want || s.InstanceID() != "i" {
			t.Errorf("%q: hostname %q, instance %q", meta, s.Hostname(), s.InstanceID())
		}
	}
}

func TestBadSeeds(t *testing.T) {
	t.Parallel()
	const meta = "instance-id: i"
	for want, files := range map[string]map[string]string{
		"no file meta-data":                  {"user-data": ""},
		"no file user-data":                  {"meta-data": meta},
		"meta-data is no YAML":               {"meta-data": "\t", "user-data": ""},
		"meta-data has no instance-id":       {"meta-data": "a: b", "user-data": ""},
		"network-config is no YAML":          {"meta-data": meta, "user-data": "", "network-config": "\t{"},
		"network-config has version 3, only": {"meta-data": meta, "user-data": "", "network-config": "version: 3"},
	} {
		if _, err := nocloud.New(files); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestLinks(t *testing.T) {
	t.Parallel()
	macs := []string{"BC:24:11:00:00:01", "bc:24:11:00:00:02"}
	for name, c := range map[string]struct {
		network string
		want    map[string]nocloud.Link
		err     string
	}{
		"none: the first device has DHCP": {want: map[string]nocloud.Link{"BC:24:11:00:00:01": {DHCP: true}}},
		"by MAC address": {
			network: "version: 2\nethernets: {a: {match: {macaddress: 'bc:24:11:00:00:02'}, set-name: lan0, addresses: [10.0.0.2/24, 'fd00::2/64']}}",
			want:    map[string]nocloud.Link{"BC:24:11:00:00:02": {Name: "lan0", Addresses: prefixes("10.0.0.2/24", "fd00::2/64")}},
		},
		"by order, below network, with options": {
			network: "network: {version: 2, ethernets: {eth1: {addresses: [10.0.0.2/24]}, eth0: {dhcp4: true, addresses: [{10.0.0.1/24: {lifetime: 0}}]}}}",
			want: map[string]nocloud.Link{
				"BC:24:11:00:00:01": {Name: "eth0", Addresses: prefixes("10.0.0.1/24"), DHCP: true},
				"BC:24:11:00:00:02": {Name: "eth1", Addresses: prefixes("10.0.0.2/24")},
			},
		},
		"version 1": {
			network: `{version: 1, config: [
				{type: physical, name: eth0, mac_address: 'bc:24:11:00:00:02', subnets: [
					{type: static, address: 10.0.0.2, netmask: 255.255.254.0, gateway: 10.0.0.1}, {type: static6, address: 'fd00::2/64'}, {type: ipv6_slaac}]},
				{type: physical, name: eth1, mac_address: 'bc:24:11:00:00:01', subnets: [{type: dhcp4}]},
				{type: nameserver, address: [10.0.0.254], search: [example.org]}]}`,
			want: map[string]nocloud.Link{
				"BC:24:11:00:00:01": {Name: "eth1", DHCP: true}, "BC:24:11:00:00:02": {Name: "eth0", Addresses: prefixes("10.0.0.2/23", "fd00::2/64")},
			},
		},
		"no such device": {
			network: "version: 2\nethernets: {a: {match: {macaddress: 'bc:24:11:00:00:09'}}}",
			err:     "network-config: interface a wants MAC address BC:24:11:00:00:09, the VM has BC:24:11:00:00:01, bc:24:11:00:00:02",
		},
		"no such device in version 1": {
			network: "{version: 1, config: [{type: physical, name: a, mac_address: 'bc:24:11:00:00:09'}]}",
			err:     "network-config: interface a wants MAC address BC:24:11:00:00:09",
		},
		"too many": {
			network: "version: 2\nethernets: {a: {}, b: {}, c: {}}", err: "network-config: interface c has no network device, the VM has 2",
		},
		"no address": {
			network: "version: 2\nethernets: {a: {addresses: [10.0.0.1]}}", err: "network-config: address of interface a: ",
		},
		"no address in version 1": {
			network: "{version: 1, config: [{type: physical, name: a, subnets: [{type: static, address: x, netmask: 255.0.0.0}]}]}",
			err:     "network-config: address of interface a: ",
		},
	} {
		got, err := newSeed(t, "instance-id: i", "", c.network).Links(macs)
		if diff := cmp.Diff(c.want, got, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if (err == nil) != (c.err == "") || (err != nil && !strings.HasPrefix(err.Error(), c.err)) {
			t.Errorf("%s: got error %v, want %s", name, err, c.err)
		}
	}
	if got, err := newSeed(t, "instance-id: i", "", "").Links(nil); err != nil || len(got) > 0 {
		t.Errorf("without network devices: %v, %v", got, err)
	}
}

func prefixes(list ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, s := range list {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

// TestNothingPanics feeds anything to what reads guests' input.
func TestNothingPanics(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-z0-9=,:;/.%{} \n-]*`)).Draw(t, "text")
		meta := rapid.SampledFrom([]string{text, "instance-id: i"}).Draw(t, "meta")
		s, err := nocloud.New(map[string]string{"meta-data": meta, "user-data": "## template: jinja\n" + text, "network-config": text})
		if err == nil && s.InstanceID() == "" {
			t.Fatalf("a seed without an instance: %q", meta)
		}
		if _, err := nocloud.Files([]byte(strings.Repeat(text, 2048))); err == nil {
			t.Fatalf("an image of %q", text)
		}
	})
}
