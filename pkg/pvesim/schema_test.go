package pvesim

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// schemaNode is a node of Proxmox VE's API schema.
type schemaNode struct {
	Path     string                  `json:"path"`
	Info     map[string]schemaMethod `json:"info"`
	Children []schemaNode            `json:"children"`
}

type schemaMethod struct {
	Protected any    `json:"protected"`
	ProxyTo   string `json:"proxyto"`

	Parameters struct {
		Properties map[string]schemaParam `json:"properties"`
	} `json:"parameters"`
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
