package integration_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

const (
	pathRules   = "/nodes/{node}/qemu/{vmid}/firewall/rules"
	pathSet     = "/nodes/{node}/qemu/{vmid}/firewall/ipset/{name}"
	pathOptions = "/nodes/{node}/qemu/{vmid}/firewall/options"
)

// fenced asks for a firewall with all that there is.
func fenced(m *v1beta1.ProxmoxMachine) {
	m.Spec.Pool, m.Spec.Network.Devices[0].Firewall = "capi", ptr.To(true)
	m.Spec.Firewall = v1beta1.Firewall{
		Enabled: ptr.To(true), PolicyIn: "DROP", PolicyOut: "ACCEPT", IPFilter: ptr.To(true), MACFilter: ptr.To(true), DHCP: ptr.To(false),
		NDP: ptr.To(true), RouterAdvertisement: ptr.To(false), LogLevelIn: "info", LogLevelOut: "nolog",
		SecurityGroups: []v1beta1.SecurityGroup{{Name: "nodes"}, {Name: "web", Device: "net0"}},
	}
}

// groups makes security groups.
func (b *bench) groups(names ...string) {
	b.t.Helper()
	for _, name := range names {
		b.ask(http.MethodPost, "/cluster/firewall/groups", url.Values{"group": {name}})
	}
}

// theirRule puts a rule first in a VM's firewall, as people do.
func (b *bench) theirRule(path string) {
	b.t.Helper()
	b.ask(http.MethodPost, path+"/firewall/rules", url.Values{"type": {"in"}, "action": {"ACCEPT"}, "macro": {"SSH"}, "enable": {"1"}, "comment": {"theirs"}})
}

// firewallOf is the firewall of a machine's VM.
func (b *bench) firewallOf(machine *v1beta1.ProxmoxMachine) pvesim.FirewallSpec {
	b.t.Helper()
	for _, vm := range b.pve.World.State().VMs {
		if vm.VMID == proxmox.VMID(machine.Spec.Reservation.VMID) {
			return vm.Firewall
		}
	}
	b.t.Fatalf("there is no VM %d", machine.Spec.Reservation.VMID)
	return pvesim.FirewallSpec{}
}

// rulesOf are the rules of a firewall, as text.
func rulesOf(machine *v1beta1.ProxmoxMachine, firewall pvesim.FirewallSpec) []string {
	texts := []string{}
	for _, rule := range firewall.Rules {
		whose := rule["comment"]
		if whose == vmconfig.IdentityTag(proxmox.SMBIOSUUID(machine.Spec.Reservation.UUID)) {
			whose = "ours"
		}
		texts = append(texts, strings.Join(strings.Fields(fmt.Sprintf("%s %s %s %s %s", rule["type"], rule["action"], rule["iface"], rule["enable"], whose)), " "))
	}
	return texts
}

// fencedBy waits until the rules of a machine are those.
func (b *bench) fencedBy(machine *v1beta1.ProxmoxMachine, rules ...string) {
	b.t.Helper()
	b.Eventually(func() []string { return rulesOf(machine, b.firewallOf(machine)) }, patience, poll).Should(Equal(rules))
	b.says(machine, v1beta1.FirewallUpToDateCondition, metav1.ConditionTrue, "UpToDate")
}

// settledWithoutRequests waits until nothing but the inventory is asked.
func (b *bench) settledWithoutRequests(machine *v1beta1.ProxmoxMachine) {
	b.t.Helper()
	b.settled(machine)
	b.quiet(machine)
}

