package integration_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
)

// contradiction is a machine whose fields do not go together: which field the API server names, with which value, and what it says
// to do.
type contradiction struct {
	name  string
	edits []edit
	path  string
	// value is empty where the message has it, and missing where there is none.
	value   string
	message string
}

const (
	// missing stands for the value of a field that has none.
	missing = "Required value"
	// forbidden stands for a value that is not repeated.
	forbidden = "Forbidden"
)

// refusesEach checks the field and the message of each refusal.
func (d *desk) refusesEach(valid func() client.Object, rows []contradiction) {
	d.t.Helper()
	refusals := make([]refusal, len(rows))
	for i, row := range rows {
		refusals[i] = refusal{row.name, row.edits, row.path + ": " + row.said() + ": " + row.message}
	}
	d.refuses(valid, refusals)
}

// said is how the API server says a value.
func (c contradiction) said() string {
	switch c.value {
	case missing, forbidden, "Too long":
		return c.value
	case "":
		return "Invalid value"
	}
	return "Invalid value: " + c.value
}

// plain is a machine with little more than what it must have.
func (d *desk) plain() client.Object {
	machine := &v1beta1.ProxmoxMachine{ObjectMeta: d.meta("machine"), Spec: machineSpec()}
	machine.Spec.Network.Devices = append(machine.Spec.Network.Devices, v1beta1.NetworkDevice{Name: "net1", Bridge: "vmbr1"})
	return machine
}

// edits puts edits together.
func edits(list ...edit) []edit { return list }

func TestContradictionsAreRefusedWithFieldAndRemedy(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.refusesEach(d.plain, computeContradictions())
	d.refusesEach(d.plain, deviceContradictions())
	d.refusesEach(d.plain, networkContradictions())
	d.refusesEach(d.plain, firewallContradictions())
	d.refusesEach(d.plain, nameContradictions())
	d.refusesEach(d.plain, placeContradictions())
}

func computeContradictions() []contradiction {
	return []contradiction{
		{"more vcpus than CPUs", one("spec.cpu", anything{"cores": int64(2), "vcpus": int64(3)}), "spec.cpu.vcpus", "3", "vcpus must not be more than sockets times cores: lower it, or raise one of these"},
		{"a flag added and taken", one("spec.cpu.flags", []any{"+aes", "+pcid", "-aes"}), "spec.cpu.flags[2]", `"-aes"`, "a flag is added with + and taken away with -: name it once"},
		{"minimum above the size", one("spec.memory.minimumMiB", int64(4097)), "spec.memory.minimumMiB", "4097", "minimumMiB must not be above sizeMiB: lower it, or leave it out"},
		{
			"hugepages with a balloon", edits(set("spec.memory.hugepages", "2MiB"), set("spec.memory.minimumMiB", int64(1024))),
			"spec.memory.minimumMiB", "1024", "no balloon takes hugepages back from the guest: set minimumMiB to 0 or to sizeMiB, or leave hugepages out",
		},
		{
			"a balloon with a PCI device", edits(set("spec.memory.minimumMiB", int64(1024)), set("spec.hardware.pciDevices", []any{anything{"name": "hostpci0", "mapping": "gpu"}})),
			"spec.memory.minimumMiB", "1024", "with hardware.pciDevices all memory is pinned, and no balloon takes any back: set memory.minimumMiB to 0 or to memory.sizeMiB, or leave it out",
		},
		{
			"memory hotplug without NUMA", edits(set("spec.options.hotplug", []any{"memory"}), set("spec.rawConfig.numa", "0")),
			"spec.rawConfig", `numa "0"`, "hugepages, and memory in options.hotplug, need NUMA, which is switched on for them: leave numa out of rawConfig",
		},
		{
			"hugepages without NUMA", edits(set("spec.memory.hugepages", "2MiB"), set("spec.rawConfig.numa", "0")),
			"spec.rawConfig", `numa "0"`, "hugepages, and memory in options.hotplug, need NUMA, which is switched on for them: leave numa out of rawConfig",
		},
		{
			"memory hotplug of little memory", edits(set("spec.options.hotplug", []any{"memory"}), set("spec.memory.sizeMiB", int64(1023))),
			"spec.memory.sizeMiB", "1023", "plugging in memory needs a VM with 1024 MiB at least: raise memory.sizeMiB, or take memory out of options.hotplug",
		},
		{
			"an agent that is off, and its device", one("spec.options.agent", anything{"enabled": false, "type": "isa"}),
			"spec.options.agent.enabled", "false", "fstrimClonedDisks, freezeFSOnBackup and type are for an agent that is enabled: leave them out, or set enabled to true",
		},
	}
}

