package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

const (
	// MachineFinalizer keeps a ProxmoxMachine until its VM is seen to be gone.
	MachineFinalizer = "proxmoxmachine.infrastructure.cluster.x-k8s.io"
	// AddressClaimFinalizer keeps an IPAddressClaim and its IPAddress until the VM that uses the address is gone. It has to be
	// on both: IPAM providers take the IPAddress away as soon as the claim is being deleted.
	AddressClaimFinalizer = "proxmoxmachine.infrastructure.cluster.x-k8s.io/address-in-use"
	// HostGoneAnnotation declares, on a ProxmoxMachine that is being deleted or whose VM never ran, that the Proxmox VE node it
	// names is gone for good. The deletion then goes on without what is on that node: the VM is not removed, its addresses are
	// released; the other machine gets another host. The event Abandoned lists what to remove by hand should the node come
	// back. It counts only while the node it names is the one that is waited for, and is offline or no longer a node of the
	// region.
	HostGoneAnnotation = "infrastructure.cluster.x-k8s.io/host-gone"
	// RegionGoneAnnotation declares, on a ProxmoxMachine that is being deleted, that the region it names is gone for good, or
	// will never answer again. The deletion then goes on without what is there, as with HostGoneAnnotation. It counts only
	// while the region it names is the machine's and cannot be asked.
	RegionGoneAnnotation = "infrastructure.cluster.x-k8s.io/region-gone"
)

// HostLabel is, on a ProxmoxMachine, the name of the Proxmox VE node that its VM is on, or is to be made on: status.node. It
// follows the VM, as the well-known labels topology.kubernetes.io/region (spec.reservation.region) and
// topology.kubernetes.io/zone (status.failureDomain) do, the latter while the node is in a zone. A label that the Machine has
// itself is left alone.
const HostLabel = "infrastructure.cluster.x-k8s.io/host"

// ProxmoxMachineSpec is what is asked of one VM. What a user sets is immutable, since the VM is made from it once: change
// a ProxmoxMachineTemplate and let Cluster API roll the machines. Only powerState may be changed. providerID and reservation
// are the provider's.
type ProxmoxMachineSpec struct {
	// providerID is `proxmox://<SMBIOS UUID of the VM>`, the same as the Node's spec.providerID. The provider sets it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	ProviderID string `json:"providerID,omitempty"`

	// reservation is what the provider has decided about the VM before it asked Proxmox VE for anything: its identity and
	// where it goes. It is in the spec because status survives neither `clusterctl move` nor a restore.
	// +optional
	Reservation Reservation `json:"reservation,omitempty,omitzero"`

	// powerState is whether the VM is to run: Running (the default) or Stopped. It may be changed at any time. A VM that is to
	// be Stopped is shut down by its guest, and turned off when that takes more than three minutes; one that never ran is made,
	// but not started. Deletion takes no notice of it.
	// +optional
	// +default="Running"
	PowerState PowerState `json:"powerState,omitempty"`

	// source is what the VM is made from.
	// +required
	Source VirtualMachineSource `json:"source,omitempty,omitzero"`

	// cpu is the VM's processor.
	// +optional
	// +default={"sockets": 1, "cores": 2}
	CPU CPU `json:"cpu,omitempty,omitzero"`

	// memory is the VM's memory.
	// +optional
	// +default={"sizeMiB": 4096}
	Memory Memory `json:"memory,omitempty,omitzero"`

	// disks are the VM's disks.
	// +optional
	Disks Disks `json:"disks,omitempty,omitzero"`

	// network is the VM's network devices and what the guest is told about its network.
	// +required
	Network Network `json:"network,omitempty,omitzero"`

	// placement restricts where the VM may be put.
	// +optional
	Placement Placement `json:"placement,omitempty,omitzero"`

	// pool is the Proxmox VE resource pool that the VM is put in. It must exist. A pool lets a token have rights on the
	// VMs in it alone.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+){0,2}$`
	Pool string `json:"pool,omitempty"`

	// vmIDRange bounds the VMIDs that the VM may get. It goes before the ranges of the region and the cluster.
	// +optional
	VMIDRange VMIDRange `json:"vmIDRange,omitempty,omitzero"`

	// bootstrap says how the bootstrap data reaches the guest.
	// +optional
	Bootstrap Bootstrap `json:"bootstrap,omitempty,omitzero"`
}

