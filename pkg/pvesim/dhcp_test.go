package pvesim_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// booted starts a VM with a network device on a bridge and a seed, and returns the addresses that it came up with.
func (a *api) booted(seen chan pvesim.BootedGuest, id proxmox.VMID, bridge, network string) string {
	a.t.Helper()
	mac := fmt.Sprintf("BC:24:11:00:%02X:%02X", int(id)/256, int(id)%256)
	name := fmt.Sprintf("s%d.iso", id)
	a.uploadISO("pve1", "local", name, seedISO(a.t, "cidata", map[string]string{"meta-data": "instance-id: i", "user-data": "", "network-config": strings.ReplaceAll(network, "MAC", mac)}))
	vm := a.withVM(id, "", map[string]string{"net0": "virtio=" + mac + ",bridge=" + bridge, "ide2": "local:iso/" + name + ",media=cdrom"})
	a.ok("POST", vm+"/status/start")
	g := <-seen
	var out []string
	for _, p := range g.Addresses {
		out = append(out, p.String())
	}
	return strings.Join(out, " ")
}

func TestGuestsWithoutAStaticAddressTakeOneByDHCP(t *testing.T) {
	t.Parallel()
	seen := make(chan pvesim.BootedGuest, 10)
	hooks := pvesim.BootHooks{OnBoot: func(g pvesim.BootedGuest) { seen <- g }, OnBootFailed: func(g pvesim.BootedGuest) { seen <- g }}
	a := newAPI(t, pvesim.WithGuests(pvesim.Booting(hooks)), pvesim.FromState(pvesim.State{
		Nodes:    []pvesim.NodeSpec{{Name: "pve1", Bridges: []proxmox.BridgeName{"vmbr0", "lan", "bare"}}},
		Storages: []pvesim.StorageSpec{{ID: "local", Type: "dir", Content: []string{"images", "iso"}}},
		DHCP: []pvesim.DHCPSpec{
			{Bridge: "vmbr0", Subnet: "10.20.0.0/29", Leases: map[string]string{"bc:24:11:00:00:65": "10.20.0.5"}}, {Bridge: "lan", Subnet: "192.168.7.0/24"},
		},
	}))
	const dhcp = "version: 2\nethernets: {eth0: {match: {macaddress: 'MAC'}, dhcp4: true}}"
	for _, c := range []struct {
		id              proxmox.VMID
		bridge, network string
		want            string
	}{
		{100, "vmbr0", dhcp, "10.20.0.2/29"},
		{101, "vmbr0", "version: 1\nconfig: [{type: physical, name: eth0, mac_address: 'MAC', subnets: [{type: dhcp4}]}]", "10.20.0.5/29"},
		{102, "vmbr0", "", "10.20.0.3/29"},
		{103, "lan", dhcp, "192.168.7.2/24"},
		{104, "bare", dhcp, ""},
		{105, "vmbr0", "version: 1\nconfig: [{type: physical, name: eth0, mac_address: 'MAC', subnets: [{type: static, address: 10.20.0.77, netmask: 255.255.255.0}]}]", "10.20.0.77/24"},
		{106, "vmbr0", dhcp, "10.20.0.4/29"},
		{107, "vmbr0", dhcp, "10.20.0.6/29"},
		{108, "vmbr0", dhcp, ""},
	} {
		if got := a.booted(seen, c.id, c.bridge, c.network); got != c.want {
			t.Errorf("VM %d on %s has %q, want %q", c.id, c.bridge, got, c.want)
		}
	}
	a.ok("POST", "/nodes/pve1/qemu/100/status/reboot")
	if g := <-seen; g.Boots != 2 || len(g.Addresses) != 1 || g.Addresses[0] != netip.MustParsePrefix("10.20.0.2/29") {
		t.Errorf("after a reboot the guest has %v", g.Addresses)
	}
	a.ok("POST", "/nodes/pve1/qemu/102/status/stop")
	a.ok("DELETE", "/nodes/pve1/qemu/102")
	if got := a.booted(seen, 109, "vmbr0", dhcp); got != "10.20.0.3/29" {
		t.Errorf("the address of a destroyed VM is not given again: %q", got)
	}
	want := map[string]string{"BC:24:11:00:00:64": "10.20.0.2", "BC:24:11:00:00:65": "10.20.0.5", "BC:24:11:00:00:6A": "10.20.0.4", "BC:24:11:00:00:6B": "10.20.0.6", "BC:24:11:00:00:6D": "10.20.0.3"}
	if diff := cmp.Diff(want, a.server.World.State().DHCP[1].Leases); diff != "" {
		t.Errorf("leases (-want +got):\n%s", diff)
	}
}

func TestDHCPServersThatCannotBe(t *testing.T) {
	t.Parallel()
	for want, s := range map[string][]pvesim.DHCPSpec{
		`add DHCP server on "a": want a bridge without one and a subnet, have "x"`:          {{Bridge: "a", Subnet: "x"}},
		`add DHCP server on "b": want a bridge without one and a subnet, have "10.0.0.0/8"`: {{Bridge: "b", Subnet: "10.0.0.0/8"}, {Bridge: "b", Subnet: "10.0.0.0/8"}},
		`add DHCP server on "c": lease of m: ParseAddr("y"): unable to parse IP`:            {{Bridge: "c", Subnet: "10.0.0.0/8", Leases: map[string]string{"m": "y"}}},
	} {
		if _, err := pvesim.NewWorld(pvesim.FromState(pvesim.State{DHCP: s})); err == nil || err.Error() != want {
			t.Errorf("error is %v, want %s", err, want)
		}
	}
}
