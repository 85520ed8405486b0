package vmconfig

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/network"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// Desired is what a VM's config has to say in the keys that we own: what is set in the spec, and the VM's identity.
type Desired struct {
	UUID proxmox.SMBIOSUUID
	// Machine, Cluster and Namespace name whose VM it is.
	Machine, Cluster, Namespace string
	// Spec is what is asked for. What is not set in it stays as the config has it.
	Spec v1beta1.ProxmoxMachineSpec
	// Seed is the ISO that the guest boots with.
	Seed proxmox.VolumeID
	// Running says that the VM runs, so that what would take its network away for a moment waits until it does not.
	Running bool
	// dropped are tags that the spec had and has no more.
	dropped []string
	// former is the description that the spec had.
	former string
	// gone are the keys of devices that the spec listed and lists no more.
	gone []string
}

// After is what is desired of a VM that was brought to another spec before: what that listed and this one does not goes.
func (d Desired) After(applied v1beta1.ProxmoxMachineSpec) Desired {
	d.dropped, d.former = missing(applied.Tags, d.Spec.Tags), applied.Description
	d.gone = missing(elementKeys(&applied), elementKeys(&d.Spec))
	return d
}

// Encode returns the config of a VM that has nothing yet: every value that is asked for.
func (d Desired) Encode() Config {
	config := Config{}
	for _, want := range d.wants(nil) {
		if value := want.in(config[want.Key]); value != "" {
			config[want.Key] = value
		}
	}
	return config
}

// New returns the config that a VM is made with that has no template: all that is asked for and, in place of what Proxmox VE's
// API takes otherwise, what its GUI offers for Linux. Today's distributions do not run on the CPU that the API takes.
func (d Desired) New() Config {
	config := d.Encode()
	offered := map[string]string{"ostype": "l26", "scsihw": "virtio-scsi-single"}
	if d.machine(config) != "aarch64" {
		offered["cpu"] = "x86-64-v2-AES"
	}
	for key, value := range offered {
		if config[key] == "" {
			config[key] = value
		}
	}
	if cpu := ParseProperties(config["cpu"]); offered["cpu"] != "" && cpu.Get("") == "" && cpu.Get("cputype") == "" {
		config["cpu"] = offered["cpu"] + "," + config["cpu"]
	}
	return config
}

// wants are all that the config has to say. What the config has already decides where the seed and the boot disk are, and
// which disks are to be made.
func (d Desired) wants(observed Config) []want {
	spec := d.resolved()
	all := d.marks(observed)
	all = append(all, made(wants(&spec, "", "", specTable), observed)...)
	all = append(all, d.numa()...)
	all = append(all, d.devices(spec.Network.Devices, observed)...)
	all = append(all, elements(keyed(spec.Hardware.PCIDevices, func(p *v1beta1.PCIDevice) string { return p.Name }), at("hardware.pciDevices", "", "", Reboot), pciTable, observed)...)
	all = append(all, elements(keyed(spec.Hardware.USBDevices, func(u *v1beta1.USBDevice) string { return u.Name }), at("hardware.usbDevices", "", "", HotplugUSB), usbTable, observed)...)
	for _, port := range spec.Hardware.SerialPorts {
		all = append(all, want{Field: at("hardware.serialPorts", port, "", Reboot), value: "socket"})
	}
	all = append(all, d.disks(observed)...)
	if drive, found := d.SeedDrive(observed); found && d.Seed != "" {
		all = append(all, want{Field: at("bootstrap", drive, "", Replace), value: string(d.Seed) + ",media=cdrom", same: sameMedium})
	}
	return append(all, d.raw()...)
}

// resolved is the spec with what it leaves to be worked out.
func (d Desired) resolved() v1beta1.ProxmoxMachineSpec {
	spec := d.Spec
	spec.Network.Devices = slices.Clone(spec.Network.Devices)
	for i := range spec.Network.Devices {
		device := &spec.Network.Devices[i]
		device.MACAddress, device.MACPrefix = network.DeviceMAC(d.UUID, *device), ""
		if countsCPUs(*device) {
			device.Queues = queuesFor(spec.CPU)
		}
		device.QueuesPerCPU = nil
	}
	return spec
}

// marks are what says whose VM it is, and what people see of it.
func (d Desired) marks(observed Config) []want {
	marks := []want{
		{Field: at("reservation.uuid", "smbios1", "uuid", Replace), value: string(d.UUID), same: sameIgnoringCase},
		{Field: at("tags", "tags", "", Live), value: d.tags(observed["tags"]), same: sameSet},
		{Field: at("description", "description", "", Live), value: d.notes(observed), same: sameLines},
	}
	if name, err := d.Name(); err == nil {
		marks = append(marks, want{Field: at("vmName", "name", "", Live), value: name})
	}
	return marks
}