func deviceContradictions() []contradiction {
	const hardware, disk = "spec.hardware.", "spec.disks.additional"
	extra := func(name string, more anything) edit {
		made := anything{"name": name, "storage": "local-lvm", "sizeGiB": int64(1)}
		for key, value := range more {
			made[key] = value
		}
		return set(disk, []any{made})
	}
	virt, arch := set(hardware+"machineType", "virt"), set("spec.rawConfig.arch", "aarch64")
	image := edits(without("spec.source.template"), set("spec.source.image.volume", "shared:import/debian.qcow2"), set("spec.disks.boot.storage", "local-lvm"))
	gpus := set(hardware+"pciDevices", []any{anything{"name": "hostpci0", "mapping": "gpu", "primaryGPU": true}, anything{"name": "hostpci1", "mapping": "gpu", "primaryGPU": true}})
	gpu := set(hardware+"pciDevices", []any{anything{"name": "hostpci0", "mapping": "gpu", "primaryGPU": true}})
	return []contradiction{
		{"efi disk without ovmf", one(hardware+"efiDisk.storage", "local-lvm"), "spec.hardware.efiDisk", "bios is not set", "efiDisk needs bios ovmf: set bios to ovmf, or leave efiDisk out"},
		{"virt with seabios", edits(virt, set(hardware+"bios", "seabios")), "spec.hardware.bios", `"seabios"`, "the machineType virt has no seabios: set bios to ovmf"},
		{"virt with an ISA watchdog", edits(virt, set(hardware+"watchdog.model", "ib700")), "spec.hardware.watchdog.model", `"ib700"`, "the machineType virt has no ISA bus, which the watchdog ib700 needs: use i6300esb"},
		{"aarch64 on a PC", edits(arch, set(hardware+"machineType", "q35")), "spec.hardware.machineType", `"q35"`, "rawConfig has arch aarch64, whose machineType is virt: set it to virt, or leave it out"},
		{"virt with an ide seed", edits(virt, set("spec.bootstrap.bus", "ide")), "spec.bootstrap.bus", `"ide"`, "aarch64 has no ide: set bus to scsi or sata, or leave it out"},
		{"aarch64 with an ide seed", edits(arch, set("spec.bootstrap.bus", "ide")), "spec.bootstrap.bus", `"ide"`, "aarch64 has no ide: set bus to scsi or sata, or leave it out"},
		{"virt with an ide disk", edits(virt, extra("ide0", nil)), "spec.disks.additional[0].name", `"ide0"`, "aarch64 has no ide: name the disks scsi…, virtio… or sata…"},
		{"q35 with ide1", edits(set(hardware+"machineType", "pc-q35-9.0"), extra("ide1", nil)), "spec.disks.additional[0].name", `"ide1"`, "the machineType q35 has ide0 and ide2 alone: name the disks otherwise"},
		{"virt with an ide boot disk", append(edits(virt, set("spec.disks.boot.name", "ide0")), image...), "spec.disks.boot.name", `"ide0"`, "aarch64 has no ide: name the disks scsi…, virtio… or sata…"},
		{"q35 that boots from ide3", append(edits(set(hardware+"machineType", "q35"), set("spec.disks.boot.name", "ide3")), image...), "spec.disks.boot.name", `"ide3"`, "the machineType q35 has ide0 and ide2 alone: name the disks otherwise"},
		{
			"a console on no port", edits(set(hardware+"display.type", "serial1"), set(hardware+"serialPorts", []any{"serial0"})),
			"spec.hardware.display.type", "", "the console is shown on serial1, which serialPorts does not have: add it there",
		},
		{"a console on no port of a new VM", append(image, set(hardware+"display.type", "serial0")), "spec.hardware.serialPorts", missing, "the console is shown on serial0, which a new VM does not have: name it in hardware.serialPorts"},
		{"graphics memory of a serial port", one(hardware+"display", anything{"type": "serial0", "memoryMiB": int64(16)}), "spec.hardware.display.memoryMiB", "16", "memoryMiB is for a graphics card: leave it out with type none and with a serial port"},
		{"two primary GPUs", edits(gpus), "spec.hardware.pciDevices[1].primaryGPU", "true", "only one device is the primaryGPU, which hostpci0 is: leave it out of the others"},
		{"a primary GPU and a card", edits(gpu, set(hardware+"display.type", "virtio")), "spec.hardware.display.type", `"virtio"`, "a primaryGPU takes the graphics card's place: set display.type to none or to a serial port, or leave it out"},
		{"a period of no limit", one(hardware+"rng", anything{"source": "/dev/urandom", "maxBytes": int64(0), "periodMilliseconds": int64(100)}), "spec.hardware.rng.periodMilliseconds", "100", "periodMilliseconds is the period of maxBytes, and maxBytes 0 has none: leave it out, or set maxBytes above 0"},
		{"Windows 11 with an old TPM", edits(set(hardware+"tpm", anything{"storage": "local-lvm", "version": "v1.2"}), set("spec.options.osType", "win11")), "spec.hardware.tpm.version", `"v1.2"`, "options.osType win11 needs a TPM of version v2.0"},
		{"many USB devices of an old system", edits(set(hardware+"usbDevices", []any{anything{"name": "usb5", "mapping": "key"}}), set("spec.options.osType", "win7")), "spec.hardware.usbDevices[0].name", `"usb5"`, "usb5 to usb13 need an options.osType of l26, win8, win10 or win11: use usb0 to usb4, or set it"},
		{"native and cached", edits(extra("scsi1", anything{"aio": "native", "cache": "writeback"})), "spec.disks.additional[0].aio", `"native" with cache writeback`, "aio native needs a disk that the host does not cache: set cache to none or directsync, or aio to io_uring or threads"},
		{"native and cached, the boot disk", one("spec.disks.boot", anything{"aio": "native", "cache": "unsafe"}), "spec.disks.boot.aio", `"native" with cache unsafe`, "aio native needs a disk that the host does not cache: set cache to none or directsync, or aio to io_uring or threads"},
		{"a thread on another controller", edits(set(hardware+"scsiController", "virtio-scsi-pci"), extra("scsi1", anything{"ioThread": true})), "spec.disks.additional[0].ioThread", "true", "ioThread of a scsi disk needs hardware.scsiController virtio-scsi-single, which is virtio-scsi-pci: set it, or leave ioThread out"},
		{"a thread of the boot disk on another controller", append(image, set(hardware+"scsiController", "megasas"), set("spec.disks.boot.ioThread", true)), "spec.disks.boot.ioThread", "true", "ioThread of a scsi disk needs hardware.scsiController virtio-scsi-single, which is megasas: set it, or leave ioThread out"},
		{"a read-only sata disk", edits(extra("sata1", anything{"readOnly": true})), "spec.disks.additional[0].readOnly", "true of sata1", "readOnly is for scsi and virtio disks: leave it out, or name the disk scsi… or virtio…"},
		{"a thread of a sata disk", edits(extra("sata1", anything{"ioThread": true})), "spec.disks.additional[0].ioThread", "true of sata1", "ioThread is for scsi and virtio disks: leave it out, or name the disk scsi… or virtio…"},
		{"a burst of nothing", edits(extra("scsi1", anything{"limits": anything{"readBurstMiBps": int64(5)}})), "spec.disks.additional[0].limits.readBurstMiBps", "5", "readBurstMiBps needs readMiBps, and is not below it: set readMiBps, or leave readBurstMiBps out"},
		{"a burst below", edits(extra("scsi1", anything{"limits": anything{"writeMiBps": int64(6), "writeBurstMiBps": int64(5)}})), "spec.disks.additional[0].limits.writeBurstMiBps", "5", "writeBurstMiBps needs writeMiBps, and is not below it: set writeMiBps, or leave writeBurstMiBps out"},
		{"a burst of no operations", edits(extra("scsi1", anything{"limits": anything{"readBurstIOPS": int64(50)}})), "spec.disks.additional[0].limits.readBurstIOPS", "50", "readBurstIOPS needs readIOPS, and is not below it: set readIOPS, or leave readBurstIOPS out"},
		{"a burst of fewer operations", edits(extra("scsi1", anything{"limits": anything{"writeIOPS": int64(60), "writeBurstIOPS": int64(50)}})), "spec.disks.additional[0].limits.writeBurstIOPS", "50", "writeBurstIOPS needs writeIOPS, and is not below it: set writeIOPS, or leave writeBurstIOPS out"},
		{"a linked clone in another format", edits(set("spec.source.template.cloneMode", "Linked"), set("spec.source.template.format", "raw")), "spec.source.template.format", `"raw"`, "format needs cloneMode Full: a linked clone has the template's format"},
	}
}

