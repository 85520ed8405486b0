package integration_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// readyOnceItRuns waits until a machine is ready; its VM must run, as asked, from the first moment that it says so.
func (b *bench) readyOnceItRuns(machine *v1beta1.ProxmoxMachine) {
	b.t.Helper()
	b.Eventually(func(g Gomega) {
		b.get(g, machine)
		g.Expect(condition(machine, clusterv1.ReadyCondition)).To(Equal(metav1.ConditionTrue), "%s", pretty(machine.Status))
	}, patience, poll/5).Should(Succeed())
	vm := b.vmOf(machine)
	b.Expect(vm.Status).To(Equal("running"), "Ready while its VM is %s", vm.Status)
	for key, part := range map[string]string{"cores": "2", "memory": "4096", "scsi0": "size=20G", "name": machine.Name} {
		b.Expect(vm.Config[key]).To(ContainSubstring(part), key)
	}
	b.Expect(vmconfig.HasSeed(vmconfig.Config(vm.Config))).To(BeTrue(), "Ready without its bootstrap data: %s", pretty(vm.Config))
	b.running(machine)
}

// livesThrough takes a machine through its life with faults, each of which has to strike.
func livesThrough(t *testing.T, faults []pvesim.Fault, options ...pvesim.Option) {
	b := newBench(t, options...)
	b.provisioned(b.cluster("c1"))
	b.faults(faults...)
	machine := b.machine("c1", "m1")
	b.readyOnceItRuns(machine)
	b.livesOnce(machine)
	for _, fault := range b.pve.World.Faults() {
		b.Expect(fault.Struck).To(BeNumerically(">", 0), "the fault did not strike: %s", pretty(fault))
	}
}

func (b *bench) faults(faults ...pvesim.Fault) {
	b.t.Helper()
	for _, fault := range faults {
		b.add(b.pve.World.AddFault(fault))
	}
}

// sent waits until Proxmox VE was asked for something, in whatever way it answered.
func (b *bench) sent(method, suffix string) {
	b.t.Helper()
	b.Eventually(func() bool {
		return slices.ContainsFunc(b.pve.World.Requests(), func(r pvesim.Request) bool {
			return r.Method == method && strings.HasSuffix(r.Path, suffix)
		})
	}, patience, poll/10).Should(BeTrue(), "%s …%s", method, suffix)
}

// configAlreadyEqual has a template that is as asked, and loses the answer to what else was to be configured.
func configAlreadyEqual(t *testing.T) {
	equal := pvesim.TemplateSpec{Name: "ubuntu-2404-k8s", Cores: 2, Memory: 4096, Disk: 20}
	livesThrough(t, []pvesim.Fault{{Method: http.MethodPut, Path: pathConfig, Nth: 1, When: pvesim.DropReply}}, pvesim.WithTemplates(equal))
}

func oneCloneError(t *testing.T) {
	livesThrough(t, []pvesim.Fault{{Method: http.MethodPost, Path: pathClone, Nth: 1, Status: 500, Reason: "unable to clone: got timeout"}})
}

func oneStartError(t *testing.T) {
	livesThrough(t, []pvesim.Fault{
		{Method: http.MethodPost, Path: pathStart, Nth: 1, Status: 500, Reason: "got timeout"},
		{Method: http.MethodPost, Path: pathStart, Nth: 2, TaskError: "start failed: QEMU exited with code 1"},
	})
}

// failedCloneTask has the task of the clone fail before it did anything, and after it did all.
func failedCloneTask(t *testing.T) {
	const locked = "clone failed: can't lock file '/var/lock/pve-manager/pve-storage-local-lvm' - got timeout"
	for _, when := range []pvesim.When{pvesim.Before, pvesim.AfterEffect} {
		t.Run(string(when), func(t *testing.T) {
			t.Parallel()
			livesThrough(t, []pvesim.Fault{{Method: http.MethodPost, Path: pathClone, Nth: 1, When: when, TaskError: locked}})
		})
	}
}

// failedTasks has the tasks of those steps fail once that the tests of other defects leave alone.
func failedTasks(t *testing.T) {
	const failed = "unexpected status"
	for name, faults := range map[string][]pvesim.Fault{
		"resize and stop": {
			{Method: http.MethodPut, Path: pathResize, Nth: 1, TaskError: failed},
			{Method: http.MethodPost, Path: pathStop, Nth: 1, TaskError: failed},
		},
		"delete the seed": {{Method: http.MethodDelete, Path: pathContent, Nth: 1, TaskError: failed}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			livesThrough(t, faults)
		})
	}
}

func failedUpload(t *testing.T) {
	livesThrough(t, []pvesim.Fault{{Method: http.MethodPost, Path: pathUpload, Nth: 1, TaskError: "import failed: No space left on device"}})
}

