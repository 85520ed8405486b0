package sandbox_test

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
	"github.com/capve/cluster-api-provider-proxmox/test/sandbox"
	"github.com/capve/cluster-api-provider-proxmox/test/sandbox/internal/build"
)

// everythingNetwork is what the guest of that machine is told of its networks.
//
//go:embed testdata/everything-network.yaml
var everythingNetwork string

// everythingManifest is a MachineDeployment whose machine uses every field that one machine can.
//
//go:embed testdata/everything.yaml
var everythingManifest string

// patience bounds what a machine takes for one thing.
const patience = 10 * time.Minute

// TestEverything takes one machine with everything that a ProxmoxMachine can say through its life, and two more with what excludes
// that. TestEverythingIsUsed knows the fields that none of them has.
func TestEverything(t *testing.T) {
	t.Parallel()
	s := start(t)
	ctx := t.Context()
	scenario := newScenario(t, s, "everything", "10.20.7")
	must(t, scenario.Up(ctx))
	must(t, s.Apply(ctx, []byte(strings.ReplaceAll(everythingManifest, "KUBERNETES_VERSION", build.KubernetesVersion))))

	m := everything{t: t, scenario: scenario, deployment: "everything"}
	m.becomesReady()
	m.checkNode()
	m.checkConfig()
	m.checkAddresses()
	m.checkGuest()
	m.checkFirewall()
	m.checkHighAvailability()
	m.checkStorage()
	m.changesInPlace()
	m.isRepaired()
	m.checkSame()
	checkOthers(m)

	must(t, scenario.DeleteCluster(ctx))
	checkNothingLeft(t, scenario)
	m.checkNothingOfItLeft()
	checkRequests(t, s)
}

// everything is the machine that has everything.
type everything struct {
	t        *testing.T
	scenario sandbox.Scenario
	// deployment is the MachineDeployment that it is of.
	deployment string
	machine    sandbox.Machine
	proxmox    *v1beta1.ProxmoxMachine
}

// isOne reports whether a machine is one of the deployment's.
func (m *everything) isOne(machine sandbox.Machine) bool {
	return !machine.ControlPlane && strings.HasPrefix(machine.Name, m.deployment+"-")
}

// until waits until the check finds nothing to say.
func until(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: %v", what, err)
		case <-tick.C:
		}
	}
}

// becomesReady waits until the machine is ready, and its Node.
func (m *everything) becomesReady() {
	m.t.Helper()
	until(m.t, "the machine of "+m.deployment+" becomes ready", func(ctx context.Context) error {
		machines, err := m.scenario.Sandbox.Machines(ctx, m.scenario.Cluster)
		if err != nil {
			return err
		}
		at := slices.IndexFunc(machines, m.isOne)
		if at < 0 {
			return errors.New("there is none")
		}
		m.machine = machines[at]
		if err := m.read(ctx); err != nil {
			return err
		}
		if m.machine.Reason != "" || m.machine.Node == "" || m.proxmox.Status.SeedRemoved == nil {
			return fmt.Errorf("%s: %s: %v", m.machine.Phase, m.machine.Reason, conditionsOf(m.proxmox))
		}
		return nil
	})
}

// read reads the ProxmoxMachine.
func (m *everything) read(ctx context.Context) error {
	var object unstructured.Unstructured
	object.SetAPIVersion(infrastructureVersion)
	object.SetKind("ProxmoxMachine")
	if err := m.scenario.Sandbox.Client().Get(ctx, client.ObjectKey{Namespace: m.scenario.Cluster.Namespace, Name: m.machine.Name}, &object); err != nil {
		return err
	}
	m.proxmox = &v1beta1.ProxmoxMachine{}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, m.proxmox)
}

// conditionsOf are what the conditions say that are not as they should be. Two of them are False when all is well.
func conditionsOf(machine *v1beta1.ProxmoxMachine) []string {
	var out []string
	for _, c := range machine.Status.Conditions {
		if c.Status != "True" && c.Type != clusterv1.PausedCondition && c.Type != clusterv1.DeletingCondition {
			out = append(out, fmt.Sprintf("%s %s %s: %s", c.Type, c.Status, c.Reason, c.Message))
		}
	}
	return out
}

// vm is the virtual machine as it is now.
func (m *everything) vm() pvesim.VMSpec {
	m.t.Helper()
	for _, vm := range m.scenario.Sandbox.World().State().VMs {
		if vm.VMID == proxmox.VMID(m.machine.VMID) {
			return vm
		}
	}
	m.t.Fatalf("there is no VM %d", m.machine.VMID)
	return pvesim.VMSpec{}
}

