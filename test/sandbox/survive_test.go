package sandbox_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	clusterctl "sigs.k8s.io/cluster-api/cmd/clusterctl/client"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
	"github.com/capve/cluster-api-provider-proxmox/test/sandbox"
	"github.com/capve/cluster-api-provider-proxmox/test/sandbox/internal/progress"
)

// patience bounds what has no bound of its own.
const patience = 3 * time.Minute

// TestClusterSurvives takes a cluster through two of the bad days of its administrator: a VM is removed behind Cluster API's
// back, and Cluster API's MachineHealthCheck replaces the machine; then `clusterctl move` takes the cluster to another
// management cluster, where it is scaled and deleted.
func TestClusterSurvives(t *testing.T) {
	t.Parallel()
	s := start(t)
	scenario := newScenario(t, s, "survivor", "10.20.2")
	scenario.Cluster.WorkerReplicas = 3
	must(t, scenario.Up(t.Context()))
	checkMachines(t, scenario, 4)

	replaceRemovedVM(t, scenario)
	before := checkMachines(t, scenario, 4)

	other, err := s.Beside(context.WithoutCancel(t.Context()))
	must(t, err)
	t.Cleanup(func() { explain(t, other) })
	moved := sandbox.NewScenario(other, scenario.Cluster, progress.New(t.Output(), progress.Lines))
	sent := moveCluster(t, scenario, moved, before)

	must(t, moved.Scale(t.Context(), 3, 4))
	after := checkMachines(t, moved, 5)
	if written := about(t, writes(t, s, sent), after...); len(written) > 0 {
		t.Errorf("the manager that the cluster was moved away from still works on it: %v", written)
	}
	must(t, moved.DeleteCluster(t.Context()))
	checkNothingLeft(t, moved)
}

// replaceRemovedVM removes a worker's VM in Proxmox VE, and has the MachineHealthCheck of the docs replace the machine.
func replaceRemovedVM(t *testing.T, scenario sandbox.Scenario) {
	t.Helper()
	ctx, s := t.Context(), scenario.Sandbox
	machines, err := s.Machines(ctx, scenario.Cluster)
	must(t, err)
	lost := machines[slices.IndexFunc(machines, func(m sandbox.Machine) bool { return !m.ControlPlane })]
	removeVM(t, scenario, lost)
	waitFor(t, "the machine knows that its VM is gone", func() error {
		reason, err := conditionOf(ctx, scenario, lost.Name, "VirtualMachineReady")
		if err == nil && reason != "VirtualMachineGone" {
			return errors.New("it says " + reason)
		}
		return err
	})
	remediate(t, scenario, lost)
	waitFor(t, "another machine takes its place", func() error { return replaced(ctx, scenario, lost) })
	for _, vm := range s.World().VMs() {
		if strings.Contains(vm.Config["smbios1"], strings.TrimPrefix(lost.ProviderID, "proxmox://")) {
			t.Errorf("VM %d has the identity of the one that was removed", vm.VMID)
		}
	}
}

// haste is how long a machine may be unhealthy here; the example in the docs has minutes of patience.
const haste = 1

// remediate has the MachineHealthCheck of the docs, in haste, delete the machine because of the condition that it looks at.
func remediate(t *testing.T, scenario sandbox.Scenario, lost sandbox.Machine) {
	t.Helper()
	ctx, c := t.Context(), scenario.Sandbox.Client()
	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: scenario.Cluster.Namespace, Name: lost.Name}}
	waitFor(t, "Cluster API has known of it for a while", func() error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(machine), machine); err != nil {
			return err
		}
		condition := meta.FindStatusCondition(machine.Status.Conditions, clusterv1.MachineInfrastructureReadyCondition)
		if condition == nil {
			return errors.New("InfrastructureReady is missing")
		}
		if condition.Status != metav1.ConditionFalse || time.Since(condition.LastTransitionTime.Time) < (haste+1)*time.Second {
			return fmt.Errorf("InfrastructureReady is %s since %s", condition.Status, condition.LastTransitionTime)
		}
		return nil
	})
	patch(t, c, machine, func() { // holds the Machine, so that its conditions can be read
		metav1.SetMetaDataAnnotation(&machine.ObjectMeta, clusterv1.PreDrainDeleteHookAnnotationPrefix+"/look", "")
	})
	check := exampleHealthCheck(t, scenario.Cluster)
	patience := check.Spec.DeepCopy().Checks
	for i := range check.Spec.Checks.UnhealthyMachineConditions {
		check.Spec.Checks.UnhealthyMachineConditions[i].TimeoutSeconds = ptr.To[int32](haste)
	}
	must(t, c.Create(ctx, check))
	waitFor(t, "the MachineHealthCheck has the machine deleted", func() error {
		must(t, c.Get(ctx, client.ObjectKeyFromObject(machine), machine))
		condition := meta.FindStatusCondition(machine.Status.Conditions, clusterv1.MachineHealthCheckSucceededCondition)
		if machine.DeletionTimestamp.IsZero() || condition == nil || condition.Reason != clusterv1.MachineHealthCheckUnhealthyMachineReason ||
			!strings.Contains(condition.Message, clusterv1.MachineInfrastructureReadyCondition) {
			return fmt.Errorf("deleted at %v: %+v", machine.DeletionTimestamp, condition)
		}
		return nil
	})
	patch(t, c, check, func() { check.Spec.Checks = patience }) // the new machine needs it
	patch(t, c, machine, func() { delete(machine.Annotations, clusterv1.PreDrainDeleteHookAnnotationPrefix+"/look") })
}

