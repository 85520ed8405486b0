package install

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

const crd = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: clusters.cluster.x-k8s.io
  labels: {theirs: kept}
spec:
  group: cluster.x-k8s.io
  names: {kind: Cluster, plural: clusters}
  scope: Namespaced
  versions:
  - {name: v1beta1, served: true, storage: false}
  - {name: v1beta2, served: true, storage: true}
`

const manifests = `---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata:
  name: mutating-webhook-configuration
webhooks:
- name: default.cluster.cluster.x-k8s.io
  clientConfig: {service: {name: webhook-service, namespace: system, path: /mutate-cluster}}
  sideEffects: None
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata:
  name: validating-webhook-configuration
webhooks:
- name: validation.cluster.cluster.x-k8s.io
  clientConfig: {service: {name: webhook-service, namespace: system, path: /validate-cluster}}
  sideEffects: None
`

// config writes a provider's config folder.
func config(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func component(t *testing.T) Component {
	t.Helper()
	return Component{
		Name: "capi", Config: config(t, map[string]string{"crd/bases/clusters.yaml": crd}),
		Labels:   map[string]string{"cluster.x-k8s.io/v1beta2": "v1beta2"},
		Webhooks: &Webhooks{URL: "https://127.0.0.1:9443", Authority: []byte("CA")},
	}
}

func definitions(t *testing.T, c Component) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	loaded, err := c.definitions()
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

func TestDefinitionsCarryLabels(t *testing.T) {
	want := map[string]string{"theirs": "kept", "cluster.x-k8s.io/v1beta2": "v1beta2", ClusterctlLabel: ""}
	if diff := cmp.Diff(want, definitions(t, component(t))[0].Labels); diff != "" {
		t.Error(diff)
	}
}

func TestDefinitionsConvertByWebhook(t *testing.T) {
	conversion := definitions(t, component(t))[0].Spec.Conversion
	if conversion.Strategy != apiextensionsv1.WebhookConverter || *conversion.Webhook.ClientConfig.URL != "https://127.0.0.1:9443/convert" ||
		string(conversion.Webhook.ClientConfig.CABundle) != "CA" {
		t.Errorf("got %+v", conversion)
	}
}

func TestDefinitionsWithoutWebhooksDoNotConvert(t *testing.T) {
	without := component(t)
	without.Webhooks = nil
	if got := definitions(t, without)[0].Spec.Conversion; got != nil {
		t.Errorf("got %+v", got)
	}
	single := component(t)
	single.Config = config(t, map[string]string{
		"crd/bases/a.yaml": strings.Replace(crd, "  - {name: v1beta1, served: true, storage: false}\n", "", 1),
	})
	if got := definitions(t, single)[0].Spec.Conversion; got != nil {
		t.Errorf("a kind with one version: got %+v", got)
	}
}

func TestDefinitionsSayWhatIsMissing(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"make generate": nil,
		"parse CRD":     {"crd/bases/a.yaml": "kind: ["},
	} {
		if _, err := (Component{Config: config(t, files)}).definitions(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want %q in it", err, name)
		}
	}
}

func TestWebhooksAreRedirected(t *testing.T) {
	objects, err := component(t).webhookConfigurations([]byte(manifests))
	if err != nil {
		t.Fatal(err)
	}
	if len(objects) != 2 {
		t.Fatalf("got %d configurations", len(objects))
	}
	mutating, isMutating := objects[0].(*admissionv1.MutatingWebhookConfiguration)
	validating, isValidating := objects[1].(*admissionv1.ValidatingWebhookConfiguration)
	if !isMutating || !isValidating {
		t.Fatalf("got %T and %T", objects[0], objects[1])
	}
	if mutating.Name != "capi-mutating-webhook-configuration" || validating.Name != "capi-validating-webhook-configuration" {
		t.Errorf("two providers' webhooks would collide: %s, %s", mutating.Name, validating.Name)
	}
	for url, target := range map[string]admissionv1.WebhookClientConfig{
		"https://127.0.0.1:9443/mutate-cluster":   mutating.Webhooks[0].ClientConfig,
		"https://127.0.0.1:9443/validate-cluster": validating.Webhooks[0].ClientConfig,
	} {
		if target.Service != nil || *target.URL != url || string(target.CABundle) != "CA" {
			t.Errorf("got %+v, want %s", target, url)
		}
	}
}

func TestWebhooksOfAnotherKind(t *testing.T) {
	if _, err := component(t).webhookConfigurations([]byte("kind: Service\nmetadata: {name: a}\n")); err == nil {
		t.Error("no error")
	}
}

func TestProviderWithoutWebhooks(t *testing.T) {
	if err := component(t).createWebhooks(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

func TestEstablished(t *testing.T) {
	var definition apiextensionsv1.CustomResourceDefinition
	if established(&definition) {
		t.Error("a CRD without conditions is established")
	}
	definition.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{
		{Type: apiextensionsv1.NamesAccepted, Status: apiextensionsv1.ConditionTrue},
		{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue},
	}
	if !established(&definition) {
		t.Error("an established CRD is not")
	}
}
