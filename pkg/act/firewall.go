package act

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/firewall"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
)

// recordFirewall writes down, on the machine, what the options of its firewall were.
func (a *Actor) recordFirewall(ctx context.Context, machine *v1beta1.ProxmoxMachine, action plan.RecordFirewall) error {
	if action.Before == nil {
		return a.unannotate(ctx, machine, v1beta1.FirewallAnnotation)
	}
	return a.annotate(ctx, machine, v1beta1.FirewallAnnotation, action.Before)
}

// annotate writes a value, as JSON, into an annotation of the machine. It is not in the status, which a move or a restore loses.
func (a *Actor) annotate(ctx context.Context, machine *v1beta1.ProxmoxMachine, name string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("write the annotation %s of ProxmoxMachine %s: %w", name, machine.Name, err)
	}
	return a.patch(ctx, machine, func(machine *v1beta1.ProxmoxMachine) { setAnnotation(machine, name, string(text)) })
}

func (a *Actor) unannotate(ctx context.Context, machine *v1beta1.ProxmoxMachine, name string) error {
	return a.patch(ctx, machine, func(machine *v1beta1.ProxmoxMachine) { setAnnotation(machine, name, "") })
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