// patch changes an object.
func patch(t *testing.T, c client.Client, object client.Object, change func()) {
	t.Helper()
	before, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		t.Fatalf("%T is no object", object)
	}
	change()
	must(t, c.Patch(t.Context(), object, client.MergeFrom(before)))
}

// replaced reports, as an error, why the cluster is not whole again without the machine.
func replaced(ctx context.Context, scenario sandbox.Scenario, lost sandbox.Machine) error {
	machines, err := scenario.Sandbox.Machines(ctx, scenario.Cluster)
	if err != nil {
		return err
	}
	for _, machine := range machines {
		if machine.Name == lost.Name {
			return fmt.Errorf("%s is still there: %s", lost.Name, machine.Reason)
		}
	}
	if len(machines) != 4 {
		return fmt.Errorf("%d machines of 4", len(machines))
	}
	return scenario.Sandbox.Available(ctx, scenario.Cluster, 3)
}

// removeVM stops and destroys a machine's VM with the cluster's own token, as a person at the GUI would.
func removeVM(t *testing.T, scenario sandbox.Scenario, machine sandbox.Machine) {
	t.Helper()
	world := scenario.Sandbox.World()
	var credentials corev1.Secret
	key := client.ObjectKey{Namespace: scenario.Cluster.Namespace, Name: scenario.Cluster.Name + "-proxmox"}
	must(t, scenario.Sandbox.Client().Get(t.Context(), key, &credentials))
	browser := &http.Client{Transport: world.Transport(proxmox.NodeName(machine.Host))}
	path := fmt.Sprintf("https://pve/api2/json/nodes/%s/qemu/%d", machine.Host, machine.VMID)
	send := func(method, target string) {
		request, err := http.NewRequestWithContext(t.Context(), method, target, http.NoBody)
		must(t, err)
		request.Header.Set("Authorization", "PVEAPIToken="+string(credentials.Data["tokenID"])+"="+string(credentials.Data["tokenSecret"]))
		answer, err := browser.Do(request)
		must(t, err)
		must(t, answer.Body.Close())
	}
	waitFor(t, "the VM is removed", func() error { // CAPVE may have started it again in between
		if _, there := world.VM(proxmox.VMID(machine.VMID)); !there {
			return nil
		}
		send(http.MethodPost, path+"/status/stop")
		must(t, world.AwaitTasks(t.Context()))
		send(http.MethodDelete, path+"?purge=1")
		must(t, world.AwaitTasks(t.Context()))
		return errors.New("it is still there")
	})
}

// exampleHealthCheck is the example in docs/proxmoxmachine.md, for the cluster's workers.
func exampleHealthCheck(t *testing.T, cluster sandbox.Cluster) *clusterv1.MachineHealthCheck {
	t.Helper()
	page, err := os.ReadFile("../../docs/proxmoxmachine.md")
	must(t, err)
	example := regexp.MustCompile("(?s)```yaml\n(apiVersion: cluster.x-k8s.io/v1beta2\nkind: MachineHealthCheck.*?)```").FindSubmatch(page)
	if example == nil {
		t.Fatal("docs/proxmoxmachine.md has no MachineHealthCheck")
	}
	text := strings.NewReplacer("my-cluster", cluster.Name, "deployment-name: workers", "deployment-name: "+cluster.Name+"-workers").Replace(string(example[1]))
	check := &clusterv1.MachineHealthCheck{}
	must(t, yaml.UnmarshalStrict([]byte(text), check))
	check.Namespace = cluster.Namespace
	return check
}

