package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
	"github.com/capve/cluster-api-provider-proxmox/test/pveschema"
	"github.com/capve/cluster-api-provider-proxmox/test/sandbox"
	"github.com/capve/cluster-api-provider-proxmox/test/sandbox/internal/progress"
)

// speed makes the simulator's clones and boots take about a second.
const speed = 10

// shared is the sandbox that the tests run in: each has a cluster of its own in a namespace of its own.
var shared struct {
	once    sync.Once
	sandbox *sandbox.Sandbox
	err     error
	// requestLog is what the manager sends to Proxmox VE.
	requestLog string
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.sandbox != nil {
		shared.sandbox.Stop()
		if _, err := os.Stat(shared.sandbox.Dir()); !os.IsNotExist(err) {
			fmt.Fprintln(os.Stderr, "the sandbox left its directory behind:", shared.sandbox.Dir())
			code = 1
		}
		_ = os.Remove(shared.requestLog)
	}
	os.Exit(code)
}

// start starts the shared sandbox, or skips the test under -short.
func start(t *testing.T) *sandbox.Sandbox {
	t.Helper()
	if testing.Short() {
		t.Skip("a sandbox takes a minute, and the first one minutes to build")
	}
	shared.once.Do(func() {
		shared.requestLog = filepath.Join(os.TempDir(), fmt.Sprintf("capve-requests-%d.jsonl", os.Getpid()))
		shared.sandbox, shared.err = sandbox.Start(context.WithoutCancel(t.Context()), sandbox.Options{
			Progress: progress.New(os.Stdout, progress.Lines), Speed: speed, RequestLog: shared.requestLog,
		})
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	t.Cleanup(func() { explain(t, shared.sandbox) })
	return shared.sandbox
}

// explain prints the end of the logs when the test has failed.
func explain(t *testing.T, s *sandbox.Sandbox) {
	t.Helper()
	if !t.Failed() {
		return
	}
	for _, name := range []string{"manager.log", "guests.log", "ipam.log"} {
		content, err := os.ReadFile(s.Dir() + "/" + name)
		if err != nil {
			continue
		}
		lines := strings.Split(string(content), "\n")
		t.Logf("the end of %s:\n%s", name, strings.Join(lines[max(0, len(lines)-20):], "\n"))
	}
}

// newScenario prepares a namespace for a cluster, with an address range of its own.
func newScenario(t *testing.T, s *sandbox.Sandbox, name, network string) sandbox.Scenario {
	t.Helper()
	cluster := sandbox.DefaultCluster()
	cluster.Namespace, cluster.Name = name, name
	cluster.Addresses, cluster.Gateway = network+".20-"+network+".29", network+".1"
	return sandbox.NewScenario(s, cluster, progress.New(t.Output(), progress.Lines))
}

// TestScenario is the sandbox's story, with everything checked that a user would look at.
func TestScenario(t *testing.T) {
	t.Parallel()
	s := start(t)
	ctx := t.Context()
	scenario := newScenario(t, s, "scenario", "10.20.0")

	must(t, scenario.Up(ctx))
	checkMachines(t, scenario, 1)
	must(t, scenario.Scale(ctx, 0, 3))
	machines := checkMachines(t, scenario, 4)
	checkSpread(t, machines)
	must(t, scenario.Scale(ctx, 3, 1))
	checkMachines(t, scenario, 2)
	must(t, scenario.DeleteCluster(ctx))
	checkNothingLeft(t, scenario)

	if failures := s.BootFailures(); len(failures) > 0 {
		t.Errorf("machines that did not become nodes: %v", failures)
	}
	checkRequests(t, s)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// checkMachines checks that each of the cluster's machines is a running VM where and what the machine says, with the
// address claimed for it, and a Node that says the same.
func checkMachines(t *testing.T, scenario sandbox.Scenario, want int) []sandbox.Machine {
	t.Helper()
	machines, err := scenario.Sandbox.Machines(t.Context(), scenario.Cluster)
	must(t, err)
	if len(machines) != want {
		t.Fatalf("got %d machines, want %d: %+v", len(machines), want, machines)
	}
	nodes, err := scenario.Sandbox.Nodes(t.Context(), scenario.Cluster)
	must(t, err)
	if len(nodes) != want {
		t.Errorf("got %d nodes, want %d", len(nodes), want)
	}
	addresses := map[string]bool{}
	for _, machine := range machines {
		checkVM(t, scenario.Sandbox, machine)
		checkNode(t, machine, nodes[machine.Node])
		if addresses[machine.Address] {
			t.Errorf("address %s is used twice", machine.Address)
		}
		addresses[machine.Address] = true
	}
	checkRunning(t, scenario, want)
	return machines
}

func checkVM(t *testing.T, s *sandbox.Sandbox, machine sandbox.Machine) {
	t.Helper()
	vm, found := s.World().VM(proxmox.VMID(machine.VMID))
	if !found {
		t.Errorf("%s: there is no VM %d", machine.Name, machine.VMID)
		return
	}
	if vm.Status != "running" || string(vm.Node) != machine.Host || vm.Config["name"] != machine.Name {
		t.Errorf("%s: VM %d is %s on %s and called %q, want running on %s", machine.Name, vm.VMID, vm.Status, vm.Node, vm.Config["name"], machine.Host)
	}
	uuid := strings.TrimPrefix(machine.ProviderID, "proxmox://")
	if uuid == "" || !strings.Contains(vm.Config["smbios1"], "uuid="+uuid) {
		t.Errorf("%s: provider id %q is not that of the VM with smbios1 %q", machine.Name, machine.ProviderID, vm.Config["smbios1"])
	}
}

func checkNode(t *testing.T, machine sandbox.Machine, node corev1.Node) {
	t.Helper()
	if node.Spec.ProviderID != machine.ProviderID {
		t.Errorf("%s: node %q has provider id %q, the machine %q", machine.Name, node.Name, node.Spec.ProviderID, machine.ProviderID)
	}
	address, err := netip.ParseAddr(machine.Address)
	if err != nil {
		t.Errorf("%s: address %q: %v", machine.Name, machine.Address, err)
	}
	for _, other := range node.Status.Addresses {
		if other.Type == corev1.NodeInternalIP && other.Address != address.String() {
			t.Errorf("%s: node has address %s, the machine %s", machine.Name, other.Address, address)
		}
	}
	if _, controlPlane := node.Labels["node-role.kubernetes.io/control-plane"]; controlPlane != machine.ControlPlane {
		t.Errorf("%s: control plane: node %v, machine %v", machine.Name, controlPlane, machine.ControlPlane)
	}
}

// checkRunning checks that the cluster has no VMs beyond its machines.
func checkRunning(t *testing.T, scenario sandbox.Scenario, want int) {
	t.Helper()
	running := 0
	for _, vm := range scenario.Sandbox.World().VMs() {
		if strings.HasPrefix(vm.Config["name"], scenario.Cluster.Name+"-") {
			running++
		}
	}
	if running != want {
		t.Errorf("got %d VMs of cluster %s, want %d", running, scenario.Cluster.Name, want)
	}
}

// checkSpread checks that the three workers are on the three hosts.
func checkSpread(t *testing.T, machines []sandbox.Machine) {
	t.Helper()
	hosts := map[string]int{}
	for _, machine := range machines {
		if !machine.ControlPlane {
			hosts[machine.Host]++
		}
	}
	if len(hosts) != 3 {
		t.Errorf("workers are on %v, want one on each of three hosts", hosts)
	}
}

// checkNothingLeft checks that neither Proxmox VE nor the management cluster keeps anything of the cluster.
func checkNothingLeft(t *testing.T, scenario sandbox.Scenario) {
	t.Helper()
	var left []string
	for _, vm := range scenario.Sandbox.World().VMs() {
		if strings.HasPrefix(vm.Config["name"], scenario.Cluster.Name+"-") {
			left = append(left, fmt.Sprintf("VM %d %s", vm.VMID, vm.Config["name"]))
		}
	}
	for _, list := range []client.ObjectList{&clusterv1.MachineList{}, &ipamv1.IPAddressClaimList{}, &ipamv1.IPAddressList{}} {
		must(t, scenario.Sandbox.Client().List(t.Context(), list, client.InNamespace(scenario.Cluster.Namespace)))
		if count := items(t, list); count > 0 {
			left = append(left, fmt.Sprintf("%d in %T", count, list))
		}
	}
	if len(left) > 0 {
		t.Errorf("left behind: %s", strings.Join(left, "; "))
	}
	var lasting []string // what other clusters have that are being made does not last
	until(t, "the world is in order", func(context.Context) error {
		if findings := scenario.Sandbox.World().Check(); lasting == nil {
			lasting = findings
		} else {
			lasting = slices.DeleteFunc(lasting, func(finding string) bool { return !slices.Contains(findings, finding) })
		}
		if len(lasting) > 0 {
			return errors.New(strings.Join(lasting, "; "))
		}
		return nil
	})
}

func items(t *testing.T, list client.ObjectList) int {
	t.Helper()
	switch list := list.(type) {
	case *clusterv1.MachineList:
		return len(list.Items)
	case *ipamv1.IPAddressClaimList:
		return len(list.Items)
	case *ipamv1.IPAddressList:
		return len(list.Items)
	default:
		t.Fatalf("unexpected list %T", list)
		return 0
	}
}

// answersToExpect are the errors by which the manager finds out what Proxmox VE tells in no other way.
func answersToExpect() map[string]*regexp.Regexp {
	return map[string]*regexp.Regexp{
		"the HA manager does not know a VM": regexp.MustCompile(`^500 GET /cluster/ha/resources/vm:\d+$`),
	}
}

// checkRequests checks that Proxmox VE accepted every request so far but those by which the manager finds out, and that each that
// the manager sent is as Proxmox VE's own schemas say.
func checkRequests(t *testing.T, s *sandbox.Sandbox) {
	t.Helper()
	counts := map[int]int{}
	expected := answersToExpect()
	for _, request := range s.World().Requests() {
		counts[request.Status]++
		text := fmt.Sprintf("%d %s %s", request.Status, request.Method, request.Path)
		isExpected := slices.ContainsFunc(slices.Collect(maps.Values(expected)), func(one *regexp.Regexp) bool { return one.MatchString(text) })
		if request.Status >= http.StatusBadRequest && !isExpected {
			t.Errorf("Proxmox VE refused a request: %s", text)
		}
	}
	t.Logf("requests by status: %v", counts)

	log, err := os.Open(shared.requestLog)
	must(t, err)
	defer func() { _ = log.Close() }()
	requests, err := pveschema.ReadLog(log)
	must(t, err)
	if len(requests) == 0 {
		t.Error("the request log is empty")
	}
	for _, version := range []pvesim.Version{pvesim.V84, pvesim.V92} {
		checkSchema(t, version, requests)
	}
}

// checkSchema checks requests, which were sent to Proxmox VE 9, against the schema of a version.
func checkSchema(t *testing.T, version pvesim.Version, requests []pveschema.Request) {
	t.Helper()
	// What Proxmox VE 8 does not have, and our manager does not ask it for.
	onlyIn9 := regexp.MustCompile(`^\w+ /cluster/ha/rules|^GET /nodes/[^/]+/capabilities/qemu/cpu-flags|^\w+ /cluster/ha/resources.*: failback: property is not defined in schema$`)
	schema, err := pveschema.LoadSchema("../../../shared/pve-api", string(version))
	if errors.Is(err, fs.ErrNotExist) {
		t.Logf("no request was checked against the API schema of Proxmox VE %s: %v", version, err)
		return
	}
	must(t, err)
	for _, misfit := range schema.Misfits(requests) {
		if version != pvesim.V84 || !onlyIn9.MatchString(misfit) {
			t.Errorf("a request does not fit the API schema of Proxmox VE %s: %s", version, misfit)
		}
	}
	t.Logf("%d requests were checked against the API schema of Proxmox VE %s", len(requests), version)
}
