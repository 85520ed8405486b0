package observe

import (
	"time"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// knownPool is the pool that the VM was put into last.
type knownPool struct {
	pool proxmox.PoolID
	at   time.Time
}

// PoolMoved says that the VM was put into a pool; an empty one is none.
func (m *Memory) PoolMoved(uuid proxmox.SMBIOSUUID, pool proxmox.PoolID) {
	m.with(uuid, func(r *recollection) { r.pool = knownPool{pool, m.clock.Now()} })
}

func (m *Memory) pool(uuid proxmox.SMBIOSUUID) (known knownPool) {
	m.with(uuid, func(r *recollection) { known = r.pool })
	return known
}

// pool is the pool that the VM is in, and whether the credentials may not see that: the inventory shows a pool, and what is in it, to
// who has Pool.Audit on it. Where we put the VM ourselves is known otherwise, too.
func (s *vmSight) pool() (pool proxmox.PoolID, hidden bool) {
	moved := s.Memory.pool(s.subject.uuid())
	if s.hasJustMoved() {
		return moved.pool, false
	}
	hidden = s.entry.Pool == "" && s.hidesPools()
	if hidden && !moved.at.IsZero() {
		return moved.pool, false
	}
	return s.entry.Pool, hidden
}

// hasJustMoved reports whether the inventory is of a time before we put the VM into its pool.
func (s *vmSight) hasJustMoved() bool {
	moved := s.Memory.pool(s.subject.uuid())
	return !moved.at.IsZero() && !s.snapshot.At.After(moved.at)
}

// hidesPools reports whether a pool is not shown that the spec names, or named before.
func (s *vmSight) hidesPools() bool {
	object := s.subject.ProxmoxMachine
	former, _ := vmconfig.ReadApplied(object.Annotations[v1beta1.AppliedSpecAnnotation])
	for _, pool := range []string{object.Spec.Pool, former.Pool} {
		if pool != "" && !s.snapshot.HasPool(proxmox.PoolID(pool)) {
			return true
		}
	}
	return false
}
