// Package pvesim is a simulator of the Proxmox VE API: what vcsim is to vSphere, for Proxmox VE 8.4 and 9.2.
//
// A World is plain data: nodes, storages, volumes, guests, pools, tokens and tasks. It is served over HTTPS (Serve), as an
// in-process http.RoundTripper (World.Transport), or by the command cmd/pvesim. In a test one line is enough:
//
//	sim := pvesim.Run(t)
//
// Behaviour follows what a real Proxmox VE was seen to do, down to its bad moments: errors whose text is the HTTP reason
// phrase, tasks that fail after the request was answered with 200, a cloning VM whose config is locked, lists that lag
// behind. Requests that a real host would refuse are refused with the same words. Endpoints that are not simulated answer
// 501 and name themselves; GET /pvesim/coverage lists those that are.
//
// All changes happen under one mutex, in the order of a single event queue that is driven by an injected clock, so a run is
// repeatable from its seed as far as its requests come in the same order. There is no package state: any number of worlds
// can live in one process.
package pvesim