func networkContradictions() []contradiction {
	const net0, net1 = "spec.network.devices.0.", "spec.network.devices.1."
	method := func(path, method string, more anything) edit {
		made := anything{"method": method}
		for key, value := range more {
			made[key] = value
		}
		return set(path, made)
	}
	return []contradiction{
		{"DHCP and a pool", edits(method(net0+"ipv4", "DHCP", anything{"poolRef": anything{"name": "pool"}})), "spec.network.devices[0].ipv4.method", `"DHCP"`, "poolRef, additionalPoolRefs and gateway are for method Pool: leave them out, or set method to Pool"},
		{"an MTU of an e1000", edits(set(net0+"model", "e1000"), set(net0+"mtu", int64(1500))), "spec.network.devices[0].model", `"e1000"`, "queues, queuesPerCPU and mtu are for the model virtio: leave them out, or set model to virtio"},
		{"queues of an e1000", edits(set(net0+"model", "e1000"), set(net0+"queuesPerCPU", true)), "spec.network.devices[0].model", `"e1000"`, "queues, queuesPerCPU and mtu are for the model virtio: leave them out, or set model to virtio"},
		{"queues and one for each CPU", edits(set(net0+"queues", int64(2)), set(net0+"queuesPerCPU", true)), "spec.network.devices[0].queuesPerCPU", "true", "give either queues or queuesPerCPU: leave one of them out"},
		{"a route over no address", edits(set(net1+"routes", []any{route("10.9.0.0/16", "10.0.0.1")})), "spec.network.devices[1].routes[0].via", `"10.0.0.1"`, "a route via an IPv4 router needs an IPv4 address on the device: set ipv4, or leave the route out"},
		{"a gateway of IPv6", edits(set(net0+"ipv4.gateway", "fe80::1")), "spec.network.devices[0].ipv4.gateway", `"fe80::1"`, "gateway is an IPv4 address: correct it, or set it in ipv6"},
		{"a gateway of IPv4", edits(method(net0+"ipv6", "Pool", anything{"gateway": "10.0.0.1"})), "spec.network.devices[0].ipv6.gateway", `"10.0.0.1"`, "gateway is an IPv6 address: correct it, or set it in ipv4"},
		{"a gateway for no route", edits(set(net0+"ipv4.gateway", "10.0.0.1"), set(net0+"ipv4.defaultRoute", false)), "spec.network.devices[0].ipv4.defaultRoute", "false", "gateway and metric are of the default route, which defaultRoute false takes away: leave them out, or set defaultRoute to true"},
		{"a metric for no route", edits(method(net0+"ipv6", "Pool", anything{"metric": int64(5), "defaultRoute": false})), "spec.network.devices[0].ipv6.defaultRoute", "false", "gateway and metric are of the default route, which defaultRoute false takes away: leave them out, or set defaultRoute to true"},
		{
			"a gateway out of reach", edits(method(net0+"ipv6", "EUI64", anything{"prefix": "2001:db8::/64", "gateway": "2001:db8:1::1"})), "spec.network.devices[0].ipv6.gateway",
			"", "gateway 2001:db8:1::1 is neither link-local nor in prefix 2001:db8::/64, so that the guest does not reach it: correct one of them",
		},
		{
			"a default route to nowhere", edits(method(net0+"ipv6", "EUI64", anything{"prefix": "2001:db8::/64", "defaultRoute": true})), "spec.network.devices[0].ipv6.defaultRoute", "true", "with method EUI64 nothing but gateway tells the router: set gateway, or leave defaultRoute out",
		},
		{
			"two default routes", edits(method(net0+"ipv4", "DHCP", anything{"defaultRoute": true}), method(net1+"ipv4", "DHCP", anything{"defaultRoute": true})), "spec.network.devices[1].ipv4.defaultRoute", "true", "two IPv4 default routes of the same metric are in the main routing table, the other is spec.network.devices[0].ipv4.defaultRoute: keep one of them, or give them different metrics",
		},
		{
			"two default routes of IPv6", edits(method(net0+"ipv6", "Pool", anything{"defaultRoute": true, "metric": int64(5)}), method(net1+"ipv6", "Pool", anything{"defaultRoute": true, "metric": int64(5)})), "spec.network.devices[1].ipv6.defaultRoute", "true", "two IPv6 default routes of the same metric are in the main routing table, the other is spec.network.devices[0].ipv6.defaultRoute: keep one of them, or give them different metrics",
		},
		{"a VRF in the main table", one("spec.network.vrfs", []any{vrf("blue", 254, "net1")}), "spec.network.vrfs[0].table", "254", "tables 253, 254 and 255 are the guest's own (default, main, local): choose another"},
		{"two VRFs with a table", one("spec.network.vrfs", []any{vrf("blue", 10, "net1"), vrf("red", 10, "net0")}), "spec.network.vrfs[1].table", "10", "each VRF needs a routing table of its own, and blue has it: change table of one of them"},
		{
			"booting from a cable that is not plugged in", edits(without("spec.source.template"), without("spec.disks"), set("spec.source.netboot.device", "net0"), set(net0+"linkDown", true)), "spec.source.netboot.device",
			"", "source.netboot.device net0 is a device with linkDown, from which nothing boots: name another, or leave linkDown out",
		},
	}
}

