package contract

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
)

// APISchema are the endpoints of one release of Proxmox VE, by method and path, for example GET /nodes/{node}/qemu.
type APISchema map[string]map[string]schemaParameter

// schemaParameter is a parameter in Proxmox VE's API schema.
type schemaParameter struct {
	Type      string      `json:"type"`
	Optional  any         `json:"optional"`
	Enum      []string    `json:"enum"`
	Minimum   json.Number `json:"minimum"`
	Maximum   json.Number `json:"maximum"`
	MaxLength int         `json:"maxLength"`
	Requires  string      `json:"requires"`
	// Format is a name, or an object with the properties of a value like virtio,bridge=vmbr0.
	Format json.RawMessage `json:"format"`
	// Alias is set of keys that only stand for others.
	Alias string `json:"alias"`
}

// parameterSet are the parameters of an endpoint: a list, or several sets together, of which one may be chosen by a type.
type parameterSet struct {
	Properties map[string]schemaParameter `json:"properties"`
	AllOf      []parameterSet             `json:"allOf"`
	OneOf      []parameterSet             `json:"oneOf"`
	TypeName   string                     `json:"type-property"`
	Type       schemaParameter            `json:"type-property-schema"`
}

// all are the parameters of all sets. Those that only one type has are optional: which it must have is no part of a table.
func (s parameterSet) all() map[string]schemaParameter {
	out := map[string]schemaParameter{}
	maps.Copy(out, s.Properties)
	for _, part := range s.AllOf {
		maps.Copy(out, part.all())
	}
	for _, choice := range s.OneOf {
		for name, p := range choice.all() {
			p.Optional = true
			out[name] = p
		}
	}
	if s.TypeName != "" {
		out[s.TypeName] = s.Type
	}
	return out
}

// ReadAPISchema reads dir/version.json, the tree that Proxmox VE's API viewer shows.
func ReadAPISchema(dir, version string) (APISchema, error) {
	type node struct {
		Path string `json:"path"`
		Info map[string]struct {
			Parameters parameterSet `json:"parameters"`
		} `json:"info"`
		Children []json.RawMessage `json:"children"`
	}
	raw, err := os.ReadFile(filepath.Join(dir, version+".json"))
	if err != nil {
		return nil, fmt.Errorf("read API schema: %w", err)
	}
	var waiting []json.RawMessage
	if err := json.Unmarshal(raw, &waiting); err != nil {
		return nil, fmt.Errorf("read API schema of %s: %w", version, err)
	}
	out := APISchema{}
	for len(waiting) > 0 {
		var n node
		if err := json.Unmarshal(waiting[0], &n); err != nil {
			return nil, fmt.Errorf("read API schema of %s: %w", version, err)
		}
		waiting = append(waiting[1:], n.Children...)
		for method, info := range n.Info {
			out[method+" "+n.Path] = info.Parameters.all()
		}
	}
	return out, nil
}

// Differences are where the endpoint's parameters are not those of the schema, a line each.
func (s APISchema) Differences(r pvesim.Route) []string {
	want, ok := s[r.Method+" "+r.Path]
	if !ok {
		return []string{"no such endpoint"}
	}
	return parameterDifferences("", want, r.Parameters)
}

func parameterDifferences(prefix string, want map[string]schemaParameter, have []pvesim.Parameter) []string {
	var out []string
	table := map[string]pvesim.Parameter{}
	for _, p := range have {
		table[p.Name] = p
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		w := want[name]
		p, ok := table[name]
		delete(table, name)
		switch {
		case w.Alias != "":
		case !ok:
			out = append(out, prefix+name+" is missing")
		case describeWanted(w) != describe(p):
			out = append(out, fmt.Sprintf("%s%s: want %s, have %s", prefix, name, describeWanted(w), describe(p)))
		default:
			out = append(out, propertyDifferences(prefix+name+".", w, p)...)
		}
	}
	for name := range table {
		out = append(out, prefix+name+" is no parameter")
	}
	return out
}

// propertyDifferences compares the properties of a value.
func propertyDifferences(prefix string, want schemaParameter, have pvesim.Parameter) []string {
	var properties map[string]schemaParameter
	if !strings.HasPrefix(string(want.Format), "{") || json.Unmarshal(want.Format, &properties) != nil {
		return nil
	}
	return parameterDifferences(prefix, properties, have.Properties)
}

func describeWanted(p schemaParameter) string {
	optional := p.Optional != nil && fmt.Sprint(p.Optional) != "0"
	return fmt.Sprintf("type=%s optional=%t enum=%s min=%s max=%s long=%d requires=%s", p.Type, optional, strings.Join(p.Enum, "|"), p.Minimum, p.Maximum, p.MaxLength, p.Requires)
}

func describe(p pvesim.Parameter) string {
	limit := func(f *float64) string {
		if f == nil {
			return ""
		}
		return strconv.FormatFloat(*f, 'f', -1, 64)
	}
	return fmt.Sprintf("type=%s optional=%t enum=%s min=%s max=%s long=%d requires=%s",
		p.Type, p.Optional, strings.Join(p.Enum, "|"), limit(p.Minimum), limit(p.Maximum), p.MaxLength, p.Requires)
}