// TestFirewallBudget counts what a firewall costs, and checks each request against Proxmox VE's own schema.
func TestFirewallBudget(t *testing.T) {
	t.Parallel()
	for _, version := range []pvesim.Version{pvesim.V84, pvesim.V92} {
		t.Run(string(version), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, pvesim.WithVersion(version))
			b.groups("nodes", "web")
			b.provisioned(b.cluster("c1"))
			machine := b.machine("c1", "m1", fenced)
			b.running(machine)
			var about []string
			all := slices.DeleteFunc(own(b.requests()), func(request string) bool { return request == "GET /cluster/firewall/groups" }) // shared
			for _, request := range all {
				if strings.Contains(request, "/firewall/") {
					about = append(about, request)
				}
			}
			path := b.pathOf(machine, "/firewall")
			b.Expect(about).To(Equal([]string{
				"GET " + path + "/options", "GET " + path + "/rules", "GET " + path + "/ipset",
				"POST " + path + "/rules", "POST " + path + "/rules", "POST " + path + "/ipset", "POST " + path + "/ipset/ipfilter-net0", "PUT " + path + "/options",
			}))
			started := slices.IndexFunc(all, func(request string) bool { return strings.HasSuffix(request, "/status/start") })
			b.Expect(slices.Index(all, "PUT "+path+"/options")).To(BeNumerically("<", started), "the firewall comes before the start")
			b.Expect(len(all)).To(BeNumerically("<=", 12+len(about)), "%s", strings.Join(all, "\n"))

			firewall := b.firewallOf(machine)
			b.Expect(rulesOf(machine, firewall)).To(Equal([]string{"group nodes 1 ours", "group web net0 1 ours"}))
			b.Expect(firewall.Options).To(Equal(map[string]string{
				"enable": "1", "policy_in": "DROP", "policy_out": "ACCEPT", "ipfilter": "1", "macfilter": "1", "dhcp": "0", "ndp": "1", "radv": "0",
				"log_level_in": "info", "log_level_out": "nolog",
			}))
			b.Expect(firewall.IPSets).To(HaveLen(1))
			b.Expect(firewall.IPSets[0].Name).To(Equal("ipfilter-net0"))
			b.Expect(firewall.IPSets[0].Entries).To(Equal([]pvesim.IPSetEntrySpec{{CIDR: machine.Status.Addresses[1].Address}}))
			b.Expect(b.vmOf(machine).Config["net0"]).To(ContainSubstring("firewall=1"), "without it nothing is filtered")
			b.settled(machine)
			b.restsWithoutRequests(machine)
			b.delete(machine)
			b.leavesNothing()
			b.Expect(b.pve.World.State().StrayFirewalls).To(BeEmpty())
		})
	}
}

// TestFirewallChangesInPlace takes a running machine's firewall from one form to others, and away, between rules of others.
func TestFirewallChangesInPlace(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.groups("nodes", "web", "db")
	for _, node := range []string{"1", "2", "3"} {
		b.theirRule("/nodes/pve" + node + "/qemu/900" + node)
		b.ask(http.MethodPut, "/nodes/pve"+node+"/qemu/900"+node+"/firewall/options", url.Values{"enable": {"1"}, "policy_in": {"REJECT"}, "ndp": {"1"}})
	}
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1", fenced)
	b.running(machine)
	b.fencedBy(machine, "group nodes 1 ours", "group web net0 1 ours", "in ACCEPT 1 theirs")
	b.settledWithoutRequests(machine)

	b.theirRule(b.pathOf(machine, ""))
	b.change(machine, func() {
		machine.Spec.Firewall.PolicyIn, machine.Spec.Firewall.IPFilter = "ACCEPT", nil
		machine.Spec.Firewall.SecurityGroups = []v1beta1.SecurityGroup{{Name: "nodes"}, {Name: "db"}, {Name: "web"}}
	})
	b.fencedBy(machine, "group nodes 1 ours", "group db 1 ours", "group web 1 ours", "in ACCEPT 1 theirs", "in ACCEPT 1 theirs")
	b.Eventually(func(g Gomega) {
		firewall := b.firewallOf(machine)
		g.Expect(firewall.IPSets).To(BeEmpty())
		g.Expect(firewall.Options).To(HaveKeyWithValue("policy_in", "ACCEPT"))
		g.Expect(firewall.Options).NotTo(HaveKey("ipfilter"))
	}, patience, poll).Should(Succeed())

	b.change(machine, func() { machine.Spec.Firewall.Enabled = ptr.To(false) })
	b.Eventually(func() string { return b.firewallOf(machine).Options["enable"] }, patience, poll).Should(Equal("0"))

	b.change(machine, func() { machine.Spec.Firewall = v1beta1.Firewall{} })
	b.Eventually(func(g Gomega) {
		b.get(g, machine)
		g.Expect(machine.Annotations).NotTo(HaveKey(v1beta1.FirewallAnnotation))
	}, patience, poll).Should(Succeed())
	firewall := b.firewallOf(machine)
	b.Expect(rulesOf(machine, firewall)).To(Equal([]string{"in ACCEPT 1 theirs", "in ACCEPT 1 theirs"}))
	b.Expect(firewall.Options).To(Equal(map[string]string{"enable": "1", "policy_in": "REJECT", "ndp": "1"}), "the template's are back")
	b.Eventually(func() metav1.ConditionStatus {
		b.get(b, machine)
		return condition(machine, v1beta1.FirewallUpToDateCondition)
	}, patience, poll).Should(BeEmpty())
	b.delete(machine)
	b.leavesNothing()
}

