package sandbox

import (
	"fmt"
	"maps"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// The addresses of the devices that every simulated host can pass through: gpu whole, and vgpu shared out.
const (
	gpu  = "0000:01:00.0"
	vgpu = "0000:02:00.0"
)

// furnished is the simulator's default world with what a machine can ask of it besides: bridges that know VLANs, one of them for a
// second network with a DHCP server, two GPUs and a USB stick in every host with the mappings gpu, vgpu and stick, the image
// node.qcow2, the VM workshop with the snapshot v1, and the security groups nodes and web.
func furnished() (pvesim.State, error) {
	plain, err := pvesim.NewWorld()
	if err != nil {
		return pvesim.State{}, fmt.Errorf("make the simulator's default world: %w", err)
	}
	defer plain.Close()
	state := plain.State()
	state.Version = "" // that of the options
	gpus := pvesim.PCIMappingSpec{ID: "gpu", Description: "one GPU in every host"}
	shares := pvesim.PCIMappingSpec{ID: "vgpu", Description: "one GPU in every host that is shared out", Mdev: true}
	sticks := pvesim.USBMappingSpec{ID: "stick", Description: "one USB stick in every host"}
	for i := range state.Nodes {
		node := &state.Nodes[i]
		node.Bridges = []proxmox.BridgeName{"vmbr0", "vmbr1"}
		aware := map[string]string{"bridge_vlan_aware": "1"}
		node.BridgeOptions = map[proxmox.BridgeName]map[string]string{"vmbr0": aware, "vmbr1": aware}
		card := pvesim.PCIDeviceSpec{
			ID: gpu, Class: "0x030000", Vendor: "0x10de", Device: "0x2204", VendorName: "NVIDIA Corporation", DeviceName: "GA102", IOMMUGroup: 1,
		}
		shared := card
		shared.ID, shared.IOMMUGroup, shared.Mdev = vgpu, 2, true
		node.PCI = []pvesim.PCIDeviceSpec{card, shared}
		gpus.Map = append(gpus.Map, fmt.Sprintf("node=%s,path=%s,id=10de:2204,iommugroup=1", node.Name, gpu))
		shares.Map = append(shares.Map, fmt.Sprintf("node=%s,path=%s,id=10de:2204,iommugroup=2", node.Name, vgpu))
		state.Volumes = append(state.Volumes, pvesim.VolumeSpec{ID: "local:import/node.qcow2", Node: node.Name, Size: 3 << 30})
		sticks.Map = append(sticks.Map, fmt.Sprintf("node=%s,id=0951:1666", node.Name))
	}
	state.PCI = []pvesim.PCIMappingSpec{gpus, shares}
	state.USB = []pvesim.USBMappingSpec{sticks}
	state.DHCP = append(state.DHCP, pvesim.DHCPSpec{Bridge: "vmbr1", Subnet: "10.21.0.0/16"})
	state.Firewall.Groups = []pvesim.GroupSpec{
		{Name: "nodes", Comment: "what nodes say to each other", Rules: []map[string]string{{"type": "in", "action": "ACCEPT", "proto": "tcp", "dport": "10250", "enable": "1"}}},
		{Name: "web", Comment: "what everybody may say", Rules: []map[string]string{{"type": "in", "action": "ACCEPT", "macro": "HTTPS", "enable": "1"}}},
	}
	state.VMs = append(state.VMs, workshop(state.Nodes[0].Name))
	return state, nil
}

// workshop is an ordinary VM, which somebody works on, with a snapshot to make machines from.
func workshop(node proxmox.NodeName) pvesim.VMSpec {
	config := map[string]string{
		"name": "workshop", "memory": "2048", "scsihw": "virtio-scsi-single", "boot": "order=scsi0",
		"scsi0": "shared:9500/vm-9500-disk-0.qcow2,size=4G", "agent": "1",
	}
	now := maps.Clone(config)
	now["parent"] = "v1"
	return pvesim.VMSpec{VMID: 9500, Node: node, Config: now, Snapshots: []pvesim.SnapshotSpec{{Name: "v1", Config: config}}}
}
