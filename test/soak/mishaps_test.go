package soak_test

import (
	"fmt"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// killWorker has the process of the last task die, if it still runs.
func (s *simulation) killWorker() {
	if s.lastTask != "" {
		s.trace.add("admin", "kills the worker of %s", s.lastTask)
		s.world.KillWorker(s.lastTask)
	}
}

func (s *simulation) anyNode() (proxmox.NodeName, bool) {
	return proxmox.NodeName(fmt.Sprintf("pve%d", 1+s.random.IntN(s.setting.nodes))), true
}

func (s *simulation) onNode(do, undo func(proxmox.NodeName)) func() {
	return func() {
		if node, found := s.anyNode(); found {
			s.trace.add("admin", "node %s", node)
			do(node)
			s.undoLater(func() { undo(node) })
		}
	}
}

// stopDaemon stops one of a host's daemons.
func (s *simulation) stopDaemon() {
	daemon := []pvesim.Daemon{pvesim.PVEProxy, pvesim.PVEDaemon, pvesim.PVEStatD}[s.random.IntN(3)]
	s.trace.add("admin", "%s", daemon)
	s.onNode(func(n proxmox.NodeName) { s.world.StopDaemon(n, daemon) }, func(n proxmox.NodeName) { s.world.StartDaemon(n, daemon) })()
}

// heldLongest is how long pveproxy and pvedaemon are frozen at most: what they hold is carried out when they thaw, and the controllers reckon with
// that for two minutes after they gave up, which they do after half a minute.
const heldLongest = 2 * time.Minute

// freeze has a daemon hang, and go on later.
func (s *simulation) freeze() {
	daemon := []pvesim.Daemon{pvesim.PVEProxy, pvesim.PVEDaemon, pvesim.PVEStatD}[s.random.IntN(3)]
	node, _ := s.anyNode()
	s.trace.add("admin", "%s on %s", daemon, node)
	s.world.FreezeDaemon(node, daemon)
	s.frozen[node]++
	longest := heldLongest
	if daemon == pvesim.PVEStatD {
		longest = longestTrouble
	}
	s.undoWithin(longest, func() {
		s.frozen[node]--
		s.world.ThawDaemon(node, daemon)
	})
}

// isFrozen reports whether a daemon hangs anywhere: what it holds is carried out later.
func (s *simulation) isFrozen() bool {
	for _, daemons := range s.frozen {
		if daemons > 0 {
			return true
		}
	}
	return false
}

// longestTrouble is how long most troubles last at most.
const longestTrouble = 4 * time.Minute

// undoLater undoes something after a while, or when the run is to calm down.
func (s *simulation) undoLater(undo func()) { s.undoWithin(longestTrouble, undo) }

func (s *simulation) undoWithin(longest time.Duration, undo func()) {
	done := false
	s.unmended++
	once := func() {
		if !done {
			done = true
			s.unmended--
			s.trouble()
			s.trace.add("admin", "undoes")
			undo()
		}
	}
	s.heal = append(s.heal, once)
	s.after(s.upTo(longest), once)
}
