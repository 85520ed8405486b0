package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
	"github.com/capve/cluster-api-provider-proxmox/test/sandbox"
)

// changesInPlace changes of the running machine what its VM can follow, as `kubectl patch` does.
func (m *everything) changesInPlace() {
	m.t.Helper()
	m.patch(`{"spec": {
		"tags": ["blue", "k8s.1"], "description": "Made for team B.", "cpu": {"units": 300},
		"firewall": {"policyIn": "REJECT", "securityGroups": [{"name": "web", "device": "net0"}]}
	}}`)
	uuid := m.proxmox.Spec.Reservation.UUID
	until(m.t, "a change reaches the VM in place", func(ctx context.Context) error {
		vm := m.vm()
		return errors.Join(
			m.says(ctx),
			differs("cpuunits", vm.Config["cpuunits"], "300"),
			differs("tags", vm.Config["tags"], "blue;capve-"+uuid+";k8s.1;kubernetes;ubuntu"),
			differs("notes", strings.TrimSpace(vm.Config["description"]),
				fmt.Sprintf("Cluster API machine %s, managed by CAPVE.\n\nCAPVE-UUID: %s\n\nMade for team B.", m.machine.Name, uuid)),
			differs("policy_in", vm.Firewall.Options["policy_in"], "REJECT"),
			differs("rules", groupsOf(vm.Firewall), "web net0"),
		)
	})
}

// isRepaired has somebody change in Proxmox VE what the spec sets, and waits until it is changed back.
func (m *everything) isRepaired() {
	m.t.Helper()
	m.edit(url.Values{"cpuunits": {"50"}, "onboot": {"0"}, "tags": {"capve-" + m.proxmox.Spec.Reservation.UUID + ";theirs"}})
	until(m.t, "what somebody changed is changed back", func(ctx context.Context) error {
		vm := m.vm()
		return errors.Join(
			m.says(ctx),
			differs("cpuunits", vm.Config["cpuunits"], "300"),
			differs("onboot", vm.Config["onboot"], "1"),
			differs("tags", vm.Config["tags"], "blue;capve-"+m.proxmox.Spec.Reservation.UUID+";k8s.1;theirs"),
		)
	})
}

// checkSame checks that the machine is the one it was, and that its VM was not started anew.
func (m *everything) checkSame() {
	m.t.Helper()
	machines, err := m.scenario.Sandbox.Machines(m.t.Context(), m.scenario.Cluster)
	must(m.t, err)
	var workers []sandbox.Machine
	for _, machine := range machines {
		if m.isOne(machine) {
			workers = append(workers, machine)
		}
	}
	if len(workers) != 1 || workers[0].Name != m.machine.Name || workers[0].VMID != m.machine.VMID || workers[0].ProviderID != m.machine.ProviderID {
		m.t.Errorf("the machine was replaced: %+v, want %+v", workers, m.machine)
	}
	starts := 0
	for _, request := range m.scenario.Sandbox.World().Requests() {
		if strings.HasSuffix(request.Path, fmt.Sprintf("/qemu/%d/status/start", m.machine.VMID)) {
			starts++
		}
	}
	if starts > 1 {
		m.t.Errorf("the VM was started %d times", starts)
	}
}

// says reads the machine, and reports the conditions that are not True.
func (m *everything) says(ctx context.Context) error {
	if err := m.read(ctx); err != nil {
		return err
	}
	if left := conditionsOf(m.proxmox); len(left) > 0 {
		return fmt.Errorf("conditions: %q", left)
	}
	return nil
}

func (m *everything) patch(text string) {
	m.t.Helper()
	var object unstructured.Unstructured
	object.SetAPIVersion(infrastructureVersion)
	object.SetKind("ProxmoxMachine")
	object.SetNamespace(m.scenario.Cluster.Namespace)
	object.SetName(m.machine.Name)
	must(m.t, m.scenario.Sandbox.Client().Patch(m.t.Context(), &object, client.RawPatch(types.MergePatchType, []byte(text))))
}

// edit changes the VM's config in Proxmox VE, as an administrator does.
func (m *everything) edit(values url.Values) {
	m.t.Helper()
	world, path := m.scenario.Sandbox.World(), fmt.Sprintf("/nodes/%s/qemu/%d/config", m.vm().Node, m.machine.VMID)
	token := world.AddToken(pvesim.TokenSpec{
		User: "admin@pve", Name: "gui", Privileges: map[string][]string{"/": {"VM.Config.CPU", "VM.Config.Options"}},
	})
	request, err := http.NewRequestWithContext(m.t.Context(), http.MethodPut, "https://pve1:8006/api2/json"+path, strings.NewReader(values.Encode()))
	must(m.t, err)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Authorization", fmt.Sprintf("PVEAPIToken=%s=%s", token.ID, string(token.Secret)))
	response, err := world.Transport(proxmox.NodeName("pve1")).RoundTrip(request)
	must(m.t, err)
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		m.t.Fatalf("PUT %s: %s", path, response.Status)
	}
}

// groupsOf are the security groups of a firewall, with their devices.
func groupsOf(firewall pvesim.FirewallSpec) string {
	var out []string
	for _, rule := range firewall.Rules {
		out = append(out, strings.TrimSpace(rule["action"]+" "+rule["iface"]))
	}
	return strings.Join(out, ", ")
}

func differs(what, got, want string) error {
	if got == want {
		return nil
	}
	return fmt.Errorf("%s is %q, want %q", what, got, want)
}
