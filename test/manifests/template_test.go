package manifests_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

// templateValues are the variables that a user must set.
var templateValues = map[string]string{
	"CLUSTER_NAME":                "demo",
	"KUBERNETES_VERSION":          "v1.36.3",
	"CONTROL_PLANE_ENDPOINT_HOST": "192.0.2.10",
	"NODE_GATEWAY":                "192.0.2.1",
	"NODE_IP_RANGE":               "192.0.2.20-192.0.2.60",
	"NODE_NAMESERVER":             "192.0.2.1",
	"PROXMOX_FINGERPRINT":         strings.TrimSuffix(strings.Repeat("AB:", 32), ":"),
	"PROXMOX_TEMPLATE_NAME":       "ubuntu-24.04-k8s",
	"PROXMOX_TOKEN_ID":            "capve@pve!capi",
	"PROXMOX_TOKEN_SECRET":        "00000000-0000-0000-0000-000000000000",
	"PROXMOX_URL":                 "https://pve1.example.com:8006",
}

// foreign are the kinds in templates whose schemas are not at hand.
var foreign = []schema.GroupKind{
	{Kind: "Secret"},
	{Group: "ipam.cluster.x-k8s.io", Kind: "InClusterIPPool"},
}

func template(t *testing.T) documents {
	t.Helper()
	text, err := substitute(read(t, "templates", "cluster-template.yaml"), templateValues)
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, text)
}

// TestTemplate checks each object of the template as the API server would: fields exist, values fit the schema and its CEL rules.
func TestTemplate(t *testing.T) {
	known := customResources(t)
	for _, object := range template(t) {
		t.Run(object.GetKind()+" "+object.GetName(), func(t *testing.T) {
			if slices.Contains(foreign, object.GroupVersionKind().GroupKind()) {
				return
			}
			crd, ok := known[object.GroupVersionKind()]
			if !ok {
				t.Fatalf("no schema for %s", object.GroupVersionKind())
			}
			for _, complaint := range crd.complaints(t, object) {
				t.Error(complaint)
			}
		})
	}
}

// TestTemplateChecksCatch proves that the check of TestTemplate can fail.
func TestTemplateChecksCatch(t *testing.T) {
	known := customResources(t)
	tests := []struct {
		name  string
		field []string
		value any
	}{
		{name: "broken CEL rule", field: []string{"spec", "template", "spec", "providerID"}, value: "proxmox://a"},
		{name: "unknown field", field: []string{"spec", "template", "spec", "memory", "sizeGiB"}, value: int64(8)},
		{name: "wrong type", field: []string{"spec", "template", "spec", "memory", "sizeMiB"}, value: "8Gi"},
		{name: "missing field", field: []string{"spec", "template", "spec", "network"}, value: map[string]any{}},
		{name: "wrong pattern", field: []string{"spec", "template", "spec", "pool"}, value: "no blanks"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			object := template(t).ofKind("ProxmoxMachineTemplate")[0]
			if err := unstructured.SetNestedField(object.Object, tt.value, tt.field...); err != nil {
				t.Fatal(err)
			}
			if got := known[object.GroupVersionKind()].complaints(t, object); len(got) == 0 {
				t.Errorf("%s: no complaint about %v", strings.Join(tt.field, "."), tt.value)
			}
		})
	}
}

// TestTemplateReferences checks that what the objects of the template refer to is in the template.
func TestTemplateReferences(t *testing.T) {
	all := template(t)
	for _, object := range all {
		for _, reference := range references(object.Object) {
			kind, name := reference["kind"].(string), reference["name"].(string)
			if !all.has(kind, name) {
				t.Errorf("%s %s refers to %s %s, which is not in the template", object.GetKind(), object.GetName(), kind, name)
			}
		}
	}
}

