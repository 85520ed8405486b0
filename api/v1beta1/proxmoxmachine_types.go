package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

const (
	// MachineFinalizer keeps a ProxmoxMachine until its VM is seen to be gone.
	MachineFinalizer = "proxmoxmachine.infrastructure.cluster.x-k8s.io"
	// AddressClaimFinalizer keeps an IPAddressClaim, and so its address, until the VM that uses it is gone.
	AddressClaimFinalizer = "proxmoxmachine.infrastructure.cluster.x-k8s.io/address-in-use"
)

// ProxmoxMachineSpec is what is asked of one VM. What a user sets is immutable, since the VM is made from it once: change
// a ProxmoxMachineTemplate and let Cluster API roll the machines. providerID and reservation are the provider's.
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

	// bootstrap says how the bootstrap data reaches the guest.
	// +optional
	Bootstrap Bootstrap `json:"bootstrap,omitempty,omitzero"`
}

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

	// node is the Proxmox VE node that the VM is made on. status.node says where it is now.
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

// VirtualMachineSource is what a VM is made from.
// +kubebuilder:validation:XValidation:rule="has(self.template)",message="name a source: template is the one there is"
type VirtualMachineSource struct {
	// template is an existing Proxmox VE template to clone.
	// +optional
	Template TemplateSource `json:"template,omitempty,omitzero"`
}

// CloneMode says how a template's disks are copied.
// +kubebuilder:validation:Enum=Full;Linked
type CloneMode string

const (
	// CloneModeFull copies the disks.
	CloneModeFull CloneMode = "Full"
	// CloneModeLinked makes disks that refer to the template's, which is fast; the template cannot go while they exist.
	CloneModeLinked CloneMode = "Linked"
)

// TemplateSource finds templates by name or by tags. With templates on local storage, prepare one on each node, with the
// same name or tags: a VM is cloned on the node it is placed on. A template on shared storage serves every node.
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="has(self.name) != has(self.tags)",message="find the template either by name or by tags"
// +kubebuilder:validation:XValidation:rule="!has(self.storage) || self.cloneMode == 'Full'",message="storage needs cloneMode Full: a linked clone stays on the template's storage"
type TemplateSource struct {
	// name is the name of the template VM.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// tags are Proxmox VE tags that the template must all have.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9_][a-z0-9_+.-]*$`
	Tags []string `json:"tags,omitempty"`

	// cloneMode is Full (the default) or Linked.
	// +optional
	// +default="Full"
	CloneMode CloneMode `json:"cloneMode,omitempty"`

	// storage is where the disks of a full clone go; by default, where the template has them.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:Pattern=`^[A-Za-z][A-Za-z0-9_.-]*[A-Za-z0-9]$`
	Storage string `json:"storage,omitempty"`
}

// CPU is a VM's processor.
// +kubebuilder:validation:MinProperties=1
type CPU struct {
	// sockets is the number of sockets.
	// +optional
	// +default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4
	Sockets int32 `json:"sockets,omitempty"`

	// cores is the number of cores per socket.
	// +optional
	// +default=2
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=128
	Cores int32 `json:"cores,omitempty"`
}

// Memory is a VM's memory.
// +kubebuilder:validation:MinProperties=1
type Memory struct {
	// sizeMiB is the amount in MiB.
	// +optional
	// +default=4096
	// +kubebuilder:validation:Minimum=16
	// +kubebuilder:validation:Maximum=8388608
	SizeMiB int32 `json:"sizeMiB,omitempty"`
}

// Disks are a VM's disks.
// +kubebuilder:validation:MinProperties=1
type Disks struct {
	// boot is the disk that the VM boots from: the template's.
	// +optional
	Boot BootDisk `json:"boot,omitempty,omitzero"`
}

// BootDisk is the disk that a VM boots from.
// +kubebuilder:validation:MinProperties=1
type BootDisk struct {
	// sizeGiB is the size in GiB that the disk is grown to; a disk that is as large or larger is left alone, since Proxmox
	// VE cannot shrink one. Without it the disk keeps the template's size.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=131072
	SizeGiB int32 `json:"sizeGiB,omitempty"`
}