func firewallContradictions() []contradiction {
	const firewall, net0, net1 = "spec.firewall.", "spec.network.devices.0.", "spec.network.devices.1."
	on, off := set(firewall+"enabled", true), set(net0+"firewall", false)
	return []contradiction{
		{"a group for a device without firewall", edits(on, off, set(firewall+"securityGroups", []any{anything{"name": "web", "device": "net0"}})), "spec.firewall.securityGroups[0].device", `"net0"`, "a security group is for a device whose firewall is false, so that its rules do nothing: set the device's firewall to true, or leave the group out"},
		{"a firewall of no device", edits(on, off, set(net1+"firewall", false)), "spec.firewall.enabled", "true", "the firewall is enabled, and every device's firewall is false, so that it filters nothing: set firewall to true on the devices to filter"},
		{"no DHCP for a device with DHCP", edits(on, set(net0+"ipv4", anything{"method": "DHCP"}), set(firewall+"dhcp", false)), "spec.firewall.dhcp", "false", "firewall.dhcp is false, and a device that is filtered gets its address by DHCP: set dhcp to true, or the device's firewall to false"},
		{"no neighbours for IPv6", edits(on, set(net0+"ipv6", anything{"method": "SLAAC"}), set(firewall+"ndp", false)), "spec.firewall.ndp", "false", "firewall.ndp is false, and IPv6 on a device that is filtered does not work without neighbour discovery: set ndp to true, or the device's firewall to false"},
	}
}