func (m *everything) checkNode() {
	m.t.Helper()
	nodes, err := m.scenario.Sandbox.Nodes(m.t.Context(), m.scenario.Cluster)
	must(m.t, err)
	checkNode(m.t, m.machine, nodes[m.machine.Node])
	if left := conditionsOf(m.proxmox); len(left) > 0 {
		m.t.Errorf("conditions that are not True: %q", left)
	}
	if m.machine.VMID < 5000 || m.machine.VMID > 5099 || !slices.Contains([]string{"pve2", "pve3"}, m.machine.Host) {
		m.t.Errorf("VM %d is on %s, want one of 5000 to 5099 on pve2 or pve3", m.machine.VMID, m.machine.Host)
	}
}

// checkConfig compares the VM's config with the table, key by key.
func (m *everything) checkConfig() {
	m.t.Helper()
	vm := m.vm()
	if vm.State != "running" || vm.Pool != "capi" || len(vm.Pending)+len(vm.PendingDelete) > 0 {
		m.t.Errorf("VM %d is %s, in pool %q, and waits for %v and the end of %v", vm.VMID, vm.State, vm.Pool, vm.Pending, vm.PendingDelete)
	}
	want := wantedConfig()
	m.checkKeys(want)
	for key, value := range vm.Config {
		if want[key] == "" {
			m.t.Errorf("%s: %q, and nothing asks for it", key, value)
		}
	}
}

// checkKeys compares those keys of the VM's config.
func (m *everything) checkKeys(want map[string]string) {
	m.t.Helper()
	vm := m.vm()
	replace := strings.NewReplacer("VMID", fmt.Sprint(vm.VMID), "MACHINE", m.machine.Name, "IDENTITY", m.proxmox.Spec.Reservation.UUID)
	for key, pattern := range want {
		value, found := vm.Config[key]
		if !found {
			m.t.Errorf("%s: missing, want %q", key, pattern)
			continue
		}
		if !regexp.MustCompile("^(?:" + replace.Replace(inOrder(key, pattern)) + ")$").MatchString(inOrder(key, value)) {
			m.t.Errorf("%s:\n got %q\nwant %q", key, value, replace.Replace(pattern))
		}
	}
}

// inOrder sorts the parts of a value by their names.
func inOrder(key, value string) string {
	if key == "description" {
		return value
	}
	parts := strings.Split(value, ",")
	slices.SortStableFunc(parts, func(a, b string) int { return strings.Compare(partName(a), partName(b)) })
	return strings.Join(parts, ",")
}

func partName(part string) string {
	name, _, named := strings.Cut(part, "=")
	if !named {
		return ""
	}
	return name
}

// checkAddresses waits until the status has all addresses: those claimed, that which the MAC address makes, and that which DHCP
// gave, as the guest agent tells.
func (m *everything) checkAddresses() {
	m.t.Helper()
	want := `^10\.20\.7\.2\d 10\.20\.7\.2\d 10\.21\.\d+\.\d+ 10\.22\.0\.2\d fd00:20:7::2\d fd00:20:7::2\d fd00:22::be24:12ff:feab:[0-9a-f:]+$`
	until(m.t, "the addresses are in the status", func(ctx context.Context) error {
		if err := m.read(ctx); err != nil {
			return err
		}
		if got := strings.Join(slices.Sorted(slices.Values(m.addresses(""))), " "); !regexp.MustCompile(want).MatchString(got) {
			return fmt.Errorf("it has %s", got)
		}
		return nil
	})
}

// addresses are the machine's addresses with that beginning.
func (m *everything) addresses(prefix string) []string {
	var out []string
	for _, address := range m.proxmox.Status.Addresses {
		if address.Type == clusterv1.MachineInternalIP && strings.HasPrefix(address.Address, prefix) {
			out = append(out, address.Address)
		}
	}
	return out
}

// checkGuest compares what the guest was told of its networks with what the spec says.
func (m *everything) checkGuest() {
	m.t.Helper()
	node, storage := m.addresses("10.20.7."), m.addresses("10.22.0.")
	six, made := m.addresses("fd00:20:7:"), m.addresses("fd00:22:")
	if len(node) != 2 || len(storage) != 1 || len(six) != 2 || len(made) != 1 {
		m.t.Errorf("the machine has the addresses %v", m.proxmox.Status.Addresses)
		return
	}
	words := []string{"NODE4", node[0], "SECOND4", node[1], "NODE6", six[0], "SECOND6", six[1], "STORAGE4", storage[0], "STORAGE6", made[0]}
	for i := range 4 {
		_, device, _ := strings.Cut(m.vm().Config[fmt.Sprintf("net%d", i)], "=")
		mac, _, _ := strings.Cut(device, ",")
		words = append(words, fmt.Sprintf("MAC%d", i), strings.ToLower(mac))
	}
	var got, want map[string]any
	must(m.t, yaml.Unmarshal([]byte(m.scenario.Sandbox.NetworkConfig(m.machine.VMID)), &got))
	must(m.t, yaml.Unmarshal([]byte(strings.NewReplacer(words...).Replace(everythingNetwork)), &want))
	if diff := cmp.Diff(want, got); diff != "" {
		m.t.Errorf("the guest is not told of its networks what is asked (-want +got):\n%s", diff)
	}
}

