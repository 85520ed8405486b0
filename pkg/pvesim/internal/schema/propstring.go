package schema

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// PropertyString is the format of a value like `virtio=BC:24:11:00:00:01,bridge=vmbr0`: comma-separated properties, of which
// the default one may come without its key.
type PropertyString struct {
	// DefaultKey is the property that may come without its key; empty if there is none.
	DefaultKey string
	// Aliases are other keys for properties.
	Aliases []Alias
	// Params are the properties.
	Params []Param
	// Open takes properties that are not listed, without a check.
	Open bool
	// Whole checks properties that are each well; it returns why they are refused together, or "". Nil checks nothing.
	Whole func(Properties) string
}

// Alias is a key that stands for another one.
type Alias struct {
	Key string
	// Of is the property that takes its value.
	Of string
	// KeyOf is the property that takes the key itself as its value, as model does of virtio=MAC; empty for none.
	KeyOf string
}

// Properties are a parsed property string.
type Properties map[string]string

func (s *PropertyString) alias(key string) *Alias {
	for i := range s.Aliases {
		if s.Aliases[i].Key == key {
			return &s.Aliases[i]
		}
	}
	return nil
}

// Parse takes the value apart without checking its properties (PVE::JSONSchema::parse_property_string). What cannot be taken
// apart is an error, whose text it returns, without a newline.
func (s *PropertyString) Parse(value string) (Properties, string) {
	out := Properties{}
	defaulted := false
	for _, part := range strings.Split(value, ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		key, v, hasKey := strings.Cut(part, "=")
		msg := ""
		switch {
		case hasKey && (key == "" || v == ""):
			msg = "missing key in comma-separated list property"
		case hasKey:
			msg = s.enter(out, key, v)
		default:
			msg = s.enterDefault(out, part, defaulted)
			defaulted = true
		}
		if msg != "" {
			return nil, msg
		}
	}
	return out, ""
}

// enter takes key=value.
func (s *PropertyString) enter(out Properties, key, value string) string {
	if _, twice := out[key]; twice {
		return "duplicate key in comma-separated list property: " + key
	}
	if a := s.alias(key); a != nil {
		if a.KeyOf != "" {
			if _, twice := out[a.KeyOf]; twice {
				return fmt.Sprintf("key alias '%s' is already defined", a.KeyOf)
			}
			out[a.KeyOf] = key
		}
		key = a.Of
	}
	if p := Lookup(s.Params, key); p != nil && p.Kind == BooleanKind {
		value = perlBoolean(value)
	}
	out[key] = value
	return ""
}

// enterDefault takes a word without a key.
func (s *PropertyString) enterDefault(out Properties, word string, defaulted bool) string {
	if s.DefaultKey == "" {
		return "value without key, but schema does not define a default key"
	}
	if value := out[s.DefaultKey]; defaulted || (value != "" && value != "0") {
		return "duplicate key in comma-separated list property: " + s.DefaultKey
	}
	out[s.DefaultKey] = word
	return ""
}

// perlBoolean is PVE::JSONSchema::parse_boolean; what is no boolean stays as it is.
func perlBoolean(value string) string {
	switch strings.ToLower(value) {
	case "1", "on", "yes", "true":
		return "1"
	case "0", "off", "no", "false":
		return "0"
	}
	return value
}

// CheckProperties returns the errors of the value given under the key, one a line, or "".
func (w Wording) CheckProperties(s PropertyString, key, value string) string {
	given, msg := s.Parse(value)
	if msg != "" {
		return msg + "\n"
	}
	if s.Open {
		maps.DeleteFunc(given, func(name, _ string) bool { return Lookup(s.Params, name) == nil })
	}
	errors := w.verify(s.Params, given, key+".")
	if len(errors) == 0 {
		if s.Whole != nil {
			if msg = s.Whole(given); msg != "" {
				return msg + "\n"
			}
		}
		return ""
	}
	out := "format error\n"
	for _, name := range slices.Sorted(maps.Keys(errors)) {
		out += fmt.Sprintf("%s.%s: %s\n", key, name, errors[name])
	}
	return out
}

// Print writes properties with the default key's value first and the rest in alphabetical order, as PVE does.
func (p Properties) Print(first string) string {
	keys := make([]string, 0, len(p))
	for k := range p {
		if k != first {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	out := p[first]
	for _, k := range keys {
		out += "," + k + "=" + p[k]
	}
	return strings.TrimPrefix(out, ",")
}
