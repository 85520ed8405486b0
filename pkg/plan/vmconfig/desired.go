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

// Desired is what a VM's config has to say in the keys that we own.
type Desired struct {
	UUID proxmox.SMBIOSUUID
	// Name is the VM's name, a DNS name.
	Name    string
	CPU     v1beta1.CPU
	Memory  v1beta1.Memory
	Network v1beta1.Network
	// Seed is the ISO that the guest boots with.
	Seed proxmox.VolumeID
}

// Change is what to set and what to delete in a config. The zero Change changes nothing.
type Change struct {
	Set    map[string]string
	Delete []string
}

// Empty reports whether there is nothing to change.
func (c Change) Empty() bool { return len(c.Set) == 0 && len(c.Delete) == 0 }

// Apply returns the config after the change, as PVE would keep it.
func (c Change) Apply(config Config) Config {
	result := maps.Clone(config)
	if result == nil {
		result = Config{}
	}
	for _, key := range c.Delete {
		delete(result, key)
	}
	maps.Copy(result, c.Set)
	return result
}

// Diff returns the change that brings the observed config to the desired one. Keys and parts of keys that are not ours
// stay: a template's firewall flag on net0, say, or its other tags.
func Diff(desired Desired, observed Config) Change {
	want := desired.encode(observed)
	change := Change{Set: map[string]string{}}
	for key, value := range want {
		if !equal(key, observed[key], value) {
			change.Set[key] = value
		}
	}
	for key := range observed {
		_, kept := want[key]
		if !kept && (isIndexed(key, "net") || isDriveKey(key) && isCloudInit(observed[key])) {
			change.Delete = append(change.Delete, key)
		}
	}
	slices.Sort(change.Delete)
	return change
}

// equal compares two values of a key as PVE does: the order of a property string's parts and of tags says nothing.
func equal(key, observed, wanted string) bool {
	switch {
	case key == "description":
		return strings.TrimRight(observed, "\n") == strings.TrimRight(wanted, "\n")
	case key == "tags":
		return slices.Equal(slices.Sorted(slices.Values(Tags(observed))), slices.Sorted(slices.Values(Tags(wanted))))
	case isDriveKey(key): // PVE adds the size of what is in the drive
		return volumeOf(observed) == volumeOf(wanted) && isDisk(observed) == isDisk(wanted)
	case isIndexed(key, "net") || key == "smbios1":
		return sortedProperties(observed) == sortedProperties(wanted)
	}
	return observed == wanted
}

func sortedProperties(text string) string {
	properties := ParseProperties(text)
	slices.SortFunc(properties, func(a, b Property) int { return strings.Compare(a.Key+"="+a.Value, b.Key+"="+b.Value) })
	return properties.String()
}

// encode gives the desired values of the keys that we own, on top of what is there.
func (d Desired) encode(observed Config) Config {
	config := Config{
		"name":    d.Name,
		"sockets": strconv.Itoa(int(d.CPU.Sockets)),
		"cores":   strconv.Itoa(int(d.CPU.Cores)),
		"memory":  strconv.Itoa(int(d.Memory.SizeMiB)),
		"smbios1": ParseProperties(observed["smbios1"]).With("uuid", string(d.UUID)).String(),
		"tags":    withTag(observed["tags"], IdentityTag(d.UUID)),
	}
	if !observed.describes(d.UUID) {
		config["description"] = Description(d.Name, d.UUID)
	}
	for _, device := range d.Network.Devices {
		config[device.Name] = encodeDevice(d.UUID, device, observed[device.Name])
	}
	if d.Seed != "" {
		config[SeedDrive(observed)] = string(d.Seed) + ",media=cdrom"
	}
	return config
}

// withTag adds our tag to a list and drops identity tags that came with the template.
func withTag(tags, tag string) string {
	kept := slices.DeleteFunc(Tags(tags), func(t string) bool { return strings.HasPrefix(t, TagPrefix) && t != tag })
	if !slices.Contains(kept, tag) {
		kept = append(kept, tag)
	}
	slices.Sort(kept)
	return strings.Join(kept, ";")
}

// deviceModels are the keys that give a network device's model and, as their value, its MAC address
// (PVE::QemuServer::Network, the enum of `model`).
var deviceModels = []string{ //nolint:gochecknoglobals // a constant list
	"virtio", "e1000", "e1000e", "e1000-82540em", "e1000-82544gc", "e1000-82545em", "vmxnet3", "rtl8139",
	"ne2k_isa", "ne2k_pci", "pcnet", "i82551", "i82557b", "i82559er",
}

func encodeDevice(uuid proxmox.SMBIOSUUID, device v1beta1.NetworkDevice, observed string) string {
	properties := Properties{{string(device.Model), network.DeviceMAC(uuid, device)}}
	for _, property := range ParseProperties(observed) {
		ours := slices.Contains(deviceModels, property.Key) || slices.Contains([]string{"", "model", "macaddr", "bridge", "tag"}, property.Key)
		if !ours {
			properties = append(properties, property)
		}
	}
	properties = properties.With("bridge", device.Bridge)
	if device.VLAN != 0 {
		properties = properties.With("tag", strconv.Itoa(int(device.VLAN)))
	}
	return properties.String()
}
