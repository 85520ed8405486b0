package ha_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/ha"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// cluster is what a Proxmox VE cluster knows of high availability, with the checks that it makes.
type cluster struct {
	t         *rapid.T
	resources map[string]map[string]string
	rules     map[string]ha.Rule
}

func (c *cluster) state(id proxmox.VMID) ha.State {
	state := ha.State{Resource: maps.Clone(c.resources[ha.SID(id)]), ResourceDigest: "r", Rules: map[string]ha.Rule{}, RulesDigest: "d"}
	for name, rule := range c.rules {
		state.Rules[name] = maps.Clone(rule)
	}
	return state
}

// do makes an edit as Proxmox VE does, and checks that this is what Apply says.
func (c *cluster) do(id proxmox.VMID, edit ha.Edit) {
	before := c.state(id)
	if ha.IsBlind(edit) {
		c.t.Fatalf("%s has no digest", edit)
	}
	switch edit := edit.(type) {
	case ha.AddResource:
		if before.Resource != nil {
			c.t.Fatal("it is a resource already")
		}
		c.resources[ha.SID(id)] = maps.Clone(edit.Options)
	case ha.SetOptions:
		c.resources[ha.SID(id)] = edit.Apply(before).Resource
	case ha.RemoveResource:
		delete(c.resources, ha.SID(id))
		c.purge(ha.SID(id))
	case ha.CreateRule:
		c.check(edit.Name, edit.Rule)
		c.rules[edit.Name] = edit.Rule
	case ha.ChangeRule:
		rule := edit.Apply(before).Rules[edit.Name]
		c.check(edit.Name, rule)
		c.rules[edit.Name] = rule
	case ha.DeleteRule:
		delete(c.rules, edit.Name)
	}
	if after := edit.Apply(before); !maps.Equal(after.Resource, c.resources[ha.SID(id)]) {
		c.t.Fatalf("%s leaves %v, and Apply says %v", edit, c.resources[ha.SID(id)], after.Resource)
	}
}

func (c *cluster) purge(sid string) {
	for name, rule := range c.rules {
		left := slices.DeleteFunc(strings.Split(rule["resources"], ","), func(other string) bool { return other == sid })
		if len(left) == 0 {
			delete(c.rules, name)
			continue
		}
		rule["resources"] = strings.Join(left, ",")
	}
}

// check refuses what Proxmox VE refuses.
func (c *cluster) check(name string, rule ha.Rule) {
	resources := strings.Split(rule["resources"], ",")
	for _, sid := range resources {
		if c.resources[sid] == nil {
			c.t.Fatalf("rule %s is for %q, which is no resource", name, sid)
		}
	}
	if rule["type"] == "resource-affinity" && rule["disable"] != "1" && len(resources) < 2 {
		c.t.Fatalf("rule %s is for less than two resources", name)
	}
}

// settle takes all steps that a machine's wishes need.
func (c *cluster) settle(id proxmox.VMID, spec v1beta1.HighAvailability, record *ha.Record) *ha.Record {
	for range 30 {
		wanted := ha.Wanted{ID: id, Spec: spec, Comment: "c", Record: record}
		present := c.state(id)
		if next, more := wanted.NextRecord(present); more {
			record = &next
			continue
		}
		if edit, more := ha.Next(wanted, present); more {
			c.do(id, edit)
			continue
		}
		if wanted.IsSettled() {
			return record
		}
		record = wanted.Settled()
	}
	c.t.Fatal("no end")
	return nil
}

func drawSpec(t *rapid.T) v1beta1.HighAvailability {
	if !rapid.Bool().Draw(t, "asked") {
		return v1beta1.HighAvailability{}
	}
	spec := v1beta1.HighAvailability{Enabled: ptr.To(true)}
	for name, into := range map[string]**int32{"max_restart": &spec.MaxRestart, "max_relocate": &spec.MaxRelocate} {
		if rapid.Bool().Draw(t, name+" is set") {
			*into = ptr.To(rapid.Int32Range(0, 3).Draw(t, name))
		}
	}
	for _, rule := range []v1beta1.HighAvailabilityRule{near("near"), apart("apart")} {
		if rapid.Bool().Draw(t, "in rule "+rule.Name) {
			spec.Rules = append(spec.Rules, rule)
		}
	}
	return spec
}

func newCluster(t *rapid.T) *cluster {
	c := &cluster{t: t, resources: map[string]map[string]string{}, rules: map[string]ha.Rule{}}
	for id := range 3 {
		if rapid.Bool().Draw(t, fmt.Sprintf("VM %d was a resource before", 101+id)) {
			c.resources[fmt.Sprintf("vm:%d", 101+id)] = map[string]string{"state": "started", "max_restart": "7", "comment": "theirs"}
		}
	}
	return c
}

// TestWhatIsAskedIsThereAndGoesWithoutATrace has three machines change their wishes in any order.
func TestWhatIsAskedIsThereAndGoesWithoutATrace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCluster(t)
		before := map[string]map[string]string{}
		for sid, options := range c.resources {
			before[sid] = maps.Clone(options)
		}
		records := map[proxmox.VMID]*ha.Record{}
		for range rapid.IntRange(1, 8).Draw(t, "changes") {
			id, spec := proxmox.VMID(rapid.IntRange(101, 103).Draw(t, "VM")), drawSpec(t)
			records[id] = c.settle(id, spec, records[id])
			c.checkAsked(id, spec)
		}
		for id, record := range records {
			if left := c.settle(id, v1beta1.HighAvailability{}, record); left != nil {
				t.Fatalf("VM %d: the record is %+v", id, left)
			}
		}
		if !maps.EqualFunc(before, c.resources, maps.Equal) || len(c.rules) > 0 {
			t.Fatalf("there were %v, and are %v with the rules %v", before, c.resources, c.rules)
		}
	})
}

// checkAsked says whether a VM is what its spec asks for.
func (c *cluster) checkAsked(id proxmox.VMID, spec v1beta1.HighAvailability) {
	if !ha.IsAsked(spec) {
		return
	}
	resource := c.resources[ha.SID(id)]
	if resource == nil || spec.MaxRestart != nil && resource["max_restart"] != fmt.Sprint(*spec.MaxRestart) && (*spec.MaxRestart != 1 || resource["max_restart"] != "") {
		c.t.Fatalf("VM %d is %v", id, resource)
	}
	for name, rule := range c.rules {
		isAsked := slices.ContainsFunc(spec.Rules, func(r v1beta1.HighAvailabilityRule) bool { return r.Name == name })
		if rule.Has(ha.SID(id)) != isAsked {
			c.t.Fatalf("VM %d in rule %s: %v", id, name, rule)
		}
	}
	for _, rule := range spec.Rules {
		if c.rules[rule.Name] == nil {
			c.t.Fatalf("rule %s is not there", rule.Name)
		}
	}
}