// Network is a VM's network devices and what the guest is told about its network.
type Network struct {
	// devices are the VM's network devices. The first address of the first one is the Node's.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Devices []NetworkDevice `json:"devices,omitempty"`

	// dns is what the guest resolves names with.
	// +optional
	DNS DNS `json:"dns,omitempty,omitzero"`
}

// NetworkDeviceModel is a model of network card, as Proxmox VE names it.
// +kubebuilder:validation:Enum=virtio;e1000;e1000e;vmxnet3;rtl8139
type NetworkDeviceModel string

// NetworkDevice is one network device of a VM.
// +kubebuilder:validation:XValidation:rule="has(self.ipv4) || has(self.ipv6)",message="give the device an address: ipv4.poolRef, ipv6.poolRef or both"
type NetworkDevice struct {
	// name is the Proxmox VE name of the device, net0 to net31.
	// +required
	// +kubebuilder:validation:MinLength=4
	// +kubebuilder:validation:MaxLength=5
	// +kubebuilder:validation:Pattern=`^net([0-9]|[12][0-9]|3[01])$`
	Name string `json:"name,omitempty"`

	// bridge is the bridge, or SDN vnet, that the device is plugged into.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=15
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_.-]+$`
	Bridge string `json:"bridge,omitempty"`

	// model is the card that the guest sees.
	// +optional
	// +default="virtio"
	Model NetworkDeviceModel `json:"model,omitempty"`

	// vlan is the VLAN tag of the device's traffic on the bridge.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4094
	VLAN int32 `json:"vlan,omitempty"`

	// ipv4 is the device's IPv4 addressing.
	// +optional
	IPv4 AddressSource `json:"ipv4,omitempty,omitzero"`

	// ipv6 is the device's IPv6 addressing.
	// +optional
	IPv6 AddressSource `json:"ipv6,omitempty,omitzero"`
}

// AddressSource says where the address of a device comes from.
type AddressSource struct {
	// poolRef is the IPAM pool that the address is claimed from, for example an InClusterIPPool.
	// +required
	PoolRef IPPoolReference `json:"poolRef,omitempty,omitzero"`
}

// IPPoolReference names a pool of an IPAM provider that follows Cluster API's IPAM contract, in the machine's namespace.
type IPPoolReference struct {
	// apiGroup is the API group of the pool's kind.
	// +optional
	// +default="ipam.cluster.x-k8s.io"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	APIGroup string `json:"apiGroup,omitempty"`

	// kind is the pool's kind.
	// +optional
	// +default="InClusterIPPool"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$`
	Kind string `json:"kind,omitempty"`

	// name is the pool's name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name,omitempty"`
}

// DNS is what a guest resolves names with.
// +kubebuilder:validation:MinProperties=1
type DNS struct {
	// nameservers are the IP addresses of DNS servers.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=2
	// +kubebuilder:validation:items:MaxLength=45
	// +kubebuilder:validation:items:XValidation:rule="isIP(self)",message="a nameserver is an IP address"
	Nameservers []string `json:"nameservers,omitempty"`

	// searchDomains are appended to names that are not found as they are.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?(\.[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?)*$`
	SearchDomains []string `json:"searchDomains,omitempty"`
}

// Placement restricts where a VM may be put.
// +kubebuilder:validation:MinProperties=1
type Placement struct {
	// allowedNodes are the Proxmox VE nodes that the VM may be put on; by default, every node of the zone.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	AllowedNodes []string `json:"allowedNodes,omitempty"`
}

// Bootstrap says how the bootstrap data reaches the guest: as a NoCloud seed on an ISO image.
// +kubebuilder:validation:MinProperties=1
type Bootstrap struct {
	// storage is where the seed ISO is put; it must have the content type `iso`. By default it is the first storage, by
	// name, that the VM's node has for ISO images, node-local ones first.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:Pattern=`^[A-Za-z][A-Za-z0-9_.-]*[A-Za-z0-9]$`
	Storage string `json:"storage,omitempty"`
}

// ProxmoxMachineStatus is what was observed of a VM.
// +kubebuilder:validation:MinProperties=1
type ProxmoxMachineStatus struct {
	// conditions are Ready, AddressesReady, VirtualMachineReady, BootstrapSeedRemoved, Deleting and Paused.
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

	// failureDomain is the failure domain that the VM is in now.
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
