package pvesim

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// FindingKind says which invariant is broken.
type FindingKind string

// What can be broken in a world.
const (
	// OrphanVolume: a disk of a guest that is gone, or that its config does not name.
	OrphanVolume FindingKind = "orphan-volume"
	// OrphanSeed: a NoCloud seed in no drive. Other ISO images may lie about: they are a library.
	OrphanSeed FindingKind = "orphan-seed"
	// MissingVolume: a config names a disk that is not there.
	MissingVolume FindingKind = "missing-volume"
	// MissingBase: a linked clone whose base volume is gone.
	MissingBase FindingKind = "missing-base"
	// WrongUsage: a storage's used space is not that of its volumes.
	WrongUsage FindingKind = "wrong-usage"
	// SharedMAC, SharedUUID and SharedAddress: two VMs with one MAC address, SMBIOS UUID, or IP address in one network.
	SharedMAC     FindingKind = "shared-mac"
	SharedUUID    FindingKind = "shared-uuid"
	SharedAddress FindingKind = "shared-address"
	// SharedCPU: two running VMs on one host whose affinity has a CPU in common.
	SharedCPU FindingKind = "shared-cpu"
	// StaleLock: a VM has a lock, and no task works on it.
	StaleLock FindingKind = "stale-lock"
	// MissingSnapshot: a snapshot or a VM whose parent is no snapshot of the VM.
	MissingSnapshot FindingKind = "missing-snapshot"
	// MissingGuest: a pool, the HA manager or a firewall file is about a guest that is gone.
	MissingGuest FindingKind = "missing-guest"
)

// Finding is one broken invariant.
type Finding struct {
	Kind FindingKind `json:"kind"`
	// Object is what is broken, for example a volume or vm:100.
	Object string `json:"object"`
	// Text says it in a sentence.
	Text string `json:"text"`
}

// String is the finding's text.
func (f Finding) String() string { return f.Text }

// Check returns what is broken, one sentence each: see the kinds of Finding. A world in good order returns nothing.
func (w *World) Check() []string {
	var out []string
	for _, f := range w.Findings() {
		out = append(out, f.Text)
	}
	return out
}

// Findings returns what is broken, in an order that depends on the world alone. Guests that a running task works on are left out
// where the task may be half way.
func (w *World) Findings() []Finding {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runDue()
	c := &checker{World: w, state: w.state()}
	for _, check := range []func(){
		c.checkVolumes, c.checkDisks, c.checkUsage, c.checkIdentities, c.checkAddresses, c.checkCPUs, c.checkLocks, c.checkSnapshots, c.checkMembers,
	} {
		check()
	}
	return c.found
}

// checker looks at a copy of the world's state, and at the world for what the state does not tell.
type checker struct {
	*World
	state State
	found []Finding
}

func (c *checker) report(kind FindingKind, object any, format string, args ...any) {
	c.found = append(c.found, Finding{Kind: kind, Object: fmt.Sprint(object), Text: fmt.Sprintf(format, args...)})
}

// guestExists tells whether a VMID is that of a VM or container.
func (c *checker) guestExists(id proxmox.VMID) bool {
	return c.vms[id] != nil || c.containers[id] != nil
}

// checkLocks looks for locks that nobody will lift. A hibernated VM keeps its lock until it is started.
func (c *checker) checkLocks() {
	for _, v := range c.state.VMs {
		if lock := v.Config["lock"]; lock != "" && lock != "suspended" && !c.tasks.runningOn(v.VMID) {
			c.report(StaleLock, guestObject(v.VMID), "VM %d is locked (%s) and no task works on it", v.VMID, lock)
		}
	}
}

func (c *checker) checkSnapshots() {
	for _, v := range c.state.VMs {
		known := map[string]bool{"": true}
		for _, s := range v.Snapshots {
			known[s.Name] = true
		}
		for _, s := range v.Snapshots {
			if !known[s.Parent] {
				c.report(MissingSnapshot, guestObject(v.VMID), "snapshot %s of VM %d has the parent %s, which does not exist", s.Name, v.VMID, s.Parent)
			}
		}
		if parent := v.Config["parent"]; !known[parent] {
			c.report(MissingSnapshot, guestObject(v.VMID), "VM %d has the parent %s, which is no snapshot of it", v.VMID, parent)
		}
	}
}

// checkMembers looks for guests that only pools, the HA manager or firewall files know.
func (c *checker) checkMembers() {
	for _, id := range slices.Sorted(maps.Keys(c.pools)) {
		for _, member := range slices.Sorted(maps.Keys(c.pools[id].members)) {
			if !c.guestExists(member) {
				c.report(MissingGuest, guestObject(member), "pool %s has the member %d, which does not exist", id, member)
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(c.state.HA.Resources)) {
		if _, number, ok := strings.Cut(id, ":"); ok && !c.guestExists(toVMID(number)) {
			c.report(MissingGuest, id, "the HA manager looks after %s, which does not exist", id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(c.state.StrayFirewalls)) {
		if !c.guestExists(id) {
			c.report(MissingGuest, guestObject(id), "there is a firewall file of VM %d, which does not exist", id)
		}
	}
}

func guestObject(id proxmox.VMID) string { return "vm:" + id.String() }
