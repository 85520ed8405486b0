package placement

import (
	"fmt"
	"slices"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// Fact is a kind of thing that a host has, or a region, and that Proxmox VE has to be asked for.
type Fact int

// The facts; those from PCIMappings on are of a region.
const (
	Bridges Fact = iota
	CPUModels
	MachineTypes
	CPUFlags
	PCIMappings
	USBMappings
	Pool
	HAGroup
)

// OfRegion reports whether it is the same for all hosts of a region.
func (f Fact) OfRegion() bool { return f >= PCIMappings }

// Needs are what a VM needs of its host besides room. What is empty is not needed.
type Needs struct {
	Devices  []DeviceNeed
	CPUModel string
	// CPUFlags are flags that a VM is to have, or not to have, each with its sign.
	CPUFlags    []string
	MachineType string
	PCI, USB    []MappingNeed
	Pool        proxmox.PoolID
	HAGroup     string
}

// DeviceNeed is a network device that needs a bridge.
type DeviceNeed struct {
	// Field is the field that names the bridge.
	Field  string
	Bridge proxmox.BridgeName
	// Tag and Trunks say that the traffic of the device has VLAN tags.
	Tag, Trunks bool
	// MTU is what the bridge must carry at least; 0 and 1 for what it does.
	MTU int
}

// MappingNeed is a device of the host that a resource mapping names.
type MappingNeed struct {
	Field, Mapping string
	// MDev is the type of mediated device that is asked of it; empty for the device itself.
	MDev string
}

// Equipment is what is known that a host has. It refuses a VM only by what is known.
type Equipment struct {
	// Known are the facts that Proxmox VE told. Unknown are those that it was asked for and that it does not tell these
	// credentials.
	Known, Unknown []Fact
	// Silent says why the host could not be asked; empty when it could.
	Silent    string
	Bridges   []Bridge
	CPUModels []string
	// HidesCustom says that there may be custom CPU models that the credentials cannot see.
	HidesCustom bool
	// CPUFlags are the flags that a VM may switch; empty where Proxmox VE does not tell.
	CPUFlags     []string
	MachineTypes []string
	PCI, USB     []Mapping
	// HasPool says that there is the pool that is needed.
	HasPool  bool
	HAGroups []string
}

// Bridge is a bridge of a host, or a vnet of its SDN.
type Bridge struct {
	Name      proxmox.BridgeName
	Vnet      bool
	VLANAware bool
	// MTU is 0 where it is not known.
	MTU int
}

// Mapping is a resource mapping, with the nodes that it names a device of.
type Mapping struct {
	Name  string
	Nodes []proxmox.NodeName
	// MDev says that it is for mediated devices.
	MDev bool
}

// Unread are the facts that are needed of the host and that Proxmox VE was not asked for yet.
func (n Needs) Unread(has Equipment) []Fact {
	var unread []Fact
	for _, fact := range n.Facts() {
		if !slices.Contains(has.Known, fact) && !slices.Contains(has.Unknown, fact) {
			unread = append(unread, fact)
		}
	}
	return unread
}

// Facts are those that tell whether a host has what is needed.
func (n Needs) Facts() []Fact {
	var facts []Fact
	for fact, needed := range map[Fact]bool{
		Bridges: len(n.Devices) > 0, CPUModels: n.CPUModel != "", MachineTypes: n.version() != "", CPUFlags: len(n.CPUFlags) > 0,
		PCIMappings: len(n.PCI) > 0, USBMappings: len(n.USB) > 0, Pool: n.Pool != "", HAGroup: n.HAGroup != "",
	} {
		if needed {
			facts = append(facts, fact)
		}
	}
	slices.Sort(facts)
	return facts
}

// version is the version of q35 or i440fx that is needed, as Proxmox VE lists them: pc-9.0 is one of i440fx, +pve0 is the
// version itself. It is empty for a type without a version, which every QEMU has, and for virt, which is not listed.
func (n Needs) version() string {
	name := strings.TrimSuffix(strings.TrimSuffix(n.MachineType, ".pxe"), "+pve0")
	rest, versioned := strings.CutPrefix(name, "pc-")
	switch {
	case !versioned:
		return ""
	case strings.HasPrefix(rest, "q35"), strings.HasPrefix(rest, "i440fx"):
		return name
	}
	return "pc-i440fx-" + rest
}

func refuseEquipment(request Request, host Host) string {
	return request.Needs.Lacking(host.Node, host.Equipment)
}

// Lacking says what of it a node does not have, as far as that is known, and what to do; empty when nothing.
func (n Needs) Lacking(node proxmox.NodeName, has Equipment) string {
	if has.Silent != "" {
		return has.Silent
	}
	for _, fact := range n.Facts() {
		if !slices.Contains(has.Known, fact) {
			continue
		}
		if why := n.lacks(fact, node, has); why != "" {
			return why
		}
	}
	return ""
}

func (n Needs) lacks(fact Fact, node proxmox.NodeName, has Equipment) string {
	switch fact {
	case Bridges:
		return n.lacksBridge(has.Bridges)
	case CPUModels:
		return n.lacksCPUModel(has)
	case MachineTypes:
		return n.lacksMachineType(has.MachineTypes)
	case CPUFlags:
		return n.lacksCPUFlag(has.CPUFlags)
	case PCIMappings:
		return lacksMapping(n.PCI, has.PCI, node, "pci")
	case USBMappings:
		return lacksMapping(n.USB, has.USB, node, "usb")
	case Pool:
		if !has.HasPool {
			return fmt.Sprintf("pool %s, which spec.pool names, does not exist: make it (Datacenter, Permissions, Pools), or name another", n.Pool)
		}
	case HAGroup:
		if !slices.Contains(has.HAGroups, n.HAGroup) {
			return fmt.Sprintf("there is no HA group %s, which highAvailability.group names: make it (Datacenter, HA, Groups), or name another", n.HAGroup)
		}
	}
	return ""
}

func (n Needs) lacksBridge(bridges []Bridge) string {
	for _, device := range n.Devices {
		at := slices.IndexFunc(bridges, func(b Bridge) bool { return b.Name == device.Bridge })
		if at < 0 {
			return fmt.Sprintf("bridge or vnet %s, which %s names, is not in the host's network configuration, or the token may not use it (SDN.Use on /sdn/zones/<zone>/%s, for a bridge the zone localnetwork): make it, or name another",
				device.Bridge, device.Field, device.Bridge)
		}
		if why := device.unfit(bridges[at]); why != "" {
			return why
		}
	}
	return ""
}

// unfit says why the device cannot be plugged into a bridge (PVE::Network, tap_plug; PVE::QemuServer, print_netdevice_full).
func (d DeviceNeed) unfit(bridge Bridge) string {
	switch {
	case d.Trunks && !bridge.VLANAware:
		return fmt.Sprintf("%s is not VLAN-aware, as the trunks of %s need: make it so, or leave trunks out", bridge.Name, d.Field)
	case d.Tag && bridge.Vnet && !bridge.VLANAware:
		return fmt.Sprintf("vnet %s is not VLAN-aware, as the vlan of %s needs: make it so, or leave vlan out", bridge.Name, d.Field)
	case bridge.MTU > 0 && d.MTU > bridge.MTU:
		return fmt.Sprintf("bridge %s has an MTU of %d, below the mtu %d of %s: raise it there, or set mtu to 1 for the bridge's", bridge.Name, bridge.MTU, d.MTU, d.Field)
	}
	return ""
}

func (n Needs) lacksCPUModel(has Equipment) string {
	custom := strings.HasPrefix(n.CPUModel, "custom-")
	switch {
	case slices.Contains(has.CPUModels, n.CPUModel), custom && has.HidesCustom:
		return ""
	case custom:
		return fmt.Sprintf("there is no custom CPU model %s, which cpu.type names: make it (cpu-models.conf), or name another", n.CPUModel)
	}
	return fmt.Sprintf("its Proxmox VE knows no CPU model %s, which cpu.type names: update the host, or name another; one of cpu-models.conf has custom- before its name", n.CPUModel)
}

func (n Needs) lacksCPUFlag(known []string) string {
	if len(known) == 0 {
		known = fixedFlags()
	}
	for _, flag := range n.CPUFlags {
		if !slices.Contains(known, strings.TrimLeft(flag, "+-")) {
			return fmt.Sprintf("its Proxmox VE lets no VM switch the CPU flag %s, which cpu.flags names, but %s: leave it out, or name a cpu.type that has it so", flag, strings.Join(known, ", "))
		}
	}
	return ""
}

// fixedFlags are those of the releases that do not tell (PVE::QemuServer::CPUConfig).
func fixedFlags() []string {
	return strings.Fields("aes amd-no-ssb amd-ssbd hv-evmcs hv-tlbflush ibpb md-clear nested-virt pcid pdpe1gb spec-ctrl ssbd virt-ssbd")
}

func (n Needs) lacksMachineType(types []string) string {
	if slices.Contains(types, n.version()) {
		return ""
	}
	return fmt.Sprintf("its QEMU has no machine type %s, which hardware.machineType names: update the host, or name one that it has", n.MachineType)
}

func lacksMapping(needs []MappingNeed, mappings []Mapping, node proxmox.NodeName, kind string) string {
	for _, need := range needs {
		at := slices.IndexFunc(mappings, func(m Mapping) bool { return m.Name == need.Mapping })
		switch {
		case at < 0:
			return fmt.Sprintf("resource mapping %s, which %s names, does not exist, or the token may not use it (Mapping.Use on /mapping/%s/%s): make it (Datacenter, Resource Mappings), or name another",
				need.Mapping, need.Field, kind, need.Mapping)
		case need.MDev != "" && !mappings[at].MDev:
			return fmt.Sprintf("resource mapping %s, which %s names, is not for mediated devices, as its mdev %s needs: mark it so (Datacenter, Resource Mappings, Use with Mediated Devices), or leave mdev out",
				need.Mapping, need.Field, need.MDev)
		case !slices.Contains(mappings[at].Nodes, node):
			return fmt.Sprintf("resource mapping %s, which %s names, has no device of this host: add one (Datacenter, Resource Mappings), or name another", need.Mapping, need.Field)
		}
	}
	return ""
}