// TestWhatLooksLikeAContradictionIsTaken has neighbours of what is refused.
func TestWhatLooksLikeAContradictionIsTaken(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	const net0, net1 = "spec.network.devices.0.", "spec.network.devices.1."
	for name, edits := range map[string][]edit{
		"vcpus of all CPUs":               one("spec.cpu", anything{"cores": int64(2), "vcpus": int64(2)}),
		"a flag added, another taken":     one("spec.cpu.flags", []any{"+aes", "-aes-ni"}),
		"hugepages without a balloon":     edits(set("spec.memory.hugepages", "2MiB"), set("spec.memory.minimumMiB", int64(0))),
		"a PCI device without a balloon":  edits(set("spec.memory.minimumMiB", int64(4096)), set("spec.hardware.pciDevices", []any{anything{"name": "hostpci0", "mapping": "gpu"}})),
		"memory hotplug of the template":  one("spec.options.hotplug", []any{"memory"}),
		"an agent that is off":            one("spec.options.agent", anything{"enabled": false}),
		"aarch64":                         edits(set("spec.rawConfig.arch", "aarch64"), set("spec.hardware", anything{"machineType": "virt", "bios": "ovmf"}), set("spec.bootstrap.bus", "scsi")),
		"ide2 on q35":                     edits(set("spec.hardware.machineType", "q35"), set("spec.disks.additional", []any{anything{"name": "ide2", "storage": "a1", "sizeGiB": int64(1)}})),
		"a console on the template's":     one("spec.hardware.display.type", "serial0"),
		"a primary GPU and a serial port": edits(set("spec.hardware.pciDevices", []any{anything{"name": "hostpci0", "mapping": "gpu", "primaryGPU": true}}), set("spec.hardware.display.type", "serial0")),
		"native and direct":               one("spec.disks.boot", anything{"aio": "native", "cache": "none"}),
		"default routes with two metrics": edits(set(net0+"ipv4", anything{"method": "DHCP", "defaultRoute": true, "metric": int64(5)}), set(net1+"ipv4", anything{"method": "DHCP", "defaultRoute": true})),
		"a link-local gateway":            one(net0+"ipv6", anything{"method": "EUI64", "prefix": "2001:db8::/64", "gateway": "fe80::1", "defaultRoute": true}),
		"DHCP before an open firewall":    edits(set("spec.firewall", anything{"enabled": true, "dhcp": false, "policyIn": "ACCEPT"}), set(net0+"ipv4", anything{"method": "DHCP"})),
		"DHCP beside the firewall":        edits(set("spec.firewall", anything{"enabled": true, "dhcp": false}), set(net0+"ipv4", anything{"method": "DHCP"}), set(net0+"firewall", false)),
	} {
		t.Run(name, func(t *testing.T) {
			if err := d.client.Create(t.Context(), document(t, d.scheme, d.plain(), edits...), client.DryRunAll); err != nil {
				t.Errorf("refused: %v", err)
			}
		})
	}
}

