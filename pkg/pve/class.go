package pve

// Class is what an error means for what to do next.
type Class int

// The classes of errors. Only Ambiguous leaves open whether a change took place; after every other class of a request the
// change did not happen. A failed task may have done a part of its work, whatever its class.
const (
	// None is the class of no error.
	None Class = iota
	// Other is an error that no rule knows.
	Other
	// NotFound: the guest's config, or the task, is not on the node that was asked. The guest may live on another node.
	NotFound
	// AlreadyExists: the VMID, or the name of what was to be created, is taken.
	AlreadyExists
	// Locked: a config lock or a lock file stands in the way for now. Try again later.
	Locked
	// Unauthorized: the credentials are not accepted.
	Unauthorized
	// Forbidden: a privilege is missing; the message names it. A pool-scoped token sees this also for a guest that is gone.
	Forbidden
	// Invalid: PVE refuses the request as it stands.
	Invalid
	// Unimplemented: this server does not know the method or path.
	Unimplemented
	// Unreachable: no endpoint, or not the node, could be reached. A write was not executed.
	Unreachable
	// Untrusted: the server's certificate is not trusted. Nothing was sent.
	Untrusted
	// Ambiguous: a write was sent and its outcome is unknown. It may have happened, or may still happen.
	Ambiguous
	// NoQuorum: the PVE cluster has no quorum and refuses writes.
	NoQuorum
	// Capacity: memory or storage space is short.
	Capacity
	// Conflict: the config changed since its digest was read.
	Conflict
	// RootOnly: only root@pam logged in by password may do this.
	RootOnly
	// Protected: the guest has protection mode on.
	Protected
	// Busy: the object is in use by others, such as a template with linked clones; or the server asks to slow down.
	Busy
	// WrongState: the guest is running, stopped, paused or a template, and must not be for this.
	WrongState
	// Missing: something that the request names does not exist: storage, volume, pool, node, snapshot.
	Missing
	// Unfit: the node cannot run the guest as configured: no such bridge, NUMA node or storage there, too few CPUs.
	Unfit
	// Unresponsive: the guest, its agent or QEMU's monitor did not answer.
	Unresponsive
	// Interrupted: a task was aborted or its worker killed. Pieces of its work may lie about.
	Interrupted
)

// String returns the class's name in lower case, as metrics show it.
func (c Class) String() string {
	names := [...]string{
		"none", "other", "not_found", "already_exists", "locked", "unauthorized", "forbidden", "invalid", "unimplemented",
		"unreachable", "untrusted", "ambiguous", "no_quorum", "capacity", "conflict", "root_only", "protected", "busy",
		"wrong_state", "missing", "unfit", "unresponsive", "interrupted",
	}
	if c < 0 || int(c) >= len(names) {
		return "other"
	}
	return names[c]
}

// Retryable says whether the same request may succeed later without anyone changing anything. It is false for Ambiguous:
// look first.
func (c Class) Retryable() bool {
	return c == Locked || c == Unreachable || c == NoQuorum || c == Capacity || c == Busy || c == Unresponsive
}
