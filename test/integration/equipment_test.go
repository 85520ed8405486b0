package integration_test

import (
	"net/http"
	"net/url"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// bridge has hosts' network configuration have a bridge.
func (b *bench) bridge(name proxmox.BridgeName, options map[string]string, nodes ...proxmox.NodeName) {
	for _, node := range nodes {
		b.pve.World.ConfigureBridge(node, name, options)
	}
}

func vlanAware() map[string]string { return map[string]string{"bridge_vlan_aware": "1"} }

// lack is something that a machine asks of its host, and that no host has.
type lack struct {
	ask func(*v1beta1.ProxmoxMachineSpec)
	// message is what is said of each host.
	message string
	// mend has pve3 alone have it; nil when only another machine helps.
	mend func(*bench)
}

// lacks are those by the name of the machine.
func lacks(version pvesim.Version) map[string]lack {
	device := func(change func(*v1beta1.NetworkDevice)) func(*v1beta1.ProxmoxMachineSpec) {
		return func(s *v1beta1.ProxmoxMachineSpec) { change(&s.Network.Devices[0]) }
	}
	posts := func(path string, form url.Values) func(*bench) {
		return func(b *bench) { b.ask(http.MethodPost, path, form) }
	}
	configures := func(name proxmox.BridgeName, options map[string]string) func(*bench) {
		return func(b *bench) { b.bridge(name, options, "pve3") }
	}
	all := map[string]lack{
		"bridge": {
			device(func(d *v1beta1.NetworkDevice) { d.Bridge = "lan" }),
			"bridge or vnet lan, which network.devices[net0] names, is not in the host's network configuration, or the token may not use it", configures("lan", nil),
		},
		"trunks": {
			device(func(d *v1beta1.NetworkDevice) { d.Bridge, d.Trunks = "plain", []string{"5-7"} }),
			"plain is not VLAN-aware, as the trunks of network.devices[net0] need: make it so, or leave trunks out", configures("plain", vlanAware()),
		},
		"mtu": {
			device(func(d *v1beta1.NetworkDevice) { d.Bridge, d.MTU = "small", 9000 }),
			"bridge small has an MTU of 1500, below the mtu 9000 of network.devices[net0]: raise it there", configures("small", map[string]string{"mtu": "9000"}),
		},
		"cpu": {
			func(s *v1beta1.ProxmoxMachineSpec) { s.CPU.Type = "Pentium-Pro" },
			"its Proxmox VE knows no CPU model Pentium-Pro, which cpu.type names: update the host, or name another", nil,
		},
		"custom-cpu": {
			func(s *v1beta1.ProxmoxMachineSpec) { s.CPU.Type = "custom-small" },
			"there is no custom CPU model custom-small, which cpu.type names: make it", func(b *bench) { b.pve.World.AddCPUModel("small") },
		},
		"cpu-flag": {
			func(s *v1beta1.ProxmoxMachineSpec) { s.CPU.Flags = []string{"+aes", "+avx512f"} },
			"its Proxmox VE lets no VM switch the CPU flag +avx512f, which cpu.flags names, but aes, ", nil,
		},
		"machine-type": {
			func(s *v1beta1.ProxmoxMachineSpec) { s.Hardware.MachineType = "pc-q35-99.0" },
			"its QEMU has no machine type pc-q35-99.0, which hardware.machineType names: update the host", nil,
		},
		"pci": {
			func(s *v1beta1.ProxmoxMachineSpec) {
				s.Hardware.PCIDevices = []v1beta1.PCIDevice{{Name: "hostpci0", Mapping: "gpu"}}
			},
			"resource mapping gpu, which hardware.pciDevices[hostpci0] names, does not exist, or the token may not use it (Mapping.Use on /mapping/pci/gpu): make it",
			posts("/cluster/mapping/pci", url.Values{"id": {"gpu"}, "map": {"node=pve3,path=0000:01:00.0,id=10de:2204"}}),
		},
		"usb": {
			func(s *v1beta1.ProxmoxMachineSpec) {
				s.Hardware.USBDevices = []v1beta1.USBDevice{{Name: "usb0", Mapping: "key"}}
			},
			"resource mapping key, which hardware.usbDevices[usb0] names, does not exist, or the token may not use it (Mapping.Use on /mapping/usb/key): make it",
			posts("/cluster/mapping/usb", url.Values{"id": {"key"}, "map": {"node=pve3,id=046d:c52b"}}),
		},
		"format": {
			func(s *v1beta1.ProxmoxMachineSpec) {
				s.Disks.Additional = []v1beta1.AdditionalDisk{{Name: "scsi1", Storage: "local-lvm", SizeGiB: 1, Format: "qcow2"}}
			},
			"storage local-lvm is of type lvmthin, which keeps disks as raw alone and not as qcow2, which disks.additional[scsi1].format names: leave the format out, or name another storage", nil,
		},
		"pool": {
			func(s *v1beta1.ProxmoxMachineSpec) { s.Pool = "later" },
			"pool later, which spec.pool names, does not exist: make it", posts("/pools", url.Values{"poolid": {"later"}}),
		},
	}
	if version == pvesim.V84 { // 9 has no groups
		all["ha-group"] = lack{
			func(s *v1beta1.ProxmoxMachineSpec) {
				s.HighAvailability = v1beta1.HighAvailability{Enabled: ptr.To(true), Group: "g1"}
			},
			"there is no HA group g1, which highAvailability.group names: make it", nil,
		}
	}
	return all
}

// withGPU is a simulator whose third host has a PCI device.
func withGPU(t *testing.T, version pvesim.Version) pvesim.Option {
	t.Helper()
	world, err := pvesim.NewWorld(pvesim.WithVersion(version))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	defer world.Close()
	state := world.State()
	state.Nodes[2].PCI = []pvesim.PCIDeviceSpec{{ID: "0000:01:00.0", Class: "0x030000", Vendor: "0x10de", Device: "0x2204"}}
	return pvesim.FromState(state)
}

// TestWhatNoHostHasIsSaidBeforeAVMIsMade has a machine for each thing that a host can lack. When one host gets them all, it
// gets the machines.
func TestWhatNoHostHasIsSaidBeforeAVMIsMade(t *testing.T) {
	t.Parallel()
	for _, version := range []pvesim.Version{pvesim.V84, pvesim.V92} {
		t.Run(string(version), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, withGPU(t, version))
			b.bridge("plain", nil, "pve1", "pve2", "pve3")
			b.bridge("small", map[string]string{"mtu": "1500"}, "pve1", "pve2", "pve3")
			b.provisioned(b.cluster("c1"))
			rows, machines := lacks(version), map[string]*v1beta1.ProxmoxMachine{}
			for name, row := range rows {
				machines[name] = b.machine("c1", name, func(m *v1beta1.ProxmoxMachine) { row.ask(&m.Spec) })
			}
			for name, row := range rows {
				b.says(machines[name], v1beta1.VirtualMachineReadyCondition, metav1.ConditionFalse, "WaitingForCapacity",
					"3 hosts refused: pve1, pve2, pve3: "+row.message)
			}
			b.Expect(writes(b.requests())).To(BeEmpty())
			for _, row := range rows {
				if row.mend != nil {
					row.mend(b)
				}
			}
			for name, row := range rows {
				if row.mend == nil {
					b.delete(machines[name])
					continue
				}
				b.running(machines[name])
				if name != "pool" && name != "custom-cpu" { // these are everywhere then
					b.Expect(machines[name].Status.Node).To(Equal("pve3"), name)
				}
			}
		})
	}
}

