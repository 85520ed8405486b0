package act

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
)

// movePool puts a VM into another pool. Proxmox VE does not ask whose VM it is, so that its identity is read right before. That it
// is where it is to be already is as good.
func movePool(ctx context.Context, cluster *pve.Cluster, action plan.MovePool) error {
	if err := proveIdentity(ctx, cluster, action.VM, "moved to another pool"); err != nil {
		return err
	}
	if err := keepsRights(ctx, cluster, action); err != nil {
		return err
	}
	if action.To == "" {
		err := cluster.RemoveFromPool(ctx, action.From, action.VM.ID)
		return unlessDone(err, pve.Missing, fmt.Sprintf("spec.pool: take VM %d out of pool %s", action.VM.ID, action.From))
	}
	err := cluster.AddToPool(ctx, action.To, action.VM.ID)
	return unlessDone(err, pve.AlreadyExists, fmt.Sprintf("spec.pool: put VM %d into pool %s", action.VM.ID, action.To))
}

// unlessDone says what was being done, unless the class of an error says that it was done before.
func unlessDone(err error, done pve.Class, what string) error {
	if err == nil || pve.ClassOf(err) == done {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// keepsRights makes sure that a token with rights on the pool that the VM leaves does not lose the VM: it could neither be seen nor
// removed any more.
func keepsRights(ctx context.Context, cluster *pve.Cluster, action plan.MovePool) error {
	permissions, err := cluster.Permissions(ctx)
	if err != nil {
		return fmt.Errorf("spec.pool: read what the credentials may do in pool %s: %w", action.To, err)
	}
	lost := lostRights(permissions, action)
	switch {
	case len(lost) == 0:
		return nil
	case action.To == "":
		return fmt.Errorf("spec.pool: outside of pool %s the credentials would lose %s on VM %d: grant that on /vms, or have spec.pool name a pool",
			action.From, strings.Join(lost, ", "), action.VM.ID)
	}
	return fmt.Errorf("spec.pool: in pool %s the credentials would lose %s on VM %d: grant that on /pool/%s, which has to exist, or have spec.pool name another pool",
		action.To, strings.Join(lost, ", "), action.VM.ID, action.To)
}

// lostRights are the privileges on the VM that only the pool gives that it leaves.
func lostRights(permissions pve.Permissions, action plan.MovePool) []string {
	var lost []string
	for privilege := range permissions["/vms/"+action.VM.ID.String()] {
		stays := permissions.Allows("/vms", privilege) || action.To != "" && permissions.Allows("/pool/"+string(action.To), privilege)
		if strings.HasPrefix(privilege, "VM.") && !stays {
			lost = append(lost, privilege)
		}
	}
	slices.Sort(lost)
	return lost
}
