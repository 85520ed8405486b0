package pvesim

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// permissionNode is a node of Proxmox VE's API schema with the permissions of its methods.
type permissionNode struct {
	Path string `json:"path"`
	Info map[string]struct {
		AllowToken  int `json:"allowtoken"`
		Permissions *struct {
			User  string `json:"user"`
			Check any    `json:"check"`
		} `json:"permissions"`
	} `json:"info"`
	Children []permissionNode `json:"children"`
}

// declared is what the schema asks of the callers of an endpoint, in the form of permission.tree.
type declared struct {
	tree       any
	ticketOnly bool
}

func loadPermissions(t *testing.T, v Version) map[string]declared {
	t.Helper()
	path := filepath.Join("..", "..", "..", "shared", "pve-api", string(v)+".json")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Skipf("the API schema of Proxmox VE is not here: %v", err)
	}
	var tree []permissionNode
	if err := json.Unmarshal(raw, &tree); err != nil {
		t.Fatalf("read %s: %v", path, err)
	}
	out := map[string]declared{}
	var walk func([]permissionNode)
	walk = func(nodes []permissionNode) {
		for _, n := range nodes {
			for method, info := range n.Info {
				d := declared{tree: "root@pam", ticketOnly: info.AllowToken == 0}
				switch p := info.Permissions; {
				case p == nil:
				case p.User == "world":
					d.tree = "world"
				case p.User == "all":
					d.tree = nil
				default:
					d.tree = p.Check
				}
				out[method+" "+n.Path] = d
			}
			walk(n.Children)
		}
	}
	walk(tree)
	return out
}

// TestPermissionsAreThoseOfTheSchema compares what every endpoint asks of its callers with Proxmox VE's own check trees.
func TestPermissionsAreThoseOfTheSchema(t *testing.T) {
	t.Parallel()
	for _, v := range []Version{V84, V92} {
		t.Run(string(v), func(t *testing.T) {
			t.Parallel()
			schema := loadPermissions(t, v)
			for _, r := range newRouteTable(v).routes {
				want, known := schema[r.Method+" "+r.Path]
				if !known {
					continue
				}
				var have any
				if r.permission != nil {
					have = r.permission.tree()
				}
				if w, h := inJSON(t, normalTree(want.tree)), inJSON(t, normalTree(plain(t, have))); w != h {
					t.Errorf("%s %s: want permission %s, have %s", r.Method, r.Path, w, h)
				}
				if r.ticketOnly != want.ticketOnly {
					t.Errorf("%s %s: refuses tokens is %t, want %t", r.Method, r.Path, r.ticketOnly, want.ticketOnly)
				}
			}
		})
	}
}

// plain is a value as JSON would bring it.
func plain(t *testing.T, v any) any {
	t.Helper()
	var out any
	if err := json.Unmarshal([]byte(inJSON(t, v)), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func inJSON(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// normalTree drops the flag any of a check that has one privilege alone: it means nothing there.
func normalTree(tree any) any {
	list, ok := tree.([]any)
	if !ok {
		return tree
	}
	if len(list) == 5 && list[0] == "perm" && list[3] == "any" {
		if privileges, _ := list[2].([]any); len(privileges) == 1 {
			return list[:3]
		}
	}
	out := make([]any, len(list))
	for i := range list {
		out[i] = normalTree(list[i])
	}
	return out
}
