package observe

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// ErrNoSlot says that no VM may begin to be made there any more: look again and plan anew.
var ErrNoSlot = errors.New("other VMs have begun to be made meanwhile")

// waiterTTL is how long a machine counts as waiting after it was last heard of.
const waiterTTL = 3 * time.Minute

// CloneSlots counts the VMs that are being made, as clones or otherwise, by host and by storage, and who waits to begin. A
// machine has one slot at most, from before its VM is asked for until that is known to have ended. It is safe for concurrent
// use. A new process counts what runs as it comes to the machines.
type CloneSlots struct {
	clock clock.PassiveClock
	// wake is called, under the lock, for machines that may begin now.
	wake func(types.NamespacedName)

	mu      sync.Mutex
	held    map[types.NamespacedName]plan.ClonePlace
	waiting map[types.NamespacedName]waiter
}

// waiter is a machine that waits for a slot.
type waiter struct {
	machine      types.NamespacedName
	place        plan.ClonePlace
	since, until time.Time
}

// NewCloneSlots returns CloneSlots that nobody holds.
func NewCloneSlots(clock clock.PassiveClock, wake func(types.NamespacedName)) *CloneSlots {
	return &CloneSlots{
		clock: clock, wake: wake,
		held: map[types.NamespacedName]plan.ClonePlace{}, waiting: map[types.NamespacedName]waiter{},
	}
}

// Take takes a slot, unless the clones that run, or older waiters, leave none. Who has one keeps it.
func (s *CloneSlots) Take(machine types.NamespacedName, place plan.ClonePlace) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.full(machine, place) != "" {
		return ErrNoSlot
	}
	s.held[machine] = place
	delete(s.waiting, machine)
	return nil
}

// Occupy counts a clone that was seen to run, whatever the limits.
func (s *CloneSlots) Occupy(machine types.NamespacedName, place plan.ClonePlace) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, held := s.held[machine]; !held {
		s.held[machine] = place
	}
}

// Await enters a machine among those that wait, the oldest first, and are woken when it is their turn. It reports whether it
// already is.
func (s *CloneSlots) Await(machine types.NamespacedName, place plan.ClonePlace) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	entry := waiter{machine: machine, place: place, since: now, until: now.Add(waiterTTL)}
	if before, waits := s.waiting[machine]; waits {
		entry.since = before.since
	}
	s.waiting[machine] = entry
	return s.full(machine, place) == ""
}

// Release gives a machine's slot back, if it has one, takes it off the waiters, and wakes those whose turn it is.
func (s *CloneSlots) Release(machine types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, held := s.held[machine]
	_, waits := s.waiting[machine]
	if !held && !waits {
		return
	}
	delete(s.held, machine)
	delete(s.waiting, machine)
	count := s.count()
	for _, waiting := range s.queue() {
		if count.reason(waiting.place) == "" {
			count.add(waiting.machine, waiting.place)
			s.wake(waiting.machine)
		}
	}
}

// taskDone gives the slot of a VM back whose task has ended.
func (s *CloneSlots) taskDone(machine types.NamespacedName, task proxmox.UPID) {
	if id, err := task.Parse(); err == nil && plan.MakesVM(id.Type) {
		s.Release(machine)
	}
}

// Leave takes a machine that does not wait for a slot any more off the waiters.
func (s *CloneSlots) Leave(machine types.NamespacedName) {
	s.mu.Lock()
	_, waits := s.waiting[machine]
	_, held := s.held[machine]
	s.mu.Unlock()
	if waits && !held {
		s.Release(machine)
	}
}

// Holds reports whether the machine has a slot.
func (s *CloneSlots) Holds(machine types.NamespacedName) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, held := s.held[machine]
	return held
}

// Full says why a machine may not begin a clone now; empty when it may.
func (s *CloneSlots) Full(machine types.NamespacedName, place plan.ClonePlace) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.full(machine, place)
}

// full counts those before the machine: the clones that run, and the older waiters that may begin now. The caller holds the
// lock.
func (s *CloneSlots) full(machine types.NamespacedName, place plan.ClonePlace) string {
	if _, held := s.held[machine]; held {
		return ""
	}
	count := s.count()
	for _, waiting := range s.queue() {
		if waiting.machine == machine {
			break
		}
		if count.reason(waiting.place) == "" {
			count.add(waiting.machine, waiting.place)
		}
	}
	return count.reason(place)
}

// queue returns those who wait, the oldest first. The caller holds the lock.
func (s *CloneSlots) queue() []waiter {
	var queue []waiter
	now := s.clock.Now()
	for machine, waiting := range s.waiting {
		if now.After(waiting.until) {
			delete(s.waiting, machine)
			continue
		}
		queue = append(queue, waiting)
	}
	slices.SortFunc(queue, func(a, b waiter) int {
		return cmp.Or(a.since.Compare(b.since), strings.Compare(a.machine.String(), b.machine.String()))
	})
	return queue
}

// cloneCount are the clones by host and by storage.
type cloneCount struct {
	hosts    map[countedHost][]string
	storages map[countedStorage][]string
}

type countedHost struct {
	pve  string
	host proxmox.NodeName
}

type countedStorage struct {
	countedHost
	storage proxmox.StorageID
}

func storageOf(place plan.ClonePlace) countedStorage {
	return countedStorage{countedHost{place.PVE, place.StorageHost}, place.Storage}
}

// count counts the slots that are held. The caller holds the lock.
func (s *CloneSlots) count() *cloneCount {
	count := &cloneCount{hosts: map[countedHost][]string{}, storages: map[countedStorage][]string{}}
	for machine, place := range s.held {
		count.add(machine, place)
	}
	return count
}

func (c *cloneCount) add(machine types.NamespacedName, place plan.ClonePlace) {
	host := countedHost{place.PVE, place.Host}
	c.hosts[host] = append(c.hosts[host], machine.Name)
	if place.Storage != "" {
		c.storages[storageOf(place)] = append(c.storages[storageOf(place)], machine.Name)
	}
}

// reason says which clones leave no slot; empty when one is left.
func (c *cloneCount) reason(place plan.ClonePlace) string {
	if on := c.hosts[countedHost{place.PVE, place.Host}]; len(on) >= place.PerHost {
		return fmt.Sprintf("%s being made on %s already: %s", running(len(on)), place.Host, listed(on))
	}
	if onto := c.storages[storageOf(place)]; place.Storage != "" && len(onto) >= place.PerStorage {
		return fmt.Sprintf("%s being made on storage %s already: %s", running(len(onto)), place.Storage, listed(onto))
	}
	return ""
}

func running(clones int) string {
	if clones == 1 {
		return "1 VM is"
	}
	return fmt.Sprintf("%d VMs are", clones)
}

// listed names the first machines.
func listed(machines []string) string {
	const most = 5
	sorted := slices.Sorted(slices.Values(machines))
	if len(sorted) > most {
		return strings.Join(sorted[:most], ", ") + ", …"
	}
	return strings.Join(sorted, ", ")
}
