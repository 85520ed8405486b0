package pvesim_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

const (
	zones = "/cluster/sdn/zones"
	vnets = "/cluster/sdn/vnets"
)

// refused is the message of an answer, which can have more lines than the reason phrase.
func (a *api) refused(want, method, path string, pairs ...string) {
	a.t.Helper()
	if r := a.do(method, path, pairs...); r.status != http.StatusInternalServerError || !strings.Contains(r.body, want) {
		a.t.Errorf("%s %s %v: %d %s, want 500 with %s", method, path, pairs, r.status, r.body, want)
	}
}

func TestZonesAndVNetsArePendingUntilTheyArePutInForce(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.must("POST", zones, "zone", "z1", "type", "vlan", "bridge", "vmbr0", "nodes", "pve2,pve1,pve1")
	a.must("POST", vnets, "vnet", "v1", "zone", "z1", "tag", "100", "alias", "a b")
	show := func(want string) {
		t.Helper()
		got := fmt.Sprint(columns(a.must("GET", vnets, "pending", "1"), "vnet", "state", "tag", "pending"), columns(a.must("GET", vnets, "running", "1"), "vnet", "tag"))
		if got != want {
			t.Errorf("vnets are\n%s, want\n%s", got, want)
		}
	}
	show("[v1/new/<nil>/map[alias:a b tag:100 zone:z1]] []")
	if exit := a.exit("PUT", "/cluster/sdn"); exit != "OK" {
		t.Fatal(exit)
	}
	show("[v1/<nil>/100/<nil>] [v1/100]")
	a.must("PUT", vnets+"/v1", "tag", "101", "delete", "alias")
	show("[v1/changed/100/map[alias:deleted tag:101]] [v1/100]")
	a.must("DELETE", vnets+"/v1")
	show("[v1/deleted/100/map[]] [v1/100]")
	if got := a.must("GET", zones).([]any)[0].(map[string]any)["nodes"]; got != "pve1,pve2" {
		t.Errorf("nodes are %v", got)
	}
}

func TestGuestsUseVNetsInForce(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.must("POST", zones, "zone", "z1", "type", "simple", "nodes", "pve1")
	a.must("POST", vnets, "vnet", "v1", "zone", "z1")
	a.exit("POST", "/nodes/pve1/qemu", "vmid", "100", "net0", "virtio,bridge=v1")
	start := func(want string) {
		t.Helper()
		if exit := a.exit("POST", "/nodes/pve1/qemu/100/status/start"); !strings.HasPrefix(exit, want) {
			t.Errorf("start ended %q, want %q", exit, want)
		}
	}
	user := a.server.World.AddToken(pvesim.TokenSpec{User: "capi@pve", Name: "t", Unseparated: true, Privileges: map[string][]string{"/vms": {"VM.Config.Network"}}})
	use := func(want string) {
		t.Helper()
		a.as(user).expect(want, "PUT", "/nodes/pve1/qemu/100/config", "net0", "virtio,bridge=v1")
	}
	start("bridge 'v1' does not exist")
	use("403 Permission check failed (/sdn/zones/localnetwork/v1, SDN.Use)")
	a.exit("PUT", "/cluster/sdn")
	use("403 Permission check failed (/sdn/zones/z1/v1, SDN.Use)")
	start("OK")
	for node, want := range map[string]string{"pve1": "[z1/available]", "pve2": "[]"} {
		if got := fmt.Sprint(columns(a.must("GET", "/nodes/"+node+"/sdn/zones"), "zone", "status")); got != want {
			t.Errorf("zones on %s are %s, want %s", node, got, want)
		}
		if got := fmt.Sprint(columns(a.must("GET", "/nodes/"+node+"/network", "type", "vnet"), "iface")); (got == "[v1]") != (node == "pve1") {
			t.Errorf("vnets on %s are %s", node, got)
		}
	}
	if got := fmt.Sprint(columns(a.must("GET", "/nodes/pve1/sdn/zones/z1/content"), "vnet", "status")); got != "[v1/available]" {
		t.Errorf("content of the zone is %s", got)
	}
	if got := fmt.Sprint(a.must("GET", "/cluster/resources")); !strings.Contains(got, "pve1/zone/z1") {
		t.Errorf("resources do not name the zone: %s", got)
	}
}

