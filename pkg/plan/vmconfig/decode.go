package vmconfig

import (
	"maps"
	"slices"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// Decode returns what a VM's config says in the words of the API: what a spec would set to have it so. Fields that no config
// says are not set.
func Decode(config Config) v1beta1.ProxmoxMachineSpec {
	var spec v1beta1.ProxmoxMachineSpec
	for _, key := range slices.SortedFunc(maps.Keys(config), byNumber) {
		decodeKey(&spec, key, config[key])
	}
	decodeDisks(&spec, config)
	spec.VMName = config["name"]
	if _, below := cutNotes(config["description"]); strings.TrimSpace(below) != "" {
		spec.Description = strings.TrimSpace(below)
	}
	spec.Tags = slices.DeleteFunc(Tags(config["tags"]), func(tag string) bool { return strings.HasPrefix(tag, TagPrefix) })
	if len(spec.Tags) == 0 {
		spec.Tags = nil
	}
	spec.RawConfig = decodeRaw(config, needsNUMA(&spec))
	return spec
}

// byNumber puts net2 before net10.
func byNumber(a, b string) int {
	if len(a) != len(b) && strings.TrimRight(a, "0123456789") == strings.TrimRight(b, "0123456789") {
		return numberOf(a) - numberOf(b)
	}
	return strings.Compare(a, b)
}

func decodeKey(spec *v1beta1.ProxmoxMachineSpec, key, value string) {
	switch {
	case isIndexed(key, "net"):
		device := v1beta1.NetworkDevice{Name: key}
		decodeRows(&device, key, value, deviceTable)
		spec.Network.Devices = append(spec.Network.Devices, device)
	case isIndexed(key, "hostpci"):
		device := v1beta1.PCIDevice{Name: key}
		decodeRows(&device, key, value, pciTable)
		spec.Hardware.PCIDevices = append(spec.Hardware.PCIDevices, device)
	case isIndexed(key, "usb"):
		device := v1beta1.USBDevice{Name: key}
		decodeRows(&device, key, value, usbTable)
		spec.Hardware.USBDevices = append(spec.Hardware.USBDevices, device)
	case isIndexed(key, "serial") && value == "socket":
		spec.Hardware.SerialPorts = append(spec.Hardware.SerialPorts, key)
	default:
		decodeRows(spec, key, value, specTable)
	}
}

// decodeDisks reads the disk that the VM boots from and the others, and what a new VM boots from.
func decodeDisks(spec *v1beta1.ProxmoxMachineSpec, config Config) {
	boot, found := config.BootDisk()
	for _, key := range slices.SortedFunc(maps.Keys(config), byNumber) {
		value := config[key]
		if !isDriveKey(key) || !isThere(value) || isCloudInit(value) {
			continue
		}
		options := v1beta1.DiskOptions{}
		decodeRows(&options, key, value, diskTable)
		storage, gib := string(Storage(proxmox.VolumeID(volumeOf(value)))), int32(diskSize(value)/proxmox.GiB(1).Bytes())
		if found && key == boot.Key {
			spec.Disks.Boot = v1beta1.BootDisk{Name: key, Storage: storage, SizeGiB: gib, Format: diskFormat(value), DiskOptions: options}
			spec.Source.Image.Volume = ParseProperties(value).Get("import-from")
			continue
		}
		spec.Disks.Additional = append(spec.Disks.Additional, v1beta1.AdditionalDisk{
			Name: key, Storage: storage, SizeGiB: gib, Format: diskFormat(value), DiskOptions: options,
		})
	}
	for _, device := range strings.Split(ParseProperties(config["boot"]).Get("order"), ";") {
		if isIndexed(device, "net") {
			spec.Source.Netboot.Device = device
		}
	}
}

// decodeRaw are the keys that no field is for.
func decodeRaw(config Config, numa bool) map[string]string {
	var raw map[string]string
	for key, value := range config {
		if _, refused := RefusedKey(key); refused || key == "numa" && numa {
			continue
		}
		if raw == nil {
			raw = map[string]string{}
		}
		raw[key] = value
	}
	return raw
}