// checkFirewall compares the VM's firewall with what is asked: no more, and no less.
func (m *everything) checkFirewall() {
	m.t.Helper()
	firewall := m.vm().Firewall
	for i := range firewall.Rules {
		delete(firewall.Rules[i], "comment")
	}
	set := func(device string, addresses ...[]string) pvesim.IPSetSpec {
		all := slices.Sorted(slices.Values(slices.Concat(addresses...)))
		out := pvesim.IPSetSpec{Name: "ipfilter-" + device}
		for _, address := range all {
			out.Entries = append(out.Entries, pvesim.IPSetEntrySpec{CIDR: address})
		}
		return out
	}
	want := pvesim.FirewallSpec{
		Options: map[string]string{
			"enable": "1", "policy_in": "DROP", "policy_out": "ACCEPT", "ipfilter": "1", "macfilter": "1", "dhcp": "1", "ndp": "1", "radv": "0",
			"log_level_in": "info", "log_level_out": "nolog",
		},
		Rules: []map[string]string{
			{"type": "group", "action": "nodes", "enable": "1"},
			{"type": "group", "action": "web", "enable": "1", "iface": "net0"},
		},
		IPSets: []pvesim.IPSetSpec{
			set("net0", m.addresses("10.20.7."), m.addresses("fd00:20:7:")), set("net2", m.addresses("10.22.0."), m.addresses("fd00:22:")),
		},
	}
	for i := range firewall.IPSets {
		firewall.IPSets[i].Comment = ""
		slices.SortFunc(firewall.IPSets[i].Entries, func(a, b pvesim.IPSetEntrySpec) int { return strings.Compare(a.CIDR, b.CIDR) })
	}
	slices.SortFunc(firewall.IPSets, func(a, b pvesim.IPSetSpec) int { return strings.Compare(a.Name, b.Name) })
	if diff := cmp.Diff(want, firewall); diff != "" {
		m.t.Errorf("the firewall is not what is asked (-want +got):\n%s", diff)
	}
}

// checkHighAvailability checks that the HA manager looks after the VM as the spec says.
func (m *everything) checkHighAvailability() {
	m.t.Helper()
	ha, sid := m.scenario.Sandbox.World().State().HA, fmt.Sprintf("vm:%d", m.machine.VMID)
	resource := map[string]string{
		"state": "started", "max_restart": "2", "max_relocate": "3", "failback": "0",
		"comment": fmt.Sprintf("Cluster API machine %s, managed by CAPVE", m.machine.Name),
	}
	if diff := cmp.Diff(resource, ha.Resources[sid]); diff != "" {
		m.t.Errorf("the HA resource %s is not what is asked (-want +got):\n%s", sid, diff)
	}
	rules := map[string]map[string]string{
		"near":  {"type": "node-affinity", "nodes": "pve2:2,pve3:2", "strict": "1", "resources": sid},
		"apart": {"type": "resource-affinity", "affinity": "negative", "resources": sid, "disable": "1"}, // one alone is kept from nobody
	}
	for _, rule := range ha.Rules {
		delete(rule, "comment")
	}
	if diff := cmp.Diff(rules, ha.Rules); diff != "" {
		m.t.Errorf("the HA rules are not what is asked (-want +got):\n%s", diff)
	}
}

// checkStorage checks that every disk is where it was asked to be, in the format that was asked for, and that the seed is gone.
func (m *everything) checkStorage() {
	m.t.Helper()
	for _, volume := range m.scenario.Sandbox.World().Volumes() {
		if strings.Contains(string(volume.ID), m.proxmox.Spec.Reservation.UUID) {
			m.t.Errorf("the seed %s is still there", volume.ID)
		}
		if volume.VMID == proxmox.VMID(m.machine.VMID) && !strings.HasPrefix(string(volume.ID), "shared:") {
			m.t.Errorf("%s is not on the storage shared", volume.ID)
		}
	}
}

// checkNothingOfItLeft checks for what the other scenarios have none of.
func (m *everything) checkNothingOfItLeft() {
	m.t.Helper()
	state := m.scenario.Sandbox.World().State()
	if len(state.HA.Resources)+len(state.HA.Rules) > 0 {
		m.t.Errorf("left behind: HA resources %v, HA rules %v", state.HA.Resources, state.HA.Rules)
	}
	if len(state.StrayFirewalls) > 0 {
		m.t.Errorf("left behind: firewalls of no VM: %v", state.StrayFirewalls)
	}
	for _, volume := range m.scenario.Sandbox.World().Volumes() {
		if volume.VMID == proxmox.VMID(m.machine.VMID) || strings.Contains(string(volume.ID), m.proxmox.Spec.Reservation.UUID) {
			m.t.Errorf("left behind: volume %s", volume.ID)
		}
	}
}