func TestABridgeMadeByHandIsThereForGuests(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.server.World.AddBridge("pve1", "br9")
	a.server.World.AddBridge("nowhere", "br9")
	a.exit("POST", "/nodes/pve1/qemu", "vmid", "100", "net0", "virtio,bridge=br9")
	if exit := a.exit("POST", "/nodes/pve1/qemu/100/status/start"); exit != "OK" {
		t.Error(exit)
	}
	if got := fmt.Sprint(columns(a.must("GET", "/nodes/pve1/network", "type", "bridge"), "iface")); got != "[vmbr0]" {
		t.Errorf("bridges that files name are %s", got)
	}
}

func TestHostsWithoutIfupdown2MakeNoBridges(t *testing.T) {
	t.Parallel()
	s := pvesim.State{Version: pvesim.V84, Nodes: []pvesim.NodeSpec{{Name: "pve1", NoIfupdown2: true}, {Name: "pve2"}, {Name: "pve3", Offline: true}}}
	a := newAPI(t, pvesim.FromState(s))
	a.must("POST", zones, "zone", "z1", "type", "simple")
	a.must("GET", "/nodes/pve1/sdn/zones")
	upid := a.must("PUT", "/cluster/sdn")
	if exit := a.wait(upid); exit != "OK" {
		t.Error(exit)
	}
	log := fmt.Sprint(columns(a.must("GET", fmt.Sprintf("/nodes/pve1/tasks/%s/log", upid)), "t"))
	want := "[pve1: reloading network config you need ifupdown2 to reload network configuration " +
		"command 'pvesh set /nodes/pve1/network' failed: exit code 2 pve2: reloading network config pve3: reloading network config " +
		"proxy handler failed: No route to host command 'pvesh set /nodes/pve3/network' failed: exit code 2 TASK OK]"
	if log != want {
		t.Errorf("log is\n%s, want\n%s", log, want)
	}
	a.refused("malformed JSON string", "GET", "/nodes/pve1/sdn/zones")
	a.refused("malformed JSON string", "GET", "/nodes/pve1/sdn/zones/z1/content")
	a.must("GET", "/nodes/pve2/sdn/zones")
}