// moveCluster takes the cluster to another management cluster, and checks that Proxmox VE was only read for it. It returns how
// many requests the old manager had sent before.
func moveCluster(t *testing.T, from, to sandbox.Scenario, machines []sandbox.Machine) (sent int) {
	t.Helper()
	atRest(t, from, machines)
	sent = len(requests(t, from.Sandbox))
	vms, began := dump(from, machines), time.Now()
	must(t, clusterctlMove(t, from, to))
	took := time.Since(began)
	waitFor(t, "the cluster is available again", func() error { return readyAgain(t.Context(), to) })
	t.Logf("moved in %s, available again after %s", took.Round(time.Second), time.Since(began).Round(time.Second))

	checkSame(t, machines, checkMachines(t, to, len(machines)))
	if difference := cmp.Diff(vms, dump(to, machines)); difference != "" {
		t.Errorf("the move changed VMs or volumes: %s", difference)
	}
	if written := writes(t, to.Sandbox, 0); len(written) > 0 {
		t.Errorf("the new manager wrote to Proxmox VE: %v", written)
	}
	if written := about(t, writes(t, from.Sandbox, sent), machines...); len(written) > 0 {
		t.Errorf("the old manager wrote to Proxmox VE: %v", written)
	}
	checkMovedAway(t, from)
	checkAdopted(t, to, machines)
	return sent
}

// atRest waits until nothing is left to do for the machines: the seed goes only after the Node is there.
func atRest(t *testing.T, scenario sandbox.Scenario, machines []sandbox.Machine) {
	t.Helper()
	waitFor(t, "nothing is left to do", func() error {
		for _, machine := range machines {
			reason, err := conditionOf(t.Context(), scenario, machine.Name, "BootstrapSeedRemoved")
			if err != nil || reason != "Removed" {
				return fmt.Errorf("%s: BootstrapSeedRemoved is %q (%w)", machine.Name, reason, err)
			}
		}
		return nil
	})
}

// clusterctlMove is `clusterctl move`, by clusterctl's own library.
func clusterctlMove(t *testing.T, from, to sandbox.Scenario) error {
	t.Helper()
	config := filepath.Join(t.TempDir(), "clusterctl.yaml")
	must(t, os.WriteFile(config, nil, 0o600))
	mover, err := clusterctl.New(t.Context(), config)
	must(t, err)
	return mover.Move(t.Context(), clusterctl.MoveOptions{
		FromKubeconfig: clusterctl.Kubeconfig{Path: from.Sandbox.Kubeconfig()}, ToKubeconfig: clusterctl.Kubeconfig{Path: to.Sandbox.Kubeconfig()},
		Namespace: from.Cluster.Namespace,
	})
}

// readyAgain reports, as an error, which machine is not ready, or why the cluster is not available.
func readyAgain(ctx context.Context, scenario sandbox.Scenario) error {
	machines, err := scenario.Sandbox.Machines(ctx, scenario.Cluster)
	if err != nil {
		return err
	}
	for _, machine := range machines {
		if machine.Reason != "" {
			return fmt.Errorf("%s: %s", machine.Name, machine.Reason)
		}
	}
	return scenario.Sandbox.Available(ctx, scenario.Cluster, 3)
}

// checkSame checks that machines are who they were, where they were.
func checkSame(t *testing.T, before, after []sandbox.Machine) {
	t.Helper()
	identities := func(machines []sandbox.Machine) (result []string) {
		for _, m := range machines {
			result = append(result, strings.Join([]string{m.Name, m.Host, fmt.Sprint(m.VMID), m.Address, m.ProviderID, m.Node}, " "))
		}
		slices.Sort(result)
		return result
	}
	if difference := cmp.Diff(identities(before), identities(after)); difference != "" {
		t.Errorf("machines changed: %s", difference)
	}
}

