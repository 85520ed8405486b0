package pvesim

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

// schemaNode is a node of Proxmox VE's API schema.
type schemaNode struct {
	Path     string                  `json:"path"`
	Info     map[string]schemaMethod `json:"info"`
	Children []schemaNode            `json:"children"`
}

type schemaMethod struct {
	Protected  any    `json:"protected"`
	ProxyTo    string `json:"proxyto"`
	Parameters struct {
		Properties map[string]schemaParam `json:"properties"`
	} `json:"parameters"`
}

type schemaParam struct {
	Type      string      `json:"type"`
	Optional  any         `json:"optional"`
	Enum      []string    `json:"enum"`
	Minimum   json.Number `json:"minimum"`
	Maximum   json.Number `json:"maximum"`
	MaxLength int         `json:"maxLength"`
	Requires  string      `json:"requires"`
}

func loadSchema(t *testing.T, v Version) map[string]schemaMethod {
	t.Helper()
	path := filepath.Join("..", "..", "..", "shared", "pve-api", string(v)+".json")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Skipf("the API schema of Proxmox VE is not here: %v", err)
	}
	var tree []schemaNode
	if err := json.Unmarshal(raw, &tree); err != nil {
		t.Fatalf("read %s: %v", path, err)
	}
	out := map[string]schemaMethod{}
	var walk func([]schemaNode)
	walk = func(nodes []schemaNode) {
		for _, n := range nodes {
			for method, info := range n.Info {
				out[method+" "+n.Path] = info
			}
			walk(n.Children)
		}
	}
	walk(tree)
	return out
}

// TestParametersAreThoseOfTheSchema compares the parameter table of every endpoint with Proxmox VE's own.
func TestParametersAreThoseOfTheSchema(t *testing.T) {
	t.Parallel()
	for _, v := range []Version{V84, V92} {
		t.Run(string(v), func(t *testing.T) {
			t.Parallel()
			endpoints := loadSchema(t, v)
			for _, r := range newRouteTable(v).routes {
				if r.Path == "/" {
					continue // the schema begins below it
				}
				want, known := endpoints[r.Method+" "+r.Path]
				if !known {
					t.Errorf("%s %s is no endpoint of %s", r.Method, r.Path, v)
					continue
				}
				for _, line := range differences(want.Parameters.Properties, r.params) {
					t.Errorf("%s %s: %s", r.Method, r.Path, line)
				}
			}
		})
	}
}

// TestRoutesRunWhereTheSchemaSays compares which endpoints pvedaemon runs, and which are passed on to another node.
func TestRoutesRunWhereTheSchemaSays(t *testing.T) {
	t.Parallel()
	for _, v := range []Version{V84, V92} {
		t.Run(string(v), func(t *testing.T) {
			t.Parallel()
			endpoints := loadSchema(t, v)
			for _, r := range newRouteTable(v).routes {
				want := endpoints[r.Method+" "+r.Path]
				if protected := want.Protected != nil && fmt.Sprint(want.Protected) != "0"; protected != r.protected {
					t.Errorf("%s %s: protected is %t, want %t: see protectedReads in placement.go", r.Method, r.Path, r.protected, protected)
				}
				if proxied := want.ProxyTo == "node"; proxied != r.proxied {
					t.Errorf("%s %s: proxied is %t, want %t: see unproxied in placement.go", r.Method, r.Path, r.proxied, proxied)
				}
			}
		})
	}
}

func differences(want map[string]schemaParam, have []schema.Param) []string {
	var out []string
	table := map[string]schema.Param{}
	for _, p := range have {
		name := p.Name
		if p.Count > 0 {
			name += "[n]"
		}
		table[name] = p
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		p, ok := table[name]
		if !ok {
			out = append(out, name+" is missing")
			continue
		}
		if w, h := describeSchema(want[name]), describeParam(p); w != h {
			out = append(out, fmt.Sprintf("%s: want %s, have %s", name, w, h))
		}
		delete(table, name)
	}
	for name := range table {
		out = append(out, name+" is no parameter")
	}
	return out
}

func describeSchema(p schemaParam) string {
	return fmt.Sprintf("type=%s optional=%t enum=%s min=%s max=%s long=%d requires=%s", p.Type, p.Optional != nil && fmt.Sprint(p.Optional) != "0",
		strings.Join(p.Enum, "|"), p.Minimum, p.Maximum, p.MaxLength, p.Requires)
}

func describeParam(p schema.Param) string {
	limit := func(f *float64) string {
		if f == nil {
			return ""
		}
		return strconv.FormatFloat(*f, 'f', -1, 64)
	}
	return fmt.Sprintf("type=%s optional=%t enum=%s min=%s max=%s long=%d requires=%s", p.Kind, p.Optional, strings.Join(p.Enum, "|"),
		limit(p.Minimum), limit(p.Maximum), p.Longest, p.Needs)
}
