package manifests_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/yaml"
)

const (
	namespace     = "capve-system"
	providerLabel = "cluster.x-k8s.io/provider"
	provider      = "infrastructure-proxmox"
	contractLabel = "cluster.x-k8s.io/v1beta2"
)

// components returns infrastructure-components.yaml as `clusterctl init` applies it when no variable is set.
func components(t *testing.T) documents {
	t.Helper()
	built := run(t, "go", "tool", "-modfile=hack/tools/go.mod", "kustomize", "build", "config/default")
	text, err := substitute(built, nil)
	if err != nil {
		t.Fatalf("components need a variable that has no default: %v", err)
	}
	return parse(t, text)
}

// TestComponents checks what clusterctl's provider contract asks of the file.
func TestComponents(t *testing.T) {
	all := components(t)

	t.Run("one namespace for all", func(t *testing.T) {
		if got := all.only(t, "Namespace"); got.GetName() != namespace {
			t.Errorf("want namespace %s, got %s", namespace, got.GetName())
		}
		for _, object := range all {
			if ns := object.GetNamespace(); ns != "" && ns != namespace {
				t.Errorf("%s %s is in namespace %s", object.GetKind(), object.GetName(), ns)
			}
		}
	})
	t.Run("all carry the provider label", func(t *testing.T) {
		for _, object := range all {
			if got := object.GetLabels()[providerLabel]; got != provider {
				t.Errorf("%s %s: want label %s=%s, got %q", object.GetKind(), object.GetName(), providerLabel, provider, got)
			}
		}
	})
	t.Run("one deployment with a container named manager", func(t *testing.T) {
		deployment := all.only(t, "Deployment")
		containers, _, err := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
		if err != nil || len(containers) != 1 {
			t.Fatalf("want one container, got %v (%v)", containers, err)
		}
		if name := containers[0].(map[string]any)["name"]; name != "manager" {
			t.Errorf("want container manager, got %v", name)
		}
	})
	t.Run("roles are bound to the manager's account", func(t *testing.T) {
		for _, binding := range append(all.ofKind("RoleBinding"), all.ofKind("ClusterRoleBinding")...) {
			kind, role := nestedString(t, binding, "roleRef", "kind"), nestedString(t, binding, "roleRef", "name")
			if !all.has(kind, role) {
				t.Errorf("%s binds %s %s, which does not exist", binding.GetName(), kind, role)
			}
			subjects, _, _ := unstructured.NestedSlice(binding.Object, "subjects")
			for _, subject := range subjects {
				s := subject.(map[string]any)
				if s["namespace"] != namespace || !all.has("ServiceAccount", s["name"].(string)) {
					t.Errorf("%s binds %v, which does not exist", binding.GetName(), s)
				}
			}
		}
	})
}

// TestComponentCRDs checks that each generated CRD is installed and says which version serves contract v1beta2.
func TestComponentCRDs(t *testing.T) {
	installed := components(t).ofKind("CustomResourceDefinition")
	for _, crd := range installed {
		versions := strings.Split(crd.GetLabels()[contractLabel], "_")
		served, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
		for _, v := range served {
			if name := v.(map[string]any)["name"].(string); !slices.Contains(versions, name) {
				t.Errorf("%s: version %s is not in label %s=%v", crd.GetName(), name, contractLabel, versions)
			}
		}
	}
	generated, err := filepath.Glob(filepath.Join(repositoryRoot, "config/crd/bases/*.yaml"))
	if err != nil || len(generated) == 0 || len(generated) != len(installed) {
		t.Errorf("%d CRDs are generated, %d installed (%v): config/crd/kustomization.yaml lists them", len(generated), len(installed), err)
	}
}

