package sandbox_test

import (
	"maps"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
)

// elsewhere are the fields that none of the machines in testdata/everything.yaml uses, and why.
func elsewhere() map[string]string {
	return map[string]string{
		"providerID":                "the controller writes it",
		"reservation":               "the controller writes it",
		"source.template.vmID":      "another way of saying what name and tags do: test/integration",
		"source.netboot":            "the simulator has no boot server, so that the machine would get no Node: test/integration",
		"network.vrfs.routes.table": "it is refused: the routes of a VRF are in its table",
		"memory.hugepages":          "only root@pam may set it, and the sandbox has a token: test/integration",
		"highAvailability.group":    "Proxmox VE 9, which this one is, has none: test/integration, on 8",
	}
}

// TestEverythingIsUsed has a field that is added to ProxmoxMachines join testdata/everything.yaml, with what becomes of it.
func TestEverythingIsUsed(t *testing.T) {
	used := map[string]bool{}
	for document := range strings.SplitSeq(everythingManifest, "\n---\n") {
		var object struct {
			Kind string `json:"kind"`
			Spec struct {
				Template struct {
					Spec map[string]any `json:"spec"`
				} `json:"template"`
			} `json:"spec"`
		}
		must(t, yaml.Unmarshal([]byte(document), &object))
		if object.Kind == "ProxmoxMachineTemplate" {
			usedIn(object.Spec.Template.Spec, "", used)
		}
	}
	exceptions := elsewhere()
	needless := maps.Clone(exceptions)
	for _, field := range fieldsOf(reflect.TypeFor[v1beta1.ProxmoxMachineSpec](), "") {
		exception := field
		for exceptions[exception] == "" && strings.Contains(exception, ".") {
			exception = exception[:strings.LastIndex(exception, ".")]
		}
		why, isException := exceptions[exception]
		delete(needless, exception)
		switch {
		case used[field] && isException:
			t.Errorf("%s is used, and said not to be: %s", field, why)
		case !used[field] && !isException:
			t.Errorf("no machine uses %s: have one in testdata/everything.yaml use it, and check what becomes of it, or say why not", field)
		}
	}
	for field := range needless {
		t.Errorf("there is no field %s", field)
	}
}

// usedIn notes the fields that a value has, by their paths without the indices of lists.
func usedIn(value any, path string, used map[string]bool) {
	switch v := value.(type) {
	case map[string]any:
		for name, inner := range v {
			usedIn(inner, strings.TrimPrefix(path+"."+name, "."), used)
		}
	case []any:
		for _, inner := range v {
			usedIn(inner, path, used)
		}
	}
	used[path] = true
}

// fieldsOf are the paths of a type's fields that have no fields of their own.
func fieldsOf(of reflect.Type, path string) []string {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct {
		return []string{path}
	}
	var fields []string
	for i := range of.NumField() {
		field := of.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		inner := strings.TrimPrefix(path+"."+name, ".")
		if name == "" {
			inner = path // it is inlined
		}
		fields = append(fields, fieldsOf(field.Type, inner)...)
	}
	return fields
}
