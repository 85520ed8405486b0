package v1beta1

// Options are what Proxmox VE's GUI shows as a VM's options. What is not set stays as the template has it, or is Proxmox VE's
// default.
// +kubebuilder:validation:MinProperties=1
type Options struct {
	// osType is the kind of operating system, for which Proxmox VE tunes the VM: l26 is Linux.
	// +optional
	// +kubebuilder:validation:Enum=other;wxp;w2k;w2k3;w2k8;wvista;win7;win8;win10;win11;l24;l26;solaris
	OSType string `json:"osType,omitempty"`

	// onBoot has the VM started when its host boots.
	// +optional
	OnBoot *bool `json:"onBoot,omitempty"`

	// startup is when, of all VMs of the host, this one is started and shut down. To set it the token needs Sys.Modify on /.
	// +optional
	Startup Startup `json:"startup,omitempty,omitzero"`

	// protection keeps the VM and its disks from being removed in Proxmox VE. The provider takes it away when the Machine is
	// deleted only if it was set here.
	// +optional
	Protection *bool `json:"protection,omitempty"`

	// tablet gives the guest a pointing device whose position follows the console's.
	// +optional
	Tablet *bool `json:"tablet,omitempty"`

	// hotplug is what can be plugged in while the VM runs. An empty list is nothing.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=6
	// +kubebuilder:validation:items:Enum=network;disk;usb;memory;cpu;cloudinit
	Hotplug *[]string `json:"hotplug,omitempty"`

	// agent is what Proxmox VE expects of the QEMU guest agent.
	// +optional
	Agent Agent `json:"agent,omitempty,omitzero"`
}

// Startup is a place in the order in which VMs are started and shut down.
// +kubebuilder:validation:MinProperties=1
type Startup struct {
	// order is the place: lower ones are started first and shut down last.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Order *int32 `json:"order,omitempty"`

	// upSeconds is how long to wait before the next VM is started.
	// +optional
	// +kubebuilder:validation:Minimum=0
	UpSeconds *int32 `json:"upSeconds,omitempty"`

	// downSeconds is how long the VM may take to shut down.
	// +optional
	// +kubebuilder:validation:Minimum=0
	DownSeconds *int32 `json:"downSeconds,omitempty"`
}

// Agent is what Proxmox VE expects of the QEMU guest agent.
// +kubebuilder:validation:XValidation:rule="self.enabled || !(has(self.fstrimClonedDisks) || has(self.freezeFSOnBackup) || has(self.type))",fieldPath=".enabled",messageExpression="'false: fstrimClonedDisks, freezeFSOnBackup and type are for an agent that is enabled: leave them out, or set enabled to true'"
type Agent struct {
	// enabled says that the guest runs the agent.
	// +required
	Enabled *bool `json:"enabled,omitempty"`

	// fstrimClonedDisks has the guest trim its file systems after a disk was moved or the VM migrated.
	// +optional
	FSTrimClonedDisks *bool `json:"fstrimClonedDisks,omitempty"`

	// freezeFSOnBackup has the guest freeze its file systems for backups; it does by default.
	// +optional
	FreezeFSOnBackup *bool `json:"freezeFSOnBackup,omitempty"`

	// type is the device over which the agent is reached.
	// +optional
	// +kubebuilder:validation:Enum=virtio;isa
	Type string `json:"type,omitempty"`
}

// HighAvailability has Proxmox VE's HA manager look after the VM: when its host fails, the VM is started on another one. Its
// disks must be on shared storage. The token needs Sys.Audit and Sys.Console on /.
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="!has(self.group) || !has(self.rules) && !has(self.failback)",fieldPath=".group",messageExpression="'\"' + self.group + '\": group is for Proxmox VE 8; rules and failback are for Proxmox VE 9, which has no groups: leave one of them out'"
type HighAvailability struct {
	// enabled makes the VM an HA resource. One that somebody made of the VM before is taken over. False is the same as to leave
	// highAvailability out: what the provider made is taken back, and what others made stays.
	// +required
	Enabled *bool `json:"enabled,omitempty"`

	// group is the HA group, up to Proxmox VE 8. It must exist. From 9 on there are rules in its place.
	// +optional
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[A-Za-z][A-Za-z0-9_-]+$`
	Group string `json:"group,omitempty"`

	// rules are HA rules, from Proxmox VE 9 on, that the VM is added to.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	Rules []HighAvailabilityRule `json:"rules,omitempty"`

	// maxRestart is how often a start that failed is tried again on a host.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	MaxRestart *int32 `json:"maxRestart,omitempty"`

	// maxRelocate is how often a start that failed is tried on another host.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	MaxRelocate *int32 `json:"maxRelocate,omitempty"`

	// failback moves the VM back to the host that a node affinity rule likes best when that is up again, from Proxmox VE 9 on. In
	// 8 it is an option of the group.
	// +optional
	Failback *bool `json:"failback,omitempty"`
}

// HighAvailabilityRule is an HA rule that the VM is added to. What it says is for the rule to be made when there is none of
// the name; one that exists is left as it is but for its resources. A rule goes with the last resource in it.
// +kubebuilder:validation:XValidation:rule="!has(self.nodeAffinity) || !has(self.resourceAffinity)",fieldPath=".resourceAffinity",messageExpression="'\"' + self.resourceAffinity + '\": a rule has nodeAffinity or resourceAffinity, not both: make two rules'"
type HighAvailabilityRule struct {
	// name is the rule's. Without nodeAffinity or resourceAffinity the rule must exist.
	// +required
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[A-Za-z][A-Za-z0-9_-]+$`
	Name string `json:"name,omitempty"`

	// nodeAffinity is which hosts the VM is best on.
	// +optional
	NodeAffinity NodeAffinity `json:"nodeAffinity,omitempty,omitzero"`

	// resourceAffinity is whether the rule's VMs are to be on one host (positive) or each on another (negative). Such a rule has
	// an effect from the second VM on.
	// +optional
	ResourceAffinity ResourceAffinity `json:"resourceAffinity,omitempty"`
}

// ResourceAffinity is whether VMs are kept together or apart.
// +kubebuilder:validation:Enum=positive;negative
type ResourceAffinity string

// NodeAffinity is which hosts a VM is best on.
type NodeAffinity struct {
	// nodes are the hosts.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Nodes []AffinityNode `json:"nodes,omitempty"`

	// strict keeps the VM off when none of the hosts is up.
	// +optional
	Strict *bool `json:"strict,omitempty"`
}

// AffinityNode is a host and how good it is.
type AffinityNode struct {
	// name is the node's.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?$`
	Name string `json:"name,omitempty"`

	// priority is how much better it is than those with less; 0 when it is not set.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Priority *int32 `json:"priority,omitempty"`
}

// DriftPolicy says what becomes of a VM that differs from its ProxmoxMachine.
// +kubebuilder:validation:Enum=Ignore;Report;Repair
type DriftPolicy string

const (
	// DriftPolicyIgnore takes no notice.
	DriftPolicyIgnore DriftPolicy = "Ignore"
	// DriftPolicyReport tells it in the condition ConfigurationUpToDate, and in an event.
	DriftPolicyReport DriftPolicy = "Report"
	// DriftPolicyRepair also changes back what can be changed while the VM runs.
	DriftPolicyRepair DriftPolicy = "Repair"
)