// TestComponentWebhooks checks the chain from API server to manager: configuration, CA, service, certificate, pod.
func TestComponentWebhooks(t *testing.T) {
	all := components(t)
	service, certificate, deployment := all.only(t, "Service"), all.only(t, "Certificate"), all.only(t, "Deployment")

	host := service.GetName() + "." + service.GetNamespace() + ".svc"
	names, _, _ := unstructured.NestedStringSlice(certificate.Object, "spec", "dnsNames")
	if !slices.Contains(names, host) {
		t.Errorf("the certificate is for %v, the service is %s", names, host)
	}
	if issuer := nestedString(t, certificate, "spec", "issuerRef", "name"); !all.has("Issuer", issuer) {
		t.Errorf("the certificate's issuer %s does not exist", issuer)
	}
	volumes, _, _ := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "volumes")
	secret, _, _ := unstructured.NestedString(volumes[0].(map[string]any), "secret", "secretName")
	if want := nestedString(t, certificate, "spec", "secretName"); secret != want {
		t.Errorf("the manager mounts secret %s, the certificate is in %s", secret, want)
	}
	selector, _, _ := unstructured.NestedStringMap(service.Object, "spec", "selector")
	labels, _, _ := unstructured.NestedStringMap(deployment.Object, "spec", "template", "metadata", "labels")
	for key, value := range selector {
		if labels[key] != value {
			t.Errorf("the service selects %s=%s, the manager's pod has %s", key, value, labels[key])
		}
	}

	generated, err := filepath.Glob(filepath.Join(repositoryRoot, "config/webhook/manifests.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	configurations := append(all.ofKind("ValidatingWebhookConfiguration"), all.ofKind("MutatingWebhookConfiguration")...)
	if len(generated) > 0 && len(configurations) == 0 {
		t.Error("webhook configurations are generated and not installed: list manifests.yaml in config/webhook/kustomization.yaml")
	}
	for _, configuration := range configurations {
		checkWebhooks(t, configuration, service, certificate)
	}
}

func checkWebhooks(t *testing.T, configuration, service, certificate unstructured.Unstructured) {
	t.Helper()
	want := certificate.GetNamespace() + "/" + certificate.GetName()
	if got := configuration.GetAnnotations()["cert-manager.io/inject-ca-from"]; got != want {
		t.Errorf("%s takes its CA from %q, want %s", configuration.GetName(), got, want)
	}
	hooks, _, _ := unstructured.NestedSlice(configuration.Object, "webhooks")
	for _, hook := range hooks {
		name, _, _ := unstructured.NestedString(hook.(map[string]any), "clientConfig", "service", "name")
		if name != service.GetName() {
			t.Errorf("%s calls service %s, want %s", configuration.GetName(), name, service.GetName())
		}
	}
}

// TestMetadata checks the files by which clusterctl knows releases.
func TestMetadata(t *testing.T) {
	var metadata struct {
		APIVersion    string `json:"apiVersion"`
		Kind          string `json:"kind"`
		ReleaseSeries []struct {
			Major    uint   `json:"major"`
			Minor    uint   `json:"minor"`
			Contract string `json:"contract"`
		} `json:"releaseSeries"`
	}
	if err := yaml.UnmarshalStrict(read(t, "metadata.yaml"), &metadata); err != nil {
		t.Fatal(err)
	}
	if metadata.APIVersion != "clusterctl.cluster.x-k8s.io/v1alpha3" || metadata.Kind != "Metadata" {
		t.Errorf("clusterctl does not read %s %s", metadata.APIVersion, metadata.Kind)
	}
	var settings struct {
		Name   string `json:"name"`
		Config struct {
			ComponentsFile string `json:"componentsFile"`
			NextVersion    string `json:"nextVersion"`
		} `json:"config"`
	}
	if err := json.Unmarshal(read(t, "clusterctl-settings.json"), &settings); err != nil {
		t.Fatal(err)
	}
	if settings.Name != provider || settings.Config.ComponentsFile != "infrastructure-components.yaml" {
		t.Errorf("want %s and infrastructure-components.yaml, got %+v", provider, settings)
	}
	next, err := version.ParseSemantic(settings.Config.NextVersion)
	if err != nil {
		t.Fatal(err)
	}
	for _, series := range metadata.ReleaseSeries {
		if series.Major == next.Major() && series.Minor == next.Minor() {
			if series.Contract != "v1beta2" {
				t.Errorf("series %d.%d: want contract v1beta2, got %s", series.Major, series.Minor, series.Contract)
			}
			return
		}
	}
	t.Errorf("metadata.yaml has no series for the next version, %s", next)
}

func nestedString(t *testing.T, object unstructured.Unstructured, fields ...string) string {
	t.Helper()
	value, found, err := unstructured.NestedString(object.Object, fields...)
	if err != nil || !found {
		t.Fatalf("%s %s has no %s (%v)", object.GetKind(), object.GetName(), strings.Join(fields, "."), err)
	}
	return value
}

// TestRuntimeExtension checks that what is installed for updates in place fits the manager: its port, labels, names and the
// certificate.
func TestRuntimeExtension(t *testing.T) {
	all := components(t)
	extension := parse(t, run(t, "go", "tool", "-modfile=hack/tools/go.mod", "kustomize", "build", "config/runtime-extension"))
	service, config := extension.only(t, "Service"), extension.only(t, "ExtensionConfig")
	if name := nestedString(t, config, "spec", "clientConfig", "service", "name"); name != service.GetName() || config.GetNamespace() != namespace {
		t.Errorf("the ExtensionConfig is for Service %s, which is %s", name, service.GetName())
	}
	names, _, _ := unstructured.NestedStringSlice(all.only(t, "Certificate").Object, "spec", "dnsNames")
	if want := service.GetName() + "." + namespace + ".svc"; !slices.Contains(names, want) {
		t.Errorf("the certificate is for %v, and not for %s", names, want)
	}
	secret := namespace + "/" + nestedString(t, all.only(t, "Certificate"), "spec", "secretName")
	if from := config.GetAnnotations()["runtime.cluster.x-k8s.io/inject-ca-from-secret"]; from != secret {
		t.Errorf("the CA is taken from %s, and not from %s", from, secret)
	}
	labels, _, _ := unstructured.NestedStringMap(all.only(t, "Deployment").Object, "spec", "template", "metadata", "labels")
	selector, _, _ := unstructured.NestedStringMap(service.Object, "spec", "selector")
	for key, value := range selector {
		if labels[key] != value {
			t.Errorf("the Service selects %s=%s, and the manager has %v", key, value, labels)
		}
	}
}
