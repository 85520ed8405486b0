package vmconfig

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

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

// Growth is a disk that is too small.
type Growth struct {
	// Key is the config key, such as scsi0.
	Key string
	// Field is what asks for the size.
	Field string
	// Size is the whole size that is wanted.
	Size proxmox.Bytes
}

// Difference is a field that the config does not have as it is wanted.
type Difference struct {
	Field
	// Wanted and Is are in the words of the config; empty for nothing.
	Wanted, Is string
}

// String returns `field: wanted → is`.
func (d Difference) String() string {
	or := func(text string) string {
		if text == "" {
			return "none"
		}
		return text
	}
	return fmt.Sprintf("%s: %s → %s", d.Path, or(d.Wanted), or(d.Is))
}

// Told is the difference as a person is told it: with the key of the config, and values that are not too long to read.
func (d Difference) Told() string {
	if d.Key != "" && !strings.Contains(d.Path, d.Key) {
		d.Path += " (" + d.Key + ")"
	}
	d.Wanted, d.Is = brief(d.Wanted), brief(d.Is)
	return d.String()
}

// brief is a text that is not too long to read, on one line.
func brief(text string) string {
	const most = 80
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// Comparison is how a config differs from the desired one.
type Comparison struct {
	// Change is what brings the config there. Disks that are there are never made anew.
	Change Change
	// Grow are the disks that are too small.
	Grow []Growth
	// Differences are the fields that differ, each with how a change of it takes effect.
	Differences []Difference
}

// Diff returns the change that brings the observed config to the desired one. Keys and parts of keys that are not ours
// stay: a template's firewall flag on net0, say, or its other tags.
func Diff(desired Desired, observed Config) Change { return Compare(desired, observed).Change }

// Compare compares the observed config with the desired one, in what is asked for.
func Compare(desired Desired, observed Config) Comparison {
	comparison := Comparison{Change: Change{Set: map[string]string{}}}
	wanted := map[string]bool{}
	wants := desired.wants(observed)
	for _, want := range wants {
		wanted[want.Key] = true
		comparison.compare(want, observed[want.Key])
	}
	comparison.complete(wants, observed)
	for _, key := range slices.Sorted(maps.Keys(observed)) {
		if !wanted[key] {
			comparison.dismiss(key, observed[key], slices.Contains(desired.gone, key))
		}
	}
	slices.Sort(comparison.Change.Delete)
	comparison.Grow = desired.Growths(observed)
	for _, growth := range comparison.Grow {
		comparison.differ(growth.difference(observed))
	}
	return comparison
}

// complete gives new values the parts that are usual, too.
func (c *Comparison) complete(wants []want, observed Config) {
	for _, want := range wants {
		if value, set := c.Change.Set[want.Key]; set && observed[want.Key] == "" && want.Part != "" {
			c.Change.Set[want.Key] = want.in(value)
		}
	}
}

// compare notes what is not as wanted, and its mending.
func (c *Comparison) compare(want want, observed string) {
	if want.isMet(observed) {
		return
	}
	c.differ(Difference{Field: want.effective(observed), Wanted: want.shown(want.value), Is: want.shown(want.is(observed))})
	if want.kept {
		return
	}
	value, begun := c.Change.Set[want.Key]
	if !begun {
		value = observed
	}
	if value = want.in(value); value != "" {
		c.Change.Set[want.Key] = value
	} else {
		c.Change.Delete = append(c.Change.Delete, want.Key)
	}
}

// dismiss takes away what must not be there: network devices that are not asked for, and Proxmox VE's own cloud-init drives, which came
// with the template, and devices that the spec no longer lists.
func (c *Comparison) dismiss(key, observed string, isGone bool) {
	switch {
	case isGone:
		c.differ(Difference{Field: at(FieldOf(key), key, "", Reboot), Is: observed})
	case isIndexed(key, "net"):
		c.differ(Difference{Field: at("network.devices["+key+"]", key, "", HotplugNetwork), Is: observed})
	case isDriveKey(key) && isCloudInit(observed):
		c.differ(Difference{Field: at("bootstrap", key, "", Replace), Is: observed})
	default:
		return
	}
	c.Change.Delete = append(c.Change.Delete, key)
}

func (c *Comparison) differ(difference Difference) { c.Differences = append(c.Differences, difference) }

// shown is a value as people are told it: of a volume its storage.
func (w want) shown(value string) string {
	if w.Part == "file" {
		return string(Storage(proxmox.VolumeID(value)))
	}
	return value
}

// effective is the want's field, with the effect of the very change: some changes of a field are taken by a running VM, and
// others are not.
func (w want) effective(observed string) Field {
	field := w.Field
	switch {
	case w.Key == "hotplug" && (switches(observed, w.value, "cpu") || switches(observed, w.value, "memory")):
		field.Effect = Reboot
	case w.Key == "balloon" && (observed == "0") != (w.value == "0"):
		field.Effect = Reboot
	}
	return field
}

func switches(before, after, feature string) bool {
	return slices.Contains(strings.Split(before, ","), feature) != slices.Contains(strings.Split(after, ","), feature)
}
