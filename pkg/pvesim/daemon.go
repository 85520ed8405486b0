package pvesim

import (
	"slices"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// Daemon is a service of a host that can be stopped or frozen.
type Daemon string

// The daemons of a host. PVEProxy takes all requests and serves most reads. PVEDaemon runs what must be root: all that writes, the
// login with a password, and some reads, such as status/current and a storage's content. PVEStatD broadcasts the figures that
// cluster/resources shows.
const (
	PVEProxy  Daemon = "pveproxy"
	PVEDaemon Daemon = "pvedaemon"
	PVEStatD  Daemon = "pvestatd"
)

// DaemonState is how a daemon is.
type DaemonState string

// The states of a daemon.
const (
	DaemonRunning DaemonState = ""
	DaemonStopped DaemonState = "stopped"
	DaemonFrozen  DaemonState = "frozen"
)

// answerTimeout is how long pveproxy waits for the answer of another daemon.
const answerTimeout = 30 * time.Second

// StopDaemon stops a daemon of a host, as systemctl stop does: requests that need it get 595 "Connection refused", and those that it
// had taken while frozen are lost. Names that do not exist do nothing, here and in the other methods about daemons.
func (w *World) StopDaemon(name proxmox.NodeName, d Daemon) {
	w.setDaemon(name, d, DaemonStopped, DaemonRunning, DaemonFrozen)
}

// StartDaemon starts a daemon that was stopped.
func (w *World) StartDaemon(name proxmox.NodeName, d Daemon) {
	w.setDaemon(name, d, DaemonRunning, DaemonStopped)
}

// FreezeDaemon freezes the workers of a daemon, as kill -STOP does: it takes requests and does not answer. Who asked through pveproxy
// gets 596 "Connection timed out" after 30 s, and the request is carried out all the same after ThawDaemon.
func (w *World) FreezeDaemon(name proxmox.NodeName, d Daemon) {
	w.setDaemon(name, d, DaemonFrozen, DaemonRunning)
}

// ThawDaemon ends FreezeDaemon: the requests taken meanwhile are carried out now, in order.
func (w *World) ThawDaemon(name proxmox.NodeName, d Daemon) {
	w.setDaemon(name, d, DaemonRunning, DaemonFrozen)
}

// setDaemon puts a daemon that is in one of the states from into another.
func (w *World) setDaemon(name proxmox.NodeName, d Daemon, to DaemonState, from ...DaemonState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.node(name)
	if n == nil || !slices.Contains(from, n.Daemons[d]) {
		return
	}
	if n.Daemons == nil {
		n.Daemons = map[Daemon]DaemonState{}
	}
	if n.Daemons[d] = to; to == DaemonRunning {
		delete(n.Daemons, d)
	}
	switch {
	case d == PVEStatD && to == DaemonRunning:
		w.unsilence(n)
	case d == PVEStatD:
		w.silence(n)
	default:
		n.releaseHeld()
	}
}

// held is a request that a frozen daemon has taken.
type held struct {
	daemon Daemon
	run    func() reply
	// lost is the answer when the daemon never comes to it.
	lost   reply
	answer chan reply
}

// releaseHeld lets go of the requests whose daemon is frozen no longer: they are carried out, or lost with their daemon.
func (n *node) releaseHeld() {
	waiting := n.held
	n.held = nil
	for _, h := range waiting {
		switch {
		case !n.online || n.Daemons[h.daemon] == DaemonStopped:
			h.finish(h.lost)
		case n.Daemons[h.daemon] == DaemonFrozen:
			n.held = append(n.held, h)
		default:
			h.finish(h.run())
		}
	}
}

// finish answers, unless who asked has been told of a timeout already.
func (h *held) finish(r reply) {
	select {
	case h.answer <- r:
	default:
	}
}

// hold keeps a request until its daemon is thawed.
func (n *node) hold(d Daemon, lost reply, run func() reply) *held {
	h := &held{daemon: d, run: run, lost: lost, answer: make(chan reply, 1)}
	n.held = append(n.held, h)
	return h
}

// pass lets a daemon of the host go on with a request, or answers as the pveproxy before it when it does not.
func (w *World) pass(n *node, d Daemon, run func() reply) reply {
	switch n.Daemons[d] {
	case DaemonRunning:
	case DaemonStopped:
		return unreachable("Connection refused")
	case DaemonFrozen:
		h := n.hold(d, unanswered("Connection reset by peer"), run)
		w.after(answerTimeout, func() { h.finish(unanswered("Connection timed out")) })
		return reply{later: h.answer}
	}
	return run()
}

func unanswered(reason string) reply {
	return reply{status: noAnswerStatus, reason: reason, bare: true}
}

func unreachable(reason string) reply {
	return reply{status: offlineStatus, reason: reason, bare: true}
}

// forward carries the request to the host and the daemon that run it.
func (c *call) forward(run func() reply) reply {
	n := c.at
	if c.route.proxied {
		n = c.node
	}
	daemon := func() reply {
		if !c.route.protected {
			return run()
		}
		return c.pass(n, PVEDaemon, run)
	}
	switch {
	case n == c.at:
		return daemon()
	case !c.at.sees(n):
		r := unreachable("No route to host")
		r.delay = noRouteDelay
		return r
	}
	return c.pass(n, PVEProxy, daemon)
}
