package observe

import (
	"context"
	"fmt"

	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
)

// machineSight is what the look at a part of one machine's VM needs.
type machineSight struct {
	*Observer
	pve     *pve.Cluster
	subject MachineSubject
	machine *plan.Machine
}

// ref is where the VM was seen.
func (s *machineSight) ref() pve.VMRef {
	return pve.VMRef{Node: s.machine.VM.Node, ID: proxmox.VMID(s.machine.Spec.Reservation.VMID)}
}

// identify reads the config of the VM to see whether it is ours. It is for what Proxmox VE does to a VMID without looking what
// has it.
func (s *machineSight) identify(ctx context.Context, purpose string) (config pve.VMConfig, isOurs bool, err error) {
	config, err = s.pve.VMConfig(ctx, s.ref())
	if err != nil {
		return config, false, fmt.Errorf("read the identity of VM %d before %s: %w", s.ref().ID, purpose, err)
	}
	return config, s.isOurs(config.Values), nil
}

// isOurs reports whether a config carries the machine's identity. If it does not, nothing is known of the VM any more.
func (s *machineSight) isOurs(config vmconfig.Config) bool {
	if config.BelongsTo(s.subject.uuid()) {
		return true
	}
	s.machine.VM = unknown(plan.Unobserved, "VM %d on %s does not carry the machine's identity any more: it is looked for again", s.ref().ID, s.ref().Node)
	return false
}