func TestNamesThatCannotBeInAClusterAreRefused(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	const host = "host is a DNS name or an IP address: give it without scheme, port and brackets"
	rows := []refusal{{"a node with a dot", one("spec.regions.0.zones.0.nodes.0", "pve1.example.com"), "spec.regions[0].zones[0].nodes[0]"}, {"a Secret in capitals", one("spec.regions.0.credentialsRef.name", "Secret"), "credentialsRef.name in body should match"}}
	for _, value := range []string{"https://cp.example.com", "cp.example.com:6443", "[2001:db8::1]", "a b", "a/b", "-a"} {
		rows = append(rows, refusal{"host " + value, one("spec.controlPlaneEndpoint.host", value), fmt.Sprintf("spec.controlPlaneEndpoint.host: Invalid value: %q: %s", value, host)})
	}
	d.refuses(func() client.Object { return d.validCluster() }, rows)
	for _, value := range []string{"2001:db8::1", "10.0.0.1", "cp", "cp.example.com"} {
		d.Expect(d.client.Create(t.Context(), document(t, d.scheme, d.validCluster(), set("spec.controlPlaneEndpoint.host", value)), client.DryRunAll)).To(Succeed())
	}
	d.refuses(func() client.Object { return d.validMachine() }, []refusal{{"a node with a dot", one("spec.placement.allowedNodes.0", "pve1.example.com"), "spec.placement.allowedNodes[0]"}})
}

