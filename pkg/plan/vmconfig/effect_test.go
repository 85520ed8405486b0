package vmconfig_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
)

// leaves are the paths of all fields of a type, as the table of fields writes them.
func leaves(t reflect.Type, path string) []string {
	switch {
	case t.Kind() == reflect.Pointer:
		return leaves(t.Elem(), path)
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		return leaves(t.Elem(), path+"[]")
	case t.Kind() != reflect.Struct || t.PkgPath() != reflect.TypeFor[v1beta1.ProxmoxMachineSpec]().PkgPath():
		return []string{path}
	}
	var all []string
	for i := range t.NumField() {
		field := t.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name != "" {
			name = strings.TrimPrefix(path+"."+name, ".")
		} else {
			name = path // inlined
		}
		all = append(all, leaves(field.Type, name)...)
	}
	return all
}

// covers reports whether the row is the field's, or one of what the field is part of. A row that says of more than a field that it
// changes in place would say so of fields to come.
func covers(row vmconfig.Field, field string) bool {
	isPart := strings.HasPrefix(field, row.Path+".") || strings.HasPrefix(field, row.Path+"[]")
	return field == row.Path || isPart && row.Effect == vmconfig.Replace
}

func TestTheTableHasEveryFieldOnce(t *testing.T) {
	fields := leaves(reflect.TypeFor[v1beta1.ProxmoxMachineSpec](), "")
	seen := map[string]bool{}
	for _, row := range vmconfig.Fields() {
		if seen[row.Path] {
			t.Errorf("%s is there twice", row.Path)
		}
		seen[row.Path] = true
		if !slices.ContainsFunc(fields, func(field string) bool { return covers(row, field) }) {
			t.Errorf("%s is no field of the API", row.Path)
		}
	}
	for _, field := range fields {
		if !slices.ContainsFunc(vmconfig.Fields(), func(row vmconfig.Field) bool { return covers(row, field) }) {
			t.Errorf("the table has no row for %s", field)
		}
	}
}

func TestTheHotplugFeatureOfAnEffect(t *testing.T) {
	got := map[vmconfig.Effect]string{}
	for _, row := range vmconfig.Fields() {
		got[row.Effect] = row.Effect.Feature()
	}
	want := map[vmconfig.Effect]string{
		vmconfig.Live: "", vmconfig.Reboot: "", vmconfig.Replace: "", vmconfig.HotplugCPU: "cpu", vmconfig.HotplugMemory: "memory",
		vmconfig.HotplugNetwork: "network", vmconfig.HotplugDisk: "disk", vmconfig.HotplugUSB: "usb",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("features (-want +got):\n%s", diff)
	}
}

func TestWhatOnlyRootMaySet(t *testing.T) {
	var fields []string
	for _, row := range vmconfig.Fields() {
		if row.RootOnly() {
			fields = append(fields, row.Path)
		}
	}
	if diff := cmp.Diff([]string{"memory.hugepages"}, fields); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
	for key, want := range map[string]bool{"args": true, "affinity": true, "hookscript": true, "parallel0": true, "parallelx": false, "kvm": false, "numa0": false} {
		if vmconfig.RootOnly(key) != want {
			t.Errorf("%s is for root only: %v", key, !want)
		}
	}
}
