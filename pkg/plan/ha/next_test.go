package ha_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/ha"
)

const sid = "vm:101"

// asked asks for high availability, and for what the changes say.
func asked(changes ...func(*v1beta1.HighAvailability)) v1beta1.HighAvailability {
	spec := v1beta1.HighAvailability{Enabled: ptr.To(true)}
	for _, change := range changes {
		change(&spec)
	}
	return spec
}

func restarts(number int32) func(*v1beta1.HighAvailability) {
	return func(spec *v1beta1.HighAvailability) { spec.MaxRestart = &number }
}

func rules(rules ...v1beta1.HighAvailabilityRule) func(*v1beta1.HighAvailability) {
	return func(spec *v1beta1.HighAvailability) { spec.Rules = rules }
}

func apart(name string) v1beta1.HighAvailabilityRule {
	return v1beta1.HighAvailabilityRule{Name: name, ResourceAffinity: "negative"}
}

func near(name string) v1beta1.HighAvailabilityRule {
	nodes := []v1beta1.AffinityNode{{Name: "pve1", Priority: ptr.To[int32](2)}, {Name: "pve2"}}
	return v1beta1.HighAvailabilityRule{Name: name, NodeAffinity: v1beta1.NodeAffinity{Nodes: nodes, Strict: ptr.To(true)}}
}

func TestTheNextEdit(t *testing.T) {
	others := ha.Rule{"type": "resource-affinity", "affinity": "negative", "resources": "vm:102, vm:103"}
	one := ha.Rule{"type": "resource-affinity", "affinity": "negative", "resources": "vm:102", "disable": "1"}
	both := ha.Rule{"type": "resource-affinity", "affinity": "negative", "resources": "vm:102,vm:101"}
	tests := []struct {
		name    string
		wanted  ha.Wanted
		present ha.State
		want    ha.Edit
	}{
		{name: "nothing asked, nothing ours", present: ha.State{Resource: map[string]string{"state": "started"}}},
		{name: "false is nothing asked", wanted: ha.Wanted{Spec: v1beta1.HighAvailability{Enabled: ptr.To(false)}}},
		{
			name: "a resource of a VM that runs", wanted: ha.Wanted{Spec: asked(restarts(3)), Comment: "c"},
			want: ha.AddResource{Options: map[string]string{"state": "started", "max_restart": "3", "comment": "c"}},
		},
		{
			name: "a resource of a VM that is off", wanted: ha.Wanted{Spec: asked(), Off: true},
			want: ha.AddResource{Options: map[string]string{"state": "stopped"}},
		},
		{
			name: "the state is not touched", wanted: ha.Wanted{Spec: asked()}, present: ha.State{Resource: map[string]string{"state": "disabled", "comment": "theirs"}},
		},
		{
			name: "what is usual need not be set", wanted: ha.Wanted{Spec: asked(restarts(1))}, present: ha.State{Resource: map[string]string{}},
		},
		{
			name: "an option changes", wanted: ha.Wanted{Spec: asked(restarts(0))},
			present: ha.State{Resource: map[string]string{"max_restart": "1"}, ResourceDigest: "d"},
			want:    ha.SetOptions{Set: map[string]string{"max_restart": "0"}, Digest: "d"},
		},
		{
			name: "an option that is not asked for any more", wanted: ha.Wanted{Spec: asked(), Record: &ha.Record{Options: map[string]string{"max_restart": "", "group": "old"}}},
			present: ha.State{Resource: map[string]string{"max_restart": "4", "group": "new"}, ResourceDigest: "d"},
			want:    ha.SetOptions{Set: map[string]string{"group": "old"}, Delete: []string{"max_restart"}, Digest: "d"},
		},
		{
			name: "what we made goes", wanted: ha.Wanted{Record: &ha.Record{}}, present: ha.State{Resource: map[string]string{"state": "started"}},
			want: ha.RemoveResource{},
		},
		{
			name: "what was adopted is given back", wanted: ha.Wanted{Record: &ha.Record{Adopted: true, Options: map[string]string{"max_restart": "1"}}},
			present: ha.State{Resource: map[string]string{"max_restart": "4"}, ResourceDigest: "d"},
			want:    ha.SetOptions{Set: map[string]string{"max_restart": "1"}, Digest: "d"},
		},
		{
			name: "the first makes a rule that is disabled", wanted: ha.Wanted{Spec: asked(rules(apart("a")))}, present: ha.State{Resource: map[string]string{}},
			want: ha.CreateRule{Name: "a", Rule: ha.Rule{
				"type": "resource-affinity", "affinity": "negative", "resources": sid, "disable": "1", "comment": "made by CAPVE",
			}},
		},
		{
			name: "the second enables it", wanted: ha.Wanted{Spec: asked(rules(apart("a")))},
			present: ha.State{Resource: map[string]string{}, Rules: map[string]ha.Rule{"a": one}, RulesDigest: "r"},
			want: ha.ChangeRule{
				Name: "a", Set: map[string]string{"type": "resource-affinity", "resources": "vm:102,vm:101"}, Delete: []string{"disable"}, Digest: "r",
			},
		},
		{
			name: "the third joins", wanted: ha.Wanted{Spec: asked(rules(apart("a")))},
			present: ha.State{Resource: map[string]string{}, Rules: map[string]ha.Rule{"a": others}, RulesDigest: "r"},
			want:    ha.ChangeRule{Name: "a", Set: map[string]string{"type": "resource-affinity", "resources": "vm:102,vm:103,vm:101"}, Digest: "r"},
		},
		{
			name: "a rule about nodes", wanted: ha.Wanted{Spec: asked(rules(near("n")))}, present: ha.State{Resource: map[string]string{}},
			want: ha.CreateRule{Name: "n", Rule: ha.Rule{
				"type": "node-affinity", "resources": sid, "nodes": "pve1:2,pve2", "strict": "1", "comment": "made by CAPVE",
			}},
		},
		{
			name: "the last but one leaves", wanted: ha.Wanted{Spec: asked(), Record: &ha.Record{Rules: []string{"a"}}},
			present: ha.State{Resource: map[string]string{}, Rules: map[string]ha.Rule{"a": both}, RulesDigest: "r"},
			want:    ha.ChangeRule{Name: "a", Set: map[string]string{"type": "resource-affinity", "resources": "vm:102", "disable": "1"}, Digest: "r"},
		},
		{
			name: "the last leaves", wanted: ha.Wanted{Spec: asked(), Record: &ha.Record{Rules: []string{"n"}}},
			present: ha.State{Resource: map[string]string{}, Rules: map[string]ha.Rule{"n": {"type": "node-affinity", "resources": sid, "comment": "made by CAPVE"}}},
			want:    ha.DeleteRule{Name: "n"},
		},
		{
			name: "the last leaves somebody's rule", wanted: ha.Wanted{Spec: asked(), Record: &ha.Record{Rules: []string{"n"}}},
			present: ha.State{Resource: map[string]string{}, Rules: map[string]ha.Rule{"n": {"type": "node-affinity", "resources": sid, "comment": "theirs"}}, RulesDigest: "r"},
			want:    ha.ChangeRule{Name: "n", Set: map[string]string{"type": "node-affinity", "disable": "1"}, Digest: "r"},
		},
		{
			name: "which is then as good as left", wanted: ha.Wanted{Spec: asked(), Record: &ha.Record{Rules: []string{"n"}}},
			present: ha.State{Resource: map[string]string{}, Rules: map[string]ha.Rule{"n": {"type": "node-affinity", "resources": sid, "disable": "1"}}},
		},
		{
			name: "a rule that others added it to", wanted: ha.Wanted{Spec: asked()},
			present: ha.State{Resource: map[string]string{}, Rules: map[string]ha.Rule{"n": {"type": "node-affinity", "resources": sid}}},
		},
		{
			name: "a rule that it is in already", wanted: ha.Wanted{Spec: asked(rules(v1beta1.HighAvailabilityRule{Name: "a"}))},
			present: ha.State{Resource: map[string]string{}, Rules: map[string]ha.Rule{"a": both}},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.wanted.ID = 101
			edit, more := ha.Next(test.wanted, test.present)
			if more != (test.want != nil) {
				t.Fatalf("more is %v", more)
			}
			if set, is := edit.(ha.SetOptions); is && len(set.Set) == 0 {
				set.Set = nil
				edit = set
			}
			if diff := cmp.Diff(test.want, edit); diff != "" {
				t.Errorf("edit (-want +got):\n%s", diff)
			}
		})
	}
}

