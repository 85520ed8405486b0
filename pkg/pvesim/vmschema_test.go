package pvesim

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

type schemaParam struct {
	Type       string          `json:"type"`
	Optional   any             `json:"optional"`
	DefaultKey int             `json:"default_key"`
	Enum       []string        `json:"enum"`
	Minimum    json.Number     `json:"minimum"`
	Maximum    json.Number     `json:"maximum"`
	MaxLength  int             `json:"maxLength"`
	Requires   string          `json:"requires"`
	Pattern    string          `json:"pattern"`
	Format     json.RawMessage `json:"format"`
	Alias      string          `json:"alias"`
	KeyAlias   string          `json:"keyAlias"`
}

// format is the name of the parameter's format, or the properties of its value.
func (p schemaParam) format() (string, map[string]schemaParam) {
	name, properties := "", map[string]schemaParam{}
	if json.Unmarshal(p.Format, &name) == nil {
		return name, nil
	}
	if json.Unmarshal(p.Format, &properties) == nil {
		return "", properties
	}
	return "", nil
}

// TestOptionsOfVMsAreThoseOfTheSchema compares all that is checked of the parameters that make up a VM's config: patterns, the names
// of formats and the properties of values as well.
func TestOptionsOfVMsAreThoseOfTheSchema(t *testing.T) {
	t.Parallel()
	const vm = "/nodes/{node}/qemu/{vmid}"
	paths := []string{"/nodes/{node}/qemu", vm, vm + "/config", vm + "/pending", vm + "/cloudinit", vm + "/cloudinit/dump", vm + "/resize", vm + "/unlink", vm + "/move_disk", vm + "/feature"}
	for _, v := range []Version{V84, V92} {
		endpoints := loadSchema(t, v)
		for _, r := range newRouteTable(v).routes {
			if !slices.Contains(paths, r.Path) {
				continue
			}
			for _, line := range optionDifferences(endpoints[r.Method+" "+r.Path].Parameters.Properties, r.params) {
				t.Errorf("%s: %s %s: %s", v, r.Method, r.Path, line)
			}
		}
	}
}

func optionDifferences(want map[string]schemaParam, have []schema.Param) []string {
	var out []string
	for _, p := range have {
		name := p.Name
		if p.Count > 0 {
			name += "[n]"
		}
		if w, h := describeSchema(want[name]), describeParam(p); w != h {
			out = append(out, fmt.Sprintf("%s: want %s, have %s", name, w, h))
		}
	}
	return out
}

func describeSchema(p schemaParam) string {
	out := fmt.Sprintf("type=%s optional=%t enum=%s min=%s max=%s long=%d requires=%s", p.Type, p.Optional != nil && fmt.Sprint(p.Optional) != "0",
		strings.Join(p.Enum, "|"), p.Minimum, p.Maximum, p.MaxLength, p.Requires)
	name, properties := p.format()
	return out + fmt.Sprintf(" pattern=%s format=%s", plainPattern(p.Pattern), name) + describeProperties(properties)
}

// plainPattern drops what Perl writes around a compiled expression.
func plainPattern(expression string) string {
	if inner, ok := strings.CutPrefix(expression, "(?^:"); ok {
		expression = strings.TrimSuffix(inner, ")")
	}
	return strings.ReplaceAll(expression, "(?^:", "(")
}

func describeProperties(properties map[string]schemaParam) string {
	out := ""
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if p := properties[name]; p.Alias != "" {
			out += fmt.Sprintf("\n  %s=%s/%s", name, p.Alias, p.KeyAlias)
		} else {
			out += fmt.Sprintf("\n  %s default=%t %s", name, p.DefaultKey == 1, describeSchema(p))
		}
	}
	return out
}

func describeParam(p schema.Param) string {
	limit := func(f *float64) string {
		if f == nil {
			return ""
		}
		return strconv.FormatFloat(*f, 'f', -1, 64)
	}
	out := fmt.Sprintf("type=%s optional=%t enum=%s min=%s max=%s long=%d requires=%s", p.Kind, p.Optional, strings.Join(p.Enum, "|"),
		limit(p.Minimum), limit(p.Maximum), p.Longest, p.Needs)
	return out + fmt.Sprintf(" pattern=%s format=%s", p.Regexp, p.FormatName) + describeFormat(p)
}

// describeFormat tells the properties of a value, unless Proxmox VE's schema only names them.
func describeFormat(p schema.Param) string {
	if p.Properties == nil || p.FormatName != "" {
		return ""
	}
	lines := []string{}
	for _, property := range p.Properties.Params {
		lines = append(lines, fmt.Sprintf("\n  %s default=%t %s", property.Name, property.Name == p.Properties.DefaultKey, describeParam(property)))
	}
	for _, a := range p.Properties.Aliases {
		lines = append(lines, fmt.Sprintf("\n  %s=%s/%s", a.Key, a.Of, a.KeyOf))
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(nameOf(a), nameOf(b)) })
	return strings.Join(lines, "")
}

// nameOf is the first word of a line.
func nameOf(line string) string {
	return strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '=' || r == '\n' })[0]
}
