package contract_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
	"github.com/capve/cluster-api-provider-proxmox/test/contract"
)

// apiSchema reads Proxmox VE's API schema from the folder $PVE_API.
func apiSchema(t *testing.T, version pvesim.Version) contract.APISchema {
	t.Helper()
	dir := os.Getenv("PVE_API")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "pve-api")
	}
	schema, err := contract.ReadAPISchema(dir, string(version))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("no API schema of Proxmox VE: set PVE_API to its folder (%v)", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// TestParametersAreThoseOfTheSchema compares the parameters of all endpoints that pvesim has with Proxmox VE's own.
func TestParametersAreThoseOfTheSchema(t *testing.T) {
	t.Parallel()
	for _, version := range []pvesim.Version{pvesim.V84, pvesim.V92} {
		t.Run(string(version), func(t *testing.T) {
			t.Parallel()
			schema := apiSchema(t, version)
			world, err := pvesim.NewWorld(pvesim.WithVersion(version))
			if err != nil {
				t.Fatal(err)
			}
			defer world.Close()
			for _, r := range world.Coverage() {
				if r.Path == "/" {
					continue // the schema begins below it
				}
				for _, line := range schema.Differences(r) {
					t.Errorf("%s %s: %s", r.Method, r.Path, line)
				}
			}
		})
	}
}

func TestSchemaSeesDifferences(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tree := `[{"path":"/a","info":{"GET":{"parameters":{"properties":{
		"n":{"type":"integer","minimum":1,"maximum":9,"optional":1},
		"e":{"type":"string","enum":["x","y"]},
		"p[n]":{"type":"string","optional":1,"format":{"q":{"type":"boolean","optional":1},"r":{"alias":"q"}}}}}}},
		"children":[{"path":"/a/b","info":{"POST":{}}}]}]`
	if err := os.WriteFile(filepath.Join(dir, "9.9.json"), []byte(tree), 0o600); err != nil {
		t.Fatal(err)
	}
	schema, err := contract.ReadAPISchema(dir, "9.9")
	if err != nil {
		t.Fatal(err)
	}
	one, nine := 1.0, 9.0
	good := []pvesim.Parameter{
		{Name: "n", Type: "integer", Minimum: &one, Maximum: &nine, Optional: true},
		{Name: "e", Type: "string", Enum: []string{"x", "y"}},
		{Name: "p[n]", Type: "string", Optional: true, Properties: []pvesim.Parameter{{Name: "q", Type: "boolean", Optional: true}}},
	}
	for name, c := range map[string]struct {
		change func([]pvesim.Parameter) []pvesim.Parameter
		want   string
	}{
		"none":              {func(p []pvesim.Parameter) []pvesim.Parameter { return p }, ""},
		"missing":           {func(p []pvesim.Parameter) []pvesim.Parameter { return p[1:] }, "n is missing"},
		"not in the schema": {func(p []pvesim.Parameter) []pvesim.Parameter { return append(p, pvesim.Parameter{Name: "z"}) }, "z is no parameter"},
		"required":          {func(p []pvesim.Parameter) []pvesim.Parameter { p[0].Optional = false; return p }, "n: want type=integer optional=true"},
		"no limit":          {func(p []pvesim.Parameter) []pvesim.Parameter { p[0].Maximum = nil; return p }, "n: want type=integer optional=true"},
		"other values":      {func(p []pvesim.Parameter) []pvesim.Parameter { p[1].Enum = []string{"x"}; return p }, "e: want type=string optional=false enum=x|y"},
		"no property":       {func(p []pvesim.Parameter) []pvesim.Parameter { p[2].Properties = nil; return p }, "p[n].q is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			route := pvesim.Route{Method: "GET", Path: "/a", Parameters: c.change(slices.Clone(good))}
			got := strings.Join(schema.Differences(route), "\n")
			if (c.want == "") != (got == "") || !strings.HasPrefix(got, c.want) {
				t.Errorf("differences %q, want %q", got, c.want)
			}
		})
	}
	if got := schema.Differences(pvesim.Route{Method: "DELETE", Path: "/a/b"}); !slices.Equal(got, []string{"no such endpoint"}) {
		t.Errorf("an unknown endpoint differs by %q", got)
	}
}
