package webhooks

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/network"
)

// +kubebuilder:webhook:verbs=create;update,path=/validate-infrastructure-cluster-x-k8s-io-v1beta1-proxmoxcluster,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=infrastructure.cluster.x-k8s.io,resources=proxmoxclusters,versions=v1beta1,name=validation.proxmoxcluster.infrastructure.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1

// clusterValidator checks the addresses, zones and certificates of a ProxmoxCluster.
type clusterValidator struct{}

// ValidateCreate refuses what cannot be.
func (clusterValidator) ValidateCreate(_ context.Context, cluster *v1beta1.ProxmoxCluster) (admission.Warnings, error) {
	return nil, invalid("ProxmoxCluster", cluster, checkCluster(field.NewPath("spec"), cluster.Spec))
}

// ValidateUpdate refuses changes to what cannot be: what is wrong already must not keep a finalizer from going.
func (clusterValidator) ValidateUpdate(_ context.Context, old, cluster *v1beta1.ProxmoxCluster) (admission.Warnings, error) {
	spec := field.NewPath("spec")
	return nil, invalid("ProxmoxCluster", cluster, news(checkCluster(spec, old.Spec), checkCluster(spec, cluster.Spec)))
}

// ValidateDelete allows every deletion.
func (clusterValidator) ValidateDelete(context.Context, *v1beta1.ProxmoxCluster) (admission.Warnings, error) {
	return nil, nil
}

func checkCluster(spec *field.Path, cluster v1beta1.ProxmoxClusterSpec) field.ErrorList {
	errs := append(checkPools(spec, cluster), checkRange(spec.Child("vmIDRange"), cluster.VMIDRange)...)
	for i, region := range cluster.Regions {
		path := spec.Child("regions").Index(i)
		errs = append(errs, checkRange(path.Child("vmIDRange"), region.VMIDRange)...)
		errs = append(errs, checkZones(path.Child("zones"), region.Zones)...)
		errs = append(errs, checkBundle(path.Child("tls", "caBundle"), region.TLS.CABundle)...)
	}
	return errs
}

func checkZones(path *field.Path, zones []v1beta1.Zone) field.ErrorList {
	var errs field.ErrorList
	zoneOf := map[string]string{}
	for i, zone := range zones {
		for j, node := range zone.Nodes {
			if other := zoneOf[node]; other != "" {
				errs = append(errs, field.Invalid(path.Index(i).Child("nodes").Index(j), node,
					fmt.Sprintf("a node may belong to one zone only, and it is in %s: name each node once over all zones of the region", other)))
			}
			zoneOf[node] = zone.Name
		}
	}
	return errs
}

// checkBundle refuses a bundle that has something else than certificates. It does not repeat what that is: it may be a key.
func checkBundle(path *field.Path, bundle []byte) field.ErrorList {
	const remedy = "give certificates in PEM form, as /etc/pve/pve-root-ca.pem of a Proxmox VE node has them"
	refuse := func(format string, args ...any) field.ErrorList {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, fmt.Sprintf(format, args...)+": "+remedy)}
	}
	if len(bundle) == 0 {
		return nil
	}
	block, rest := pem.Decode(bundle)
	if block == nil {
		return refuse("the %d bytes hold no PEM block", len(bundle))
	}
	for number := 1; block != nil; number++ {
		if block.Type != "CERTIFICATE" {
			return refuse("PEM block %d is a %s, which is no certificate", number, block.Type)
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return refuse("PEM block %d is no certificate (%v)", number, err)
		}
		block, rest = pem.Decode(rest)
	}
	return nil
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
