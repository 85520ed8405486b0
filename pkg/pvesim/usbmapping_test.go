package pvesim_test

import (
	"strings"
	"testing"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

func TestUSBMappings(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	const device, all = "node=pve1,id=046d:c52b,path=1-2.3", "/cluster/mapping/usb"
	a.answers(
		asked{"GET " + all, "200 OK map[] []"},
		asked{"POST " + all + " id=key map=" + device + " description=d", "200 OK"},
		asked{"POST " + all + " id=key map=" + device, "500 create hardware mapping failed: usb ID 'key' already defined"},
		asked{"POST " + all + " id=k2 map=node=pve1", "map[map[0]:invalid format - format error\nmap[0].id: property is missing and it is not optional"},
		asked{"POST " + all + " id=k2 map=node=pve1,id=046d:c52b,path=front", "map[0].path: value does not match the regex pattern"},
		asked{"GET " + all + "/key", `"description":"d"`},
		asked{"GET " + all + "/none", "500 mapping 'none' not found"},
		asked{"GET " + all + " check-node=pve1", `"error":[],"id":"key","map":["` + device + `"],"type":"usb"`},
		asked{"GET " + all + " check-node=pve2", `"error":[{"message":"No mapping for node pve2.","severity":"warning"}]`},
		asked{"PUT " + all + "/key delete=description", "map:property is missing and it is not optional"},
		asked{"PUT " + all + "/key delete=map map=" + device, "500 update hardware mapping failed: unable to delete required option 'map'"},
		asked{"PUT " + all + "/key delete=description description=e map=" + device, "500 update hardware mapping failed: cannot set and delete property 'description' at the same time!"},
		asked{"PUT " + all + "/key delete=colour map=" + device, "500 update hardware mapping failed: no such option 'colour'"},
		asked{"PUT " + all + "/key digest=0123 map=" + device, "500 update hardware mapping failed: detected modified configuration"},
		asked{"PUT " + all + "/none map=" + device, "500 update hardware mapping failed: usb ID 'none' does not exist"},
		asked{"PUT " + all + "/key description=e map=" + device, "200 OK"},
		asked{"PUT " + all + "/key delete=description map=node=pve2,id=046d:c52b", "200 OK"},
		asked{"GET " + all, `"id":"key","map":["node=pve2,id=046d:c52b"],"type":"usb"}]`},
		asked{"DELETE " + all + "/key", "200 OK"},
		asked{"DELETE " + all + "/key", "200 OK"},
		asked{"GET " + all, "200 OK map[] []"},
	)
}

// TestAVMNeedsADeviceOfItsHost starts VMs with a mapping that has a device of their host, of another one, and with none.
func TestAVMNeedsADeviceOfItsHost(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.must("POST", "/cluster/mapping/usb", "id", "key", "map", "node=pve1,id=046d:c52b")
	a.must("POST", "/cluster/mapping/usb", "id", "away", "map", "node=pve2,id=046d:c52b")
	number := proxmox.VMID(500)
	for id, want := range map[string]string{"key": "OK", "away": "USB device mapping not found for 'away'", "none": "USB device mapping not found for 'none'"} {
		number++
		vm := a.withVM(number, "stopped", map[string]string{"usb0": "mapping=" + id})
		if exit := a.exit("POST", vm+"/status/start"); exit != want {
			t.Errorf("a VM with the mapping %s: %q, want %q", id, exit, want)
		}
	}
}

func TestCustomCPUModels(t *testing.T) {
	t.Parallel()
	for _, version := range []pvesim.Version{pvesim.V84, pvesim.V92} {
		a := newAPI(t, pvesim.WithVersion(version))
		const models = "GET /nodes/pve1/capabilities/qemu/cpu"
		config := "PUT /nodes/pve1/qemu/9001/config cpu="
		a.answers(
			asked{config + "custom-small", "400 Parameter verification failed. map[cpu:invalid format - Custom cputype 'small' not found"},
			asked{config + "cputype=custom-small,flags=+aes", "Custom cputype 'small' not found"},
		)
		a.server.World.AddCPUModel("small")
		a.server.World.AddCPUModel("small")
		a.answers(
			asked{models, `{"custom":1,"name":"custom-small","vendor":"default"}]`},
			asked{config + "custom-small", "200 OK"},
			asked{config + "host", "200 OK"},
		)
		if list := a.line(models); strings.Contains(list, "cortex") || !strings.Contains(list, `"name":"EPYC-Turin"`) {
			t.Errorf("models of x86: %s", list)
		}
	}
}

func TestBridgesAsTheHostHasThem(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	const bridges = "GET /nodes/pve1/network type=any_bridge"
	a.server.World.ConfigureBridge("pve1", "vmbr7", map[string]string{"mtu": "9000", "bridge_vlan_aware": "1"})
	a.server.World.ConfigureBridge("nowhere", "vmbr7", nil)
	a.answers(asked{bridges, `"bridge_vlan_aware":"1"`}, asked{bridges, `"mtu":"9000"`}, asked{"GET /nodes/pve2/network type=bridge", `"iface":"vmbr0"`})
	a.server.World.RemoveBridge("pve1", "vmbr7")
	a.server.World.RemoveBridge("pve1", "vmbr0")
	a.answers(asked{bridges, "200 OK map[] []"})
	if spec := a.server.World.State().Nodes[0]; len(spec.Bridges) != 0 {
		t.Errorf("bridges are left: %v", spec.Bridges)
	}
}
