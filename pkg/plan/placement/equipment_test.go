package placement_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/placement"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// needsAll needs something of each kind.
func needsAll() placement.Needs {
	return placement.Needs{
		Devices:  []placement.DeviceNeed{{Field: "network.devices[net0]", Bridge: "vmbr0"}},
		CPUModel: "EPYC", CPUFlags: []string{"+aes", "-pcid"}, MachineType: "pc-q35-9.0", Pool: "capi", HAGroup: "g1",
		PCI: []placement.MappingNeed{{Field: "hardware.pciDevices[hostpci0]", Mapping: "gpu"}},
		USB: []placement.MappingNeed{{Field: "hardware.usbDevices[usb0]", Mapping: "key"}},
	}
}

// hasAll has it on pve1.
func hasAll() placement.Equipment {
	nodes := []proxmox.NodeName{"pve1"}
	return placement.Equipment{
		Known: needsAll().Facts(), Bridges: []placement.Bridge{{Name: "vmbr0"}}, CPUModels: []string{"EPYC"}, MachineTypes: []string{"pc-q35-9.0", "pc-i440fx-9.0"},
		PCI: []placement.Mapping{{Name: "gpu", Nodes: nodes}}, USB: []placement.Mapping{{Name: "key", Nodes: nodes}}, HasPool: true, HAGroups: []string{"g1"},
	}
}

func TestAHostThatLacksSomethingSaysWhatAndWhatToDo(t *testing.T) {
	t.Parallel()
	type (
		need = func(*placement.Needs)
		has  = func(*placement.Equipment)
	)
	device := func(change func(*placement.DeviceNeed)) need {
		return func(n *placement.Needs) { change(&n.Devices[0]) }
	}
	for name, row := range map[string]struct {
		need need
		has  has
		want string
	}{
		"all is there": {},
		"no bridge":    {nil, func(h *placement.Equipment) { h.Bridges = nil }, "bridge or vnet vmbr0, which network.devices[net0] names, is not in the host's network configuration, or the token may not use it (SDN.Use on /sdn/zones/<zone>/vmbr0"},
		"bridges are not known": {nil, func(h *placement.Equipment) {
			h.Bridges, h.Known, h.Unknown = nil, without(h.Known, placement.Bridges), []placement.Fact{placement.Bridges}
		}, ""},
		"trunks on a plain bridge":     {device(func(d *placement.DeviceNeed) { d.Trunks = true }), nil, "vmbr0 is not VLAN-aware, as the trunks of network.devices[net0] need: make it so, or leave trunks out"},
		"trunks on a VLAN-aware one":   {device(func(d *placement.DeviceNeed) { d.Trunks = true }), func(h *placement.Equipment) { h.Bridges[0].VLANAware = true }, ""},
		"a tag on a plain bridge":      {device(func(d *placement.DeviceNeed) { d.Tag = true }), nil, ""},
		"a tag on a plain vnet":        {device(func(d *placement.DeviceNeed) { d.Tag = true }), func(h *placement.Equipment) { h.Bridges[0].Vnet = true }, "vnet vmbr0 is not VLAN-aware, as the vlan of network.devices[net0] needs: make it so, or leave vlan out"},
		"an MTU above the bridge's":    {device(func(d *placement.DeviceNeed) { d.MTU = 9000 }), func(h *placement.Equipment) { h.Bridges[0].MTU = 1500 }, "bridge vmbr0 has an MTU of 1500, below the mtu 9000 of network.devices[net0]: raise it there, or set mtu to 1"},
		"an MTU and no known one":      {device(func(d *placement.DeviceNeed) { d.MTU = 9000 }), nil, ""},
		"the bridge's MTU":             {device(func(d *placement.DeviceNeed) { d.MTU = 1 }), func(h *placement.Equipment) { h.Bridges[0].MTU = 1500 }, ""},
		"no such CPU model":            {func(n *placement.Needs) { n.CPUModel = "EPYC-Turin" }, nil, "its Proxmox VE knows no CPU model EPYC-Turin, which cpu.type names: update the host, or name another"},
		"no such custom CPU model":     {func(n *placement.Needs) { n.CPUModel = "custom-x" }, nil, "there is no custom CPU model custom-x, which cpu.type names: make it"},
		"a custom model out of sight":  {func(n *placement.Needs) { n.CPUModel = "custom-x" }, func(h *placement.Equipment) { h.HidesCustom = true }, ""},
		"no such CPU flag":             {func(n *placement.Needs) { n.CPUFlags[0] = "+avx512f" }, func(h *placement.Equipment) { h.CPUFlags = []string{"aes", "pcid"} }, "its Proxmox VE lets no VM switch the CPU flag +avx512f, which cpu.flags names, but aes, pcid: leave it out, or name a cpu.type that has it so"},
		"no CPU flag of any release":   {func(n *placement.Needs) { n.CPUFlags[1] = "-avx512f" }, nil, "its Proxmox VE lets no VM switch the CPU flag -avx512f"},
		"a CPU flag of a later one":    {func(n *placement.Needs) { n.CPUFlags[0] = "+new" }, func(h *placement.Equipment) { h.CPUFlags = []string{"new", "pcid"} }, ""},
		"no such machine type":         {func(n *placement.Needs) { n.MachineType = "pc-q35-11.0" }, nil, "its QEMU has no machine type pc-q35-11.0, which hardware.machineType names: update the host, or name one that it has"},
		"an older way to write i440fx": {func(n *placement.Needs) { n.MachineType = "pc-9.0+pve0.pxe" }, nil, ""},
		"no such revision":             {func(n *placement.Needs) { n.MachineType = "pc-q35-9.0+pve1" }, nil, "its QEMU has no machine type pc-q35-9.0+pve1"},
		"no version":                   {func(n *placement.Needs) { n.MachineType = "q35" }, func(h *placement.Equipment) { h.MachineTypes = nil }, ""},
		"another architecture":         {func(n *placement.Needs) { n.MachineType = "virt-9.0" }, nil, ""},
		"no such PCI mapping":          {func(n *placement.Needs) { n.PCI[0].Mapping = "nic" }, nil, "resource mapping nic, which hardware.pciDevices[hostpci0] names, does not exist, or the token may not use it (Mapping.Use on /mapping/pci/nic): make it"},
		"no device of this host":       {nil, func(h *placement.Equipment) { h.PCI[0].Nodes = []proxmox.NodeName{"pve2"} }, "resource mapping gpu, which hardware.pciDevices[hostpci0] names, has no device of this host: add one"},
		"no mediated devices":          {func(n *placement.Needs) { n.PCI[0].MDev = "nvidia-63" }, nil, "resource mapping gpu, which hardware.pciDevices[hostpci0] names, is not for mediated devices, as its mdev nvidia-63 needs: mark it so"},
		"no such USB mapping":          {func(n *placement.Needs) { n.USB[0].Mapping = "x2" }, nil, "(Mapping.Use on /mapping/usb/x2)"},
		"no USB device of this host":   {nil, func(h *placement.Equipment) { h.USB[0].Nodes = nil }, "resource mapping key, which hardware.usbDevices[usb0] names, has no device of this host"},
		"no pool":                      {nil, func(h *placement.Equipment) { h.HasPool = false }, "pool capi, which spec.pool names, does not exist: make it"},
		"no HA group":                  {func(n *placement.Needs) { n.HAGroup = "g2" }, nil, "there is no HA group g2, which highAvailability.group names: make it"},
		"a host that does not answer":  {nil, func(h *placement.Equipment) { h.Silent = "it does not tell" }, "it does not tell"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			needs, equipment := needsAll(), hasAll()
			if row.need != nil {
				row.need(&needs)
			}
			if row.has != nil {
				row.has(&equipment)
			}
			if got := needs.Lacking("pve1", equipment); !strings.Contains(got, row.want) || row.want == "" && got != "" {
				t.Errorf("lacks %q, want %q", got, row.want)
			}
		})
	}
}

