// Package v1beta1 is version v1beta1 of the API group infrastructure.cluster.x-k8s.io: the Proxmox VE kinds that Cluster
// API refers to. It follows the infrastructure provider contract v1beta2.
//
// +kubebuilder:object:generate=true
// +groupName=infrastructure.cluster.x-k8s.io
package v1beta1
