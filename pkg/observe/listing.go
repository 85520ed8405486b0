package observe

import (
	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
)

// listing is what the inventory says of the VM beside where it is.
func (s *vmSight) listing() *plan.Listing {
	if !s.listed || s.entry.Type != pve.VMResource {
		return nil
	}
	host, _ := s.snapshot.Node(s.entry.Node)
	pool, hidden := s.pool()
	return &plan.Listing{
		Running: s.entry.Status == pve.StatusRunning, Name: s.entry.Name, Tags: s.entry.Tags, Pool: pool, HidesPool: hidden, CPUs: int(s.entry.MaxCPU),
		Memory: s.entry.MaxMemory, Template: s.entry.Template, HostCPUs: int(host.MaxCPU),
	}
}

// staysOff reports whether the inventory is believed about a VM that is to be off, and off: nothing of ours has started it,
// and who else starts it changes the inventory.
func (s *vmSight) staysOff() bool {
	machine := s.subject.ProxmoxMachine
	return machine.Spec.PowerState == v1beta1.PowerStateStopped && machine.DeletionTimestamp.IsZero() && s.settled() &&
		s.entry.Status == pve.StatusStopped && !s.task.TurnsOn()
}
