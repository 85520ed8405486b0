package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// ProxmoxMachineTemplateSpec holds the template of a ProxmoxMachine.
type ProxmoxMachineTemplateSpec struct {
	// template is what ProxmoxMachines are made from. It is immutable: make another template and have what refers
	// to it refer to the new one, and Cluster API rolls the machines.
	// +required
	Template ProxmoxMachineTemplateResource `json:"template,omitempty,omitzero"`
}

// ProxmoxMachineTemplateResource is the metadata and spec of the ProxmoxMachines made from a template.
// +kubebuilder:validation:XValidation:rule="!has(self.spec.providerID) && !has(self.spec.reservation)",fieldPath=".spec",messageExpression="(has(self.spec.providerID) ? 'providerID ' + self.spec.providerID : 'reservation ' + self.spec.reservation.uuid) + ': providerID and reservation belong to one machine: leave them out of a template'"
type ProxmoxMachineTemplateResource struct {
	// metadata is copied to the ProxmoxMachine.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`
	// spec is copied to the ProxmoxMachine.
	// +required
	Spec ProxmoxMachineSpec `json:"spec,omitempty,omitzero"`
}

// ProxmoxMachineTemplate is what a MachineDeployment, MachineSet or control plane makes ProxmoxMachines from.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=proxmoxmachinetemplates,scope=Namespaced,categories=cluster-api
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1beta1"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
type ProxmoxMachineTemplate struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the template.
	// +required
	Spec ProxmoxMachineTemplateSpec `json:"spec,omitempty,omitzero"`
}

// ProxmoxMachineTemplateList is a list of ProxmoxMachineTemplates.
// +kubebuilder:object:root=true
type ProxmoxMachineTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the ProxmoxMachineTemplates.
	Items []ProxmoxMachineTemplate `json:"items"`
}
