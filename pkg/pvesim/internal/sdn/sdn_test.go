package sdn

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestPendingIsWhatDiffers(t *testing.T) {
	t.Parallel()
	running := Sections{
		"same": {"type": "vnet", "zone": "z"}, "gone": {"type": "vnet", "zone": "z"}, "other": {"type": "vnet", "zone": "z", "alias": "a", "tag": "1"},
	}
	configured := Sections{
		"same": {"type": "vnet", "zone": "z"}, "other": {"type": "vnet", "zone": "z", "tag": "2"}, "fresh": {"type": "vnet", "zone": "z"},
	}
	want := []Object{
		{ID: "fresh", Options: Section{"type": "vnet"}, Changes: Section{"zone": "z"}, State: "new"},
		{ID: "gone", Options: running["gone"], Changes: Section{}, State: "deleted"},
		{ID: "other", Options: running["other"], Changes: Section{"alias": "deleted", "tag": "2"}, State: "changed"},
		{ID: "same", Options: running["same"]},
	}
	if diff := cmp.Diff(want, Pending(running, configured)); diff != "" {
		t.Errorf("pending (-want +got):\n%s", diff)
	}
}

// The digests are those of a real Proxmox VE.
func TestDigestsAreThoseOfTheFiles(t *testing.T) {
	t.Parallel()
	zones := Sections{"z1": {"type": "simple"}, "z2": {"type": "vlan", "bridge": "vmbr0"}}
	if got, want := zones.Digest(ZoneKind), "c5330a52dc151234f663a017047c0fa46a422f5f"; got != want {
		t.Errorf("digest of zones is %s, want %s", got, want)
	}
	vnets := Sections{"vnet1": {"type": "vnet", "zone": "z1", "alias": "a b"}, "vnet2": {"type": "vnet", "zone": "z2", "tag": "100"}}
	if got, want := vnets.Digest(func(string) Kind { return VNetKind() }), "ef87a52baec71329b95ec5bc36b53b9bf308030a"; got != want {
		t.Errorf("digest of vnets is %s, want %s", got, want)
	}
}

func someSections(t *rapid.T, name string) Sections {
	return rapid.MapOf(rapid.StringMatching(`[a-c]`), rapid.Custom(func(t *rapid.T) Section {
		return maps.Clone(rapid.MapOf(rapid.SampledFrom([]string{"type", "zone", "tag"}), rapid.StringMatching(`[12]`)).Draw(t, "options"))
	})).Draw(t, name)
}

func TestNothingIsPendingAfterACommitOrARollback(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := Empty()
		c.Zones, c.VNets = someSections(t, "zones"), someSections(t, "vnets")
		running := c.Commit()
		if c.HasPending(running) {
			t.Fatal("pending after a commit")
		}
		c.Zones, c.Subnets = someSections(t, "other zones"), someSections(t, "subnets")
		c.Rollback(running)
		if c.HasPending(running) {
			t.Fatal("pending after a rollback")
		}
	})
}

func TestKindsOfZones(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		typ, want string
		options   Section
	}{
		{"simple", "", Section{"dhcp": "dnsmasq"}},
		{"qinq", "missing value for required option 'tag'", Section{"bridge": "vmbr0"}},
		{"vxlan", "", Section{"peers": "10.0.0.1"}},
		{"evpn", "missing value for required option 'controller'", Section{"vrf-vxlan": "1"}},
		{"faucet", "missing value for required option 'controller'", Section{"dp-id": "1"}},
		{"vlan", "unexpected property 'peers'", Section{"peers": "10.0.0.1"}},
	} {
		if got := ZoneKind(c.typ).Check(c.options); got != c.want {
			t.Errorf("%s %v: %q, want %q", c.typ, c.options, got, c.want)
		}
	}
	if got := ControllerKind("bgp").Check(Section{"node": "pve1", "asn": "1"}); got != "missing value for required option 'peers'" {
		t.Errorf("controller: %q", got)
	}
	if got := ControllerKind("isis").Check(Section{"asn": "1"}) + ControllerKind("faucet").Check(Section{}) + IPAMKind("phpipam").Check(Section{"url": "x"}); got !=
		"unexpected property 'asn'missing value for required option 'token'" {
		t.Errorf("others: %q", got)
	}
	if !(Section{}).OnNode("pve1") || (Section{"nodes": "pve2"}).OnNode("pve1") {
		t.Error("nodes of a zone are not kept to")
	}
}

func TestTagsOfVXLAN(t *testing.T) {
	t.Parallel()
	c := Empty()
	for tag, want := range map[string]string{"": "missing vxlan tag", "16777217": "vxlan tag max value is 16777216", "x": "vxlan tag max value is 16777216"} {
		vnet := Section{"zone": "z"}
		if tag != "" {
			vnet["tag"] = tag
		}
		if got := c.CheckVNet("v", vnet, "vxlan"); got == nil || got.Text != want {
			t.Errorf("tag %q: %v, want %s", tag, got, want)
		}
	}
	if SubnetNetwork("nonsense").IsValid() {
		t.Error("nonsense is a subnet")
	}
}