// TestNothingIsAskedForThatNoMachineNeeds has two machines that name nothing but a bridge.
func TestNothingIsAskedForThatNoMachineNeeds(t *testing.T) {
	t.Parallel()
	b := newBench(t, pvesim.WithModel(pvesim.Model{Nodes: 1, Speed: 100}))
	b.provisioned(b.cluster("c1"))
	b.running(b.machine("c1", "m1"))
	b.running(b.machine("c1", "m2"))
	b.Expect(asked(b.requests(), hostBridges)).To(Equal(1), "once for both")
	for _, record := range b.requests() {
		for _, path := range []string{"/capabilities/", "/mapping/", "/pools", "/access/permissions", "/ha/"} {
			b.Expect(record.Path).NotTo(ContainSubstring(path))
		}
	}
}

// TestWhatATokenMayNotSeeKeepsNoMachineWaiting has a token that sees neither the pool nor the custom CPU model, and may use both.
func TestWhatATokenMayNotSeeKeepsNoMachineWaiting(t *testing.T) {
	t.Parallel()
	for _, version := range []pvesim.Version{pvesim.V84, pvesim.V92} {
		t.Run(string(version), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, pvesim.WithVersion(version))
			b.pve.World.AddCPUModel("small")
			rights := documentedRights()
			delete(rights, "/nodes")
			for _, node := range []string{"pve1", "pve2", "pve3"} {
				rights["/nodes/"+node] = []string{"Sys.Audit"}
			}
			admin := b.pve.Token
			b.pve.Token = b.pve.World.AddToken(pvesim.TokenSpec{User: "capi@pve", Name: "capve", Privileges: rights})
			b.provisioned(b.cluster("c1"))
			b.pve.Token = admin
			machine := b.machine("c1", "m1", func(m *v1beta1.ProxmoxMachine) { m.Spec.Pool, m.Spec.CPU.Type = "capi", "custom-small" })
			b.running(machine)
		})
	}
}
