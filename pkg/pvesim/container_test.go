package pvesim_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

func TestContainersAreOccupants(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	w := a.server.World
	before := a.object("/nodes/pve2/status")["memory"].(map[string]any)["used"].(float64)
	must(t, w.AddContainer(pvesim.ContainerSpec{VMID: 300, Node: "pve2", Pool: "capi", Name: "db", Cores: 2, Memory: 4096, Tags: "prod", State: "running"}))
	must(t, w.AddContainer(pvesim.ContainerSpec{VMID: 301, Node: "pve2"}))
	a.answers(
		asked{"GET /nodes/pve2/lxc", `"cpus":2,"disk":1073741824`},
		asked{"GET /nodes/pve1/lxc", "200 OK map[] []"},
		asked{"GET /nodes/pve2/lxc/300", `{"subdir":"config"}`},
		asked{"GET /nodes/pve2/lxc/300/status", `{"subdir":"current"}`},
		asked{"GET /nodes/pve2/lxc/300/config", `"hostname":"db","memory":4096,"ostype":"debian","rootfs":"local-lvm:vm-300-disk-0,size=8G","swap":512,"tags":"prod"`},
		asked{"GET /nodes/pve2/lxc/300/config snapshot=snap", "500 snapshot 'snap' does not exist"},
		asked{"GET /nodes/pve2/lxc/300/status/current", `"ha":{"managed":0}`},
		asked{"GET /nodes/pve2/lxc/301/status/current", `"name":"CT301"`},
		asked{"GET /nodes/pve1/lxc/300/config", "500 Configuration file 'nodes/pve1/lxc/300.conf' does not exist"},
		asked{"GET /nodes/pve1/lxc/9001/status/current", "500 Configuration file 'nodes/pve1/lxc/9001.conf' does not exist"},
		asked{"GET /nodes/pve2/qemu/300/config", "500 Configuration file 'nodes/pve2/qemu-server/300.conf' does not exist"},
		asked{"GET /cluster/nextid vmid=300", "map[vmid:VM 300 already exists]"},
		asked{"GET /cluster/options", `"allowed-tags":["kubernetes","prod","ubuntu"]`},
	)
	want := []string{"id=lxc/300 type=lxc name=db pool=capi tags=prod maxcpu=2 memhost=<nil>", "id=lxc/301 type=lxc name=CT301 pool=<nil> tags=<nil> maxcpu=1 memhost=<nil>"}
	if diff := cmp.Diff(want, pick(a.must("GET", "/cluster/resources", "type", "vm").([]any)[:2], "id", "type", "name", "pool", "tags", "maxcpu", "memhost")); diff != "" {
		t.Errorf("resources (-want +got):\n%s", diff)
	}
	if used := a.object("/nodes/pve2/status")["memory"].(map[string]any)["used"].(float64); used-before != 4<<30 {
		t.Errorf("the host's memory in use grew by %v", used-before)
	}
}

func TestContainersTakeTheirVMIDs(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	must(t, a.server.World.AddContainer(pvesim.ContainerSpec{VMID: 300, Node: "pve2"}))
	for want, err := range map[string]error{
		"add container 300: VMID is taken":  a.server.World.AddContainer(pvesim.ContainerSpec{VMID: 300, Node: "pve1"}),
		"add container 9001: VMID is taken": a.server.World.AddContainer(pvesim.ContainerSpec{VMID: 9001, Node: "pve1"}),
		`add container 302: no node "pve9"`: a.server.World.AddContainer(pvesim.ContainerSpec{VMID: 302, Node: "pve9"}),
		"add VM 300: VMID is taken":         a.server.World.AddVM(pvesim.VMSpec{VMID: 300, Node: "pve1"}),
	} {
		if err == nil || err.Error() != want {
			t.Errorf("error is %v, want %s", err, want)
		}
	}
	a.answers(
		asked{"POST /nodes/pve1/qemu vmid=300", "500 unable to create VM 300 - CT 300 already exists on node 'pve2'"},
	)
	const want = "close (rename) atomic file '/etc/pve/nodes/pve1/qemu-server/300.conf' failed: File exists"
	if exit := a.exit("POST", "/nodes/pve1/qemu/9001/clone", "newid", "300"); exit != want {
		t.Errorf("clone: %s", exit)
	}
}
