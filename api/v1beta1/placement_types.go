package v1beta1

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
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?$`
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

	// bus is what the drive with the seed is connected to. By default it is ide, or scsi for aarch64, which has no ide.
	// +optional
	Bus SeedBus `json:"bus,omitempty"`
}

// SeedBus is a bus for the drive with the seed.
// +kubebuilder:validation:Enum=ide;sata;scsi
type SeedBus string