func TestProblemsNameWhatToDo(t *testing.T) {
	group := asked(func(spec *v1beta1.HighAvailability) { spec.Group = "g" })
	failback := asked(func(spec *v1beta1.HighAvailability) { spec.Failback = ptr.To(true) })
	eight, nine := ha.Facts{Groups: []string{"other"}}, ha.Facts{HasRules: true}
	tests := []struct {
		name  string
		spec  v1beta1.HighAvailability
		facts ha.Facts
		rules map[string]ha.Rule
		want  string
	}{
		{name: "nothing asked", spec: v1beta1.HighAvailability{Group: "g"}, facts: nine},
		{name: "a group on 9", spec: group, facts: nine, want: "use highAvailability.rules"},
		{name: "no such group", spec: group, facts: eight, want: "there is no HA group g"},
		{name: "a group", spec: group, facts: ha.Facts{Groups: []string{"g"}}},
		{name: "rules on 8", spec: asked(rules(apart("a"))), facts: eight, want: "rules need Proxmox VE 9"},
		{name: "failback on 8", spec: failback, facts: eight, want: "failback needs Proxmox VE 9"},
		{name: "failback on 9", spec: failback, facts: nine},
		{name: "no such rule", spec: asked(rules(v1beta1.HighAvailabilityRule{Name: "a"})), facts: nine, want: "there is no HA rule a"},
		{name: "a rule that is made", spec: asked(rules(near("a"))), facts: nine},
		{name: "a rule of another kind", spec: asked(rules(near("a"))), facts: nine, rules: map[string]ha.Rule{"a": {"type": "resource-affinity", "affinity": "positive"}}, want: "exists and is for positive resource-affinity"},
		{name: "the opposite", spec: asked(rules(apart("a"))), facts: nine, rules: map[string]ha.Rule{"a": {"type": "resource-affinity", "affinity": "positive"}}, want: "another name"},
		{name: "a rule that is there", spec: asked(rules(near("a"))), facts: nine, rules: map[string]ha.Rule{"a": {"type": "node-affinity", "nodes": "pve3"}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			problems := ha.Wanted{ID: 101, Spec: test.spec}.Problems(ha.State{Rules: test.rules}, test.facts)
			isNamed := slices.ContainsFunc(problems, func(problem string) bool { return test.want != "" && strings.Contains(problem, test.want) })
			if isNamed != (test.want != "") || len(problems) > 1 || test.want == "" && len(problems) > 0 {
				t.Errorf("problems are %q", problems)
			}
		})
	}
}
