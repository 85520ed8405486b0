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
//
// Files are named after what they hold; those of one subject begin alike. …api.go and …routes.go have endpoints, …check.go what
// is refused before anything is done, …job.go what a worker does, …format.go property strings, …acts.go what is done to hosts
// behind the back of the API.
//
//   - The world: world, entity, events, delays; model, seedmodel and load make it, state is it as plain data, dump and inspect
//     copy from it, check* look for what is broken in it.
//   - A request, in its order: server or run, front (off the wire), http (faults, and the order of the rest), auth, route and
//     pathparam, permission, placement and daemon (who serves it), internal/schema (its parameters), the handler, reply.
//   - Tasks: task, taskapi; flock (lock files of VMs), quorum (locks of the cluster file system).
//   - VMs: create, clone*, destroy, template and snapshot*; vmedit takes a change of a config, vmapply makes it, hotplug on a
//     running VM, vmparam and …format say what may be in it, vmvalue writes it, vmconfig and vmstatus show it, vmrights are for
//     whom; drive*, vmdrive, resize and movedisk are about its disks, cloudinit* about its seed.
//   - Power: power, start, startcheck, stop, suspend, bulk, migrate, console.
//   - What runs in a VM: guest, booting, guestseed (its cloud-init), dhcp, agent*, debian and program (a system to ask).
//   - Storage: storage, storageapi, content, upload, download, vol* (names, features and rights of volumes).
//   - Access: access*, users, usergroups, tokens, ticket, role*, acl*, rights, permissionapi.
//   - Cluster and nodes: cluster*, resources and guestentry (cluster/resources), node, hardware, mapping, pool, container, ha*.
//   - Network: firewall*, internal/firewall, sdn*, internal/sdn.
//   - Trouble: fault and strike, act and …acts, daemon (those that are stopped or frozen).
//   - The simulator itself: control (/pvesim/…), coverage*, certificate, index.
package pvesim
