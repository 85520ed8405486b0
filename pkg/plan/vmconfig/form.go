package vmconfig

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// form is how a property string is written: the part whose key may be left out, and other keys that parts go by.
type form struct {
	bare    string
	aliases map[string]string
	// isDevice says that it is a network device, which writes model and MAC address as one part: virtio=BC:24:11:…
	isDevice bool
}

// formOf returns the form of a key's property string. A key that is no property string has none.
func formOf(key string) (form, bool) {
	bare, isForm := bareParts[key]
	switch {
	case isForm:
		return form{bare: bare, aliases: aliases}, true
	case isDriveKey(key):
		return form{bare: "file", aliases: aliases}, true
	case isIndexed(key, "net"):
		return form{bare: "model", isDevice: true}, true
	case isIndexed(key, "hostpci", "usb"):
		return form{bare: "host"}, true
	}
	return form{}, false
}

// The tables of property strings: the part of each key that may stand alone, and other names of parts.
//
//nolint:gochecknoglobals // constant tables
var (
	bareParts = map[string]string{
		"cpu": "cputype", "agent": "enabled", "machine": "type", "vga": "type", "rng0": "source", "watchdog": "model", "startup": "order",
		"memory": "current", "boot": "legacy", "smbios1": "", "efidisk0": "file", "tpmstate0": "file",
	}
	aliases      = map[string]string{"volume": "file", "freeze-fs": "freeze-fs-on-backup", "guest-fsfreeze": "freeze-fs-on-backup"}
	deviceModels = deviceModelNames()
)

// read takes a property string apart, with one name for each part.
func (f form) read(text string) Properties {
	var result Properties
	for _, property := range ParseProperties(text) {
		switch alias := f.aliases[property.Key]; {
		case property.Key == "":
			property.Key = f.bare
		case alias != "":
			property.Key = alias
		case f.isDevice && slices.Contains(deviceModels, property.Key):
			result = append(result, Property{"model", property.Key})
			property.Key = "macaddr"
		}
		result = append(result, property)
	}
	return result
}

// write puts a property string together, the part without a key first, as Proxmox VE does.
func (f form) write(properties Properties) string {
	var first, others Properties
	model, mac := properties.Get("model"), properties.Get("macaddr")
	for _, property := range properties {
		switch {
		case f.isDevice && model != "" && mac != "" && property.Key == "model":
			first = append(first, Property{model, mac})
		case f.isDevice && model != "" && mac != "" && property.Key == "macaddr":
		case property.Key == f.bare:
			first = append(first, Property{"", property.Value})
		default:
			others = append(others, property)
		}
	}
	return append(first, others...).String()
}

// deviceModelNames are the keys that give a network device's model and, as their value, its MAC address
// (PVE::QemuServer::Network, the enum of `model`).
func deviceModelNames() []string {
	return []string{
		"virtio", "e1000", "e1000e", "e1000-82540em", "e1000-82544gc", "e1000-82545em", "vmxnet3", "rtl8139",
		"ne2k_isa", "ne2k_pci", "pcnet", "i82551", "i82557b", "i82559er",
	}
}

// The ways in which two values are the same to Proxmox VE.

func sameText(a, b string) bool { return a == b }

func sameIgnoringCase(a, b string) bool { return strings.EqualFold(a, b) }

func sameTruth(a, b string) bool { return truth(a) == truth(b) && (truth(a) != "" || a == b) }

// truth reads a boolean as Proxmox VE does: 1, on, yes, true, or the opposite; what is none is empty.
func truth(text string) string {
	switch strings.ToLower(text) {
	case "1", "on", "yes", "true":
		return "1"
	case "0", "off", "no", "false":
		return "0"
	}
	return ""
}

func sameNumber(a, b string) bool {
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	return a == b || errX == nil && errY == nil && x == y
}

// sameMachine compares machine types: one without a version is any version of it. Proxmox VE pins the version of some VMs.
func sameMachine(observed, wanted string) bool {
	version := map[string]string{"pc": `^pc(-i440fx)?-[0-9]`, "q35": `^pc-q35-[0-9]`, "virt": `^virt-[0-9]`}[wanted]
	if version == "" {
		return observed == wanted
	}
	pinned, err := regexp.MatchString(version, observed)
	return observed == wanted || err == nil && pinned
}

// sameSet compares lists in which the order says nothing.
func sameSet(a, b string) bool {
	return slices.Equal(set(a), set(b))
}

func set(list string) []string {
	return slices.Compact(slices.Sorted(slices.Values(Tags(list))))
}

// sameFeatures compares hotplug features: 1 is the default, 0 is none.
func sameFeatures(a, b string) bool { return sameSet(features(a), features(b)) }

func features(text string) string {
	switch text {
	case "1", "":
		return usualHotplug
	case "0":
		return ""
	}
	return text
}

// usualHotplug is what may be plugged in where a config does not say.
const usualHotplug = "network,disk,usb"

// sameProperties compares property strings of a key, whatever the order of their parts.
func sameProperties(key string) func(a, b string) bool {
	f, isForm := formOf(key)
	return func(a, b string) bool {
		return a == b || isForm && sorted(f.read(a)) == sorted(f.read(b))
	}
}

func sorted(properties Properties) string {
	sorted := slices.SortedFunc(slices.Values(properties), func(a, b Property) int {
		return strings.Compare(a.Key+"="+a.Value, b.Key+"="+b.Value)
	})
	return Properties(sorted).String()
}
