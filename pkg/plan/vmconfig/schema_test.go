package vmconfig_test

import (
	"errors"
	"io/fs"
	"testing"

	"pgregory.net/rapid"

	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
	"github.com/capve/cluster-api-provider-proxmox/test/pveschema"
)

// schemas are Proxmox VE's own, where they are at hand.
func schemas(t *testing.T) map[string]*pveschema.Schema {
	t.Helper()
	all := map[string]*pveschema.Schema{}
	for _, version := range []string{"8.4", "9.2"} {
		schema, err := pveschema.LoadSchema("../../../../shared/pve-api", version)
		if errors.Is(err, fs.ErrNotExist) {
			t.Skip("the API schema of Proxmox VE is not at hand")
		}
		if err != nil {
			t.Fatal(err)
		}
		all[version] = schema
	}
	return all
}

func TestEveryFieldIsInTheSchema(t *testing.T) {
	schemas := schemas(t)
	for _, field := range allFields() {
		d := desired(func(d *vmconfig.Desired) { field.set(&d.Spec) })
		for version, schema := range schemas {
			t.Run(version+" "+field.name, func(t *testing.T) {
				if err := schema.Validate("POST", "/nodes/pve1/qemu/101/config", d.Encode()); err != nil {
					t.Error(err)
				}
				if err := schema.Validate("PUT", "/nodes/pve1/qemu/101/config", vmconfig.Diff(d, clone()).Set); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func TestEveryChangeIsInTheSchema(t *testing.T) {
	schemas := schemas(t)
	rapid.Check(t, func(t *rapid.T) {
		d, observed := drawWhole(t), drawTemplate(t)
		if len(d.Misfits(observed)) > 0 {
			return
		}
		change := vmconfig.Diff(d, observed)
		for version, schema := range schemas {
			if err := schema.Validate("POST", "/nodes/pve1/qemu/101/config", change.Set); err != nil {
				t.Fatalf("%s: %v", version, err)
			}
		}
	})
}
