// Package webhooks checks what the rules in the CRDs cannot, or could not say the value of: that the fields of machines go
// together; that machines change in what their VMs can follow alone; that templates stay as they are, but for the dry runs in
// which Cluster API's topology controller asks whether a change would need a rollout; and that the addresses that a
// ProxmoxCluster has for its machines are nobody else's.
package webhooks

import (
	"context"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/topology"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
)

// +kubebuilder:webhook:verbs=create;update,path=/validate-infrastructure-cluster-x-k8s-io-v1beta1-proxmoxmachinetemplate,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=infrastructure.cluster.x-k8s.io,resources=proxmoxmachinetemplates,versions=v1beta1,name=validation.proxmoxmachinetemplate.infrastructure.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1
// +kubebuilder:webhook:verbs=create;update,path=/validate-infrastructure-cluster-x-k8s-io-v1beta1-proxmoxclustertemplate,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=infrastructure.cluster.x-k8s.io,resources=proxmoxclustertemplates,versions=v1beta1,name=validation.proxmoxclustertemplate.infrastructure.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1

// SetupWithManager registers the webhooks.
func SetupWithManager(mgr ctrl.Manager) error {
	err := ctrl.NewWebhookManagedBy(mgr, &v1beta1.ProxmoxMachineTemplate{}).WithValidator(machineTemplates()).Complete()
	if err != nil {
		return fmt.Errorf("set up the webhook of ProxmoxMachineTemplates: %w", err)
	}
	err = ctrl.NewWebhookManagedBy(mgr, &v1beta1.ProxmoxClusterTemplate{}).WithValidator(clusterTemplates()).Complete()
	if err != nil {
		return fmt.Errorf("set up the webhook of ProxmoxClusterTemplates: %w", err)
	}
	err = ctrl.NewWebhookManagedBy(mgr, &v1beta1.ProxmoxCluster{}).WithValidator(clusterValidator{}).Complete()
	if err != nil {
		return fmt.Errorf("set up the webhook of ProxmoxClusters: %w", err)
	}
	err = ctrl.NewWebhookManagedBy(mgr, &v1beta1.ProxmoxMachine{}).WithValidator(machineValidator{}).Complete()
	if err != nil {
		return fmt.Errorf("set up the webhook of ProxmoxMachines: %w", err)
	}
	return nil
}

// templateValidator checks one kind of template.
type templateValidator[T client.Object] struct {
	kind string
	// metadata is what objects made from the template get.
	metadata func(T) clusterv1.ObjectMeta
	// spec is the part that stays as it is.
	spec func(T) any
	// check says what else is wrong with a template.
	check func(T) field.ErrorList
}

func machineTemplates() templateValidator[*v1beta1.ProxmoxMachineTemplate] {
	return templateValidator[*v1beta1.ProxmoxMachineTemplate]{
		kind:     "ProxmoxMachineTemplate",
		metadata: func(t *v1beta1.ProxmoxMachineTemplate) clusterv1.ObjectMeta { return t.Spec.Template.ObjectMeta },
		spec:     func(t *v1beta1.ProxmoxMachineTemplate) any { return t.Spec.Template.Spec },
		check: func(t *v1beta1.ProxmoxMachineTemplate) field.ErrorList {
			return checkMachine(machineSubject{path: field.NewPath("spec", "template", "spec"), spec: t.Spec.Template.Spec})
		},
	}
}

func clusterTemplates() templateValidator[*v1beta1.ProxmoxClusterTemplate] {
	return templateValidator[*v1beta1.ProxmoxClusterTemplate]{
		kind:     "ProxmoxClusterTemplate",
		metadata: func(t *v1beta1.ProxmoxClusterTemplate) clusterv1.ObjectMeta { return t.Spec.Template.ObjectMeta },
		spec:     func(t *v1beta1.ProxmoxClusterTemplate) any { return t.Spec.Template.Spec },
		check: func(t *v1beta1.ProxmoxClusterTemplate) field.ErrorList {
			return checkCluster(field.NewPath("spec", "template", "spec"), t.Spec.Template.Spec)
		},
	}
}

// ValidateCreate checks the metadata that is copied from the template, and what a rule in the CRD cannot check of the rest.
func (v templateValidator[T]) ValidateCreate(_ context.Context, template T) (admission.Warnings, error) {
	return nil, v.invalid(template, v.problems(template))
}

// ValidateUpdate refuses a change of the spec, unless the topology controller only asks what would come of it.
func (v templateValidator[T]) ValidateUpdate(ctx context.Context, old, template T) (admission.Warnings, error) {
	request, err := admission.RequestFromContext(ctx)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("no admission request in context: %v", err))
	}
	errs := news(v.problems(old), v.problems(template))
	if !topology.IsDryRunRequest(request, template) && !reflect.DeepEqual(v.spec(old), v.spec(template)) {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "template", "spec"),
			fmt.Sprintf("a %s is immutable: make another one and refer to that, and Cluster API rolls what was made from this one", v.kind)))
	}
	return nil, v.invalid(template, errs)
}

// ValidateDelete allows every deletion.
func (v templateValidator[T]) ValidateDelete(context.Context, T) (admission.Warnings, error) {
	return nil, nil
}

// problems are all that is wrong with a template.
func (v templateValidator[T]) problems(template T) field.ErrorList {
	metadata := v.metadata(template)
	return append(metadata.Validate(field.NewPath("spec", "template", "metadata")), v.check(template)...)
}

func (v templateValidator[T]) invalid(template T, errs field.ErrorList) error {
	return invalid(v.kind, template, errs)
}

func invalid(kind string, object client.Object, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: v1beta1.GroupVersion.Group, Kind: kind}, object.GetName(), errs)
}
