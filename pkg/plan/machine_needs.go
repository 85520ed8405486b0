package plan

import (
	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/placement"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// PlacementRequest is what the machine asks of its host.
func (m Machine) PlacementRequest() placement.Request { return request(m) }

// formats are the formats that new disks are to have. That of a clone's disks is only wished for: Proxmox VE takes the storage's
// own where it has not that one.
func formats(spec v1beta1.ProxmoxMachineSpec) []placement.FormatNeed {
	var needs []placement.FormatNeed
	add := func(field, storage string, format v1beta1.DiskFormat) {
		if format != "" {
			needs = append(needs, placement.FormatNeed{Field: field + ".format", Storage: proxmox.StorageID(storage), Format: string(format)})
		}
	}
	add("disks.boot", spec.Disks.Boot.Storage, spec.Disks.Boot.Format)
	for _, disk := range spec.Disks.Additional {
		add("disks.additional["+disk.Name+"]", disk.Storage, disk.Format)
	}
	add("hardware.efiDisk", spec.Hardware.EFIDisk.Storage, spec.Hardware.EFIDisk.Format)
	return needs
}

// needs are the things of a host that a spec names, by field.
func needs(spec v1beta1.ProxmoxMachineSpec) placement.Needs {
	needs := placement.Needs{CPUModel: spec.CPU.Type, MachineType: spec.Hardware.MachineType, Pool: proxmox.PoolID(spec.Pool)}
	if enabled := spec.HighAvailability.Enabled; enabled != nil && *enabled {
		needs.HAGroup = spec.HighAvailability.Group
	}
	if spec.RawConfig["arch"] != "aarch64" { // which has other flags than the host, and is not told of
		needs.CPUFlags = spec.CPU.Flags
	}
	for _, device := range spec.Network.Devices {
		needs.Devices = append(needs.Devices, placement.DeviceNeed{
			Field: "network.devices[" + device.Name + "]", Bridge: proxmox.BridgeName(device.Bridge),
			Tag: device.VLAN != 0, Trunks: len(device.Trunks) > 0, MTU: int(device.MTU),
		})
	}
	for _, device := range spec.Hardware.PCIDevices {
		needs.PCI = append(needs.PCI, placement.MappingNeed{Field: "hardware.pciDevices[" + device.Name + "]", Mapping: device.Mapping, MDev: device.MDev})
	}
	for _, device := range spec.Hardware.USBDevices {
		needs.USB = append(needs.USB, placement.MappingNeed{Field: "hardware.usbDevices[" + device.Name + "]", Mapping: device.Mapping})
	}
	return needs
}
