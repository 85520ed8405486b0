package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/firewall"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/network"
)

// fenced asks for a firewall; the VM has an address.
func fenced(m *plan.Machine) {
	m.Spec.Firewall, m.Addresses.Bound = firewallSpec(), given()
}

// seen is what there is of a firewall.
func seen(state firewall.State) change {
	return func(m *plan.Machine) { m.Firewall.Present = &state }
}

func known(before firewall.Before) change {
	return func(m *plan.Machine) { m.Firewall.Before = before }
}

// recordedBefore is what firewallSpec writes down of a template that has nothing.
var recordedBefore = firewall.Before{"enable": "", "policy_in": "", "ipfilter": ""}

// finished is the firewall that the machine asks for.
func finished(m plan.Machine) firewall.State {
	wanted, state := m.FirewallWanted(), firewall.State{}
	for edit, more := firewall.Next(wanted, state); more; edit, more = firewall.Next(wanted, state) {
		state = edit.Apply(state)
	}
	return state
}

func missing(groups ...string) change {
	return func(m *plan.Machine) { m.Firewall.MissingGroups = groups }
}

func TestTheFirewallComesBeforeTheStart(t *testing.T) {
	done := seen(finished(machine(resized, fenced, known(recordedBefore))))
	empty := seen(firewall.State{})
	lacks := "SecurityGroupMissing: region home has no security group db, web, which spec.firewall.securityGroups names: make it in Proxmox VE (Datacenter, Firewall, Security Group), or name another one"
	noSpec := func(m *plan.Machine) { m.Spec.Firewall = v1beta1.Firewall{} }
	runSteps(t, []step{
		{"without one it is started", machine(resized), "do Start | Starting: starting VM 101 on pve1"},
		{"a security group is waited for before anything is made", machine(reserved, fenced, missing("db", "web")), "wait 15s | " + lacks},
		{"and before the start", machine(resized, fenced, empty, missing("db", "web")), "wait 15s | " + lacks},
		{"but a VM that runs goes on", machine(running, fenced, empty, missing("db", "web")), "do RecordProviderID | Running: recording the providerID"},
		{"and waits once nothing else is to do", machine(recorded, fenced, empty, missing("db", "web")), "wait 15s | " + lacks},
		{"it is not started before its firewall was looked at", machine(resized, fenced), "wait 15s | Unobserved: the firewall of VM 101 was not looked at"},
		{"what was before is written down first", machine(resized, fenced, empty), "do RecordFirewall | ConfiguringFirewall: writing down what the firewall options were"},
		{
			"then it is made", machine(resized, fenced, empty, known(recordedBefore)),
			"do EditFirewall | ConfiguringFirewall: making the rule of security group web of VM 101",
		},
		{"then the VM is started", machine(resized, fenced, done, known(recordedBefore)), "do Start | Starting: starting VM 101 on pve1"},
		{
			"a VM that runs gets it as well", machine(recorded, fenced, empty, known(recordedBefore)),
			"do EditFirewall | ConfiguringFirewall: making the rule of security group web of VM 101",
		},
		{
			"but not while it is locked", machine(recorded, fenced, empty, known(recordedBefore), locked("migrate")),
			"wait 15s | Locked: VM 101 on pve1 is locked (migrate); if no task there works on it any more, run `qm unlock 101` there as root",
		},
		{"which does not keep up one that has it", machine(recorded, fenced, done, known(recordedBefore), locked("backup")), "done | Running: VM 101 runs on pve1"},
		{"it rests with it", machine(recorded, fenced, done, known(recordedBefore)), "done | Running: VM 101 runs on pve1"},
		{"a VM that runs, and whose firewall was not looked at, is let be", machine(recorded, fenced), "done | Running: VM 101 runs on pve1"},
		{
			"without the section all goes", machine(recorded, noSpec, done, known(recordedBefore)),
			"do EditFirewall | ConfiguringFirewall: setting the firewall options no enable, no ipfilter, no policy_in of VM 101",
		},
		{
			"and is forgotten", machine(recorded, noSpec, empty, known(recordedBefore)),
			"do RecordFirewall | ConfiguringFirewall: forgetting what firewall options were that are put back",
		},
		{
			"no address is taken out while claims are not answered", machine(recorded, fenced, done, known(recordedBefore), func(m *plan.Machine) {
				m.Addresses = plan.Addresses{Pending: "slow", Remain: true}
			}), "done | Running: VM 101 runs on pve1",
		},
		{
			"a deletion takes no notice of it", machine(resized, fenced, empty, deleting),
			"do Destroy | Destroying: destroying VM 101 on pve1",
		},
		{
			"but of an edit that may come late", machine(resized, fenced, deleting, func(m *plan.Machine) { m.Firewall.MayComeLate = true }),
			"wait 15s | ConfiguringFirewall: the answer to an edit of the firewall of VM 101 was lost: for two minutes Proxmox VE may still make it, and it would outlive the VM",
		},
		{
			"which does not concern a VM that is gone", machine(recorded, absent, deleting, func(m *plan.Machine) { m.Firewall.MayComeLate = true }),
			"do DeleteSeed | RemovingSeed: deleting the seed ISO from local of pve1",
		},
	})
}

func TestTheFirewallThatIsWanted(t *testing.T) {
	m := machine(resized, fenced)
	m.Spec.Network.Devices = append(m.Spec.Network.Devices,
		v1beta1.NetworkDevice{Name: "net1", IPv6: v1beta1.IPv6Addressing{Method: v1beta1.IPv6MethodEUI64, Prefix: "2001:db8:1:2::/64"}},
		v1beta1.NetworkDevice{Name: "net2", IPv4: v1beta1.IPv4Addressing{Method: v1beta1.IPv4MethodDHCP}},
	)
	var got []string
	for _, device := range []string{"net0", "net1", "net2"} {
		addresses, filtered := m.FirewallWanted().Filters[device]
		if !filtered {
			t.Errorf("%s is not filtered", device)
		}
		for _, address := range addresses {
			got = append(got, device+" "+address.String())
		}
	}
	made := network.Static(uuid, m.Spec.Network, nil)[0].Prefix.Addr().String()
	if diff := cmp.Diff([]string{"net0 10.0.0.5", "net1 " + made}, got); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}
	if filters := machine(resized, func(m *plan.Machine) { m.Spec.Firewall.PolicyIn = "DROP" }).FirewallWanted().Filters; filters != nil {
		t.Errorf("filtered without being asked: %v", filters)
	}
}

func TestWhetherTheFirewallIsUpToDate(t *testing.T) {
	done := seen(finished(machine(resized, fenced, known(recordedBefore))))
	cases := map[string]struct {
		machine plan.Machine
		want    string
	}{
		"none asked":     {machine(recorded), "nothing"},
		"not looked at":  {machine(recorded, fenced), "false Unobserved"},
		"to be made":     {machine(recorded, fenced, seen(firewall.State{})), "false ConfiguringFirewall"},
		"a group lacks":  {machine(recorded, fenced, done, known(recordedBefore), missing("web")), "false SecurityGroupMissing"},
		"as asked":       {machine(recorded, fenced, done, known(recordedBefore)), "true "},
		"to be put back": {machine(recorded, done, known(recordedBefore)), "false ConfiguringFirewall"},
	}
	for name, c := range cases {
		got := "nothing"
		if why, upToDate, found := c.machine.FirewallState(); found {
			got = map[bool]string{true: "true ", false: "false "}[upToDate] + why.Code
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
