package pve_test

import (
	"context"
	"testing"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
)

// equipmentReads ask what a node has.
func equipmentReads() []request {
	return []request{
		{
			name: "bridges", send: func(ctx context.Context, c *pve.Client) (any, error) { return c.Bridges(ctx, "pve1") },
			line: "GET /nodes/pve1/network?type=any_bridge",
			data: `[{"iface":"vmbr0","type":"bridge","active":1,"bridge_vlan_aware":1,"mtu":"9000"},{"iface":"vmbr1","type":"OVSBridge"},
				{"iface":"vnet1","type":"vnet","vlanaware":0,"active":"1","comments":null},{"iface":"vnet2","type":"vnet","vlanaware":"1"}]`,
			want: []pve.BridgeInterface{
				{Name: "vmbr0", Type: "bridge", VLANAware: true, MTU: 9000},
				{Name: "vmbr1", Type: "OVSBridge", VLANAware: true},
				{Name: "vnet1", Type: "vnet"},
				{Name: "vnet2", Type: "vnet", VLANAware: true},
			},
		}, {
			name: "CPU models", send: func(ctx context.Context, c *pve.Client) (any, error) { return c.CPUModels(ctx, "pve1") },
			line: "GET /nodes/pve1/capabilities/qemu/cpu", data: `[{"name":"host","vendor":"default","custom":0},{"name":"custom-x","vendor":"default","custom":1}]`,
			want: []string{"host", "custom-x"},
		}, {
			name: "CPU flags", send: func(ctx context.Context, c *pve.Client) (any, error) { return c.CPUFlags(ctx, "pve1") },
			line: "GET /nodes/pve1/capabilities/qemu/cpu-flags", data: `[{"name":"aes","description":"d","supported-on":["pve1"]},{"name":"pcid"}]`, want: []string{"aes", "pcid"},
		}, {
			name: "machine types", send: func(ctx context.Context, c *pve.Client) (any, error) { return c.MachineTypes(ctx, "pve1") },
			line: "GET /nodes/pve1/capabilities/qemu/machines", data: `[{"id":"pc-q35-9.0","type":"q35","version":"9.0"}]`, want: []string{"pc-q35-9.0"},
		}, {
			name: "PCI mappings", send: func(ctx context.Context, c *pve.Client) (any, error) { return c.PCIMappings(ctx) },
			line: "GET /cluster/mapping/pci",
			data: `[{"id":"gpu","type":"pci","map":["node=pve1,path=0000:01:00.0,id=10de:1234","id=10de:1234,node=pve2,path=0000:02:00.0"]},{"id":"none","mdev":1}]`,
			want: []pve.Mapping{{Name: "gpu", Nodes: []proxmox.NodeName{"pve1", "pve2"}}, {Name: "none", MDev: true}},
		}, {
			name: "USB mappings", send: func(ctx context.Context, c *pve.Client) (any, error) { return c.USBMappings(ctx) },
			line: "GET /cluster/mapping/usb", data: `[{"id":"key","map":["node=pve1,id=046d:c52b"]}]`,
			want: []pve.Mapping{{Name: "key", Nodes: []proxmox.NodeName{"pve1"}}},
		}, {
			name: "pool", send: func(ctx context.Context, c *pve.Client) (any, error) { return nil, c.Pool(ctx, "prod/k8s") },
			line: "GET /pools?poolid=prod/k8s", data: `[{"poolid":"prod/k8s","members":[]}]`, want: nil,
		},
	}
}

func TestAPoolThatDoesNotExist(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]pve.Class{"pool 'nope' does not exist": pve.Missing, "Permission check failed (/pool/nope, Pool.Audit)": pve.Forbidden} {
		status := 500
		if want == pve.Forbidden {
			status = 403
		}
		err := &pve.Error{Method: "GET", Path: "/pools", Status: status, Reason: message}
		if got := pve.ClassOf(err); got != want {
			t.Errorf("%q is %v, want %v", message, got, want)
		}
	}
}
