package pvesim_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// TestManyClientsAtOnce lets clients do as they like with the same few VMs while others watch the world and trouble its hosts. Whatever
// the clients are refused, the world must be in order in the end.
func TestManyClientsAtOnce(t *testing.T) {
	t.Parallel()
	a := newAPI(t, pvesim.WithSpeed(5000), pvesim.WithGuests(pvesim.Booting(pvesim.BootHooks{})))
	w := a.server.World
	must(t, w.AddVM(pvesim.VMSpec{VMID: 300, Node: "pve2", Config: map[string]string{"scsi0": "shared:300/vm-300-disk-0.qcow2,size=1G"}}))
	must(t, w.AddFault(pvesim.Fault{Percent: 5, When: pvesim.AfterEffect, Delay: pvesim.Duration(time.Millisecond)}))
	must(t, w.AddFault(pvesim.Fault{Percent: 5, Method: "POST", TaskError: "out of luck"}))
	var clients sync.WaitGroup
	for i := range uint64(8) {
		d := dice(rand.New(rand.NewPCG(i, 1)).IntN)
		clients.Go(func() {
			for range 60 {
				o := d.operation()
				a.do(o.method, o.path, o.params...)
			}
		})
	}
	clients.Go(func() { watch(w, 60) })
	clients.Go(func() { bother(w, 60) })
	clients.Wait()
	eventually(t, "all tasks end", func() bool { return w.RunningTasks() == 0 })
	if broken := w.Check(); len(broken) > 0 {
		t.Errorf("world is broken: %v", broken)
	}
	if served := len(w.Requests()); served < 8*60 {
		t.Errorf("%d requests were served", served)
	}
}

// watch looks at all that there is to see.
func watch(w *pvesim.World, times int) {
	for range times {
		w.State()
		w.Check()
		w.VMs()
		w.Volumes()
		w.Faults()
		w.Coverage()
		w.Requests()
	}
}

// bother makes requests fail or wait without breaking anything: the nodes of the VMs keep their quorum.
func bother(w *pvesim.World, times int) {
	for range times {
		w.FreezeDaemon("pve2", pvesim.PVEDaemon)
		w.StopDaemon("pve1", pvesim.PVEStatD)
		poll()
		w.ThawDaemon("pve2", pvesim.PVEDaemon)
		w.StartDaemon("pve1", pvesim.PVEStatD)
		w.StopDaemon("pve2", pvesim.PVEProxy)
		w.CutLink("pve3")
		poll()
		w.StartDaemon("pve2", pvesim.PVEProxy)
		w.MendLink("pve3")
	}
}
