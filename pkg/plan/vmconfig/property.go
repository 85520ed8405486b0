// Package vmconfig translates between what is wanted of a VM and Proxmox VE's config keys: it encodes a desired VM,
// decodes an observed one, and says which keys to change. It owns some keys and leaves all others alone.
package vmconfig

import "strings"

// Properties is a PVE property string, `[value,]key=value,…`, taken apart: the parts in their order. The part without a
// key, which PVE calls the default key, has an empty Key.
type Properties []Property

// Property is one part of a property string.
type Property struct {
	Key, Value string
}

// ParseProperties takes a property string apart. Every string has a reading: what PVE would refuse is kept as it is.
func ParseProperties(text string) Properties {
	var properties Properties
	for part := range strings.SplitSeq(text, ",") {
		if part == "" {
			continue
		}
		key, value, keyed := strings.Cut(part, "=")
		if !keyed || key == "" {
			key, value = "", part
		}
		properties = append(properties, Property{key, value})
	}
	return properties
}

// String puts the property string together.
func (p Properties) String() string {
	parts := make([]string, len(p))
	for i, property := range p {
		parts[i] = property.Value
		if property.Key != "" {
			parts[i] = property.Key + "=" + property.Value
		}
	}
	return strings.Join(parts, ",")
}

// Get returns the value of the first part with the key, and "" when there is none.
func (p Properties) Get(key string) string {
	for _, property := range p {
		if property.Key == key {
			return property.Value
		}
	}
	return ""
}

// With returns the properties with one set: in its place when the key is there, else at the end.
func (p Properties) With(key, value string) Properties {
	result := make(Properties, 0, len(p)+1)
	found := false
	for _, property := range p {
		if property.Key == key {
			property.Value, found = value, true
		}
		result = append(result, property)
	}
	if !found {
		result = append(result, Property{key, value})
	}
	return result
}