func TestWhatIsWrongWithZonesVNetsAndSubnets(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.must("POST", zones, "zone", "plain", "type", "simple")
	a.must("POST", zones, "zone", "tagged", "type", "vlan", "bridge", "vmbr0")
	a.must("POST", vnets, "vnet", "v1", "zone", "plain")
	a.must("POST", vnets, "vnet", "v2", "zone", "tagged", "tag", "7")
	a.must("POST", vnets, "vnet", "v3", "zone", "plain", "vlanaware", "1")
	a.must("POST", vnets+"/v1/subnets", "type", "subnet", "subnet", "10.9.0.0/24", "gateway", "10.9.0.1", "dhcp-range", "start-address=10.9.0.10,end-address=10.9.0.20")
	for _, c := range []struct {
		want, method, path string
		params             []string
	}{
		{"missing value for required option 'bridge'", "POST", zones, []string{"zone", "z9", "type", "vlan"}},
		{"unexpected property 'bridge'", "POST", zones, []string{"zone", "z9", "type", "simple", "bridge", "vmbr0"}},
		{"create sdn zone object failed: sdn zone object ID 'plain' already defined", "POST", zones, []string{"zone", "plain", "type", "simple"}},
		{`dns: ns don't exist`, "POST", zones, []string{"zone", "z9", "type", "simple", "dns", "ns"}},
		{`dnszone: missing dns server`, "PUT", zones + "/plain", []string{"dnszone", "example.com"}},
		{`ipam: nb not existing`, "PUT", zones + "/tagged", []string{"ipam", "nb"}},
		{`ipam: can't change ipam if a subnet`, "PUT", zones + "/plain", []string{"ipam", "pve"}},
		{"unable to delete required option 'bridge'", "PUT", zones + "/tagged", []string{"delete", "bridge"}},
		{"no such option 'foo'", "PUT", zones + "/tagged", []string{"delete", "foo"}},
		{"cannot set and delete property 'mtu' at the same time!", "PUT", zones + "/tagged", []string{"mtu", "1400", "delete", "mtu"}},
		{"file changed by other user", "PUT", zones + "/tagged", []string{"mtu", "1400", "digest", "x"}},
		{"update sdn zone object failed: sdn 'z9' does not exist", "PUT", zones + "/z9", []string{"mtu", "1400"}},
		{"sdn 'z9' does not exist", "GET", zones + "/z9", nil},
		{"zone plain is used by vnet v1 at ", "DELETE", zones + "/plain", nil},
		{"delete sdn zone object failed: sdn 'z9' does not exist", "DELETE", zones + "/z9", nil},
		{"create sdn vnet object failed: cannot lookup undefined type!", "POST", vnets, []string{"vnet", "v9", "zone", "nope"}},
		{`400 Parameter verification failed.\ntag: missing vlan tag`, "POST", vnets, []string{"vnet", "v9", "zone", "tagged"}},
		{"vlan tag max value is 4096", "POST", vnets, []string{"vnet", "v9", "zone", "tagged", "tag", "5000"}},
		{"tag 7 already exist in vnet v2", "POST", vnets, []string{"vnet", "v9", "zone", "tagged", "tag", "7"}},
		{"vlan tag is not allowed on simple zone", "POST", vnets, []string{"vnet", "v9", "zone", "plain", "tag", "7"}},
		{"sdn vnet object ID 'v1' already defined", "POST", vnets, []string{"vnet", "v1", "zone", "plain"}},
		{"can't change zone if subnets exist", "PUT", vnets + "/v1", []string{"zone", "tagged", "tag", "8"}},
		{"vlanaware vnet is not compatible with subnets", "PUT", vnets + "/v1", []string{"vlanaware", "1"}},
		{"Can't delete vnet if subnets exists", "DELETE", vnets + "/v1", nil},
		{"sdn vnet 'v9' does not exist", "DELETE", vnets + "/v9", nil},
		{"sdn subnet object ID 'plain-10.9.0.0-24' already defined", "POST", vnets + "/v1/subnets", []string{"type", "subnet", "subnet", "10.9.0.0/24"}},
		{"gateway: 10.8.0.1 is not in subnet 10.9.1.0/24", "POST", vnets + "/v1/subnets", []string{"type", "subnet", "subnet", "10.9.1.0/24", "gateway", "10.8.0.1"}},
		{"you can't add a subnet on a vlanaware vnet", "POST", vnets + "/v3/subnets", []string{"type", "subnet", "subnet", "10.9.1.0/24"}},
		{
			"start-address 10.9.0.9 must be smaller than end-address 10.9.0.2", "PUT", vnets + "/v1/subnets/plain-10.9.0.0-24",
			[]string{"dhcp-range", "start-address=10.9.0.9,end-address=10.9.0.2"},
		},
		{
			"end-address 10.9.1.2 is not in subnet 10.9.0.0/24", "PUT", vnets + "/v1/subnets/plain-10.9.0.0-24",
			[]string{"dhcp-range", "start-address=10.9.0.9,end-address=10.9.1.2"},
		},
		{"start-address is not a valid IP x", "PUT", vnets + "/v1/subnets/plain-10.9.0.0-24", []string{"dhcp-range", "start-address=x,end-address=10.9.1.2"}},
		{"sdn subnet 'plain-10.7.0.0-24' does not exist", "GET", vnets + "/v1/subnets/plain-10.7.0.0-24", nil},
	} {
		a.refused(c.want, c.method, c.path, c.params...)
	}
	subnet := a.object(vnets + "/v1/subnets/plain-10.9.0.0-24")
	delete(subnet, "digest")
	want := map[string]any{
		"subnet": "plain-10.9.0.0-24", "type": "subnet", "vnet": "v1", "gateway": "10.9.0.1", "cidr": "10.9.0.0/24", "network": "10.9.0.0", "mask": "24",
		"zone": "plain", "dhcp-range": []any{map[string]any{"start-address": "10.9.0.10", "end-address": "10.9.0.20"}},
	}
	if diff := cmp.Diff(want, subnet); diff != "" {
		t.Errorf("subnet (-want +got):\n%s", diff)
	}
	a.expect("400 map[vnet:wrong vnet]", "GET", vnets+"/v2/subnets/plain-10.9.0.0-24")
	a.must("DELETE", vnets+"/v1/subnets/plain-10.9.0.0-24")
	if got := a.must("GET", vnets+"/v1/subnets").([]any); len(got) != 0 {
		t.Errorf("subnets are %v", got)
	}
}