// rejectedPatch has the API server reject what a machine's status says of its tasks, over a restart, until its VM runs.
func rejectedPatch(t *testing.T) {
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	allow := b.rejectStatus("!has(object.status) || !has(object.status.taskID)")
	machine := b.machine("c1", "m1")
	b.sent(http.MethodPost, "/clone")
	b.stop()
	b.startControllers()
	b.Eventually(func(g Gomega) {
		g.Expect(b.pveVMs()).NotTo(BeEmpty())
		g.Expect(b.pveVMs()[0].Status).To(Equal("running"))
	}, patience, poll).Should(Succeed())
	b.Expect(b.pveVMs()).To(HaveLen(1))
	b.get(b, machine)
	b.Expect(machine.Status.TaskID).To(BeEmpty(), "no task was accepted")
	allow()
	b.running(machine)
	b.livesOnce(machine)
}

// rejectStatus has the API server reject each status of a ProxmoxMachine of the namespace for which an expression is false, as
// it must be of one that names a task, until it is called off.
func (b *bench) rejectStatus(expression string) (allow func()) {
	b.t.Helper()
	name := b.namespace + "-status"
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": b.namespace}},
				ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Update},
					Rule: admissionv1.Rule{
						APIGroups: []string{v1beta1.GroupVersion.Group}, APIVersions: []string{"*"}, Resources: []string{"proxmoxmachines/status"},
					},
				}}},
			},
			Validations: []admissionv1.Validation{{Expression: expression, Message: "not today"}},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
	b.create(policy)
	b.create(binding)
	probe := &v1beta1.ProxmoxMachine{ObjectMeta: b.meta("probe"), Spec: machineSpec()}
	b.create(probe)
	b.Eventually(func() error {
		return b.client.Status().Patch(b.ctx, probe, client.RawPatch("application/merge-patch+json", []byte(`{"status":{"taskID":"x"}}`)))
	}, patience, poll).Should(MatchError(ContainSubstring("not today")))
	b.Expect(b.client.Delete(b.ctx, probe)).To(Succeed())
	return func() {
		for _, object := range []client.Object{binding, policy} {
			b.Expect(b.client.Delete(b.ctx, object)).To(Succeed())
		}
	}
}

// restartAfterLostReply loses the answer to the clone together with the manager.
func restartAfterLostReply(t *testing.T) {
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	b.faults(pvesim.Fault{Method: http.MethodPost, Path: pathClone, Nth: 1, When: pvesim.DropReply})
	machine := b.machine("c1", "m1")
	b.sent(http.MethodPost, "/clone")
	b.stop()
	b.startControllers()
	b.readyOnceItRuns(machine)
	b.livesOnce(machine)
}

// guestWithoutAgent has guests that answer nothing, not even a shutdown.
func guestWithoutAgent(t *testing.T) {
	b := newBench(t, pvesim.WithGuests(pvesim.Deaf))
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1")
	before := time.Now()
	b.readyOnceItRuns(machine)
	b.livesOnce(machine)
	t.Logf("from Machine to gone: %s", time.Since(before))
	for _, request := range b.requests() {
		b.Expect(request.Path).NotTo(ContainSubstring("/agent"))
	}
}

// neverJoined deletes a machine whose Node never came, by new controllers.
func neverJoined(t *testing.T) {
	b := newBench(t)
	b.provisioned(b.cluster("c1"))
	machine := b.machine("c1", "m1")
	b.readyOnceItRuns(machine)
	b.stop()
	b.Expect(b.client.Delete(b.ctx, machine)).To(Succeed())
	b.startControllers()
	b.gone(machine)
	b.leavesNothing()
}

// tagIsWhole compares marks that are a part of one another.
func tagIsWhole(t *testing.T) {
	const uuid = proxmox.SMBIOSUUID("966d3531-69bb-4cf7-889f-f8f652492abb")
	tag, marker := vmconfig.IdentityTag(uuid), vmconfig.Marker(uuid)
	for name, config := range map[string]vmconfig.Config{
		"no mark":                {"name": "m1"},
		"tag with more behind":   {"tags": tag + "x"},
		"tag with more in front": {"tags": "x" + tag},
		"UUID of another":        {"smbios1": "uuid=966d3531-69bb-4cf7-889f-f8f652492abc"},
		"notes of another":       {"description": marker + "c"},
	} {
		if config.BelongsTo(uuid) {
			t.Errorf("%s: it is ours: %v", name, config)
		}
		if config.BelongsTo("") {
			t.Errorf("%s: it belongs to nobody's UUID: %v", name, config)
		}
	}
}
