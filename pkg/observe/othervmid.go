package observe

import (
	"context"

	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
)

// unlessElsewhere looks for the machine's VM at other VMIDs before a VM is made, or the machine let go. A reservation moves to
// another VMID until the VM has run, so that a backup of Kubernetes from before that, restored, names a VMID where there is
// none of ours. A copy of the VM carries its tag as well, but another SMBIOS UUID.
func (s *vmSight) unlessElsewhere(ctx context.Context, vm plan.VM) (plan.VM, error) {
	isSeen := vm.Presence == plan.PresenceAbsent || vm.Presence == plan.PresenceForeign
	if !isSeen || s.subject.ProxmoxMachine.Spec.ProviderID != "" || s.Memory.isUntouched(s.subject.uuid()) {
		return vm, nil
	}
	for other := range s.snapshot.VMs() {
		if other.ID == s.ref.ID || !other.HasTag(vmconfig.IdentityTag(s.subject.uuid())) {
			continue
		}
		config, err := s.pve.VMConfig(ctx, other.Ref())
		switch {
		case pve.ClassOf(err) == pve.NotFound: // the inventory shows it for some seconds yet
			continue
		case err != nil:
			return plan.VM{}, err
		case vmconfig.Config(config.Values).SMBIOSUUID() == s.subject.uuid():
			return unknown(plan.Unobserved, "VM %d on %s has this machine's identity, but spec.reservation names VM %d: was Kubernetes restored from a backup that is older? "+
				"No second VM is made: remove VM %d, and the machine goes on", other.ID, other.Node, s.ref.ID, other.ID), nil
		}
	}
	return vm, nil
}
