package pveschema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// property is the definition of a parameter, or of a key within a property string.
type property struct {
	Type      string   `json:"type"`
	Enum      []string `json:"enum"`
	Pattern   string   `json:"pattern"`
	Minimum   number   `json:"minimum"`
	Maximum   number   `json:"maximum"`
	MinLength number   `json:"minLength"`
	MaxLength number   `json:"maxLength"`
	Optional  truth    `json:"optional"`
	Requires  names    `json:"requires"`
	Format    format   `json:"format"`
	// DefaultKey marks the key whose name may be left out; KeyAlias and Alias are other names of keys.
	DefaultKey truth  `json:"default_key"`
	Alias      string `json:"alias"`
	KeyAlias   string `json:"keyAlias"`
}

// number is a limit, given as a number or a string; nil if there is none.
type number struct{ value *float64 }

// UnmarshalJSON implements json.Unmarshaler.
func (n *number) UnmarshalJSON(data []byte) error {
	value, err := strconv.ParseFloat(string(bytes.Trim(data, `"`)), 64)
	if err == nil {
		n.value = &value
	}
	return err
}

// truth is Perl's: 1 or "1".
type truth bool

// UnmarshalJSON implements json.Unmarshaler.
func (t *truth) UnmarshalJSON(data []byte) error {
	text := string(bytes.Trim(data, `"`))
	*t = truth(text == "1" || text == "true")
	return nil
}

// names are one name or several.
type names []string

// UnmarshalJSON implements json.Unmarshaler.
func (n *names) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*n = names{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(n))
}

// check reports a name that is not given.
func (n names) check(params map[string]string) error {
	for _, name := range n {
		if _, ok := params[name]; !ok {
			return fmt.Errorf("requires %s", name)
		}
	}
	return nil
}

// format is a name, or the keys of a property string.
type format struct {
	name string
	keys map[string]property
}

// UnmarshalJSON implements json.Unmarshaler.
func (f *format) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, &f.name) == nil {
		return nil
	}
	return json.Unmarshal(data, &f.keys)
}

// property finds a parameter's definition, also that of an indexed one such as net0.
func (m method) property(name string) (property, bool) {
	if definition, ok := m.Parameters.Properties[name]; ok {
		return definition, true
	}
	stem := strings.TrimRight(name, "0123456789")
	index := strings.TrimPrefix(name, stem)
	definition, ok := m.Parameters.Properties[stem+"[n]"]
	if !ok || index == "" || len(index) > 1 && index[0] == '0' {
		return property{}, false
	}
	at, err := strconv.Atoi(index)
	return definition, err == nil && at <= lastIndex(stem)
}

// lastIndex is the highest index of an option; the schema does not have it.
func lastIndex(stem string) int {
	limits := map[string]int{
		"ide": 3, "sata": 5, "scsi": 30, "virtio": 15, "numa": 7, "hostpci": 15, "serial": 3, "parallel": 2, "usb": 14,
		"unused": 255, "mp": 255, "net": 31, "ipconfig": 31, "dev": 255, "link": 7, "virtiofs": 9,
	}
	if limit, ok := limits[stem]; ok {
		return limit
	}
	return 255
}

// check tests a value given as text.
func (p property) check(value string) error {
	if len(p.Enum) > 0 && !slices.Contains(p.Enum, value) {
		return fmt.Errorf("value %q is none of %v", value, p.Enum)
	}
	return errors.Join(p.checkType(value), p.checkLength(value), p.checkPattern(value), p.Format.check(value))
}

func (p property) checkType(value string) error {
	switch p.Type {
	case "boolean":
		if value != "0" && value != "1" {
			return fmt.Errorf("type check ('boolean') failed - got %q", value)
		}
	case "integer":
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return fmt.Errorf("type check ('integer') failed - got %q", value)
		}
		return p.checkRange(float64(n))
	case "number":
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return fmt.Errorf("type check ('number') failed - got %q", value)
		}
		return p.checkRange(n)
	}
	return nil
}

func (p property) checkRange(n float64) error {
	if limit := p.Minimum.value; limit != nil && n < *limit {
		return fmt.Errorf("%v is below the minimum of %v", n, *limit)
	}
	if limit := p.Maximum.value; limit != nil && n > *limit {
		return fmt.Errorf("%v is above the maximum of %v", n, *limit)
	}
	return nil
}

func (p property) checkLength(value string) error {
	length := float64(len([]rune(value)))
	if limit := p.MaxLength.value; limit != nil && length > *limit {
		return fmt.Errorf("value may only be %v characters long", *limit)
	}
	if limit := p.MinLength.value; limit != nil && length < *limit {
		return fmt.Errorf("value must be at least %v characters long", *limit)
	}
	return nil
}

// checkPattern tests Perl's pattern as far as Go's expressions can say it.
func (p property) checkPattern(value string) error {
	if p.Pattern == "" {
		return nil
	}
	expression, err := regexp.Compile("^(?:" + goPattern(p.Pattern) + ")$")
	if err == nil && !expression.MatchString(value) {
		return fmt.Errorf("value %q does not match the regex pattern %s", value, p.Pattern)
	}
	return nil
}

// goPattern rewrites the groups that Perl prints around a compiled expression: (?^i:…) is (?i:…).
func goPattern(perl string) string { return strings.ReplaceAll(perl, "(?^", "(?") }

// checkKeys reads a property string, key=value,key=value, where one key may go without its name.
func checkKeys(keys map[string]property, value string) error {
	given := map[string]string{}
	for part := range strings.SplitSeq(value, ",") {
		if part == "" {
			continue
		}
		key, text, hasKey := strings.Cut(part, "=")
		if !hasKey {
			key, text = defaultKey(keys), part
		}
		if key == "" {
			return fmt.Errorf("value %q without key", part)
		}
		if alias := keys[key]; alias.Alias != "" {
			if alias.KeyAlias != "" {
				given[alias.KeyAlias] = key
			}
			key = alias.Alias
		}
		if _, twice := given[key]; twice {
			return fmt.Errorf("duplicate key %s", key)
		}
		given[key] = text
	}
	return checkGiven(keys, given)
}

func checkGiven(keys map[string]property, given map[string]string) error {
	var wrong []error
	for _, key := range slices.Sorted(maps.Keys(given)) {
		definition, ok := keys[key]
		if !ok {
			wrong = append(wrong, fmt.Errorf("%s: property is not defined in schema", key))
			continue
		}
		wrong = append(wrong, named(key, definition.check(perlTruth(definition, given[key]))), named(key, definition.Requires.check(given)))
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		_, ok := given[key]
		if !ok && !bool(keys[key].Optional) && keys[key].Alias == "" {
			wrong = append(wrong, fmt.Errorf("%s: property is missing and it is not optional", key))
		}
	}
	return errors.Join(wrong...)
}

// perlTruth allows within a property string what PVE::JSONSchema::parse_boolean does.
func perlTruth(p property, value string) string {
	if p.Type != "boolean" {
		return value
	}
	switch strings.ToLower(value) {
	case "on", "yes", "true":
		return "1"
	case "off", "no", "false":
		return "0"
	}
	return value
}

func defaultKey(keys map[string]property) string {
	for name, definition := range keys {
		if definition.DefaultKey {
			return name
		}
	}
	return ""
}
