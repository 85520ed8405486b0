package pvesim

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

const (
	// haCycle is the time between two rounds of the manager.
	haCycle = 10 * time.Second
	// haStopTimeout is how long the manager lets a guest shut down.
	haStopTimeout = time.Minute
	// haFenceDelay is how long a node must be gone before its services are started elsewhere.
	haFenceDelay = 2 * time.Minute
)

// haService is a resource as the manager's status has it.
type haService struct {
	state string
	node  proxmox.NodeName
	// running is what the node's agent last reported.
	running bool
}

// haCommand waits for the manager: migrate, relocate or stop.
type haCommand struct {
	kind string
	// node is the target of a move.
	node string
	// patience is how long a guest may take to shut down; zero means none at all.
	patience time.Duration
}

// haTouch makes the manager look at a resource in its next round. The work of the node's agent follows some seconds later.
func (w *World) haTouch(sid string) {
	if w.ha.planned[sid] {
		return
	}
	w.ha.planned[sid] = true
	w.ha.master = w.haMaster()
	wait := w.between(haRoundSoonest, haRoundLatest)
	if last, looked := w.ha.rounds[sid]; looked {
		wait = max(wait, haCycle-time.Duration(float64(w.clock.Since(last))*w.speed))
	}
	w.after(wait, func() {
		delete(w.ha.planned, sid)
		w.ha.rounds[sid] = w.clock.Now()
		w.haRound(sid)
	})
}

// haTouchVM makes the manager look at a VM whose power has changed.
func (w *World) haTouchVM(id proxmox.VMID) {
	if w.haManaged(id) {
		w.haTouch(haID(id))
	}
}

func (w *World) haCommand(sid string, command haCommand) {
	w.ha.commands[sid] = command
	w.haTouch(sid)
}

// haRequest is a task that only asks the manager for something.
func (c *call) haRequest(typ, line string, ask func()) reply {
	return c.task(typ, c.params["vmid"], func(t *task) {
		t.logf("%s", line)
		t.after(c.about(haRequestDelay), func() {
			ask()
			t.end("")
		})
	})
}

// haSet requests a state of a VM that is a resource.
func (w *World) haSet(id proxmox.VMID, state string) {
	sid := haID(id)
	if r := w.ha.resources[sid]; r != nil {
		r["state"] = state
		w.haTouch(sid)
	}
}

// haRound is the manager's look at one resource.
func (w *World) haRound(sid string) {
	r := w.ha.resources[sid]
	_, number, _ := strings.Cut(sid, ":")
	v := w.vms[toVMID(number)]
	if r == nil || v == nil || r["state"] == haIgnored {
		delete(w.ha.services, sid)
		delete(w.ha.commands, sid)
		return
	}
	s := w.ha.services[sid]
	if s == nil {
		s = &haService{}
		w.ha.services[sid] = s
	}
	s.node = v.node
	if n := w.node(v.node); n == nil || !n.online {
		w.haFence(sid, s, v)
		return
	}
	command := w.ha.commands[sid]
	delete(w.ha.commands, sid)
	if s.state == haError && r["state"] != haDisabled {
		return
	}
	patience := haStopTimeout
	if command.kind == "stop" {
		r["state"], patience = haStopped, command.patience
	}
	if (command.kind == "migrate" || command.kind == "relocate") && w.haMove(s, v, command) {
		return
	}
	w.haFollow(s, v, haJob{want: r["state"], patience: patience})
}

// haJob is what a resource shall become, and how long a guest may take to shut down for it.
type haJob struct {
	want     string
	patience time.Duration
}

// haFollow brings the VM into the requested state.
func (w *World) haFollow(s *haService, v *vm, j haJob) {
	if j.want == haStopped || j.want == haDisabled {
		s.running = false
		if s.state = haStopped; v.running {
			s.state = haRequestStop
			w.haWork(v, func() { w.haStopVM(v, j.patience) })
		}
		return
	}
	s.running = s.state == haStarted && v.running
	s.state = haStarted
	switch {
	case !v.running:
		w.haWork(v, func() { w.haStartVM(v) })
	case !s.running:
		w.haTouch(haID(v.id))
	}
}

