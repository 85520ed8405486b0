package pve

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// BridgeInterface is a bridge of a node, or an SDN vnet that is in force there.
type BridgeInterface struct {
	Name proxmox.BridgeName
	// Type is bridge, OVSBridge or vnet.
	Type string
	// VLANAware says that a Linux bridge, or a vnet, passes VLAN tags of guests. Open vSwitch always does.
	VLANAware bool
	// MTU is that of the node's network configuration; 0 where it says nothing.
	MTU int
}

// Bridges lists the bridges and vnets of a node that the credentials may plug a VM into, by SDN.Use or SDN.Audit. Those that
// are not in the node's network configuration are not among them.
func (c *Client) Bridges(ctx context.Context, node proxmox.NodeName) ([]BridgeInterface, error) {
	call, err := newCall(http.MethodGet, "/nodes/{node}/network", string(node))
	if err == nil {
		call.set("type", "any_bridge")
	}
	list, err := c.list(ctx, call, err)
	if err != nil {
		return nil, err
	}
	bridges := make([]BridgeInterface, len(list))
	for i, f := range list {
		bridges[i] = BridgeInterface{
			Name: proxmox.BridgeName(f["iface"]), Type: string(f["type"]), MTU: int(f["mtu"].integer()),
			VLANAware: f["type"] == "OVSBridge" || f["bridge_vlan_aware"].flag() || f["vlanaware"].flag(),
		}
	}
	return bridges, nil
}

// CPUModels lists the names of a node's CPU models. Custom ones, custom-<name>, are among them with Sys.Audit on /nodes, from
// PVE 9 on also with Mapping.Use on /mapping/cpu/<name>.
func (c *Client) CPUModels(ctx context.Context, node proxmox.NodeName) ([]string, error) {
	return c.capability(ctx, node, "/nodes/{node}/capabilities/qemu/cpu", "name")
}

// CPUFlags lists the names of the CPU flags that a VM on the node may switch on or off. Proxmox VE 8 does not tell: the error is
// Unimplemented. For aarch64 there are none.
func (c *Client) CPUFlags(ctx context.Context, node proxmox.NodeName) ([]string, error) {
	return c.capability(ctx, node, "/nodes/{node}/capabilities/qemu/cpu-flags", "name")
}

// MachineTypes lists the versions of q35 and i440fx that the QEMU of a node has: pc-q35-9.0 and so on.
func (c *Client) MachineTypes(ctx context.Context, node proxmox.NodeName) ([]string, error) {
	return c.capability(ctx, node, "/nodes/{node}/capabilities/qemu/machines", "id")
}

func (c *Client) capability(ctx context.Context, node proxmox.NodeName, path, key string) ([]string, error) {
	call, err := newCall(http.MethodGet, path, string(node))
	return c.names(ctx, call, err, key)
}

// Mapping is a resource mapping: which device of a node has its name.
type Mapping struct {
	Name string
	// Nodes are the nodes that it names a device of.
	Nodes []proxmox.NodeName
	// MDev says that a PCI device is used by mediated devices.
	MDev bool
}

// PCIMappings lists the resource mappings of PCI devices that the credentials may use, change or audit.
func (c *Client) PCIMappings(ctx context.Context) ([]Mapping, error) {
	return c.mappings(ctx, "/cluster/mapping/pci")
}

// USBMappings lists the resource mappings of USB devices that the credentials may use, change or audit.
func (c *Client) USBMappings(ctx context.Context) ([]Mapping, error) {
	return c.mappings(ctx, "/cluster/mapping/usb")
}

func (c *Client) mappings(ctx context.Context, path string) ([]Mapping, error) {
	call, err := newCall(http.MethodGet, path)
	list, err := c.list(ctx, call, err)
	if err != nil {
		return nil, err
	}
	mappings := make([]Mapping, len(list))
	for i, f := range list {
		var devices []string
		_ = json.Unmarshal([]byte(f["map"]), &devices) // one without devices is on no node
		mappings[i] = Mapping{Name: string(f["id"]), MDev: f["mdev"].flag()}
		for _, device := range devices {
			for part := range strings.SplitSeq(device, ",") {
				if node, found := strings.CutPrefix(part, "node="); found {
					mappings[i].Nodes = append(mappings[i].Nodes, proxmox.NodeName(node))
				}
			}
		}
	}
	return mappings, nil
}
