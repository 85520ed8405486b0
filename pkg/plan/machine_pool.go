package plan

import (
	"fmt"

	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// poolKey is how the pool is called among the keys of a VM's config, which does not say it.
const poolKey = "pool"

// poolMove is a way between pools that the VM has yet to go. An empty pool is none.
type poolMove struct {
	from, to proxmox.PoolID
	// isNew says that the spec says it anew. Otherwise somebody else moved the VM.
	isNew bool
}

// poolMove compares the pool that the inventory shows with the one that is asked for. A spec without a pool leaves the VM where it
// is, unless it is in the pool that the spec named before.
func (m Machine) poolMove() (move poolMove, found bool) {
	listing := m.VM.Listing
	if m.Spec.ProviderID == "" || m.VM.Presence != PresenceOurs || listing == nil || listing.Template {
		return poolMove{}, false
	}
	was := m.formerPool()
	move = poolMove{from: listing.Pool, to: proxmox.PoolID(m.Spec.Pool), isNew: m.Spec.Pool != was}
	if listing.HidesPool { // that it is still where it was put is all there is to go by
		move.from = proxmox.PoolID(was)
	}
	if move.from == move.to || move.to == "" && (was == "" || string(move.from) != was) || !move.isNew && m.mayBeInTheMaking(*listing) {
		return poolMove{}, false
	}
	return move, true
}

// mayBeInTheMaking reports whether the inventory may show a VM that runs as it was while it was made, which is in no pool.
func (m Machine) mayBeInTheMaking(listing Listing) bool {
	return listing.Pool == "" && !listing.Running && m.VM.Power == PowerRunning
}

// formerPool is the pool that the spec named when it was last carried out.
func (m Machine) formerPool() string {
	if applied, known := vmconfig.ReadApplied(m.Upkeep.Applied); known {
		return applied.Pool
	}
	return m.Spec.Pool
}

// isNewPool reports whether the spec names a pool anew that the VM is not known to be in yet.
func (m Machine) isNewPool() bool {
	if m.VM.Listing == nil {
		return m.Spec.Pool != m.formerPool()
	}
	move, found := m.poolMove()
	return found && move.isNew
}

// driftedPool is the pool as a difference, where somebody else moved the VM.
func (m Machine) driftedPool() []vmconfig.Difference {
	move, found := m.poolMove()
	if !found || move.isNew {
		return nil
	}
	return []vmconfig.Difference{{Field: vmconfig.Field{Path: "pool", Effect: vmconfig.Live}, Wanted: string(move.to), Is: string(move.from)}}
}

// Text tells one move from another.
func (p MovePool) Text() string { return poolKey + "=" + string(p.To) }

// movePool puts the VM into the pool that the spec says, or takes it out of the one that it said before.
func movePool(m Machine) Decision {
	move, found := m.poolMove()
	if !found || !move.isNew && !m.isRepaired(poolKey) {
		return nil
	}
	action := MovePool{VM: virtualMachine(m), From: move.from, To: move.to, Repairs: !move.isNew}
	if m.Upkeep.refuses(action.Text()) {
		return nil
	}
	what := fmt.Sprintf("putting VM %d into pool %s as the spec says", action.VM.ID, move.to)
	switch {
	case move.to == "":
		what = fmt.Sprintf("taking VM %d out of pool %s, which the spec says no more", action.VM.ID, move.from)
	case action.Repairs:
		what = fmt.Sprintf("putting VM %d back into pool %s as the spec says", action.VM.ID, move.to)
	}
	return Do{action, Reason{Configuring, what}}
}
