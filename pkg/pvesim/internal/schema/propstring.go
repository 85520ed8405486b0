package schema

import (
	"fmt"
	"slices"
	"strings"
)

// PropertyString is the format of a value like `virtio=BC:24:11:00:00:01,bridge=vmbr0`: comma-separated properties, of which
// the default one may come without its key.
type PropertyString struct {
	// DefaultKey is the property that may come without its key; empty if there is none.
	DefaultKey string
	// Aliases are keys whose name stands for a value of the default key, as virtio=MAC does for model and macaddr.
	Aliases []string
	// AliasKey is the property that takes the value of an alias.
	AliasKey string
	// Params are the properties.
	Params []Param
	// Open takes properties that are not listed, without a check.
	Open bool
}

// Properties are a parsed property string.
type Properties map[string]string

// Parse takes the value apart without checking its properties. A second bare word is an error, whose text it returns.
func (s *PropertyString) Parse(value string) (Properties, string) {
	out := Properties{}
	for _, part := range strings.Split(value, ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		k, v, hasKey := strings.Cut(part, "=")
		switch {
		case !hasKey && slices.Contains(s.Aliases, k), !hasKey && s.DefaultKey != "" && out[s.DefaultKey] == "":
			out[s.DefaultKey] = k
		case !hasKey:
			return nil, "value without key, but schema does not define a default key\n"
		case slices.Contains(s.Aliases, k):
			out[s.DefaultKey], out[s.AliasKey] = k, v
		default:
			out[k] = v
		}
	}
	return out, ""
}

// Check returns the errors of all properties of the value given under the key, one a line, or "".
func (s *PropertyString) Check(key, value string) string {
	given, msg := s.Parse(value)
	if msg != "" {
		return msg
	}
	if s.Open {
		for k := range given {
			if Lookup(s.Params, k) == nil {
				delete(given, k)
			}
		}
	}
	errors := Verify(s.Params, given)
	names := make([]string, 0, len(errors))
	for name := range errors {
		names = append(names, name)
	}
	slices.Sort(names)
	out := ""
	for _, name := range names {
		text := strings.Replace(errors[name], "required by '", "required by '"+key+".", 1)
		out += fmt.Sprintf("%s.%s: %s\n", key, name, text)
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
