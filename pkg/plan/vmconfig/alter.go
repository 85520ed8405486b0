package vmconfig

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// Alteration is how the config of a VM that ran once differs from what is asked for, and what can be done about it while the
// VM stays.
type Alteration struct {
	// Change is what the spec says anew since it was last carried out, and Grow are the disks that it wants larger.
	Change Change
	Grow   []Growth
	// AtStart is what the spec says anew and a VM that runs is not given: it waits until the VM is off.
	AtStart []Difference
	// Beyond are the changes of the spec that need another VM.
	Beyond []Difference
	// Drift is what else differs: somebody changed the VM. Repair and Regrow mend what can be mended of it without another VM,
	// and without taking anything away, or making disks.
	Drift  []Difference
	Repair Change
	Regrow []Growth
	// Keys are those that the spec has a say in.
	Keys []string
}

// Alter compares the config with the spec, and tells what the spec says anew from what somebody changed: the former is what
// it did not say when it was last carried out.
func Alter(desired Desired, applied v1beta1.ProxmoxMachineSpec, observed Config) Alteration {
	before := desired
	before.Spec, before.Seed, desired.Seed = applied, "", ""
	desired = desired.After(applied)
	alteration := &alteration{
		observed: observed, running: desired.Running, was: map[place]string{}, change: Comparison{Change: Change{Set: map[string]string{}}}, repair: Comparison{Change: Change{Set: map[string]string{}}},
	}
	for _, want := range before.wants(observed) {
		alteration.was[place{want.Key, want.Part}] = want.value
	}
	wants := desired.wants(observed)
	for _, want := range wants {
		alteration.sort(want)
	}
	alteration.change.complete(wants, observed)
	alteration.repair.complete(wants, observed)
	alteration.devices(elementKeys(&applied), elementKeys(&desired.Spec))
	alteration.sizes(before, desired)
	slices.Sort(alteration.result.Keys)
	alteration.result.Keys = slices.Compact(alteration.result.Keys)
	alteration.result.Change, alteration.result.Repair = alteration.change.Change, alteration.repair.Change
	return alteration.result
}

// place is where a config says something: a key, or a part of one.
type place struct{ key, part string }

// alteration is an Alteration in the making.
type alteration struct {
	observed       Config
	running        bool
	was            map[place]string
	change, repair Comparison
	result         Alteration
}

// sort puts what a want asks for where it belongs.
func (a *alteration) sort(want want) {
	a.result.Keys = append(a.result.Keys, want.Key)
	observed := a.observed[want.Key]
	if want.isMet(observed) {
		return
	}
	was, said := a.was[place{want.Key, want.Part}]
	difference := Difference{Field: want.effective(observed), Wanted: want.shown(want.value), Is: want.shown(want.is(observed))}
	waits := want.atStart && a.running
	needsAnother := want.kept || want.Effect == Replace
	// A disk that the VM had may hold data somewhere: no empty one takes its place because the spec says more of it.
	isLost := said && !needsAnother && allocates(want.value) && !isThere(observed)
	isNew := !isLost && (!said || was != want.value)
	switch {
	case isNew && needsAnother:
		a.result.Beyond = append(a.result.Beyond, difference)
	case isNew && waits:
		a.result.AtStart = append(a.result.AtStart, difference)
	case isNew:
		a.change.compare(want, observed)
	default:
		a.result.Drift = append(a.result.Drift, difference)
		if !needsAnother && !waits && !allocates(want.value) {
			a.repair.compare(want, observed)
		}
	}
}

// devices takes away the devices that the spec listed and lists no more. What else the VM has is somebody else's.
func (a *alteration) devices(before, now []string) {
	for _, key := range missing(before, now) {
		if a.observed[key] != "" {
			a.change.Change.Delete = append(a.change.Change.Delete, key)
			a.result.Keys = append(a.result.Keys, key)
		}
	}
	slices.Sort(a.change.Change.Delete)
	for _, key := range slices.Sorted(maps.Keys(a.observed)) {
		if isIndexed(key, "net") && !slices.Contains(before, key) && !slices.Contains(now, key) {
			a.result.Drift = append(a.result.Drift, Difference{Field: at("network.devices["+key+"]", key, "", HotplugNetwork), Is: a.observed[key]})
		}
	}
}

