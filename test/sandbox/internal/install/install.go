// Package install puts a provider's CustomResourceDefinitions and webhook configurations onto the sandbox's API server.
// It does what kustomize, cert-manager and the API server's service routing do in a real installation: contract labels,
// conversion by webhook, and webhooks reached by URL on loopback instead of through a Service.
package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// ClusterctlLabel marks a CRD as belonging to a provider: clusterctl, and the checks of Cluster API's test framework,
// walk only objects of kinds that carry it.
const ClusterctlLabel = "clusterctl.cluster.x-k8s.io"

// pollEvery is how often Apply looks whether CRDs are established.
const pollEvery = 50 * time.Millisecond

// Component is one provider to install.
type Component struct {
	// Name prefixes the names of the webhook configurations, which are the same in every provider's manifests.
	Name string
	// Config is the provider's config folder, with crd/bases/*.yaml and, optionally, webhook/manifests.yaml.
	Config string
	// Labels are set on every CRD, for example the contract label cluster.x-k8s.io/v1beta2.
	Labels map[string]string
	// Webhooks is where the provider serves its webhooks; nil leaves webhooks and conversion out.
	Webhooks *Webhooks
}

// Webhooks is a webhook server.
type Webhooks struct {
	// URL is https://host:port, without a path.
	URL string
	// Authority is the PEM certificate that the server's certificate is signed by.
	Authority []byte
}

// Apply installs the components' CRDs, waits until the API server serves them, then installs their webhook
// configurations: a webhook that is called before its CRD exists could not answer.
func Apply(ctx context.Context, config *rest.Config, components ...Component) error {
	c, err := newClient(config)
	if err != nil {
		return err
	}
	var definitions []*apiextensionsv1.CustomResourceDefinition
	for _, component := range components {
		loaded, err := component.definitions()
		if err != nil {
			return fmt.Errorf("load CRDs of %s: %w", component.Name, err)
		}
		definitions = append(definitions, loaded...)
	}
	for _, definition := range definitions {
		if err := c.Create(ctx, definition); err != nil {
			return fmt.Errorf("create CRD %s: %w", definition.Name, err)
		}
	}
	for _, definition := range definitions {
		if err := waitEstablished(ctx, c, definition.Name); err != nil {
			return err
		}
	}
	for _, component := range components {
		if err := component.createWebhooks(ctx, c); err != nil {
			return fmt.Errorf("create webhooks of %s: %w", component.Name, err)
		}
	}
	return nil
}

func newClient(config *rest.Config) (client.Client, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(apiextensionsv1.AddToScheme(scheme), admissionv1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("register kinds: %w", err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	return c, nil
}

// waitEstablished waits until the API server serves the CRD.
func waitEstablished(ctx context.Context, c client.Client, name string) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		var definition apiextensionsv1.CustomResourceDefinition
		if err := c.Get(ctx, client.ObjectKey{Name: name}, &definition); err != nil {
			return fmt.Errorf("get CRD %s: %w", name, err)
		}
		if established(&definition) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for CRD %s to be established: %w", name, ctx.Err())
		case <-tick.C:
		}
	}
}

func established(definition *apiextensionsv1.CustomResourceDefinition) bool {
	for _, condition := range definition.Status.Conditions {
		if condition.Type == apiextensionsv1.Established {
			return condition.Status == apiextensionsv1.ConditionTrue
		}
	}
	return false
}

// definitions loads the component's CRDs as it needs them.
func (c Component) definitions() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	files, err := filepath.Glob(filepath.Join(c.Config, "crd", "bases", "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("list CRDs: %w", err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no CRD in %s: run `make generate`", filepath.Join(c.Config, "crd", "bases"))
	}
	definitions := make([]*apiextensionsv1.CustomResourceDefinition, 0, len(files))
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read CRD: %w", err)
		}
		var definition apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(content, &definition); err != nil {
			return nil, fmt.Errorf("parse CRD %s: %w", file, err)
		}
		c.patch(&definition)
		definitions = append(definitions, &definition)
	}
	return definitions, nil
}

// patch does what the provider's config/crd/kustomization.yaml and clusterctl do.
func (c Component) patch(definition *apiextensionsv1.CustomResourceDefinition) {
	if definition.Labels == nil {
		definition.Labels = map[string]string{}
	}
	definition.Labels[ClusterctlLabel] = ""
	for key, value := range c.Labels {
		definition.Labels[key] = value
	}
	if c.Webhooks == nil || len(definition.Spec.Versions) < 2 {
		return
	}
	convert := c.Webhooks.URL + "/convert"
	definition.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ConversionReviewVersions: []string{"v1"},
			ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: &convert, CABundle: c.Webhooks.Authority},
		},
	}
}

// createWebhooks creates the component's webhook configurations, if it has any.
func (c Component) createWebhooks(ctx context.Context, api client.Client) error {
	if c.Webhooks == nil {
		return nil
	}
	content, err := os.ReadFile(filepath.Join(c.Config, "webhook", "manifests.yaml"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read webhooks: %w", err)
	}
	objects, err := c.webhookConfigurations(content)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if err := api.Create(ctx, object); err != nil {
			return fmt.Errorf("create %s: %w", object.GetName(), err)
		}
	}
	return nil
}

// webhookConfigurations parses the manifests and points every webhook at the component's webhook server.
func (c Component) webhookConfigurations(manifests []byte) ([]client.Object, error) {
	var objects []client.Object
	for document := range strings.SplitSeq(string(manifests), "\n---\n") {
		var raw unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(document), &raw.Object); err != nil {
			return nil, fmt.Errorf("parse webhooks: %w", err)
		}
		if len(raw.Object) == 0 {
			continue
		}
		object, err := c.webhookConfiguration(raw)
		if err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
	return objects, nil
}

func (c Component) webhookConfiguration(raw unstructured.Unstructured) (client.Object, error) {
	name := c.Name + "-" + raw.GetName()
	convert := runtime.DefaultUnstructuredConverter.FromUnstructured
	switch raw.GetKind() {
	case "MutatingWebhookConfiguration":
		var configuration admissionv1.MutatingWebhookConfiguration
		if err := convert(raw.Object, &configuration); err != nil {
			return nil, fmt.Errorf("parse %s: %w", name, err)
		}
		configuration.Name = name
		for i := range configuration.Webhooks {
			c.redirect(&configuration.Webhooks[i].ClientConfig)
		}
		return &configuration, nil
	case "ValidatingWebhookConfiguration":
		var configuration admissionv1.ValidatingWebhookConfiguration
		if err := convert(raw.Object, &configuration); err != nil {
			return nil, fmt.Errorf("parse %s: %w", name, err)
		}
		configuration.Name = name
		for i := range configuration.Webhooks {
			c.redirect(&configuration.Webhooks[i].ClientConfig)
		}
		return &configuration, nil
	default:
		return nil, fmt.Errorf("parse webhooks: unexpected kind %q", raw.GetKind())
	}
}

func (c Component) redirect(target *admissionv1.WebhookClientConfig) {
	url := c.Webhooks.URL
	if target.Service != nil && target.Service.Path != nil {
		url += *target.Service.Path
	}
	*target = admissionv1.WebhookClientConfig{URL: &url, CABundle: c.Webhooks.Authority}
}
