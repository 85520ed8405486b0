package integration_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
)

// withHA is a valid machine with high availability.
func (d *desk) withHA() client.Object {
	machine := d.validMachine()
	machine.Spec.HighAvailability = v1beta1.HighAvailability{
		Enabled: ptr.To(true), MaxRestart: ptr.To[int32](2), MaxRelocate: ptr.To[int32](0), Failback: ptr.To(true),
		Rules: []v1beta1.HighAvailabilityRule{
			{Name: "apart", ResourceAffinity: "negative"},
			{Name: "near", NodeAffinity: v1beta1.NodeAffinity{Nodes: []v1beta1.AffinityNode{{Name: "pve1", Priority: ptr.To[int32](3)}}}},
			{Name: "theirs"},
		},
	}
	return machine
}

func TestHighAvailabilityRefusesWhatCannotBe(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	const ha, rule, node = "spec.highAvailability.", "spec.highAvailability.rules.0.", "spec.highAvailability.rules.1.nodeAffinity.nodes."
	rows := []refusal{
		{"empty", one("spec.highAvailability", map[string]any{}), "highAvailability in body should have at least 1 properties"},
		{"without saying whether", []edit{without(ha + "enabled")}, "enabled: Required value"},
		{"a group and rules", one(ha+"group", "g1"), "group is for Proxmox VE 8; rules and failback are for Proxmox VE 9"},
		{"a group and failback", []edit{without(ha + "rules"), set(ha+"group", "g1")}, "group is for Proxmox VE 8; rules and failback are for Proxmox VE 9"},
		{"101 restarts", one(ha+"maxRestart", int64(101)), "maxRestart in body should be less than or equal to 100"},
		{"-1 relocations", one(ha+"maxRelocate", int64(-1)), "maxRelocate in body should be greater than or equal to 0"},
		{"no rules", one(ha+"rules", []any{}), "rules in body should have at least 1 items"},
		{"9 rules", one(ha+"rules", many(9, func(i int) any { return map[string]any{"name": fmt.Sprintf("r%d", i)} })), "must have at most 8 items"},
		{"a rule twice", one(rule+"name", "near"), "Duplicate value"},
		{"a rule without a name", []edit{without(rule + "name")}, "name: Required value"},
		{"a rule that is both", one("spec.highAvailability.rules.1.resourceAffinity", "positive"), "a rule has nodeAffinity or resourceAffinity, not both"},
		{"unknown affinity", one(rule+"resourceAffinity", "apart"), `Unsupported value: "apart"`},
		{"no nodes", one("spec.highAvailability.rules.1.nodeAffinity", map[string]any{"nodes": []any{}}), "nodes in body should have at least 1 items"},
		{"a node twice", one(node+"1", map[string]any{"name": "pve1"}), "Duplicate value"},
		{"priority below 0", one(node+"0.priority", int64(-1)), "priority in body should be greater than or equal to 0"},
		{"a node with a dot", one(node+"0.name", "pve1.example.com"), "name in body should match"},
	}
	for _, name := range hostile {
		rows = append(rows, refusal{"rule " + name, one(rule+"name", name), "name in body should"}, refusal{"node " + name, one(node+"0.name", name), "name in body should"})
	}
	d.refuses(d.withHA, rows)
}

func TestHighAvailabilityChangesInPlace(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	machine := d.withHA()
	d.Expect(d.client.Create(t.Context(), machine)).To(Succeed())
	for _, change := range [][]edit{
		one("spec.highAvailability.enabled", false), one("spec.highAvailability.maxRestart", int64(5)),
		{without("spec.highAvailability")},
		{without("spec.highAvailability.rules"), without("spec.highAvailability.failback"), set("spec.highAvailability.group", "g1")},
	} {
		d.Expect(d.client.Update(t.Context(), document(t, d.scheme, machine, change...), client.DryRunAll)).To(Succeed(), "%s", change[0].path)
	}
}