// TestTemplateVariables checks that each required variable is needed, so that the list above is what a user must set.
func TestTemplateVariables(t *testing.T) {
	text := string(read(t, "templates", "cluster-template.yaml"))
	for _, name := range slices.Sorted(maps.Keys(templateValues)) {
		if !strings.Contains(text, "${"+name+"}") {
			t.Errorf("the template has no required variable %s", name)
		}
	}
}

// TestTemplateProviderID checks that kubelets get the VM's identity from cloud-init on all three ways to a node.
func TestTemplateProviderID(t *testing.T) {
	text := string(read(t, "templates", "cluster-template.yaml"))
	if n := strings.Count(text, `value: "proxmox://{{ ds.meta_data.instance_id }}"`) + strings.Count(text, "*kubelet-args"); n != 3 {
		t.Errorf("want init, join and worker configuration to have a provider-id, got %d", n)
	}
}

// references returns the values of all fields named `…Ref` that name a kind.
func references(value any) []map[string]any {
	var found []map[string]any
	switch v := value.(type) {
	case map[string]any:
		for key, field := range v {
			reference, ok := field.(map[string]any)
			if ok && strings.HasSuffix(key, "Ref") && reference["kind"] != nil {
				found = append(found, reference)
			}
			found = append(found, references(field)...)
		}
	case []any:
		for _, element := range v {
			found = append(found, references(element)...)
		}
	}
	return found
}

// customResource is one version of a CRD.
type customResource struct {
	internal   *apiextensions.JSONSchemaProps
	structural *structuralschema.Structural
}

// complaints returns what the API server would have against an object that is created.
func (c customResource) complaints(t *testing.T, object unstructured.Unstructured) []string {
	t.Helper()
	content := object.DeepCopy().Object
	var found []string
	options := structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
	for _, path := range pruning.PruneWithOptions(content, c.structural, true, options) {
		found = append(found, "unknown field "+path)
	}
	defaulting.Default(content, c.structural)
	validator, _, err := validation.NewSchemaValidator(c.internal)
	if err != nil {
		t.Fatal(err)
	}
	rules := cel.NewValidator(c.structural, true, celconfig.PerCallLimit)
	broken, _ := rules.Validate(t.Context(), nil, c.structural, content, nil, celconfig.RuntimeCELCostBudget)
	for _, complaint := range append(validation.ValidateCustomResource(nil, content, validator), broken...) {
		found = append(found, complaint.Error())
	}
	return found
}

// customResources returns our kinds and those of Cluster API, from the module of the version that we build with.
func customResources(t *testing.T) map[schema.GroupVersionKind]customResource {
	t.Helper()
	upstream := strings.TrimSpace(string(run(t, "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/cluster-api")))
	known := map[schema.GroupVersionKind]customResource{}
	for _, folder := range []string{
		filepath.Join(repositoryRoot, "config/crd/bases"),
		filepath.Join(upstream, "core/config/crd/bases"),
		filepath.Join(upstream, "bootstrap/kubeadm/config/crd/bases"),
		filepath.Join(upstream, "controlplane/kubeadm/config/crd/bases"),
	} {
		files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no CRDs in %s (%v)", folder, err)
		}
		for _, file := range files {
			if err := addVersions(known, file); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
		}
	}
	return known
}

func addVersions(known map[schema.GroupVersionKind]customResource, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(text, &crd); err != nil {
		return err
	}
	for _, v := range crd.Spec.Versions {
		internal := &apiextensions.JSONSchemaProps{}
		err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v.Schema.OpenAPIV3Schema, internal, nil)
		if err != nil {
			return fmt.Errorf("convert the schema of %s: %w", v.Name, err)
		}
		structural, err := structuralschema.NewStructural(internal)
		if err != nil {
			return fmt.Errorf("read the schema of %s: %w", v.Name, err)
		}
		gvk := schema.GroupVersionKind{Group: crd.Spec.Group, Version: v.Name, Kind: crd.Spec.Names.Kind}
		known[gvk] = customResource{internal: internal, structural: structural}
	}
	return nil
}
