package integration_test

import (
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
)

// templates are one of each kind, with an edit that would change what is made from it.
func (d *desk) templates() map[client.Object]edit {
	cluster := &v1beta1.ProxmoxClusterTemplate{ObjectMeta: d.meta("template"), Spec: v1beta1.ProxmoxClusterTemplateSpec{
		Template: v1beta1.ProxmoxClusterTemplateResource{Spec: clusterSpec()},
	}}
	return map[client.Object]edit{
		d.validMachineTemplate(): set("spec.template.spec.cpu.cores", int64(16)),
		cluster:                  set("spec.template.spec.regions.0.credentialsRef.name", "others"),
	}
}

func TestTemplatesAreImmutable(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for template, change := range d.templates() {
		d.Expect(d.client.Create(t.Context(), template)).To(Succeed())
		changed := document(t, d.scheme, template, change)
		err := d.client.Update(t.Context(), changed)
		d.Expect(apierrors.IsInvalid(err)).To(BeTrue())
		d.Expect(err).To(MatchError(ContainSubstring(changed.GetKind() + " is immutable: make another one and refer to that")))
	}
}

func TestMetadataOfTemplatesMayChange(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for template := range d.templates() {
		d.Expect(d.client.Create(t.Context(), template)).To(Succeed())
		changed := document(t, d.scheme, template,
			set("metadata.labels.a", "b"), set("metadata.annotations.a", "b"), set("spec.template.metadata.labels.a", "b"))
		d.Expect(d.client.Update(t.Context(), changed)).To(Succeed())
	}
}

func TestTemplatesWithBadMetadataAreRefused(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for template := range d.templates() {
		bad := document(t, d.scheme, template, set("spec.template.metadata.labels.a", "not a label value"))
		d.Expect(d.client.Create(t.Context(), bad)).To(MatchError(ContainSubstring("spec.template.metadata.labels")))
		d.Expect(d.client.Create(t.Context(), template)).To(Succeed())
		bad.SetResourceVersion(template.GetResourceVersion())
		d.Expect(d.client.Update(t.Context(), bad)).To(MatchError(ContainSubstring("spec.template.metadata.labels")))
	}
}

func TestTemplatesCanBeDeleted(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for template := range d.templates() {
		d.Expect(d.client.Create(t.Context(), template)).To(Succeed())
		d.Expect(d.client.Delete(t.Context(), template)).To(Succeed())
	}
}

// TestTopologyControllerMayAskWhatAChangeWouldDo applies changed templates as Cluster API's topology controller does.
func TestTopologyControllerMayAskWhatAChangeWouldDo(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for template, change := range d.templates() {
		d.Expect(d.client.Create(t.Context(), template)).To(Succeed())
		annotated := set("metadata.annotations", map[string]any{clusterv1.TopologyDryRunAnnotation: ""})
		changed := func(edits ...edit) *unstructured.Unstructured {
			object := document(t, d.scheme, template, append(edits, change)...)
			object.SetManagedFields(nil)
			object.SetResourceVersion("")
			return object
		}
		apply := func(object *unstructured.Unstructured, options ...client.ApplyOption) error {
			options = append(options, client.FieldOwner("capi-topology"), client.ForceOwnership)
			return d.client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), options...)
		}
		d.Expect(apply(changed(annotated), client.DryRunAll)).To(Succeed(), "a dry run with the annotation")
		d.Expect(apply(changed(), client.DryRunAll)).To(MatchError(ContainSubstring("is immutable")), "a dry run of another")
		d.Expect(apply(changed(annotated))).To(MatchError(ContainSubstring("is immutable")), "the annotation alone")
	}
}
