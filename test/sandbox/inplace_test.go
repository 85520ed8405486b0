package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
	"github.com/capve/cluster-api-provider-proxmox/test/sandbox"
)

// TestUpdatesInPlace has Cluster API's own controllers ask our runtime extension, when the template of a MachineDeployment and that
// of a KubeadmControlPlane change, and carry out what it says.
func TestUpdatesInPlace(t *testing.T) {
	t.Parallel()
	s := start(t)
	scenario := newScenario(t, s, "inplace", "10.20.8")
	scenario.Cluster.ControlPlaneReplicas, scenario.Cluster.WorkerReplicas = 3, 2
	must(t, scenario.Up(t.Context()))
	r := rollout{t: t, scenario: scenario}
	r.allowsUnavailability()

	r.settled()
	workers, controlPlane := r.machines(worker), r.machines(controlPlaneMachine)

	live := map[string]any{"tags": []any{"blue"}, "cpu": map[string]any{"sockets": int64(1), "cores": int64(2), "units": int64(300)}}
	r.template("workers", "workers-live", live)
	r.patch(&clusterv1.MachineDeployment{}, "workers", `{"spec": {"template": {"spec": {"infrastructureRef": {"name": "inplace-workers-live"}}}}}`)
	r.follows(workers, "300", "blue")

	r.template("control-plane", "control-plane-live", live)
	r.patch(&controlplanev1.KubeadmControlPlane{}, "", `{"spec": {"machineTemplate": {"spec": {"infrastructureRef": {"name": "inplace-control-plane-live"}}}}}`)
	r.follows(controlPlane, "300", "blue")
	r.follows(workers, "300", "blue")

	r.template("workers-live", "workers-other", map[string]any{"hardware": map[string]any{"machineType": "q35"}})
	r.patch(&clusterv1.MachineDeployment{}, "workers", `{"spec": {"template": {"spec": {"infrastructureRef": {"name": "inplace-workers-other"}}}}}`)
	r.replaces(workers, "q35")
	r.follows(controlPlane, "300", "blue")

	must(t, scenario.DeleteCluster(t.Context()))
	checkNothingLeft(t, scenario)
}

// rollout is a change of a cluster's machines.
type rollout struct {
	t        *testing.T
	scenario sandbox.Scenario
}

func worker(m sandbox.Machine) bool { return !m.ControlPlane }

func controlPlaneMachine(m sandbox.Machine) bool { return m.ControlPlane }

// allowsUnavailability has machines be updated while there is no more than what is asked for: otherwise Cluster API makes one more
// first, and deletes one in the end.
func (r rollout) allowsUnavailability() {
	r.t.Helper()
	r.patch(&clusterv1.MachineDeployment{}, "workers", `{"spec": {"rollout": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}}}}`)
	r.patch(&controlplanev1.KubeadmControlPlane{}, "", `{"spec": {"rollout": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0}}}}}`)
}

// patch changes an object of the cluster.
func (r rollout) patch(object client.Object, name, text string) {
	r.t.Helper()
	object.SetNamespace(r.scenario.Cluster.Namespace)
	object.SetName(strings.TrimSuffix(r.scenario.Cluster.Name+"-"+name, "-"))
	must(r.t, r.scenario.Sandbox.Client().Patch(r.t.Context(), object, client.RawPatch(types.MergePatchType, []byte(text))))
}

// template makes a ProxmoxMachineTemplate that differs from another.
func (r rollout) template(from, name string, change map[string]any) {
	r.t.Helper()
	var old unstructured.Unstructured
	old.SetAPIVersion(infrastructureVersion)
	old.SetKind("ProxmoxMachineTemplate")
	key := client.ObjectKey{Namespace: r.scenario.Cluster.Namespace, Name: r.scenario.Cluster.Name + "-" + from}
	must(r.t, r.scenario.Sandbox.Client().Get(r.t.Context(), key, &old))
	spec, _, err := unstructured.NestedMap(old.Object, "spec", "template", "spec")
	must(r.t, err)
	maps.Copy(spec, change)
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": map[string]any{"spec": spec}}}}
	object.SetAPIVersion(infrastructureVersion)
	object.SetKind("ProxmoxMachineTemplate")
	object.SetNamespace(key.Namespace)
	object.SetName(r.scenario.Cluster.Name + "-" + name)
	must(r.t, r.scenario.Sandbox.Client().Create(r.t.Context(), object))
}

// settled waits until all machines are as is asked, and available.
func (r rollout) settled() {
	r.t.Helper()
	until(r.t, "all machines are as is asked", func(ctx context.Context) error {
		name, reader := r.scenario.Cluster.Name, r.scenario.Sandbox.Client()
		for name, object := range map[string]client.Object{name + "-workers": &clusterv1.MachineDeployment{}, name: &controlplanev1.KubeadmControlPlane{}} {
			if err := reader.Get(ctx, client.ObjectKey{Namespace: r.scenario.Cluster.Namespace, Name: name}, object); err != nil {
				return err
			}
			if got := replicasOf(object); got.observed < object.GetGeneration() || got.upToDate != got.wanted || got.available != got.wanted || got.all != got.wanted {
				return fmt.Errorf("%s: %+v; machines: %v", name, got, r.all())
			}
		}
		return nil
	})
}