func TestTheLockOfTheNetwork(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	const lock, wrong = "/cluster/sdn/lock", "invalid lock token provided! at /usr/share/perl5/PVE/Network/SDN.pm line 291."
	a.must("POST", zones, "zone", "z1", "type", "simple")
	a.refused("could not acquire lock for SDN config: configuration has pending changes", "POST", lock)
	token := fmt.Sprint(a.must("POST", lock, "allow-pending", "1"))
	a.refused("could not acquire lock for SDN config: "+wrong, "POST", lock, "allow-pending", "1")
	a.refused("create sdn zone object failed: "+wrong, "POST", zones, "zone", "z2", "type", "simple")
	a.must("POST", zones, "zone", "z2", "type", "simple", "lock-token", token)
	a.refused("could not release lock: "+wrong, "DELETE", lock, "lock-token", "x")
	a.must("POST", "/cluster/sdn/rollback", "lock-token", token, "release-lock", "0")
	if got := a.must("GET", zones).([]any); len(got) != 0 {
		t.Errorf("zones after a rollback are %v", got)
	}
	a.refused("could not commit SDN config: "+wrong, "PUT", "/cluster/sdn")
	a.exit("PUT", "/cluster/sdn", "lock-token", token)
	a.must("POST", zones, "zone", "z3", "type", "simple")
	a.must("POST", lock, "allow-pending", "1")
	a.must("DELETE", lock, "force", "1")
	a.must("DELETE", lock)
	if got := fmt.Sprint(a.object("/cluster/sdn/dry-run", "node", "pve1")["interfaces-diff"]); got != "<nil>" {
		t.Errorf("a zone without vnets changes the files of a host: %s", got)
	}
	a.must("POST", vnets, "vnet", "v1", "zone", "z3", "alias", "x")
	if got := fmt.Sprint(a.object("/cluster/sdn/dry-run", "node", "pve1")["interfaces-diff"]); !strings.Contains(got, "+iface v1\n+\tbridge_ports none") {
		t.Errorf("dry run says %s", got)
	}
}

func TestControllersIPAMsAndDNSServers(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.must("POST", "/cluster/sdn/controllers", "controller", "ev1", "type", "evpn", "asn", "65000", "peers", "10.0.0.1")
	a.must("PUT", "/cluster/sdn/controllers/ev1", "asn", "65001")
	if got := fmt.Sprint(columns(a.must("GET", "/cluster/sdn/controllers", "pending", "1"), "controller", "state", "pending")); got != "[ev1/new/map[asn:65001 peers:10.0.0.1]]" {
		t.Errorf("controllers are %s", got)
	}
	a.must("POST", "/cluster/sdn/ipams", "ipam", "nb", "type", "netbox", "url", "http://nb", "token", "t")
	if got := fmt.Sprint(columns(a.must("GET", "/cluster/sdn/ipams"), "ipam", "type")); got != "[nb/netbox pve/pve]" {
		t.Errorf("IPAMs are %s", got)
	}
	a.must("POST", "/cluster/sdn/dns", "dns", "pdns", "type", "powerdns", "url", "http://p", "key", "k")
	a.must("DELETE", "/cluster/sdn/ipams/nb")
	a.expect("500 delete sdn zone object failed: sdn 'nb' does not exist", "DELETE", "/cluster/sdn/ipams/nb")
	a.expect("500 missing value for required option 'token'", "POST", "/cluster/sdn/ipams", "ipam", "nb", "type", "netbox", "url", "x")
	a.expect("500 sdn 'gone' does not exist", "GET", "/cluster/sdn/dns/gone")
	if got := fmt.Sprint(a.must("GET", "/cluster/sdn"), a.must("GET", "/cluster/sdn/fabrics"), a.must("GET", "/cluster/sdn/fabrics/fabric")); !strings.Contains(got, "fabrics") {
		t.Errorf("indexes are %s", got)
	}
}

