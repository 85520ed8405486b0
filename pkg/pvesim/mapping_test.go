package pvesim_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// gpus is a cluster whose first host has a graphics card.
func gpus() pvesim.Option {
	return pvesim.FromState(pvesim.State{Nodes: []pvesim.NodeSpec{
		{Name: "pve1", PCI: []pvesim.PCIDeviceSpec{
			{ID: "0000:00:1f.0", Class: "0x060100", Vendor: "0x8086", Device: "0x0001"},
			{ID: "0000:01:00.0", Class: "0x030000", Vendor: "0x10de", Device: "0x2204", VendorName: "NVIDIA", IOMMUGroup: 13, Mdev: true},
		}},
		{Name: "pve2"},
	}})
}

func TestPCIMappings(t *testing.T) {
	t.Parallel()
	a := newAPI(t, gpus())
	const device, all = "node=pve1,path=0000:01:00.0,id=10de:2204", "/cluster/mapping/pci"
	a.answers(
		asked{"GET /cluster/mapping", `[{"name":"dir"},{"name":"pci"},{"name":"usb"}]`},
		asked{"GET /cluster/mapping/usb", "200 OK map[] []"},
		asked{"POST " + all + " id=gpu map=" + device + " description=d", "200 OK"},
		asked{"POST " + all + " id=gpu map=" + device, "500 create hardware mapping failed: pci ID 'gpu' already defined"},
		asked{"POST " + all + " id=xy map=node=pve1,id=10de:2204", "map[map[0]:invalid format - format error\nmap[0].path: property is missing and it is not optional"},
		asked{"POST " + all + " id=xy", "map[map:property is missing and it is not optional]"},
		asked{"GET " + all + "/gpu", `"description":"d"`},
		asked{"GET " + all + "/none", "500 mapping 'none' not found"},
		asked{"GET " + all + " check-node=pve1", `"checks":[]`},
		asked{"GET " + all + " check-node=pve2", `"checks":[{"message":"No mapping for node pve2.","severity":"warning"}]`},
		asked{"PUT " + all + "/gpu mdev=1 live-migration-capable=1 delete=description", "200 OK"},
		asked{"GET " + all + "/gpu", `"live-migration-capable":1,"map":["` + device + `"],"mdev":1,"type":"pci"}`},
		asked{"PUT " + all + "/gpu mdev=0 delete=mdev", "500 update hardware mapping failed: cannot set and delete property 'mdev' at the same time!"},
		asked{"PUT " + all + "/gpu delete=map", "500 update hardware mapping failed: unable to delete required option 'map'"},
		asked{"PUT " + all + "/gpu delete=colour", "500 update hardware mapping failed: no such option 'colour'"},
		asked{"PUT " + all + "/gpu digest=0123 mdev=0", "500 update hardware mapping failed: detected modified configuration"},
		asked{"PUT " + all + "/none mdev=1", "500 update hardware mapping failed: pci ID 'none' does not exist"},
		asked{"PUT " + all + "/gpu map=node=pve1,path=0000:09:00.0,id=10de:2204 delete=mdev,live-migration-capable", "200 OK"},
		asked{"GET " + all + " check-node=pve1", `{"message":"Invalid configuration: pci device '0000:09:00.0' not found\n","severity":"error"}`},
		asked{"DELETE " + all + "/gpu", "200 OK"},
		asked{"DELETE " + all + "/gpu", "200 OK"},
		asked{"GET " + all, "200 OK map[] []"},
	)
}

// TestAMappingOfSeveralDevices sends the list as JSON; a form repeats the key.
func TestAMappingOfSeveralDevices(t *testing.T) {
	t.Parallel()
	a := newAPI(t, gpus())
	body := `{"id": "g1", "map": ["node=pve1,path=0000:01:00.0,id=10de:2204", "node=pve2,path=0000:02:00.0,id=10de:2204"]}`
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, a.server.URL+"/api2/json/cluster/mapping/pci", strings.NewReader(body))
	must(t, err)
	req.Header.Set("Content-Type", "application/json")
	if r := a.send(req); r.status != http.StatusOK {
		t.Fatalf("%+v", r)
	}
	a.must("POST", "/cluster/mapping/pci", "id", "h1", "map", "node=pve1,path=0000:01:00.0,id=10de:2204", "map", "node=pve2,path=0000:02:00.0,id=10de:2204")
	for _, id := range []string{"g1", "h1"} {
		if devices := a.object("/cluster/mapping/pci/" + id)["map"].([]any); len(devices) != 2 {
			t.Errorf("%s has the devices %v", id, devices)
		}
	}
}

func TestPCIDevices(t *testing.T) {
	t.Parallel()
	a := newAPI(t, gpus())
	a.answers(
		asked{"GET /nodes/pve1/hardware", `[{"type":"pci"},{"type":"usb"}]`},
		asked{"GET /nodes/pve1/hardware/pci", `[{"class":"0x030000","device":"0x2204","id":"0000:01:00.0","iommugroup":12,"mdev":1,"vendor":"0x10de","vendor_name":"NVIDIA"}]`},
		asked{"GET /nodes/pve1/hardware/pci verbose=0", `[{"id":"0000:01:00.0"}]`},
		asked{"GET /nodes/pve1/hardware/pci pci-class-blacklist=03 verbose=0", `[{"id":"0000:00:1f.0"}]`},
		asked{"GET /nodes/pve2/hardware/pci", "200 OK map[] []"},
	)
}
