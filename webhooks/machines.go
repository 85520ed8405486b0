package webhooks

import (
	"context"
	"reflect"

	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
)

// +kubebuilder:webhook:verbs=create;update,path=/validate-infrastructure-cluster-x-k8s-io-v1beta1-proxmoxmachine,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=infrastructure.cluster.x-k8s.io,resources=proxmoxmachines,versions=v1beta1,name=validation.proxmoxmachine.infrastructure.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1

// machineValidator refuses ProxmoxMachines whose fields do not go together, and changes that a VM cannot follow.
type machineValidator struct{}

// ValidateCreate refuses what cannot be.
func (machineValidator) ValidateCreate(_ context.Context, machine *v1beta1.ProxmoxMachine) (admission.Warnings, error) {
	return nil, invalid("ProxmoxMachine", machine, checkMachine(subjectOf(machine)))
}

func subjectOf(machine *v1beta1.ProxmoxMachine) machineSubject {
	return machineSubject{
		path: field.NewPath("spec"), spec: machine.Spec,
		machine: machine.Name, cluster: machine.Labels[clusterv1.ClusterNameLabel], namespace: machine.Namespace,
	}
}

// ValidateUpdate refuses changes to what cannot be, and those that need another VM.
func (machineValidator) ValidateUpdate(_ context.Context, old, machine *v1beta1.ProxmoxMachine) (admission.Warnings, error) {
	if reflect.DeepEqual(old.Spec, machine.Spec) {
		return nil, nil
	}
	errs := news(checkMachine(subjectOf(old)), checkMachine(subjectOf(machine)))
	for _, replacement := range vmconfig.Replacements(old.Spec, machine.Spec) {
		errs = append(errs, field.Forbidden(field.NewPath("spec", replacement.Path), replacement.String()))
	}
	return nil, invalid("ProxmoxMachine", machine, errs)
}

// ValidateDelete allows every deletion.
func (machineValidator) ValidateDelete(context.Context, *v1beta1.ProxmoxMachine) (admission.Warnings, error) {
	return nil, nil
}