// TestSecurityGroupIsWaitedFor has a machine ask for a group that is made later: nothing is cloned before.
func TestSecurityGroupIsWaitedFor(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.groups("nodes")
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1", fenced)
	b.says(machine, v1beta1.VirtualMachineReadyCondition, metav1.ConditionFalse, "SecurityGroupMissing", "region home has no security group web", "spec.firewall.securityGroups")
	b.says(machine, v1beta1.FirewallUpToDateCondition, metav1.ConditionFalse, "SecurityGroupMissing", "web")
	b.Expect(writes(b.requests())).To(BeEmpty())
	b.groups("web")
	b.running(machine)
	b.settledWithoutRequests(machine)
	b.change(machine, func() {
		machine.Spec.Firewall.SecurityGroups = append(machine.Spec.Firewall.SecurityGroups, v1beta1.SecurityGroup{Name: "late"})
	})
	b.says(machine, v1beta1.FirewallUpToDateCondition, metav1.ConditionFalse, "SecurityGroupMissing", "late")
	b.says(machine, v1beta1.VirtualMachineReadyCondition, metav1.ConditionTrue, "Running")
	b.groups("late")
	b.fencedBy(machine, "group nodes 1 ours", "group web net0 1 ours", "group late 1 ours")
}

// TestFirewallSurvivesLostReplies has the reply of each kind of edit be lost once: what was made twice goes again.
func TestFirewallSurvivesLostReplies(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.groups("nodes", "web")
	lost := func(method, path string, nth int) pvesim.Fault {
		return pvesim.Fault{Method: method, Path: path, Nth: nth, When: pvesim.AfterEffect, Status: 596, Reason: "Connection timed out"}
	}
	b.faults(
		lost(http.MethodPost, pathRules, 1), lost(http.MethodPost, pathRules, 2), lost(http.MethodPost, pathSet, 1), lost(http.MethodPut, pathOptions, 1),
		lost(http.MethodPost, strings.TrimSuffix(pathSet, "/{name}"), 1), lost(http.MethodGet, pathRules, 1),
	)
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1", fenced)
	b.running(machine)
	b.fencedBy(machine, "group nodes 1 ours", "group web net0 1 ours")
	b.ask(http.MethodPost, b.pathOf(machine, "/firewall/rules"), url.Values{
		"type": {"group"}, "action": {"web"}, "iface": {"net0"}, "enable": {"1"}, "comment": {vmconfig.IdentityTag(proxmox.SMBIOSUUID(machine.Spec.Reservation.UUID))},
	}) // it comes late
	b.stop()
	b.startControllers()
	b.fencedBy(machine, "group nodes 1 ours", "group web net0 1 ours")
	b.delete(machine)
	b.leavesNothing()
}

// TestFirewallNeedsNoMoreRights takes a machine with a firewall through its life with the token of docs/permissions.md.
func TestFirewallNeedsNoMoreRights(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.groups("nodes", "web")
	admin := b.pve.Token
	b.pve.Token = b.pve.World.AddToken(pvesim.TokenSpec{User: "capi@pve", Name: "capve", Privileges: documentedRights()})
	b.provisioned(b.cluster("c1"))
	b.pve.Token = admin
	machine := b.machine("c1", "m1", fenced)
	b.running(machine)
	b.fencedBy(machine, "group nodes 1 ours", "group web net0 1 ours")
	b.delete(machine)
	b.leavesNothing()
}

// TestFirewallIsNotAskedForAtRest has a manager start anew over a machine with a firewall: it looks, and writes nothing.
func TestFirewallIsNotAskedForAtRest(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.groups("nodes", "web")
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1", fenced)
	b.running(machine)
	b.settledWithoutRequests(machine)
	b.stop()
	sent := len(b.requests())
	b.startControllers()
	look := "GET " + b.pathOf(machine, "/firewall/ipset/ipfilter-net0")
	b.Eventually(func() []string { return own(b.requests()[sent:]) }, patience, poll).Should(ContainElement(look))
	b.Consistently(func() []string { return writes(b.requests()[sent:]) }, 2*time.Second, poll).Should(BeEmpty())
	b.restsWithoutRequests(machine)
}