// replicas are what is asked for and what there is; -1 is not known.
type replicas struct {
	observed                         int64
	wanted, all, upToDate, available int32
}

func replicasOf(object client.Object) replicas {
	number := func(n *int32) int32 { return ptr.Deref(n, -1) }
	switch o := object.(type) {
	case *clusterv1.MachineDeployment:
		return replicas{
			o.Status.ObservedGeneration, number(o.Spec.Replicas), number(o.Status.Replicas), number(o.Status.UpToDateReplicas), number(o.Status.AvailableReplicas),
		}
	case *controlplanev1.KubeadmControlPlane:
		return replicas{
			o.Status.ObservedGeneration, number(o.Spec.Replicas), number(o.Status.Replicas), number(o.Status.UpToDateReplicas), number(o.Status.AvailableReplicas),
		}
	}
	return replicas{}
}

func (r rollout) all() []sandbox.Machine {
	r.t.Helper()
	machines, err := r.scenario.Sandbox.Machines(r.t.Context(), r.scenario.Cluster)
	must(r.t, err)
	return machines
}

// machines are the cluster's machines of a kind, by name.
func (r rollout) machines(kind func(sandbox.Machine) bool) []sandbox.Machine {
	r.t.Helper()
	machines := slices.DeleteFunc(r.all(), func(m sandbox.Machine) bool { return !kind(m) })
	slices.SortFunc(machines, func(a, b sandbox.Machine) int { return strings.Compare(a.Name, b.Name) })
	return machines
}

// follows waits until the VMs of machines have changed, and checks that they are the ones that they were, and run on.
func (r rollout) follows(before []sandbox.Machine, units, tag string) {
	r.t.Helper()
	until(r.t, "the VMs follow", func(context.Context) error {
		r.checkSame(before)
		var errs []error
		for _, machine := range before {
			vm := r.vm(machine)
			if !slices.Contains(strings.Split(vm.Config["tags"], ";"), tag) {
				errs = append(errs, fmt.Errorf("VM %d has the tags %q", vm.VMID, vm.Config["tags"]))
			}
			errs = append(errs, differs(fmt.Sprintf("cpuunits of VM %d", vm.VMID), vm.Config["cpuunits"], units))
		}
		return errors.Join(errs...)
	})
	r.settled()
	r.checkSame(before)
	for _, machine := range before {
		starts := 0
		for _, request := range r.scenario.Sandbox.World().Requests() {
			if strings.HasSuffix(request.Path, fmt.Sprintf("/qemu/%d/status/start", machine.VMID)) {
				starts++
			}
		}
		uuid := machine.ProviderID[strings.LastIndex(machine.ProviderID, "/")+1:]
		if vm := r.vm(machine); vm.State != "running" || vm.Config["smbios1"] != "uuid="+uuid || starts != 1 {
			r.t.Errorf("VM %d of %s is %s, was started %d times, and has smbios1 %q", vm.VMID, machine.Name, vm.State, starts, vm.Config["smbios1"])
		}
	}
}

// checkSame checks that machines are the ones that they were.
func (r rollout) checkSame(before []sandbox.Machine) {
	r.t.Helper()
	key := func(m sandbox.Machine) string { return fmt.Sprintf("%s: VM %d, %s", m.Name, m.VMID, m.ProviderID) }
	var was, is []string
	for _, machine := range before {
		was = append(was, key(machine))
	}
	for _, machine := range r.machines(func(m sandbox.Machine) bool { return m.ControlPlane == before[0].ControlPlane }) {
		is = append(is, key(machine))
	}
	if diff := cmp.Diff(was, is); diff != "" {
		r.t.Fatalf("machines were replaced (-were +are):\n%s", diff)
	}
}

// replaces waits until there are as many other machines, and checks that theirs are other VMs.
func (r rollout) replaces(before []sandbox.Machine, machineType string) {
	r.t.Helper()
	until(r.t, "the machines are replaced", func(context.Context) error {
		for _, machine := range r.machines(worker) {
			if slices.ContainsFunc(before, func(old sandbox.Machine) bool {
				return old.Name == machine.Name || old.ProviderID == machine.ProviderID
			}) {
				return fmt.Errorf("%s is still there", machine.Name)
			}
		}
		return nil
	})
	r.settled()
	for _, machine := range r.machines(worker) {
		if vm := r.vm(machine); vm.Config["machine"] != machineType || vm.Config["cpuunits"] != "300" {
			r.t.Errorf("VM %d of %s is not as asked: %v", machine.VMID, machine.Name, vm.Config)
		}
	}
}

func (r rollout) vm(machine sandbox.Machine) pvesim.VMSpec {
	r.t.Helper()
	for _, vm := range r.scenario.Sandbox.World().State().VMs {
		if vm.VMID == proxmox.VMID(machine.VMID) {
			return vm
		}
	}
	r.t.Fatalf("there is no VM %d", machine.VMID)
	return pvesim.VMSpec{}
}
