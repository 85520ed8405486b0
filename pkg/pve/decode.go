package pve

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
)

// PVE is written in Perl, where numbers and strings are one: the same field comes as 1, "1", 1.0 or true, from one version
// or call to the next. The types here take any of them, and never fail: what makes no sense becomes the zero value.

// scalar is any JSON value as text: strings as they are, true and false as 1 and 0, null as nothing, the rest as written.
type scalar string

// UnmarshalJSON implements json.Unmarshaler; it never fails.
func (s *scalar) UnmarshalJSON(data []byte) error {
	*s = scalar(scalarText(data))
	return nil
}

func scalarText(data []byte) string {
	data = bytes.TrimSpace(data)
	switch {
	case len(data) == 0 || bytes.Equal(data, []byte("null")):
		return ""
	case bytes.Equal(data, []byte("true")):
		return "1"
	case bytes.Equal(data, []byte("false")):
		return "0"
	case data[0] == '"':
		var text string
		_ = json.Unmarshal(data, &text)
		return text
	}
	var compact bytes.Buffer
	if json.Compact(&compact, data) != nil {
		return ""
	}
	return compact.String()
}

// number returns the value as a finite number.
func (s scalar) number() float64 {
	value, err := strconv.ParseFloat(strings.TrimSpace(string(s)), 64)
	if err != nil || math.IsNaN(value) || math.IsInf(value, 0) {
		return 0
	}
	return value
}

// integer returns the value rounded towards zero, held within 64 bits.
func (s scalar) integer() int64 {
	if value, err := strconv.ParseInt(string(s), 10, 64); err == nil {
		return value
	}
	switch value := s.number(); {
	case value >= math.MaxInt64:
		return math.MaxInt64
	case value <= math.MinInt64:
		return math.MinInt64
	default:
		return int64(value)
	}
}

// flag returns PVE's truth: 1, "1", true, and what people write for it.
func (s scalar) flag() bool {
	switch strings.ToLower(string(s)) {
	case "1", "true", "yes", "on":
		return true
	default:
		return s.number() == 1
	}
}

// list splits at the separators PVE allows in lists.
func (s scalar) list() []string {
	return strings.FieldsFunc(string(s), func(r rune) bool { return r == ';' || r == ',' || r == ' ' || r == 0 })
}

// fields is a JSON object with any values.
type fields map[string]scalar

// without returns what the object has under other keys.
func (f fields) without(keys ...string) map[string]string {
	others := map[string]string{}
	for key, value := range f {
		if !slices.Contains(keys, key) {
			others[key] = string(value)
		}
	}
	return others
}

// decodeList reads a JSON list of objects. Entries that are no objects are left out; no list at all is an error.
func decodeList(data []byte) ([]fields, error) {
	var raw []json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		return nil, err
	}
	list := make([]fields, 0, len(raw))
	for _, entry := range raw {
		var object fields
		if json.Unmarshal(entry, &object) == nil && object != nil {
			list = append(list, object)
		}
	}
	return list, nil
}
