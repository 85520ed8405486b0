// Package pve is typed access to the API of Proxmox VE: a client whose methods are one request each, a polled inventory of
// everything in a PVE cluster, a tracker of the tasks in flight, and one place that says what an error means.
//
// # Requests
//
// A Client sends through a chain of round-trippers: retry of reads, failover between the endpoints of a region, a limit of
// concurrent requests per PVE node, authentication, request log and metrics, and at the bottom a check that turns every
// answer that is not a success into an *Error. go-proxmox sits on top of it for reads and deletes; writes with a form and
// uploads use the same HTTP client directly.
//
// A read is repeated after a failure. A write is sent again only if it is proven that no server saw it. When nothing can be
// proven the error has class Ambiguous: the write may have happened, or may still happen.
//
// # State
//
// Inventory keeps a snapshot of /cluster/resources with one request per interval, whatever the number of VMs. Tracker
// follows all tasks with one request per tick. Both wake their listeners; nobody waits in a loop. Cluster is a region put
// together, Registry shares one Cluster among all who name the same endpoints with the same credentials.
package pve