// sizes sorts the disks that are not as large as asked for. One that the spec wants smaller cannot be.
func (a *alteration) sizes(before, desired Desired) {
	grown := before.Growths(a.observed)
	for _, growth := range desired.Growths(a.observed) {
		if slices.Contains(grown, growth) {
			a.result.Regrow = append(a.result.Regrow, growth)
			a.result.Drift = append(a.result.Drift, growth.difference(a.observed))
			continue
		}
		a.result.Grow = append(a.result.Grow, growth)
	}
	asked := before.sizes(a.observed)
	for _, size := range desired.sizes(a.observed) {
		if diskSize(a.observed[size.Key]) > size.Size && !slices.Contains(asked, size) {
			a.result.Beyond = append(a.result.Beyond, size.difference(a.observed))
		}
	}
}

// elementKeys are the keys of the devices that a spec lists, but for disks: those are not taken from a VM.
func elementKeys(s *spec) []string {
	keys := slices.Clone(s.Hardware.SerialPorts)
	for _, device := range s.Network.Devices {
		keys = append(keys, device.Name)
	}
	for _, device := range s.Hardware.PCIDevices {
		keys = append(keys, device.Name)
	}
	for _, device := range s.Hardware.USBDevices {
		keys = append(keys, device.Name)
	}
	return keys
}

// missing are those of the texts that are not among the others.
func missing(texts, others []string) []string {
	return slices.DeleteFunc(slices.Clone(texts), func(text string) bool { return slices.Contains(others, text) })
}

// Waits reports whether a key is one that the spec has a say in, or a device: those that wait for a restart are told.
func (a Alteration) Waits(key string) bool {
	return slices.Contains(a.Keys, key) || isIndexed(key, "net", "hostpci", "usb", "serial")
}

// Keys are the keys of a change.
func (c Change) Keys() []string {
	return slices.Sorted(slices.Values(append(slices.Collect(maps.Keys(c.Set)), c.Delete...)))
}

// Without is the change without some keys.
func (c Change) Without(keys ...string) Change {
	kept := Change{Set: map[string]string{}, Delete: missing(c.Delete, keys)}
	for key, value := range c.Set {
		if !slices.Contains(keys, key) {
			kept.Set[key] = value
		}
	}
	return kept
}

// String is the change on one line.
func (c Change) String() string {
	var texts []string
	for _, key := range c.Keys() {
		texts = append(texts, key+"="+c.Set[key])
	}
	return strings.Join(texts, " ")
}

// difference is the growth as a difference of a field.
func (g Growth) difference(observed Config) Difference {
	return Difference{
		Field:  at(g.Field, g.Key, "size", Live),
		Wanted: gibibytes(g.Size), Is: ParseProperties(observed[g.Key]).Get("size"),
	}
}

func gibibytes(size proxmox.Bytes) string { return fmt.Sprintf("%d GiB", size/proxmox.GiB(1).Bytes()) }

// appliedSpec is the part of a spec that the config of a VM is brought to, and its pool.
func appliedSpec(s v1beta1.ProxmoxMachineSpec) v1beta1.ProxmoxMachineSpec {
	return v1beta1.ProxmoxMachineSpec{
		CPU: s.CPU, Memory: s.Memory, Disks: s.Disks, Network: s.Network, Hardware: s.Hardware, Options: s.Options, RawConfig: s.RawConfig,
		VMName: s.VMName, Description: s.Description, Tags: s.Tags, Source: s.Source, Pool: s.Pool,
	}
}

// WriteApplied writes down the part of a spec that the config of a VM is brought to.
func WriteApplied(s v1beta1.ProxmoxMachineSpec) string {
	text, err := json.Marshal(appliedSpec(s))
	if err != nil { // what was read as JSON can be written so
		return ""
	}
	return string(text)
}

// ReadApplied reads what WriteApplied wrote.
func ReadApplied(text string) (v1beta1.ProxmoxMachineSpec, bool) {
	var s v1beta1.ProxmoxMachineSpec
	err := json.Unmarshal([]byte(text), &s)
	return s, err == nil
}
