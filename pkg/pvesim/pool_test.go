package pvesim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

func TestNestedPools(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.answers(
		asked{"POST /pools poolid=a comment=first", "200 OK"},
		asked{"POST /pools poolid=none/b", "500 create pool failed: parent 'none' of pool 'none/b' does not exist"},
		asked{"POST /pools poolid=a/b", "200 OK"},
		asked{"POST /pools poolid=a/b/c", "200 OK"},
		asked{"POST /pools poolid=a/b/c/d", "does not look like a valid pool name"},
		asked{"POST /pools poolid=a%b", "403 Permission check failed (, Pool.Allocate)"},
		asked{"GET /pools", `[{"comment":"first","poolid":"a"},{"poolid":"a/b"},{"poolid":"a/b/c"},{"poolid":"capi"}]`},
		asked{"DELETE /pools/a", "500 delete pool failed: pool 'a' is not empty (contains pool 'a/b')"},
		asked{"DELETE /pools poolid=a/b/c", "200 OK"},
		asked{"DELETE /pools poolid=a/b", "200 OK"},
		asked{"DELETE /pools/a", "200 OK"},
		asked{"DELETE /pools/a", "500 delete pool failed: pool 'a' does not exist"},
	)
}

func TestPoolMembers(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	must(t, a.server.World.AddContainer(pvesim.ContainerSpec{VMID: 300, Node: "pve2", Name: "ct", Tags: "x"}))
	a.answers(
		asked{"POST /pools poolid=p", "200 OK"},
		asked{"PUT /pools/p vms=9001,300,777 storage=local", "200 OK"},
		asked{"PUT /pools/p vms=9001", "500 update pools failed: VM 9001 is already a pool member"},
		asked{"PUT /pools/p storage=local", "500 update pools failed: Storage 'local' is already a pool member"},
		asked{"PUT /pools/p storage=shared delete=1", "500 update pools failed: Storage 'shared' is not a pool member"},
		asked{"PUT /pools/capi vms=9001", "500 update pools failed: VM 9001 belongs already to pool 'p' and 'allow-move' is not set"},
		// All of a request is done, or nothing.
		asked{"PUT /pools/p comment=x vms=9002,9001", "500 update pools failed: VM 9001 is already a pool member"},
		asked{"GET /pools poolid=p type=lxc", `"id":"lxc/300"`},
		asked{"GET /pools/p type=storage", `[{"content":"iso,import,vztmpl,snippets,backup","disk":0,"id":"storage/pve1/local"`},
		asked{"GET /pools type=lxc", "map[poolid:missing property"},
	)
	entry := a.object("/pools/p")
	if diff := cmp.Diff([]string{"id=lxc/300", "id=qemu/9001", "id=storage/pve1/local"}, pick(entry["members"], "id")); diff != "" || entry["comment"] != nil {
		t.Errorf("pool is %v (-want +got):\n%s", entry, diff)
	}
	for _, m := range entry["members"].([]any) {
		if member := m.(map[string]any); member["tags"] != nil || member["pool"] != nil {
			t.Errorf("a member is shown with what pvestatd does not broadcast: %v", member)
		}
	}
	a.answers(
		asked{"PUT /pools/capi vms=9001 allow-move=1", "200 OK"},
		asked{"DELETE /pools/p", "500 delete pool failed: pool 'p' is not empty (contains VM 300)"},
		asked{"PUT /pools/p vms=300 delete=1", "200 OK"},
		asked{"DELETE /pools/p", "500 delete pool failed: pool 'p' is not empty (contains storage 'local')"},
		asked{"PUT /pools/p storage=local delete=1", "200 OK"},
		// 777, which does not exist, is no hindrance.
		asked{"DELETE /pools/p", "200 OK"},
	)
	if v, _ := a.server.World.VM(9001); v.Pool != "capi" {
		t.Errorf("9001 is in pool %q", v.Pool)
	}
}

// TestPoolsAddUpTheirRunningGuests is what cluster/resources shows of a pool.
func TestPoolsAddUpTheirRunningGuests(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bubble) {
		must(b.t, b.world.AddContainer(pvesim.ContainerSpec{VMID: 400, Node: "pve1", Pool: "capi", Cores: 3, Memory: 1024, State: "running"}))
		if got := b.ask("pve1", "PUT", "/pools/capi", "vms", "301,100"); got != "200 OK" {
			b.t.Fatal(got)
		}
		b.pass(25 * time.Second)
		pool := b.data("pve1", "/cluster/resources").([]any)[0].(map[string]any)
		if got := fmt.Sprintf("%v %v %v %v", pool["id"], pool["uptime"], pool["maxcpu"], pool["maxmem"]); got != "/pool/capi 20 4 1.610612736e+09" {
			b.t.Errorf("pool is %v", got)
		}
	})
}
