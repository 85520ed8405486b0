package integration_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
)

// withFirewall is a valid machine with a firewall.
func (d *desk) withFirewall() client.Object {
	machine := d.validMachine()
	machine.Spec.Firewall = v1beta1.Firewall{
		Enabled: ptr.To(true), IPFilter: ptr.To(true), SecurityGroups: []v1beta1.SecurityGroup{{Name: "nodes"}, {Name: "web", Device: machine.Spec.Network.Devices[0].Name}},
	}
	return machine
}

func TestFirewallRefusesWhatCannotBe(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	const firewall, device = "spec.firewall.", "spec.network.devices.0."
	groups := func(list ...any) []edit { return one(firewall+"securityGroups", list) }
	group := func(name string) map[string]any { return map[string]any{"name": name} }
	rows := []refusal{
		{"empty", one("spec.firewall", map[string]any{}), "firewall in body should have at least 1 properties"},
		{"unknown policy", one(firewall+"policyIn", "drop"), `Unsupported value: "drop"`},
		{"unknown policy out", one(firewall+"policyOut", "LOG"), `Unsupported value: "LOG"`},
		{"unknown level", one(firewall+"logLevelIn", "all"), `Unsupported value: "all"`},
		{"unknown level out", one(firewall+"logLevelOut", ""), `Unsupported value: ""`},
		{"no groups", one(firewall+"securityGroups", []any{}), "securityGroups in body should have at least 1 items"},
		{"33 groups", one(firewall+"securityGroups", many(33, func(i int) any { return group("g" + strings.Repeat("x", 1+i%16)) })), "must have at most 32 items"},
		{"a group without a name", groups(map[string]any{"device": "net0"}), "name: Required value"},
		{"a group with a long name", groups(group(strings.Repeat("x", 19))), "may not be more than 18"},
		{"a group in capitals", groups(group("Web")), "name in body should match"},
		{"a group twice", groups(group("web"), group("web")), "spec.firewall.securityGroups[1].name: Invalid value: \"web\": a security group may be named once for each device: leave one of them out"},
		{"a device that the VM has not", groups(map[string]any{"name": "web", "device": "net30"}), "the device of a security group is one of network.devices"},
		{"a device that is none", groups(map[string]any{"name": "web", "device": "eth0"}), "device in body should match"},
		{"groups, and nothing said of on or off", []edit{without(firewall + "enabled"), without(firewall + "ipFilter")}, "spec.firewall.enabled: Required value: securityGroups and ipFilter have an effect only while the firewall is on: set enabled to true, or to false to prepare them"},
		{"a filter, and nothing said of on or off", []edit{without(firewall + "enabled"), without(firewall + "securityGroups")}, "set enabled to true, or to false to prepare them"},
		{"a filter and DHCP", one(device+"ipv4", map[string]any{"method": "DHCP"}), "spec.firewall.ipFilter: Invalid value: true: firewall.ipFilter needs addresses that are known beforehand"},
		{"a filter and SLAAC", one(device+"ipv6", map[string]any{"method": "SLAAC"}), "spec.firewall.ipFilter: Invalid value: true: firewall.ipFilter needs addresses that are known beforehand"},
	}
	for _, name := range hostile {
		rows = append(rows, refusal{"group " + name, groups(group(name)), "name in body should"})
	}
	d.refuses(d.withFirewall, rows)
}

func TestFirewallTakesWhatCanBe(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for name, edits := range map[string][]edit{
		"a firewall": nil,
		"DHCP on a device that is not filtered": {
			set("spec.network.devices.1", minimalDevice("net1")),
			set("spec.network.devices.1.ipv4", map[string]any{"method": "DHCP"}), set("spec.network.devices.1.firewall", false),
		},
		"only what is logged": {set("spec.firewall", map[string]any{"logLevelIn": "info"})},
		"the same group on two devices": {set("spec.firewall.securityGroups", []any{
			map[string]any{"name": "web"}, map[string]any{"name": "web", "device": d.validMachine().Spec.Network.Devices[0].Name},
		})},
	} {
		d.Expect(d.client.Create(t.Context(), document(t, d.scheme, d.withFirewall(), edits...), client.DryRunAll)).To(Succeed(), name)
	}
	machine := d.withFirewall()
	d.Expect(d.client.Create(t.Context(), machine)).To(Succeed())
	for _, change := range []edit{set("spec.firewall.enabled", false), set("spec.firewall.policyIn", "REJECT"), without("spec.firewall")} {
		d.Expect(d.client.Update(t.Context(), document(t, d.scheme, machine, change), client.DryRunAll)).To(Succeed(), "%s in place", change.path)
	}
}
