package pvesim

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// Act is something done at a host, as data.
type Act struct {
	// Act is stop-node, start-node, cut-link, mend-link, stop-daemon, start-daemon, freeze-daemon, thaw-daemon or kill-vm: the methods of
	// World of those names.
	Act string `json:"act"`
	// Node that it is done at.
	Node proxmox.NodeName `json:"node,omitempty"`
	// Daemon of the acts that are about one.
	Daemon Daemon `json:"daemon,omitempty"`
	// VMID for kill-vm.
	VMID proxmox.VMID `json:"vmid,omitempty"`
}

// Do does an act. The error names what is not there, and what is.
func (w *World) Do(a Act) error {
	nodes := map[string]func(proxmox.NodeName){
		"stop-node": w.StopNode, "start-node": w.StartNode, "cut-link": w.CutLink, "mend-link": w.MendLink,
	}
	daemons := map[string]func(proxmox.NodeName, Daemon){
		"stop-daemon": w.StopDaemon, "start-daemon": w.StartDaemon, "freeze-daemon": w.FreezeDaemon, "thaw-daemon": w.ThawDaemon,
	}
	switch {
	case a.Act == "kill-vm":
		if _, ok := w.VM(a.VMID); !ok {
			return fmt.Errorf("%s: no VM %d", a.Act, a.VMID)
		}
		w.Kill(a.VMID)
	case nodes[a.Act] == nil && daemons[a.Act] == nil:
		known := slices.Sorted(maps.Keys(nodes))
		known = append(append(known, slices.Sorted(maps.Keys(daemons))...), "kill-vm")
		return fmt.Errorf("act %q: want %s", a.Act, strings.Join(known, ", "))
	case !w.hasNode(a.Node):
		return fmt.Errorf("%s: no node %q", a.Act, a.Node)
	case nodes[a.Act] != nil:
		nodes[a.Act](a.Node)
	case !slices.Contains([]Daemon{PVEProxy, PVEDaemon, PVEStatD}, a.Daemon):
		return fmt.Errorf("%s: daemon is %q: want %s, %s or %s", a.Act, a.Daemon, PVEProxy, PVEDaemon, PVEStatD)
	default:
		daemons[a.Act](a.Node, a.Daemon)
	}
	return nil
}

func (w *World) hasNode(name proxmox.NodeName) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.node(name) != nil
}
