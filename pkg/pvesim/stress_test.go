package pvesim_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// TestManyClientsAtOnce lets eight clients do as they like with the same few VMs. Whatever they are refused, the world must
// be in order in the end.
func TestManyClientsAtOnce(t *testing.T) {
	t.Parallel()
	a := newAPI(t, pvesim.WithSpeed(5000), pvesim.WithGuests(pvesim.Booting(pvesim.BootHooks{})))
	var clients sync.WaitGroup
	for i := range 8 {
		clients.Go(func() { meddle(a, rand.New(rand.NewPCG(uint64(i), 1)), 60) })
	}
	clients.Wait()
	eventually(t, "all tasks end", func() bool { return a.server.World.RunningTasks() == 0 })
	if broken := a.server.World.Check(); len(broken) > 0 {
		t.Errorf("world is broken: %v", broken)
	}
}

// meddle sends random requests for VMs 200 to 205 and does not look at the answers.
func meddle(a *api, random *rand.Rand, times int) {
	for range times {
		id := 200 + random.IntN(6)
		vm := fmt.Sprintf("/nodes/pve1/qemu/%d", id)
		switch random.IntN(9) {
		case 0, 1:
			a.do("POST", "/nodes/pve1/qemu/9001/clone", "newid", fmt.Sprint(id), "full", fmt.Sprint(random.IntN(2)), "pool", "capi")
		case 2:
			a.do("POST", vm+"/config", "scsi1", "local-lvm:1", "cores", "4")
		case 3:
			a.do("PUT", vm+"/config", "delete", "scsi1", "force", "1")
		case 4:
			a.do("POST", vm+"/status/start")
		case 5:
			a.do("POST", vm+"/status/stop")
		case 6, 7:
			a.do("DELETE", vm, "purge", "1", "destroy-unreferenced-disks", "1")
		case 8:
			a.do("GET", "/cluster/resources")
			a.server.World.VMs()
		}
	}
}