func TestAddressesOfAVNet(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.must("POST", zones, "zone", "z1", "type", "simple", "ipam", "pve", "dhcp", "dnsmasq")
	a.must("POST", vnets, "vnet", "v1", "zone", "z1")
	a.must("POST", vnets+"/v1/subnets", "type", "subnet", "subnet", "10.9.0.0/24")
	a.exit("PUT", "/cluster/sdn")
	const ips = vnets + "/v1/ips"
	a.must("POST", ips, "zone", "z1", "ip", "10.9.0.5", "mac", "bc:24:11:00:00:01")
	a.expect("500 IP '10.9.0.5' already exist", "POST", ips, "zone", "z1", "ip", "10.9.0.5", "mac", "bc:24:11:00:00:02")
	a.expect("500 can't find any subnet for ip 10.8.0.5", "POST", ips, "zone", "z1", "ip", "10.8.0.5")
	a.expect("500 can't find any subnet for ip 10.8.0.5", "PUT", ips, "zone", "z1", "ip", "10.8.0.5", "mac", "bc:24:11:00:00:01")
	a.must("PUT", ips, "zone", "z1", "ip", "10.9.0.6", "mac", "bc:24:11:00:00:01", "vmid", "100")
	status := "/cluster/sdn/ipams/pve/status"
	if got := fmt.Sprint(columns(a.must("GET", status), "ip", "mac", "vmid", "subnet")); got != "[10.9.0.6/BC:24:11:00:00:01/100/10.9.0.0/24]" {
		t.Errorf("addresses are %s", got)
	}
	a.must("DELETE", ips, "zone", "z1", "ip", "10.9.0.6")
	if got := a.must("GET", status).([]any); len(got) != 0 {
		t.Errorf("addresses are %v", got)
	}
	a.refused("Currently only PVE IPAM is supported!", "GET", "/cluster/sdn/ipams/other/status")
}

func TestTheNetworkOutlivesAWorld(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.must("POST", zones, "zone", "z1", "type", "vlan", "bridge", "vmbr0")
	a.must("POST", vnets, "vnet", "v1", "zone", "z1", "tag", "5")
	a.must("POST", vnets+"/v1/subnets", "type", "subnet", "subnet", "10.9.0.0/24")
	a.exit("PUT", "/cluster/sdn")
	a.must("PUT", vnets+"/v1", "tag", "6")
	a.must("PUT", vnets+"/v1/firewall/options", "enable", "1")
	a.must("POST", vnets+"/v1/firewall/rules", "type", "forward", "action", "DROP")
	a.must("POST", "/cluster/sdn/ipams", "ipam", "nb", "type", "netbox", "url", "http://nb", "token", "t")
	a.must("POST", "/cluster/sdn/dns", "dns", "pdns", "type", "powerdns", "url", "http://p", "key", "k")
	a.must("POST", "/cluster/sdn/controllers", "controller", "ev1", "type", "evpn", "asn", "65000")
	first := a.server.World.State()
	second := newWorld(t, pvesim.FromState(first)).State()
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("the world differs (-first +rebuilt):\n%s", diff)
	}
	if got := [2]string{first.SDN.VNets["v1"]["tag"], first.SDN.Configured.VNets["v1"]["tag"]}; got != [2]string{"5", "6"} {
		t.Errorf("tags in force and configured are %v", got)
	}
}
