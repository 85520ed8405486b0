package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
)

// listed is a machine whose VM the inventory lists as it was made, with changes.
func listed(changes ...func(*plan.Listing)) plan.Machine {
	m := machine(recorded)
	m.VM.Listing = &plan.Listing{
		Running: true, Name: "worker-1", Tags: []string{"base", vmconfig.IdentityTag(uuid)}, CPUs: 2, Memory: 4 * gib, HostCPUs: 16, Pool: "capi",
	}
	for _, change := range changes {
		change(m.VM.Listing)
	}
	return m
}

func TestWhatSomebodyChangedOfAVMIsTold(t *testing.T) {
	cases := []struct {
		name    string
		machine plan.Machine
		want    string
	}{
		{"nothing", listed(), ""},
		{"its name", listed(func(l *plan.Listing) { l.Name = "db" }), "name: worker-1 → db"},
		{"its cores", listed(func(l *plan.Listing) { l.CPUs = 1 }), "cpu: 2 CPUs → 1 CPU"},
		{"its memory", listed(func(l *plan.Listing) { l.Memory = 8 * gib }), "memory: 4096 MiB → 8192 MiB"},
		{"its tag", listed(func(l *plan.Listing) { l.Tags = l.Tags[:1] }), "tags: capve-" + string(uuid) + " → missing"},
		{"other tags are other people's", listed(func(l *plan.Listing) { l.Tags = append(l.Tags, "backup") }), ""},
		{"a host shows no more CPUs than it has", listed(func(l *plan.Listing) { l.CPUs, l.HostCPUs = 1, 1 }), ""},
		{"its pool", listed(func(l *plan.Listing) { l.Pool = "" }), "pool: capi → none"},
		{"all at once", listed(func(l *plan.Listing) { l.Name, l.CPUs = "db", 4 }), "name: worker-1 → db; cpu: 2 CPUs → 4 CPUs"},
		{"it became a template", listed(func(l *plan.Listing) { l.Running, l.Template = false, true }), "template: no → yes"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			differences, known := plan.Drift(c.machine)
			if diff := cmp.Diff(c.want, differences.String()); diff != "" || !known {
				t.Errorf("known: %t, differences (-want +got):\n%s", known, diff)
			}
		})
	}
}

func TestOfSomeVMsNothingIsToldOfChanges(t *testing.T) {
	never := listed(func(l *plan.Listing) { l.Name = "db" })
	never.Spec.ProviderID = ""
	unlisted, another, stopped := listed(), listed(), listed()
	unlisted.VM.Listing, another.VM.Presence, stopped.VM.Power = nil, plan.PresenceForeign, plan.PowerStopped
	for name, m := range map[string]plan.Machine{
		"of one that never ran": never, "of one that is not listed": unlisted, "of another's": another, "of one that was just stopped": stopped,
		"of one that is listed as before its start": listed(func(l *plan.Listing) { l.Running = false }),
	} {
		if differences, known := plan.Drift(m); known || differences != nil {
			t.Errorf("%s: %s", name, differences)
		}
	}
}

func TestATemplateIsNotStarted(t *testing.T) {
	became := listed(func(l *plan.Listing) { l.Running, l.Template = false, true })
	became.VM.Power = plan.PowerStopped
	want := "stalled | Drifted: VM 101 on pve1 was turned into a template, which cannot be started: delete the Machine, or let a MachineHealthCheck replace it"
	if diff := cmp.Diff(want, told(plan.MachineStep(became))); diff != "" {
		t.Errorf("decision (-want +got):\n%s", diff)
	}
}
