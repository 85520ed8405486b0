package integration_test

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
	"github.com/capve/cluster-api-provider-proxmox/test/pveschema"
)

// TestRequestBudget counts what an undisturbed machine costs Proxmox VE, but for the polls that all machines share, and
// checks each request against Proxmox VE's own schema.
func TestRequestBudget(t *testing.T) {
	t.Parallel()
	for _, version := range []pvesim.Version{pvesim.V84, pvesim.V92} {
		t.Run(string(version), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, pvesim.WithVersion(version))
			b.provisioned(b.cluster("c1"))
			machine := b.machine("c1", "m1", func(m *v1beta1.ProxmoxMachine) { m.Spec.Pool = "capi" })
			b.running(machine)
			b.polled(2)
			all := own(b.requests())
			seenRunning := slices.IndexFunc(all, func(request string) bool { return strings.HasSuffix(request, "/status/current") }) + 1
			b.Expect(seenRunning).To(Equal(10), "to Ready: %s", strings.Join(all, "\n"))
			b.Expect(len(all)).To(BeNumerically("<=", 12), "until the inventory shows it: %s", strings.Join(all, "\n"))

			sent := len(b.requests())
			b.hasNode(machine)
			b.says(machine, v1beta1.BootstrapSeedRemovedCondition, metav1.ConditionTrue, "Removed")
			removal := b.requests()[sent:]
			b.Expect(own(removal)).To(HaveLen(2), "to remove the seed: %s", strings.Join(own(removal), "\n"))

			b.Expect(b.client.Delete(b.ctx, &clusterv1.Machine{ObjectMeta: b.meta("m1")})).To(Succeed())
			sent = len(b.requests())
			b.delete(machine)
			deletion := b.requests()[sent:]
			b.Expect(len(own(deletion))).To(BeNumerically("<=", 11), "to delete: %s", strings.Join(own(deletion), "\n"))
			b.fitSchema(string(version))
		})
	}
}

// polled waits until the inventory was polled that often.
func (b *bench) polled(times int) {
	b.t.Helper()
	count := func() (polls int) {
		for _, request := range b.requests() {
			if request.Path == "/cluster/resources" {
				polls++
			}
		}
		return polls
	}
	before := count()
	b.Eventually(count, patience, poll).Should(BeNumerically(">=", before+times))
}

// fitSchema checks every request so far.
func (b *bench) fitSchema(version string) {
	b.t.Helper()
	schema, err := pveschema.LoadSchema("../../../shared/pve-api", version)
	if errors.Is(err, fs.ErrNotExist) {
		b.t.Skipf("the API schema of Proxmox VE is not here: %v", err)
	}
	b.Expect(err).NotTo(HaveOccurred())
	for _, request := range b.requests() {
		b.Expect(schema.Validate(request.Method, request.Path, parameters(request))).To(Succeed())
	}
}

// parameters are those of a request as the schema knows them: an upload's file is its name.
func parameters(request pve.RequestRecord) map[string]string {
	result := map[string]string{}
	for name, value := range request.Params {
		result[name] = value
	}
	if request.File != nil {
		result["filename"] = request.File.Name
	}
	return result
}
