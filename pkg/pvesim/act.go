package pvesim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// Act is something done at a host, as data.
type Act struct {
	// Act is the name of what is done, for example stop-node: World has a method for each. An error of World.Do lists all.
	Act string `json:"act"`
	// Node that it is done at.
	Node proxmox.NodeName `json:"node,omitempty"`
	// Daemon of the acts that are about one.
	Daemon Daemon `json:"daemon,omitempty"`
	// VMID for kill-vm and unlock-vm.
	VMID proxmox.VMID `json:"vmid,omitempty"`
	// UPID of the task for kill-worker.
	UPID proxmox.UPID `json:"upid,omitempty"`
	// Volume for remove-file.
	Volume proxmox.VolumeID `json:"volume,omitempty"`
}

// deed is one kind of act: what it needs to be there, and how it is done.
type deed struct {
	name  string
	needs []func(Act) error
	do    func(Act)
}

func (w *World) deeds() []deed {
	atNode := func(name string, do func(proxmox.NodeName)) deed {
		return deed{name, []func(Act) error{w.needNode}, func(a Act) { do(a.Node) }}
	}
	atDaemon := func(name string, do func(proxmox.NodeName, Daemon)) deed {
		return deed{name, []func(Act) error{w.needNode, needDaemon}, func(a Act) { do(a.Node, a.Daemon) }}
	}
	return []deed{
		atNode("stop-node", w.StopNode), atNode("start-node", w.StartNode), atNode("cut-link", w.CutLink), atNode("mend-link", w.MendLink),
		atDaemon("stop-daemon", w.StopDaemon), atDaemon("start-daemon", w.StartDaemon),
		atDaemon("freeze-daemon", w.FreezeDaemon), atDaemon("thaw-daemon", w.ThawDaemon),
		{"kill-vm", []func(Act) error{w.needVM}, func(a Act) { w.Kill(a.VMID) }},
		{"unlock-vm", []func(Act) error{w.needVM}, func(a Act) { w.Unlock(a.VMID) }},
		{"kill-worker", []func(Act) error{w.needTask}, func(a Act) { w.KillWorker(a.UPID) }},
		{"remove-file", []func(Act) error{w.needNode, w.needVolume}, func(a Act) { w.RemoveFile(a.Node, a.Volume) }},
	}
}

// Do does an act. The error names what is not there, and what is.
func (w *World) Do(a Act) error {
	var names []string
	for _, d := range w.deeds() {
		names = append(names, d.name)
		if d.name != a.Act {
			continue
		}
		for _, need := range d.needs {
			if err := need(a); err != nil {
				return fmt.Errorf("%s: %w", a.Act, err)
			}
		}
		d.do(a)
		return nil
	}
	return fmt.Errorf("act %q: want %s", a.Act, strings.Join(names, ", "))
}

func needDaemon(a Act) error {
	if !slices.Contains([]Daemon{PVEProxy, PVEDaemon, PVEStatD}, a.Daemon) {
		return fmt.Errorf("daemon is %q: want %s, %s or %s", a.Daemon, PVEProxy, PVEDaemon, PVEStatD)
	}
	return nil
}

func (w *World) needNode(a Act) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.node(a.Node) == nil {
		return fmt.Errorf("no node %q", a.Node)
	}
	return nil
}

func (w *World) needVM(a Act) error {
	if _, ok := w.VM(a.VMID); !ok {
		return fmt.Errorf("no VM %d", a.VMID)
	}
	return nil
}

func (w *World) needTask(a Act) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.tasks.byUPID[a.UPID]; t == nil || t.done() {
		return fmt.Errorf("no running task %q", a.UPID)
	}
	return nil
}

func (w *World) needVolume(a Act) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.volumeAt(a.Node, a.Volume) == nil {
		return fmt.Errorf("no volume %q on %s", a.Volume, a.Node)
	}
	return nil
}