// TestEveryRuleIsTested looks for the message of each rule of the CRDs among the tests.
func TestEveryRuleIsTested(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	files, err := filepath.Glob("*_test.go")
	g.Expect(err).NotTo(HaveOccurred())
	var tests strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		g.Expect(err).NotTo(HaveOccurred())
		tests.Write(text)
	}
	for message := range ruleMessages(t) {
		words := strings.Fields(strings.FieldsFunc(message, func(r rune) bool { return r == ':' || r == ',' })[0])
		start := strings.Join(words[:min(len(words), 5)], " ") // of the first sentence, as the tests quote it
		composed := strings.Contains(start, "is immutable")    // the tests put these together
		if !composed && !strings.Contains(tests.String(), start) {
			t.Errorf("no test has the API server say %q", message)
		}
	}
}

// TestEveryRuleNamesTheValue checks that a rule about more than one value says which they are. The API server itself adds the
// value to what a rule about a single one says.
func TestEveryRuleNamesTheValue(t *testing.T) {
	t.Parallel()
	eachRule(t, func(schema apiextensionsv1.JSONSchemaProps, rule apiextensionsv1.ValidationRule) {
		isMissing := ptr.Deref(rule.Reason, "") == apiextensionsv1.FieldValueRequired
		if schema.Type == "object" && !isMissing && rule.MessageExpression == "" {
			t.Errorf("the rule that says %q does not name the value: give it a messageExpression, or have a webhook check it", rule.Message)
		}
	})
}

// ruleMessages are the messages of all rules of the CRDs; of one that is made up, what follows the value.
func ruleMessages(t *testing.T) map[string]bool {
	t.Helper()
	messages := map[string]bool{}
	eachRule(t, func(_ apiextensionsv1.JSONSchemaProps, rule apiextensionsv1.ValidationRule) {
		message := rule.Message
		if expression := rule.MessageExpression; expression != "" {
			quote := expression[len(expression)-1]
			message = expression[strings.LastIndexByte(expression[:len(expression)-1], quote)+1 : len(expression)-1]
		}
		if value, rest, found := strings.Cut(message, ": "); found && !strings.Contains(value, " ") {
			message = rest
		}
		messages[message] = true
	})
	return messages
}

// eachRule calls with each rule of the CRDs, and what it is a rule of.
func eachRule(t *testing.T, look func(apiextensionsv1.JSONSchemaProps, apiextensionsv1.ValidationRule)) {
	t.Helper()
	g := NewWithT(t)
	files, err := filepath.Glob("../../config/crd/bases/*.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(files).NotTo(BeEmpty())
	for _, file := range files {
		text, err := os.ReadFile(file)
		g.Expect(err).NotTo(HaveOccurred())
		crd := &apiextensionsv1.CustomResourceDefinition{}
		g.Expect(yaml.Unmarshal(text, crd)).To(Succeed())
		collectRules(ptr.Deref(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, apiextensionsv1.JSONSchemaProps{}), look)
	}
}

func collectRules(schema apiextensionsv1.JSONSchemaProps, look func(apiextensionsv1.JSONSchemaProps, apiextensionsv1.ValidationRule)) {
	for _, rule := range schema.XValidations {
		look(schema, rule)
	}
	for _, property := range schema.Properties {
		collectRules(property, look)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		collectRules(*schema.Items.Schema, look)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		collectRules(*schema.AdditionalProperties.Schema, look)
	}
}