// checkMovedAway checks that the management cluster has nothing of the cluster any more, nor its credentials.
func checkMovedAway(t *testing.T, scenario sandbox.Scenario) {
	t.Helper()
	for _, list := range []client.ObjectList{
		&clusterv1.ClusterList{}, &clusterv1.MachineList{}, &clusterv1.MachineHealthCheckList{}, &ipamv1.IPAddressClaimList{},
		&ipamv1.IPAddressList{}, &corev1.SecretList{},
	} {
		must(t, scenario.Sandbox.Client().List(t.Context(), list, client.InNamespace(scenario.Cluster.Namespace)))
		if count := meta.LenList(list); count > 0 {
			t.Errorf("%d in %T were not moved", count, list)
		}
	}
}

// checkAdopted checks that each machine tells that its VM was found again.
func checkAdopted(t *testing.T, scenario sandbox.Scenario, machines []sandbox.Machine) {
	t.Helper()
	waitFor(t, "each machine has its event", func() error {
		var list eventsv1.EventList
		if err := scenario.Sandbox.Client().List(t.Context(), &list, client.InNamespace(scenario.Cluster.Namespace)); err != nil {
			return err
		}
		for _, machine := range machines {
			if !slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool { return e.Regarding.Name == machine.Name && e.Reason == "Adopted" }) {
				return fmt.Errorf("%s has no event Adopted", machine.Name)
			}
		}
		return nil
	})
}

// holding is what Proxmox VE holds of a cluster.
type holding struct {
	VMs     []pvesim.VM
	Volumes []pvesim.Volume
}

func dump(scenario sandbox.Scenario, machines []sandbox.Machine) holding {
	var held holding
	ids := map[proxmox.VMID]bool{}
	for _, machine := range machines {
		ids[proxmox.VMID(machine.VMID)] = true
	}
	world := scenario.Sandbox.World()
	for _, vm := range world.VMs() {
		if ids[vm.VMID] || strings.HasPrefix(vm.Config["name"], scenario.Cluster.Name+"-") {
			held.VMs = append(held.VMs, vm)
		}
	}
	for _, volume := range world.Volumes() {
		seed := slices.ContainsFunc(machines, func(m sandbox.Machine) bool {
			return strings.Contains(string(volume.ID), strings.TrimPrefix(m.ProviderID, "proxmox://"))
		})
		if ids[volume.VMID] || seed {
			held.Volumes = append(held.Volumes, volume)
		}
	}
	return held
}

// request is what the manager's log says of a request to Proxmox VE.
type request struct {
	Method string            `json:"method"`
	Path   string            `json:"path"`
	Params map[string]string `json:"params"`
	File   struct {
		Name string `json:"name"`
	} `json:"file"`
}

// requests are those that a sandbox's manager sent to Proxmox VE.
func requests(t *testing.T, s *sandbox.Sandbox) []request {
	t.Helper()
	file, err := os.Open(s.RequestLog())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	must(t, err)
	defer func() { _ = file.Close() }()
	var records []request
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var record request
		if json.Unmarshal(lines.Bytes(), &record) == nil { // the last line may still be written
			records = append(records, record)
		}
	}
	return records
}

// writes are the requests, from one on, that are not reads.
func writes(t *testing.T, s *sandbox.Sandbox, from int) []request {
	t.Helper()
	return slices.DeleteFunc(requests(t, s)[from:], func(r request) bool { return r.Method == http.MethodGet })
}

// about are the requests that name a VM of the machines, by number or identity.
func about(t *testing.T, records []request, machines ...sandbox.Machine) []string {
	t.Helper()
	var named []string
	for _, record := range records {
		text, err := json.Marshal(record)
		must(t, err)
		for _, machine := range machines {
			uuid := strings.TrimPrefix(machine.ProviderID, "proxmox://")
			if strings.Contains(record.Path+"/", fmt.Sprintf("/qemu/%d/", machine.VMID)) || strings.Contains(string(text), uuid) {
				named = append(named, record.Method+" "+record.Path)
			}
		}
	}
	return named
}

// conditionOf is the reason of a ProxmoxMachine's condition.
func conditionOf(ctx context.Context, scenario sandbox.Scenario, name, kind string) (string, error) {
	conditions, err := scenario.Sandbox.Conditions(ctx, scenario.Cluster, name)
	if condition := meta.FindStatusCondition(conditions, kind); condition != nil {
		return condition.Reason, err
	}
	return "", err
}

// waitFor waits until the check has no error.
func waitFor(t *testing.T, what string, check func() error) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-deadline.C:
			t.Fatalf("waited %s until %s: %v", patience, what, err)
		case <-t.Context().Done():
			t.Fatalf("waited until %s: %v", what, err)
		case <-tick.C:
		}
	}
}
