package act

import (
	"context"
	"errors"
	"fmt"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/ha"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
)

// recordHighAvailability writes down, on the machine, what its VM was to the HA manager.
func (a *Actor) recordHighAvailability(ctx context.Context, machine *v1beta1.ProxmoxMachine, action plan.RecordHA) error {
	if action.Record == nil {
		return a.unannotate(ctx, machine, v1beta1.HighAvailabilityAnnotation)
	}
	return a.annotate(ctx, machine, v1beta1.HighAvailabilityAnnotation, action.Record)
}

// editHighAvailability sends the one request of an edit.
func editHighAvailability(ctx context.Context, cluster *pve.Cluster, id proxmox.VMID, edit ha.Edit) error {
	switch edit := edit.(type) {
	case ha.AddResource:
		return cluster.CreateHAResource(ctx, id, edit.Options)
	case ha.SetOptions:
		return cluster.UpdateHAResource(ctx, id, pve.HAUpdate{Set: edit.Set, Delete: edit.Delete, Digest: edit.Digest})
	case ha.RemoveResource:
		return cluster.DeleteHAResource(ctx, id)
	case ha.CreateRule:
		return cluster.CreateHARule(ctx, edit.Name, pve.HARule(edit.Rule))
	case ha.ChangeRule:
		return cluster.UpdateHARule(ctx, edit.Name, pve.HAUpdate{Set: edit.Set, Delete: edit.Delete, Digest: edit.Digest})
	case ha.DeleteRule:
		return deleteRule(ctx, cluster, id, edit.Name)
	}
	return fmt.Errorf("no such edit of high availability: %T", edit)
}

// errRuleChanged says that somebody changed a rule since it was read.
var errRuleChanged = errors.New("somebody changed it meanwhile")

// deleteRule reads the rule right before: Proxmox VE takes no digest with the request, and somebody may have made the rule theirs, or
// put another VM into it.
func deleteRule(ctx context.Context, cluster *pve.Cluster, id proxmox.VMID, name string) error {
	list, err := cluster.HARules(ctx)
	if err != nil {
		return fmt.Errorf("read the HA rule %s before it is deleted: %w", name, err)
	}
	rule, found := list.Rules[name]
	switch {
	case !found:
		return nil
	case !ha.Rule(rule).IsLeftToUs(id):
		return fmt.Errorf("delete the HA rule %s: %w", name, errRuleChanged)
	}
	return cluster.DeleteHARule(ctx, name)
}
