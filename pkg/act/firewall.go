package act

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/observe"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/firewall"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
)

// recordFirewall writes down, on the machine, what the options of its firewall were. It is not in the status, which a move or
// a restore loses.
func (a *Actor) recordFirewall(ctx context.Context, machine *v1beta1.ProxmoxMachine, action plan.RecordFirewall) error {
	patched := machine.DeepCopy()
	if action.Before == nil {
		delete(patched.Annotations, v1beta1.FirewallAnnotation)
	} else {
		text, err := json.Marshal(action.Before)
		if err != nil {
			return fmt.Errorf("write down the firewall options of ProxmoxMachine %s: %w", machine.Name, err)
		}
		if patched.Annotations == nil {
			patched.Annotations = map[string]string{}
		}
		patched.Annotations[v1beta1.FirewallAnnotation] = string(text)
	}
	patch := client.MergeFromWithOptions(machine.DeepCopy(), client.MergeFromWithOptimisticLock{})
	annotations := patched.DeepCopy().Annotations
	switch err := a.Client.Patch(ctx, patched, patch); {
	case apierrors.IsConflict(err):
		return observe.ErrBehind
	case err != nil:
		return fmt.Errorf("patch the annotation %s of ProxmoxMachine %s: %w", v1beta1.FirewallAnnotation, machine.Name, err)
	}
	machine.Annotations, machine.ResourceVersion = annotations, patched.ResourceVersion
	return nil
}

// editFirewall sends the one request of an edit.
func editFirewall(ctx context.Context, cluster *pve.Cluster, vm pve.VMRef, edit firewall.Edit) error {
	switch edit := edit.(type) {
	case firewall.SetOptions:
		return cluster.UpdateFirewallOptions(ctx, pve.FirewallOptionsUpdate{VM: vm, Set: edit.Set, Delete: edit.Delete, Digest: edit.Digest})
	case firewall.InsertRule:
		return cluster.CreateFirewallRule(ctx, vm, edit.Rule)
	case firewall.MoveRule:
		return cluster.MoveFirewallRule(ctx, pve.FirewallRuleRef{VM: vm, Position: edit.Position, Digest: edit.Digest}, edit.Before)
	case firewall.EnableRule:
		return cluster.EnableFirewallRule(ctx, pve.FirewallRuleRef{VM: vm, Position: edit.Position, Digest: edit.Digest})
	case firewall.DeleteRule:
		return cluster.DeleteFirewallRule(ctx, pve.FirewallRuleRef{VM: vm, Position: edit.Position, Digest: edit.Digest})
	case firewall.CreateSet:
		return cluster.CreateIPSet(ctx, pve.IPSetRequest{VM: vm, Name: edit.Name, Comment: edit.Comment})
	case firewall.RenameSet:
		return cluster.CreateIPSet(ctx, pve.IPSetRequest{VM: vm, Name: edit.To, Comment: edit.Comment, Rename: edit.From, Digest: edit.Digest})
	case firewall.DeleteSet:
		return cluster.DeleteIPSet(ctx, vm, edit.Name)
	case firewall.AddAddress:
		return cluster.AddIPSetEntry(ctx, pve.IPSetEntryRef{VM: vm, Set: edit.Set, CIDR: edit.Address.String()})
	case firewall.RemoveEntry:
		return cluster.RemoveIPSetEntry(ctx, pve.IPSetEntryRef{VM: vm, Set: edit.Set, CIDR: edit.CIDR, Digest: edit.Digest})
	}
	return fmt.Errorf("no such edit of a firewall: %T", edit)
}
