package webhooks

import (
	"context"
	"reflect"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/network"
)

// +kubebuilder:webhook:verbs=create;update,path=/validate-infrastructure-cluster-x-k8s-io-v1beta1-proxmoxcluster,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=infrastructure.cluster.x-k8s.io,resources=proxmoxclusters,versions=v1beta1,name=validation.proxmoxcluster.infrastructure.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1

// clusterValidator checks the addresses of a ProxmoxCluster.
type clusterValidator struct{}

// ValidateCreate checks the addresses.
func (clusterValidator) ValidateCreate(_ context.Context, cluster *v1beta1.ProxmoxCluster) (admission.Warnings, error) {
	return nil, invalid("ProxmoxCluster", cluster, checkPools(field.NewPath("spec"), cluster.Spec))
}

// ValidateUpdate checks the addresses when the spec changes: what is wrong already must not keep a finalizer from going.
func (v clusterValidator) ValidateUpdate(ctx context.Context, old, cluster *v1beta1.ProxmoxCluster) (admission.Warnings, error) {
	if reflect.DeepEqual(old.Spec, cluster.Spec) {
		return nil, nil
	}
	return v.ValidateCreate(ctx, cluster)
}

// ValidateDelete allows every deletion.
func (clusterValidator) ValidateDelete(context.Context, *v1beta1.ProxmoxCluster) (admission.Warnings, error) {
	return nil, nil
}

func checkPools(spec *field.Path, cluster v1beta1.ProxmoxClusterSpec) field.ErrorList {
	var errs field.ErrorList
	for _, problem := range network.PoolProblems(cluster) {
		path := spec.Child(problem.Path[0], problem.Path[1:]...)
		if problem.Index >= 0 {
			path = path.Index(problem.Index)
		}
		errs = append(errs, field.Invalid(path, problem.Value, problem.Message))
	}
	return errs
}
