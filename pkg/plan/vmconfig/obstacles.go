package vmconfig

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
)

// Obstacles are what a new spec changes that a VM which runs by the old one does not become by itself, so that it would not be
// as one that is made anew: what needs another VM, what waits for a restart, and what is no longer set and stays. Without
// any, the VM can be updated in place.
func Obstacles(before, now v1beta1.ProxmoxMachineSpec) []string {
	o := obstacles{before: before, now: now, had: elementsOf(before), has: elementsOf(now)}
	for _, replacement := range Replacements(before, now) {
		o.note(replacement.Path, replacement.Why)
	}
	for _, field := range Fields() {
		if field.isProviders() || field.Effect == Replace || field.Path == "memory.minimumMiB" && switchesBalloon(before.Memory.MinimumMiB, now.Memory.MinimumMiB) {
			continue
		}
		was, is := valuesOf(reflect.ValueOf(before), "", field.Path), valuesOf(reflect.ValueOf(now), "", field.Path)
		for _, path := range slices.Sorted(maps.Keys(union(was, is))) {
			if !reflect.DeepEqual(was[path], is[path]) {
				o.compare(field, path, was[path], is[path])
			}
		}
	}
	if switchesBalloon(before.Memory.MinimumMiB, now.Memory.MinimumMiB) {
		o.note("memory.minimumMiB", restart)
	}
	for _, device := range now.Network.Devices {
		if countsCPUs(device) && o.had["network.devices["+device.Name] && queuesFor(before.CPU) != queuesFor(now.CPU) {
			o.note("network.devices["+device.Name+"].queuesPerCPU", restart)
		}
	}
	return o.found
}

const restart = "it takes effect at a restart"

// switchesBalloon reports whether the balloon device comes or goes, or may: what a template has is not known.
func switchesBalloon(before, now *int32) bool {
	switch {
	case before == nil && now == nil:
		return false
	case before == nil || now == nil:
		return true
	}
	return (*before == 0) != (*now == 0)
}

type obstacles struct {
	before, now v1beta1.ProxmoxMachineSpec
	// had and has are the devices and disks of the two.
	had, has map[string]bool
	found    []string
}

func (o *obstacles) note(path, why string) { o.found = append(o.found, path+": "+why) }

// compare judges one value that changed. A device or disk that comes or goes does so as a whole.
func (o *obstacles) compare(field Field, path string, was, is any) {
	element, part, isPart := strings.Cut(path, "]")
	isWhole := isPart && o.had[element] != o.has[element]
	feature := field.Effect.Feature()
	switch {
	case isWhole && part != ".name":
	case strings.HasPrefix(field.Path, additionalDisk) && (strings.HasPrefix(element, "disks.additional[sata") || strings.HasPrefix(element, "disks.additional[ide")):
		o.note(path, restart)
	case field.Effect == Reboot:
		o.note(path, restart)
	case feature != "" && (!plugs(o.before, feature) || !plugs(o.now, feature)):
		o.note(path, fmt.Sprintf("%s, without the feature %s in options.hotplug", restart, feature))
	case !isWhole && is == nil && !isTakenBack(field.Path):
		o.note(path, "it is no longer set, which leaves the VM as it is")
	case needsRestart(field.Path, was, is):
		o.note(path, restart)
	}
}

// plugs reports whether a running VM is known to take changes that need a feature of hotplug: what it has from its template is
// not known.
func plugs(spec v1beta1.ProxmoxMachineSpec, feature string) bool {
	if spec.Options.Hotplug == nil {
		return !spec.Source.UsesTemplate() && slices.Contains(strings.Split(usualHotplug, ","), feature)
	}
	return slices.Contains(*spec.Options.Hotplug, feature)
}

// isTakenBack reports whether a VM becomes what it was when the field is no longer set.
func isTakenBack(path string) bool {
	name, _, _ := strings.Cut(path, ".")
	return slices.Contains([]string{"tags", "description", "vmName", "firewall", "highAvailability", "powerState", "driftPolicy", "pool"}, name)
}

// needsRestart are the changes of a field that a running VM does not take although it takes others.
func needsRestart(path string, was, is any) bool {
	switch path {
	case "options.hotplug":
		before, now := listOf(was), listOf(is)
		return slices.ContainsFunc([]string{"cpu", "memory"}, func(feature string) bool {
			return slices.Contains(before, feature) != slices.Contains(now, feature)
		})
	case "memory.sizeMiB", "cpu.vcpus": // guests seldom give memory or CPUs back
		before, isSet := was.(int32)
		now, _ := is.(int32)
		return now < before || path == "cpu.vcpus" && !isSet // which is all cores
	}
	return false
}

func listOf(value any) []string {
	list, _ := value.([]string)
	return list
}