// tags adds ours to a list and drops identity tags that came with the template.
func (d Desired) tags(observed string) string {
	ours := IdentityTag(d.UUID)
	kept := slices.DeleteFunc(Tags(observed), func(t string) bool {
		return strings.HasPrefix(t, TagPrefix) && t != ours || slices.Contains(d.dropped, t)
	})
	all := append(append(kept, d.Spec.Tags...), ours)
	slices.Sort(all)
	return strings.Join(slices.Compact(all), ";")
}

// made turns the parts of a disk that is not there yet into one want.
func made(parts []want, observed Config) []want {
	var result []want
	for _, key := range []string{"efidisk0", "tpmstate0"} {
		isPart := func(w want) bool { return w.Key == key }
		disk := slices.DeleteFunc(slices.Clone(parts), func(w want) bool { return !isPart(w) })
		if len(disk) == 0 || volumeOf(observed[key]) != "" {
			continue
		}
		parts = slices.DeleteFunc(parts, isPart)
		field := at("hardware.efiDisk", key, "", Reboot)
		if key == "tpmstate0" {
			field.Path = "hardware.tpm"
		} else {
			disk = append(disk, want{Field: at("", key, "efitype", Replace), value: "4m"})
		}
		result = append(result, whole(field, disk))
	}
	return append(parts, result...)
}

// numa is switched on where what is asked for needs it.
func (d Desired) numa() []want {
	if _, set := d.Spec.RawConfig["numa"]; set || !needsNUMA(&d.Spec) {
		return nil
	}
	return []want{{Field: at("options.hotplug", "numa", "", Reboot), value: "1", usual: "0", same: sameTruth}}
}

// devices are the wants of the network devices. Proxmox VE unplugs a device to give it other queues, and a node loses its network: who
// changes the CPUs does not ask for that.
func (d Desired) devices(resolved []v1beta1.NetworkDevice, observed Config) []want {
	name := func(n *v1beta1.NetworkDevice) string { return n.Name }
	all := elements(keyed(resolved, name), at("network.devices", "", "", HotplugNetwork), deviceTable, observed)
	for i, want := range all {
		counts := slices.ContainsFunc(d.Spec.Network.Devices, func(n v1beta1.NetworkDevice) bool { return n.Name == want.Key && countsCPUs(n) })
		if counts && want.Part == "queues" {
			all[i].Field, all[i].atStart = at("network.devices["+want.Key+"].queuesPerCPU", want.Key, "queues", Reboot), true
		}
	}
	return all
}

// countsCPUs reports whether a device has a queue for each CPU.
func countsCPUs(device v1beta1.NetworkDevice) bool {
	return device.QueuesPerCPU != nil && *device.QueuesPerCPU
}

// queuesFor are the queues of a device that has one for each CPU that is plugged in.
func queuesFor(cpu v1beta1.CPU) int32 {
	const most = 64
	count := cpu.Sockets * cpu.Cores
	if cpu.VCPUs > 0 {
		count = min(count, cpu.VCPUs)
	}
	return min(count, most)
}

// element is a device with its key.
type element[T any] struct {
	key  string
	item *T
}

func keyed[T any](items []T, key func(*T) string) []element[T] {
	elements := make([]element[T], len(items))
	for i := range items {
		elements[i] = element[T]{key(&items[i]), &items[i]}
	}
	return elements
}

// elements are the wants of a list of devices: of one that is not there yet as a whole, of others by their parts.
func elements[T any](items []element[T], list Field, rows []row[T], observed Config) []want {
	var all []want
	for _, element := range items {
		field := list
		field.Path, field.Key = list.Path+"["+element.key+"]", element.key
		parts := wants(element.item, field.Path+".", element.key, rows)
		if strings.TrimSpace(observed[element.key]) == "" {
			parts = []want{whole(field, parts)}
		}
		all = append(all, parts...)
	}
	return all
}

// raw are the keys that the user set in Proxmox VE's own words.
func (d Desired) raw() []want {
	var all []want
	for _, key := range slices.Sorted(maps.Keys(d.Spec.RawConfig)) {
		if _, refused := RefusedKey(key); refused {
			continue
		}
		all = append(all, want{Field: at("rawConfig["+key+"]", key, "", Reboot), value: d.Spec.RawConfig[key], same: sameProperties(key)})
	}
	return all
}

// sameMedium compares what is in a CD-ROM drive: Proxmox VE adds its size.
func sameMedium(a, b string) bool { return volumeOf(a) == volumeOf(b) && isDisk(a) == isDisk(b) }

// sameLines compares notes: Proxmox VE drops a newline at their end.
func sameLines(a, b string) bool { return strings.TrimRight(a, "\n") == strings.TrimRight(b, "\n") }

// number is the number at the end of a key.
func numberOf(key string) int {
	number, err := strconv.Atoi(strings.TrimLeft(key, "abcdefghijklmnopqrstuvwxyz"))
	if err != nil {
		return -1
	}
	return number
}