// haWork is done by the agent of the VM's node, some seconds after the manager's round. The manager looks again if it is not.
func (w *World) haWork(v *vm, do func()) {
	at := v.node
	w.after(w.between(haWorkSoonest, haWorkLatest), func() {
		if n := w.node(at); n != nil && n.online && !v.destroyed && v.node == at && w.haManaged(v.id) {
			do()
			return
		}
		w.haTouch(haID(v.id))
	})
}

func (w *World) haTask(typ string, v *vm, body func(*task)) {
	w.start(taskKey{node: v.node, typ: typ, id: v.id.String(), user: rootUser}, func(t *task) {
		t.vms = []proxmox.VMID{v.id}
		body(t)
	})
}

func (w *World) haStartVM(v *vm) {
	w.haTask("qmstart", v, func(t *task) { w.startVM(t, startJob{node: w.node(v.node), id: v.id}) })
	w.haTouch(haID(v.id))
}

// haStopVM stops a VM, or lets its guest shut down first if it may take some time for that.
func (w *World) haStopVM(v *vm, patience time.Duration) {
	j := stopJob{node: w.node(v.node), id: v.id, patience: patience, force: true}
	typ, work := "qmshutdown", w.shutdownVM
	if patience == 0 {
		typ, work = "qmstop", w.stopVM
	}
	w.haTask(typ, v, func(t *task) {
		t.then = func() { w.haTried(v) }
		work(t, j)
	})
}

// haTried has the manager give up on a service that its node's agent could not stop: it does not try a second time.
func (w *World) haTried(v *vm) {
	if s := w.ha.services[haID(v.id)]; s != nil && s.state == haRequestStop && v.running {
		s.state = haError
	}
}

// haMove starts a migration; false if the service cannot go there.
func (w *World) haMove(s *haService, v *vm, command haCommand) bool {
	target := w.node(proxmox.NodeName(command.node))
	if target == nil || !target.online || target.Name == v.node {
		return false
	}
	s.state = command.kind
	w.haWork(v, func() {
		w.haTask("qmigrate", v, func(t *task) { w.migrateVM(t, migrateJob{vm: v, target: target, online: v.running, withDisks: true}) })
		w.haTouch(haID(v.id))
	})
	return true
}

// haFence waits until a node that is gone is surely dead, then gives its services to another.
func (w *World) haFence(sid string, s *haService, v *vm) {
	if s.state == "fence" {
		return
	}
	s.state, s.running = "fence", false
	lost := v.node
	w.after(haFenceDelay, func() {
		defer w.haTouch(sid)
		target := w.haNode(sid, v)
		if n := w.node(lost); v.node != lost || n == nil || n.online || w.ha.services[sid] != s || target == nil {
			s.state = haStopped
			return
		}
		v.node, s.state = target.Name, haStopped
		delete(v.config, "lock")
		w.changed(v)
	})
}

// haNode is the best node for a service among those that are up: by the priorities of its group or rule, then by name.
func (w *World) haNode(sid string, v *vm) *node {
	priorities, strict := w.haPriorities(sid)
	var best *node
	for _, n := range w.nodes {
		_, listed := priorities[n.Name]
		if !n.online || n.Name == v.node || (strict && !listed) {
			continue
		}
		if best == nil || priorities[n.Name] > priorities[best.Name] {
			best = n
		}
	}
	return best
}

// haPriorities are the nodes that a group or a node affinity rule prefers for the service, with the priority plus one.
func (w *World) haPriorities(sid string) (priorities map[proxmox.NodeName]int, strict bool) {
	nodes := ""
	if g := w.ha.groups[w.ha.resources[sid]["group"]]; g != nil {
		nodes, strict = g["nodes"], g["restricted"] == "1"
	}
	for _, name := range slices.Sorted(maps.Keys(w.ha.rules)) {
		rule := w.ha.rules[name]
		if rule["type"] == nodeAffinity && rule["disable"] != "1" && slices.Contains(schema.SplitList(rule["resources"]), sid) {
			nodes, strict = rule["nodes"], rule["strict"] == "1"
		}
	}
	priorities = map[proxmox.NodeName]int{}
	for _, entry := range schema.SplitList(nodes) {
		name, priority, _ := strings.Cut(entry, ":")
		priorities[proxmox.NodeName(name)] = 1 + atoi(priority, 0)
	}
	return priorities, strict
}
