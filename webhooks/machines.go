package webhooks

import (
	"context"
	"reflect"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
)

// +kubebuilder:webhook:verbs=update,path=/validate-infrastructure-cluster-x-k8s-io-v1beta1-proxmoxmachine,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=infrastructure.cluster.x-k8s.io,resources=proxmoxmachines,versions=v1beta1,name=validation.proxmoxmachine.infrastructure.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1

// machineValidator refuses changes of a ProxmoxMachine that its VM cannot follow.
type machineValidator struct{}

// ValidateCreate allows what the rules of the CRD allow.
func (machineValidator) ValidateCreate(context.Context, *v1beta1.ProxmoxMachine) (admission.Warnings, error) {
	return nil, nil
}

// ValidateUpdate refuses changes that need another VM.
func (machineValidator) ValidateUpdate(_ context.Context, old, machine *v1beta1.ProxmoxMachine) (admission.Warnings, error) {
	if reflect.DeepEqual(old.Spec, machine.Spec) {
		return nil, nil
	}
	var errs field.ErrorList
	for _, replacement := range vmconfig.Replacements(old.Spec, machine.Spec) {
		errs = append(errs, field.Forbidden(field.NewPath("spec", replacement.Path), replacement.String()))
	}
	return nil, invalid("ProxmoxMachine", machine, errs)
}

// ValidateDelete allows every deletion.
func (machineValidator) ValidateDelete(context.Context, *v1beta1.ProxmoxMachine) (admission.Warnings, error) {
	return nil, nil
}
