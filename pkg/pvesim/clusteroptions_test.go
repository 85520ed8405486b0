package pvesim_test

import (
	"testing"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

func TestDatacenterOptions(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	const set, get = "PUT /cluster/options ", "GET /cluster/options"
	a.answers(
		asked{get, `{"allowed-tags":["kubernetes","ubuntu"],"description":"","mac_prefix":"BC:24:11"}`},
		asked{set + "next-id=lower=500,upper=502 max_workers=3 keyboard=de", "200 OK"},
		asked{get, `"keyboard":"de","mac_prefix":"BC:24:11","max_workers":3,"next-id":{"lower":"500","upper":"502"}`},
		asked{"GET /cluster/nextid", `"500"`},
		asked{"GET /cluster/nextid vmid=100", `"100"`},
		asked{set + "next-id=lower=x", "map[next-id:invalid format - format error\nnext-id.lower: type check ('integer') failed - got 'x'"},
		asked{set + "keyboard=klingon", "does not have a value in the enumeration"},
		asked{set + "tag-style=shape=dense,ordering=config registered-tags=x;y", "200 OK"},
		asked{get, `"registered-tags":["x","y"],"tag-style":{"ordering":"config","shape":"dense"}`},
		asked{get, `"allowed-tags":["kubernetes","ubuntu","x","y"]`},
		asked{set + "delete=next-id,registered-tags mac_prefix=AA:BB:CC", "200 OK"},
		asked{"GET /cluster/nextid", `"100"`},
	)
	a.ok("POST", "/nodes/pve1/qemu", "vmid", "500", "net0", "virtio,bridge=vmbr0")
	if v, _ := a.server.World.VM(500); len(v.Config["net0"]) < 15 || v.Config["net0"][:15] != "virtio=AA:BB:CC" {
		t.Errorf("the MAC address of a new VM has another prefix: %s", v.Config["net0"])
	}
}

func TestVMIDsRunOut(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	must(t, a.server.World.AddVM(pvesim.VMSpec{VMID: 500, Node: "pve1"}))
	must(t, a.server.World.AddContainer(pvesim.ContainerSpec{VMID: 501, Node: "pve1"}))
	a.answers(
		asked{"PUT /cluster/options next-id=lower=500,upper=502", "200 OK"},
		asked{"GET /cluster/nextid", "500 unable to get any free VMID in range [500, 502]"},
		asked{"GET /cluster/nextid vmid=501", "map[vmid:VM 501 already exists]"},
	)
}

// TestTagsThatMayBeUsed depends on user-tag-access for those who may not change the datacenter.
func TestTagsThatMayBeUsed(t *testing.T) {
	t.Parallel()
	c, user := withUser(t)
	c.grant("a@pve", "/vms/9001", "VM.Audit")
	for _, tt := range []struct{ access, want string }{
		{"", `"allowed-tags":["kubernetes","ubuntu"]`},
		{"user-allow=none,user-allow-list=a;b", `"allowed-tags":[]`},
		{"user-allow=list,user-allow-list=a;b", `"allowed-tags":["a","b"]`},
		{"user-allow=existing", `"allowed-tags":["kubernetes","ubuntu"]`},
	} {
		if tt.access != "" {
			c.root.wants("OK", "PUT", "/cluster/options", "user-tag-access", tt.access)
		}
		if got := user.do("GET", "/cluster/options").body; got != `{"data":{`+tt.want+`}}` {
			t.Errorf("%s: %s, want %s", tt.access, got, tt.want)
		}
	}
}
