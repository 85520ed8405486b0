package v1beta1

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
