package sandbox

import (
	"fmt"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// gpu is the address of the one device that every simulated host can pass through.
const gpu = "0000:01:00.0"

// furnished is the simulator's default world with what a machine can ask of it besides: bridges that know VLANs, one of them for a
// second network with a DHCP server, a GPU and a USB stick in every host with the mappings gpu and stick, and the security groups
// nodes and web.
func furnished() (pvesim.State, error) {
	plain, err := pvesim.NewWorld()
	if err != nil {
		return pvesim.State{}, fmt.Errorf("make the simulator's default world: %w", err)
	}
	defer plain.Close()
	state := plain.State()
	state.Version = "" // that of the options
	gpus := pvesim.PCIMappingSpec{ID: "gpu", Description: "one GPU in every host"}
	sticks := pvesim.USBMappingSpec{ID: "stick", Description: "one USB stick in every host"}
	for i := range state.Nodes {
		node := &state.Nodes[i]
		node.Bridges = []proxmox.BridgeName{"vmbr0", "vmbr1"}
		aware := map[string]string{"bridge_vlan_aware": "1"}
		node.BridgeOptions = map[proxmox.BridgeName]map[string]string{"vmbr0": aware, "vmbr1": aware}
		node.PCI = []pvesim.PCIDeviceSpec{{
			ID: gpu, Class: "0x030000", Vendor: "0x10de", Device: "0x2204", VendorName: "NVIDIA Corporation", DeviceName: "GA102", IOMMUGroup: 1,
		}}
		gpus.Map = append(gpus.Map, fmt.Sprintf("node=%s,path=%s,id=10de:2204,iommugroup=1", node.Name, gpu))
		sticks.Map = append(sticks.Map, fmt.Sprintf("node=%s,id=0951:1666", node.Name))
	}
	state.PCI = []pvesim.PCIMappingSpec{gpus}
	state.USB = []pvesim.USBMappingSpec{sticks}
	state.DHCP = append(state.DHCP, pvesim.DHCPSpec{Bridge: "vmbr1", Subnet: "10.21.0.0/16"})
	state.Firewall.Groups = []pvesim.GroupSpec{
		{Name: "nodes", Comment: "what nodes say to each other", Rules: []map[string]string{{"type": "in", "action": "ACCEPT", "proto": "tcp", "dport": "10250", "enable": "1"}}},
		{Name: "web", Comment: "what everybody may say", Rules: []map[string]string{{"type": "in", "action": "ACCEPT", "macro": "HTTPS", "enable": "1"}}},
	}
	return state, nil
}