func without(facts []placement.Fact, fact placement.Fact) []placement.Fact {
	return slices.DeleteFunc(slices.Clone(facts), func(f placement.Fact) bool { return f == fact })
}

// TestOnlyWhatIsNeededIsAskedFor has nothing asked for a VM that names nothing, and each fact once.
func TestOnlyWhatIsNeededIsAskedFor(t *testing.T) {
	t.Parallel()
	for _, needs := range []placement.Needs{{}, {MachineType: "q35"}, {MachineType: "pc"}, {MachineType: "virt-9.0"}} {
		if unread := needs.Unread(placement.Equipment{}); len(unread) > 0 {
			t.Errorf("%+v asks for %v", needs, unread)
		}
	}
	needs := needsAll()
	if unread := needs.Unread(placement.Equipment{}); !slices.Equal(unread, needs.Facts()) || len(unread) != 8 {
		t.Errorf("of what nothing is known %v is asked for", unread)
	}
	has := placement.Equipment{Known: []placement.Fact{placement.Bridges, placement.CPUModels}, Unknown: []placement.Fact{placement.Pool}}
	want := []placement.Fact{placement.MachineTypes, placement.CPUFlags, placement.PCIMappings, placement.USBMappings, placement.HAGroup}
	if unread := needs.Unread(has); !slices.Equal(unread, want) {
		t.Errorf("%v is asked for, want %v", unread, want)
	}
	for _, fact := range needs.Facts() {
		if got, want := fact.OfRegion(), fact != placement.Bridges && fact != placement.CPUModels && fact != placement.CPUFlags && fact != placement.MachineTypes; got != want {
			t.Errorf("fact %d is of a region: %v", fact, got)
		}
	}
}

// TestAHostThatLacksSomethingIsPassedOver has one host with the bridge, and the others say why not.
func TestAHostThatLacksSomethingIsPassedOver(t *testing.T) {
	t.Parallel()
	hosts := []placement.Host{}
	for _, name := range []proxmox.NodeName{"pve1", "pve2", "pve3"} {
		hosts = append(hosts, placement.Host{
			Node: name, FailureDomain: "z", Online: true, CPUs: 8, Memory: 1 << 30, Template: placement.Template{Node: name, ID: 9000},
			Storages: []placement.Storage{{ID: "local", ISO: true}}, Equipment: placement.Equipment{Known: []placement.Fact{placement.Bridges}},
		})
	}
	request := placement.Request{CPUs: 1, Memory: 1, Needs: placement.Needs{Devices: []placement.DeviceNeed{{Field: "network.devices[net0]", Bridge: "lan"}}}}
	if _, refusals, found := placement.Place(request, hosts); found || !strings.HasPrefix(refusals.String(), "3 hosts refused: pve1, pve2, pve3: bridge or vnet lan,") {
		t.Errorf("no host has the bridge: %v", refusals)
	}
	hosts[1].Equipment.Bridges = []placement.Bridge{{Name: "lan"}}
	choice, refusals, _ := placement.Place(request, hosts)
	if choice.Host.Node != "pve2" || len(refusals) != 2 {
		t.Errorf("chose %s, refused %v", choice.Host.Node, refusals)
	}
}
