package pvesim

import (
	"fmt"
	"slices"
	"strings"
)

// propertyString is a value like `virtio=BC:24:11:00:00:01,bridge=vmbr0`: comma-separated properties, of which the default
// one may come without its key.
type propertyString struct {
	defaultKey string
	// aliases are keys whose name stands for a value of the default key, as virtio=MAC does for model and macaddr.
	aliases  []string
	aliasKey string
	props    []param
	// open takes properties that are not listed, without a check.
	open bool
}

// properties are a parsed property string.
type properties map[string]string

// parse takes the value apart; a second bare word is an error.
func (s *propertyString) parse(value string) (properties, string) {
	out := properties{}
	for _, part := range strings.Split(value, ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		k, v, hasKey := strings.Cut(part, "=")
		switch {
		case !hasKey && slices.Contains(s.aliases, k), !hasKey && s.defaultKey != "" && out[s.defaultKey] == "":
			out[s.defaultKey] = k
		case !hasKey:
			return nil, "value without key, but schema does not define a default key\n"
		case slices.Contains(s.aliases, k):
			out[s.defaultKey], out[s.aliasKey] = k, v
		default:
			out[k] = v
		}
	}
	return out, ""
}

// check returns the errors of all properties, one a line, or "".
func (s *propertyString) check(key, value string) string {
	given, msg := s.parse(value)
	if msg != "" {
		return msg
	}
	if s.open {
		for k := range given {
			if lookup(s.props, k) == nil {
				delete(given, k)
			}
		}
	}
	errors := verify(s.props, given)
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

// print writes properties with the default key's value first and the rest in alphabetical order, as PVE does.
func (p properties) print(first string) string {
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
