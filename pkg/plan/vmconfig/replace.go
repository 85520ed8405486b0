package vmconfig

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
)

// Replacement is a change of a spec that no VM takes: it needs another one.
type Replacement struct {
	// Path is the field, of one device or disk: network.devices[net0].ipv4.
	Path string
	// Why says why the VM cannot be changed, in a sentence without its end.
	Why string
}

// remedy is what a person does who wants it all the same.
const remedy = "make a new ProxmoxMachineTemplate and have the machines rolled, or delete the Machine to have it made anew"

// String says why, and what to do.
func (r Replacement) String() string { return r.Why + ": " + remedy }

// Replacements are what a new spec changes that the VM of the old one cannot follow, by the table of fields. What the
// provider writes itself is left out.
func Replacements(before, now v1beta1.ProxmoxMachineSpec) []Replacement {
	var all []Replacement
	for _, field := range Fields() {
		was, is := valuesOf(reflect.ValueOf(before), "", field.Path), valuesOf(reflect.ValueOf(now), "", field.Path)
		switch {
		case field.isProviders():
		case field.Effect == Replace:
			all = append(all, field.replaced(elementsOf(before), elementsOf(now), was, is)...)
		case strings.HasSuffix(field.Path, ".sizeGiB"):
			all = append(all, shrunk(was, is)...)
		case field.Path == additionalDisk:
			all = append(all, taken(was, is)...)
		}
	}
	return all
}

// additionalDisk is the field that names an additional disk.
const additionalDisk = "disks.additional[].name"

// isProviders reports whether the provider sets the field.
func (f Field) isProviders() bool { return strings.HasPrefix(f.Note, providersNote) }

// isTold reports whether the guest is told of the field at its first start, also of a device that the VM did not have then.
func (f Field) isTold() bool { return f.Note == toldOnce }

// replaced compares the values of a field that cannot change. What is asked for of a new device is new, and goes with one
// that is no longer listed, unless the guest was to be told of it.
func (f Field) replaced(before, now map[string]bool, was, is map[string]any) []Replacement {
	var all []Replacement
	for _, path := range slices.Sorted(maps.Keys(union(was, is))) {
		element, _, _ := strings.Cut(path, "]")
		stays := !strings.Contains(path, "]") || before[element] && now[element]
		if (stays || f.isTold()) && !reflect.DeepEqual(was[path], is[path]) {
			all = append(all, Replacement{path, f.why()})
		}
	}
	return all
}

func (f Field) why() string {
	if f.Note == "" {
		return "a VM cannot change it"
	}
	note := strings.TrimSuffix(f.Note, ".")
	return "a VM cannot change it, " + strings.ToLower(note[:1]) + note[1:]
}

func union(a, b map[string]any) map[string]any {
	both := map[string]any{}
	maps.Copy(both, a)
	maps.Copy(both, b)
	return both
}

// shrunk are the disks that would have to shrink.
func shrunk(was, is map[string]any) []Replacement {
	var all []Replacement
	for _, path := range slices.Sorted(maps.Keys(is)) {
		before, _ := was[path].(int32)
		if now, _ := is[path].(int32); now < before {
			all = append(all, Replacement{path, fmt.Sprintf("a disk grows, but never shrinks, as from %d GiB to %d GiB", before, now)})
		}
	}
	return all
}

// taken are the disks that are no longer listed.
func taken(was, is map[string]any) []Replacement {
	var all []Replacement
	for _, path := range slices.Sorted(maps.Keys(was)) {
		if _, stays := is[path]; !stays {
			all = append(all, Replacement{strings.TrimSuffix(path, ".name"), "a disk, and what is on it, is not taken from a VM"})
		}
	}
	return all
}

// elementsOf are the devices and disks of a spec, as the beginning of their fields' paths.
func elementsOf(s v1beta1.ProxmoxMachineSpec) map[string]bool {
	found := map[string]bool{}
	for _, list := range []string{"network.devices[].name", additionalDisk, "hardware.pciDevices[].name", "hardware.usbDevices[].name"} {
		for path := range valuesOf(reflect.ValueOf(s), "", list) {
			element, _, _ := strings.Cut(path, "]")
			found[element] = true
		}
	}
	return found
}

// valuesOf are the values that a value has at a path of the table, by the path with the names of devices in it. What is not
// set is left out.
func valuesOf(value reflect.Value, prefix, path string) map[string]any {
	if value.Kind() == reflect.Pointer {
		if value.IsNil() {
			return nil
		}
		value = value.Elem()
	}
	if path == "" {
		if value.IsZero() && value.Kind() != reflect.Bool {
			return nil
		}
		return map[string]any{prefix: value.Interface()}
	}
	name, rest, _ := strings.Cut(path, ".")
	name, isList := strings.CutSuffix(name, "[]")
	member, here := fieldNamed(value, name), strings.TrimPrefix(prefix+"."+name, ".")
	if !isList {
		return valuesOf(member, here, rest)
	}
	found := map[string]any{}
	for i := range member.Len() {
		item := member.Index(i)
		maps.Copy(found, valuesOf(item, fmt.Sprintf("%s[%s]", here, fieldNamed(item, "name")), rest))
	}
	return found
}

// fieldNamed is the field of a struct that goes by a name in JSON.
func fieldNamed(value reflect.Value, name string) reflect.Value {
	for i := range value.NumField() {
		tag, _, _ := strings.Cut(value.Type().Field(i).Tag.Get("json"), ",")
		if tag == name {
			return value.Field(i)
		}
		if tag != "" {
			continue
		}
		if inlined := fieldNamed(value.Field(i), name); inlined.IsValid() {
			return inlined
		}
	}
	return reflect.Value{}
}
