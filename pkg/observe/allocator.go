package observe

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

const (
	// offerTTL is how long a VMID that was found free is kept for the machine that it was found for.
	offerTTL = time.Minute
	// restTTL is how long the VMID of a VM that we destroyed, or whose clone failed, is not given again: its backups,
	// firewall rules and late tasks must not hit the next VM.
	restTTL = 10 * time.Minute
	// takenTTL is how long a VMID is passed over that a guest has which the credentials cannot see.
	takenTTL = 5 * time.Minute
	// mostProbes bounds the VMIDs that are asked for in one pass.
	mostProbes = 32
)

// Allocator finds VMIDs for reservations. It asks Proxmox VE about a VMID once per reservation, however many machines want
// one at a time: each is offered another. It is safe for concurrent use. What it knows is lost with the process, and then
// found out again, but for the VMIDs that rest.
type Allocator struct {
	clock clock.PassiveClock
	mu    sync.Mutex
	vmids map[numbered]vmidState
}

// numbered is a VMID of a Proxmox VE cluster.
type numbered struct {
	pve PVECluster
	id  proxmox.VMID
}

// vmidState is what is known of a VMID beyond the inventory and the reservations, each until a time.
type vmidState struct {
	// taken: a guest has it that the credentials cannot see.
	taken time.Time
	// rests: a VM had it until lately.
	rests time.Time
	// offered: it is kept for the machine; found says that it is known to be free.
	offered time.Time
	machine types.NamespacedName
	found   bool
}

// NewAllocator returns an Allocator that knows of nothing.
func NewAllocator(clock clock.PassiveClock) *Allocator {
	return &Allocator{clock: clock, vmids: map[numbered]vmidState{}}
}

// Rest keeps a VMID from being given again for a while, as long as there are others.
func (a *Allocator) Rest(pve PVECluster, id proxmox.VMID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.vmids[numbered{pve, id}] = vmidState{rests: a.clock.Now().Add(restTTL)}
}

// Settled gives back what a machine was offered beside the VMID that it reserved: a machine looks for one in every region.
func (a *Allocator) Settled(entry Entry) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for at, state := range a.vmids {
		if state.machine == entry.Machine && at != (numbered{entry.PVE, entry.VMID}) {
			delete(a.vmids, at)
		}
	}
}

// search is what a VMID is looked for with.
type search struct {
	pve     PVECluster
	machine types.NamespacedName
	bounds  plan.VMIDs
	// inUse reports whether the inventory or a reservation has a VMID.
	inUse func(proxmox.VMID) bool
	// isFree asks Proxmox VE, which knows of guests that the credentials cannot see.
	isFree func(context.Context, proxmox.VMID) (bool, error)
}

// find returns a VMID that is free.
func (a *Allocator) find(ctx context.Context, s search) (proxmox.VMID, bool, error) {
	for range mostProbes {
		id, known, found := a.next(s)
		if !found || known {
			return id, found, nil
		}
		free, err := s.isFree(ctx, id)
		if err != nil {
			return 0, false, err
		}
		a.probed(s, id, free)
		if free {
			return id, true, nil
		}
	}
	return 0, false, nil
}

// next returns the VMID to try: the machine's own offer, else the lowest that nothing is known against, else one that is
// offered to another, which may not come to take it, else the one that has rested longest. It reports whether that is known
// to be free.
func (a *Allocator) next(s search) (id proxmox.VMID, known, found bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.clock.Now()
	a.prune(now)
	if id, known, found := a.own(s); found {
		return id, known, true
	}
	var offered, rested proxmox.VMID
	var since time.Time
	for id := s.bounds.First; id <= s.bounds.Last; id++ {
		if s.inUse(id) {
			continue
		}
		switch state := a.vmids[numbered{s.pve, id}]; {
		case now.Before(state.taken):
		case now.Before(state.rests):
			if rested == 0 || state.rests.Before(since) {
				rested, since = id, state.rests
			}
		case now.Before(state.offered):
			if offered == 0 {
				offered = id
			}
		default:
			a.vmids[numbered{s.pve, id}] = vmidState{offered: now.Add(offerTTL), machine: s.machine}
			return id, false, true
		}
	}
	if offered == 0 {
		offered = rested
	}
	return offered, false, offered != 0
}

// own finds the offer that the machine has already. The caller holds the lock.
func (a *Allocator) own(s search) (id proxmox.VMID, known, found bool) {
	for at, state := range a.vmids {
		if state.machine == s.machine && at.pve == s.pve && at.id >= s.bounds.First && at.id <= s.bounds.Last && !s.inUse(at.id) {
			return at.id, state.found, true
		}
	}
	return 0, false, false
}

// probed notes what Proxmox VE said of a VMID: who has an offer need not ask again, and what a guest has that the credentials
// cannot see is passed over for a while.
func (a *Allocator) probed(s search, id proxmox.VMID, free bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	at := numbered{s.pve, id}
	state := a.vmids[at]
	switch {
	case !free:
		a.vmids[at] = vmidState{taken: a.clock.Now().Add(takenTTL)}
	case state.machine == s.machine:
		state.found = true
		a.vmids[at] = state
	}
}

// prune drops what is over. The caller holds the lock.
func (a *Allocator) prune(now time.Time) {
	for at, state := range a.vmids {
		if !now.Before(state.taken) && !now.Before(state.rests) && !now.Before(state.offered) {
			delete(a.vmids, at)
		}
	}
}