// PowerState says whether a VM is to run.
// +kubebuilder:validation:Enum=Running;Stopped
type PowerState string

const (
	// PowerStateRunning is for a VM that runs, and that is started again when somebody stops it.
	PowerStateRunning PowerState = "Running"
	// PowerStateStopped is for a VM that is off, and stays so.
	PowerStateStopped PowerState = "Stopped"
)

// Reservation is the identity of a VM and the place it was given.
// +kubebuilder:validation:MinProperties=1
type Reservation struct {
	// uuid is the SMBIOS UUID of the VM, drawn once. It identifies the VM; its VMID does not.
	// +required
	// +kubebuilder:validation:MinLength=36
	// +kubebuilder:validation:MaxLength=36
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`
	UUID string `json:"uuid,omitempty"`

	// region is the region, of the ProxmoxCluster's regions, that the VM is in.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Region string `json:"region,omitempty"`

	// authority is the SHA-256 fingerprint of the root CA of the Proxmox VE cluster that the VM is in. What another one says of
	// the VM, when the endpoints of the region lead there, is not believed.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Authority string `json:"authority,omitempty"`

	// node is the Proxmox VE node that the VM is made on, or was moved to before it ran. status.node says where it is now.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Node string `json:"node,omitempty"`

	// vmID is the VM's number in its region.
	// +required
	// +kubebuilder:validation:Minimum=100
	// +kubebuilder:validation:Maximum=999999999
	VMID int32 `json:"vmID,omitempty"`

	// sourceNode is the node of the template that the VM is cloned from.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	SourceNode string `json:"sourceNode,omitempty"`

	// sourceVMID is the VMID of the template that the VM is cloned from.
	// +required
	// +kubebuilder:validation:Minimum=100
	// +kubebuilder:validation:Maximum=999999999
	SourceVMID int32 `json:"sourceVMID,omitempty"`

	// seedStorage is the storage that the seed ISO is put on, on the reserved node.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	SeedStorage string `json:"seedStorage,omitempty"`
}

// ProxmoxMachineStatus is what was observed of a VM.
// +kubebuilder:validation:MinProperties=1
type ProxmoxMachineStatus struct {
	// conditions are Ready, AddressesReady, VirtualMachineReady, ConfigurationUpToDate, BootstrapSeedRemoved, Deleting and
	// Paused.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// initialization tells Cluster API that the machine was provisioned once.
	// +optional
	Initialization ProxmoxMachineInitializationStatus `json:"initialization,omitempty,omitzero"`

	// addresses are the machine's host name and the addresses claimed for it.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	Addresses []clusterv1.MachineAddress `json:"addresses,omitempty"`

	// failureDomain is the failure domain that the VM is in now; empty while its node is in no zone.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	FailureDomain string `json:"failureDomain,omitempty"`

	// node is the Proxmox VE node that the VM is on now.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Node string `json:"node,omitempty"`

	// vmID is the VM's number.
	// +optional
	// +kubebuilder:validation:Minimum=100
	// +kubebuilder:validation:Maximum=999999999
	VMID int32 `json:"vmID,omitempty"`

	// taskID is the UPID of the Proxmox VE task that is working on the VM.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	TaskID string `json:"taskID,omitempty"`

	// seedRemoved is true once the seed ISO, with the bootstrap data on it, is gone from Proxmox VE.
	// +optional
	SeedRemoved *bool `json:"seedRemoved,omitempty"`
}

// ProxmoxMachineInitializationStatus holds what Cluster API's contract asks for at the first provisioning.
// +kubebuilder:validation:MinProperties=1
type ProxmoxMachineInitializationStatus struct {
	// provisioned is true from the moment the VM ran for the first time.
	// +optional
	Provisioned *bool `json:"provisioned,omitempty"`
}

// ProxmoxMachine is the VM of a Cluster API Machine.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:path=proxmoxmachines,scope=Namespaced,categories=cluster-api
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1beta1"
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".metadata.labels['cluster\\.x-k8s\\.io/cluster-name']",description="Cluster to which this ProxmoxMachine belongs"
// +kubebuilder:printcolumn:name="Host",type="string",JSONPath=".status.node",description="Proxmox VE node the VM is on"
// +kubebuilder:printcolumn:name="VMID",type="integer",JSONPath=".status.vmID",description="Number of the VM"
// +kubebuilder:printcolumn:name="State",type="string",JSONPath=".status.conditions[?(@.type==\"VirtualMachineReady\")].reason",description="What the VM is doing"
// +kubebuilder:printcolumn:name="Address",type="string",JSONPath=".status.addresses[?(@.type==\"InternalIP\")].address",description="Address of the machine"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].status",description="Machine infrastructure is ready"
// +kubebuilder:printcolumn:name="ProviderID",type="string",JSONPath=".spec.providerID",description="Provider ID",priority=1
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
type ProxmoxMachine struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what is asked for.
	// +required
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.providerID) || (has(self.providerID) && self.providerID == oldSelf.providerID)",message="providerID is immutable once set: the Node of the machine has the same"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.reservation) || (has(self.reservation) && self.reservation.uuid == oldSelf.reservation.uuid)",message="reservation.uuid is immutable once set: it is the identity of the VM"
	// +kubebuilder:validation:XValidation:rule="self.source == oldSelf.source",message="source is immutable: change the ProxmoxMachineTemplate and roll the machines"
	// +kubebuilder:validation:XValidation:rule="self.cpu == oldSelf.cpu",message="cpu is immutable: change the ProxmoxMachineTemplate and roll the machines"
	// +kubebuilder:validation:XValidation:rule="self.memory == oldSelf.memory",message="memory is immutable: change the ProxmoxMachineTemplate and roll the machines"
	// +kubebuilder:validation:XValidation:rule="has(self.disks) == has(oldSelf.disks) && (!has(self.disks) || self.disks == oldSelf.disks)",message="disks is immutable: change the ProxmoxMachineTemplate and roll the machines"
	// +kubebuilder:validation:XValidation:rule="self.network == oldSelf.network",message="network is immutable: change the ProxmoxMachineTemplate and roll the machines"
	// +kubebuilder:validation:XValidation:rule="has(self.placement) == has(oldSelf.placement) && (!has(self.placement) || self.placement == oldSelf.placement)",message="placement is immutable: change the ProxmoxMachineTemplate and roll the machines"
	// +kubebuilder:validation:XValidation:rule="has(self.pool) == has(oldSelf.pool) && (!has(self.pool) || self.pool == oldSelf.pool)",message="pool is immutable: change the ProxmoxMachineTemplate and roll the machines"
	// +kubebuilder:validation:XValidation:rule="has(self.vmIDRange) == has(oldSelf.vmIDRange) && (!has(self.vmIDRange) || self.vmIDRange == oldSelf.vmIDRange)",message="vmIDRange is immutable: change the ProxmoxMachineTemplate and roll the machines"
	// +kubebuilder:validation:XValidation:rule="has(self.bootstrap) == has(oldSelf.bootstrap) && (!has(self.bootstrap) || self.bootstrap == oldSelf.bootstrap)",message="bootstrap is immutable: change the ProxmoxMachineTemplate and roll the machines"
	Spec ProxmoxMachineSpec `json:"spec,omitempty,omitzero"`
	// status is what was observed.
	// +optional
	Status ProxmoxMachineStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions, for Cluster API's condition functions.
func (m *ProxmoxMachine) GetConditions() []metav1.Condition { return m.Status.Conditions }

// SetConditions replaces the conditions, for Cluster API's condition functions.
func (m *ProxmoxMachine) SetConditions(conditions []metav1.Condition) {
	m.Status.Conditions = conditions
}

// ProxmoxMachineList is a list of ProxmoxMachines.
// +kubebuilder:object:root=true
type ProxmoxMachineList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the ProxmoxMachines.
	Items []ProxmoxMachine `json:"items"`
}
