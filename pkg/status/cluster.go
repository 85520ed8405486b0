package status

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan"
)

// ClusterPass is what one pass over a cluster came to.
type ClusterPass struct {
	Observed plan.Cluster
	// Decision is the last one of the pass; nil when the pass ended before one.
	Decision plan.Decision
	// Failure is why the pass ended early; the zero Reason when it did not.
	Failure plan.Reason
}

// ClusterConditions are the types of the conditions that this package sets on a ProxmoxCluster.
func ClusterConditions() []string {
	return []string{
		clusterv1.ReadyCondition, v1beta1.ProxmoxAvailableCondition, v1beta1.ZonesValidCondition,
		v1beta1.ControlPlaneEndpointSetCondition, v1beta1.AddressPoolsReadyCondition, clusterv1.DeletingCondition,
	}
}

// Cluster sets the status of a cluster.
func Cluster(cluster *v1beta1.ProxmoxCluster, pass ClusterPass) error {
	if _, done := pass.Decision.(plan.Done); done {
		cluster.Status.Initialization.Provisioned = ptr.To(true)
	}
	isDeleting := !cluster.DeletionTimestamp.IsZero()
	why := pass.Failure
	if why.Code == "" && pass.Decision != nil {
		why = pass.Decision.Why()
	}
	if !isDeleting && pass.Failure.Code == "" {
		setObserved(cluster, pass.Observed)
	}
	if pass.Failure.Code != "" {
		conditions.Set(cluster, metav1.Condition{
			Type: v1beta1.ProxmoxAvailableCondition, Status: metav1.ConditionUnknown, Reason: pass.Failure.Code, Message: pass.Failure.Message,
		})
	}
	conditions.Set(cluster, deleting(isDeleting, why))
	types := conditions.ForConditionTypes{
		v1beta1.ProxmoxAvailableCondition, v1beta1.ZonesValidCondition, v1beta1.ControlPlaneEndpointSetCondition, clusterv1.DeletingCondition,
	}
	if conditions.Has(cluster, v1beta1.AddressPoolsReadyCondition) {
		types = append(types, v1beta1.AddressPoolsReadyCondition)
	}
	return summarize(cluster, types)
}

// setObserved sets what follows from the snapshot. Failure domains stay while a region without zones cannot be seen: its
// nodes are not gone.
func setObserved(cluster *v1beta1.ProxmoxCluster, observed plan.Cluster) {
	if domains := plan.FailureDomains(observed); len(domains) > 0 && observed.Unavailable().Code == "" {
		cluster.Status.FailureDomains = domains
	}
	conditions.Set(cluster, truth(v1beta1.ProxmoxAvailableCondition, v1beta1.AvailableReason, observed.Unavailable()))
	if objection, asked := observed.PoolObjection(); asked {
		conditions.Set(cluster, truth(v1beta1.AddressPoolsReadyCondition, v1beta1.AvailableReason, objection))
	} else {
		conditions.Delete(cluster, v1beta1.AddressPoolsReadyCondition)
	}
	conditions.Set(cluster, truth(v1beta1.ZonesValidCondition, v1beta1.AvailableReason, observed.UnknownNodes()))
	conditions.Set(cluster, truth(v1beta1.ControlPlaneEndpointSetCondition, v1beta1.EndpointSetReason, plan.Cluster{Spec: cluster.Spec, VirtualIP: observed.VirtualIP}.MissingEndpoint()))
}

// truth is a condition that is True unless there is an objection.
func truth(conditionType, reason string, objection plan.Reason) metav1.Condition {
	if objection.Code != "" {
		return metav1.Condition{Type: conditionType, Status: metav1.ConditionFalse, Reason: objection.Code, Message: objection.Message}
	}
	return metav1.Condition{Type: conditionType, Status: metav1.ConditionTrue, Reason: reason}
}
