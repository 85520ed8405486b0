package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// ProxmoxClusterTemplateSpec holds the template of a ProxmoxCluster.
type ProxmoxClusterTemplateSpec struct {
	// template is what ProxmoxClusters are made from. It is immutable: make another template and change the ClusterClass
	// to use it.
	// +required
	Template ProxmoxClusterTemplateResource `json:"template,omitempty,omitzero"`
}

// ProxmoxClusterTemplateResource is the metadata and spec of the ProxmoxClusters made from a template.
type ProxmoxClusterTemplateResource struct {
	// metadata is copied to the ProxmoxCluster.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`
	// spec is copied to the ProxmoxCluster.
	// +required
	Spec ProxmoxClusterSpec `json:"spec,omitempty,omitzero"`
}

// ProxmoxClusterTemplate is what a ClusterClass makes ProxmoxClusters from.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=proxmoxclustertemplates,scope=Namespaced,categories=cluster-api
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1beta1"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
type ProxmoxClusterTemplate struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the template.
	// +required
	Spec ProxmoxClusterTemplateSpec `json:"spec,omitempty,omitzero"`
}

// ProxmoxClusterTemplateList is a list of ProxmoxClusterTemplates.
// +kubebuilder:object:root=true
type ProxmoxClusterTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the ProxmoxClusterTemplates.
	Items []ProxmoxClusterTemplate `json:"items"`
}
