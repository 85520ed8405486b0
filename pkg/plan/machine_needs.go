package plan

import (
	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/placement"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// PlacementRequest is what the machine asks of its host.
func (m Machine) PlacementRequest() placement.Request { return request(m) }

// needs are the things of a host that a spec names, by field.
func needs(spec v1beta1.ProxmoxMachineSpec) placement.Needs {
	needs := placement.Needs{CPUModel: spec.CPU.Type, MachineType: spec.Hardware.MachineType, Pool: proxmox.PoolID(spec.Pool)}
	if enabled := spec.HighAvailability.Enabled; enabled != nil && *enabled {
		needs.HAGroup = spec.HighAvailability.Group
	}
	for _, device := range spec.Network.Devices {
		needs.Devices = append(needs.Devices, placement.DeviceNeed{
			Field: "network.devices[" + device.Name + "]", Bridge: proxmox.BridgeName(device.Bridge),
			Tag: device.VLAN != 0, Trunks: len(device.Trunks) > 0, MTU: int(device.MTU),
		})
	}
	for _, device := range spec.Hardware.PCIDevices {
		needs.PCI = append(needs.PCI, placement.MappingNeed{Field: "hardware.pciDevices[" + device.Name + "]", Mapping: device.Mapping})
	}
	for _, device := range spec.Hardware.USBDevices {
		needs.USB = append(needs.USB, placement.MappingNeed{Field: "hardware.usbDevices[" + device.Name + "]", Mapping: device.Mapping})
	}
	return needs
}
