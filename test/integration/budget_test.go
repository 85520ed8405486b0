package integration_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// sharedEndpoints are asked for all machines of a Proxmox VE cluster together: the inventory every 5 s, the tasks every
// second while one runs, once in 5 minutes the config of a template, for its storage, and the bridges of a host, and the root CA
// once in 10.
func sharedEndpoints() []string {
	return []string{"GET /cluster/resources", "GET /cluster/tasks", templateConfig, hostBridges, "GET /nodes/{node}/certificates/info"}
}

const (
	templateConfig = "GET /nodes/{node}/qemu/{template}/config"
	hostBridges    = "GET /nodes/{node}/network"
)

// endpoint names what a request asks, whatever it asks it of. The templates of these tests are numbered from 9000.
func endpoint(record pve.RequestRecord) string {
	path := record.Path
	for _, name := range []struct{ pattern, name string }{
		{`^/nodes/[^/]+`, "/nodes/{node}"},
		{`/qemu/9\d{3}/config$`, "/qemu/{template}/config"},
		{`/qemu/\d+`, "/qemu/{vmid}"},
		{`/storage/[^/]+`, "/storage/{storage}"},
		{`/content/.+`, "/content/{volume}"},
	} {
		path = regexp.MustCompile(name.pattern).ReplaceAllString(path, name.name)
	}
	return record.Method + " " + path
}

// asked counts the requests of an endpoint.
func asked(records []pve.RequestRecord, name string) (times int) {
	for _, record := range records {
		if endpoint(record) == name {
			times++
		}
	}
	return times
}

// budget is the table of a machine's requests by endpoint, and of those that it shares.
func budget(title string, records []pve.RequestRecord) string {
	counts, total := map[string]int{}, 0
	for _, record := range records {
		counts[endpoint(record)]++
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s\n", title)
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if !slices.Contains(sharedEndpoints(), name) {
			fmt.Fprintf(&out, "  %4d  %s\n", counts[name], name)
			total += counts[name]
		}
	}
	fmt.Fprintf(&out, "  %4d  in all; and meanwhile, for all machines together:\n", total)
	for _, name := range sharedEndpoints() {
		fmt.Fprintf(&out, "  %4d  %s\n", counts[name], name)
	}
	return out.String()
}

// TestRequestBudget counts what an undisturbed machine costs Proxmox VE, but for what all machines share. `make bench` prints
// the table.
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
			all := b.requests()
			seenRunning := slices.IndexFunc(all, func(r pve.RequestRecord) bool { return strings.HasSuffix(r.Path, "/status/current") }) + 1
			toReady := budget(fmt.Sprintf("requests to Proxmox VE %s for one machine, from Machine to Ready:", version), all[:seenRunning])
			t.Log("\n" + toReady)
			b.Expect(own(all[:seenRunning])).To(HaveLen(10), toReady)
			b.Expect(len(own(all))).To(BeNumerically("<=", 12), "until the inventory shows it: %s", strings.Join(own(all), "\n"))
			b.Expect(asked(all, templateConfig)).To(Equal(1), "for all machines of the template")
			b.Expect(asked(all, hostBridges)).To(Equal(1), "for all machines of the host")

			sent := len(b.requests())
			b.hasNode(machine)
			b.says(machine, v1beta1.BootstrapSeedRemovedCondition, metav1.ConditionTrue, "Removed")
			removal := b.requests()[sent:]
			b.Expect(own(removal)).To(HaveLen(2), "to remove the seed: %s", strings.Join(own(removal), "\n"))

			b.Expect(b.client.Delete(b.ctx, &clusterv1.Machine{ObjectMeta: b.meta("m1")})).To(Succeed())
			sent = len(b.requests())
			b.delete(machine)
			deletion := b.requests()[sent:]
			// 11 as a rule; the claim's end may wake the machine once or twice more, which then looks again.
			b.Expect(len(own(deletion))).To(BeNumerically("<=", 15), "to delete: %s", strings.Join(own(deletion), "\n"))
		})
	}
}

// polled waits until the inventory was polled that often.
func (b *bench) polled(times int) {
	b.t.Helper()
	polls := func() int { return asked(b.requests(), "GET /cluster/resources") }
	before := polls()
	b.Eventually(polls, patience, poll).Should(BeNumerically(">=", before+times))
}
