package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

const (
	// AppliedSpecAnnotation is the provider's, on a ProxmoxMachine whose VM runs: the part of the spec that the VM's config was
	// brought to last, as JSON. It tells what the spec says anew from what somebody changed of the VM.
	AppliedSpecAnnotation = "infrastructure.cluster.x-k8s.io/applied-spec"
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
	// FirewallAnnotation is the provider's, on a ProxmoxMachine whose VM's firewall it has set up: what the firewall's options
	// were before, as JSON. They are put back when spec.firewall does not set them any more. Without it they stay.
	FirewallAnnotation = "infrastructure.cluster.x-k8s.io/firewall-before"
	// HighAvailabilityAnnotation is the provider's, on a ProxmoxMachine whose VM it has made an HA resource, or added to HA rules:
	// what was there before, as JSON. It says what is taken back when spec.highAvailability does not ask for it any more.
	HighAvailabilityAnnotation = "infrastructure.cluster.x-k8s.io/high-availability-before"
)

// HostLabel is, on a ProxmoxMachine, the name of the Proxmox VE node that its VM is on, or is to be made on: status.node. It
// follows the VM, as the well-known labels topology.kubernetes.io/region (spec.reservation.region) and
// topology.kubernetes.io/zone (status.failureDomain) do, the latter while the node is in a zone. A label that the Machine has
// itself is left alone.
const HostLabel = "infrastructure.cluster.x-k8s.io/host"

// ProxmoxMachineSpec is what is asked of one VM. What a VM can follow may be changed, and is carried out; docs/fields.md says of
// each field how it takes effect. What needs another VM is refused: change a ProxmoxMachineTemplate and let Cluster API roll the
// machines. A field that is no longer set leaves the VM as it is. providerID and reservation are the provider's.
// +kubebuilder:validation:XValidation:rule="!has(self.source.image) || has(self.disks) && has(self.disks.boot) && has(self.disks.boot.storage)",fieldPath=".disks.boot.storage",reason="FieldValueRequired",message="source.image needs disks.boot.storage, where the boot disk goes"
// +kubebuilder:validation:XValidation:rule="!has(self.source.netboot) || !has(self.disks) || !has(self.disks.boot) || has(self.disks.boot.storage) && has(self.disks.boot.sizeGiB)",fieldPath=".disks.boot",reason="FieldValueRequired",message="with source.netboot, a boot disk needs disks.boot.storage and disks.boot.sizeGiB"
// +kubebuilder:validation:XValidation:rule="!has(self.source.netboot) || self.network.devices.exists(d, d.name == self.source.netboot.device)",fieldPath=".source.netboot.device",messageExpression="'\"' + self.source.netboot.device + '\": source.netboot.device is the name of one of network.devices'"
// +kubebuilder:validation:XValidation:rule="!has(self.source.template) || !has(self.disks) || !has(self.disks.boot) || !(has(self.disks.boot.name) || has(self.disks.boot.storage) || has(self.disks.boot.format))",fieldPath=".disks.boot",messageExpression="(has(self.disks.boot.name) ? 'name ' + self.disks.boot.name : has(self.disks.boot.storage) ? 'storage ' + self.disks.boot.storage : 'format ' + self.disks.boot.format) + ': disks.boot.name, storage and format are for the sources image and netboot: with a template, use source.template.storage and source.template.format'"
// +kubebuilder:validation:XValidation:rule="has(self.source.template) || !has(self.disks) || !has(self.disks.boot) || has(self.disks.boot.name) || !has(self.disks.additional) || self.disks.additional.all(d, d.name != 'scsi0')",fieldPath=".disks.additional",messageExpression="'\"scsi0\"' + \": disks.additional has scsi0, which is the boot disk's name: give one of them another\""
// +kubebuilder:validation:XValidation:rule="!has(self.firewall) || !has(self.firewall.ipFilter) || !self.firewall.ipFilter || self.network.devices.all(d, has(d.firewall) && !d.firewall || (!has(d.ipv4) || d.ipv4.method == 'Pool') && (!has(d.ipv6) || d.ipv6.method in ['Pool', 'EUI64']))",fieldPath=".firewall.ipFilter",messageExpression="'true: firewall.ipFilter needs addresses that are known beforehand: give the devices with DHCP or SLAAC addresses from a pool, or set their firewall to false'"
// +kubebuilder:validation:XValidation:rule="!(has(self.rawConfig) && 'arch' in self.rawConfig && self.rawConfig['arch'] == 'aarch64') || !(has(self.hardware) && has(self.hardware.bios)) || self.hardware.bios == 'ovmf'",fieldPath=".hardware.bios",messageExpression="'\"seabios\": rawConfig has arch aarch64, which has no seabios: set bios to ovmf'"
// +kubebuilder:validation:XValidation:rule="!(has(self.rawConfig) && 'arch' in self.rawConfig && self.rawConfig['arch'] == 'aarch64') || !(has(self.hardware) && has(self.hardware.watchdog)) || self.hardware.watchdog.model != 'ib700'",fieldPath=".hardware.watchdog.model",messageExpression="'\"ib700\": rawConfig has arch aarch64, which has no ISA bus, as the watchdog ib700 needs: use i6300esb'"
// +kubebuilder:validation:XValidation:rule="!(has(self.rawConfig) && 'arch' in self.rawConfig && self.rawConfig['arch'] == 'aarch64') || !(has(self.hardware) && has(self.hardware.machineType)) || self.hardware.machineType.startsWith('virt')",fieldPath=".hardware.machineType",messageExpression="'\"' + self.hardware.machineType + '\": rawConfig has arch aarch64, whose machineType is virt: set it to virt, or leave it out'"
// +kubebuilder:validation:XValidation:rule="!(has(self.rawConfig) && 'arch' in self.rawConfig && self.rawConfig['arch'] == 'aarch64' || has(self.hardware) && has(self.hardware.machineType) && self.hardware.machineType.startsWith('virt')) || !has(self.bootstrap) || !has(self.bootstrap.bus) || self.bootstrap.bus != 'ide'",fieldPath=".bootstrap.bus",messageExpression="'\"ide\": aarch64 has no ide: set bus to scsi or sata, or leave it out'"
// +kubebuilder:validation:XValidation:rule="!has(self.options) || !has(self.options.osType) || self.options.osType != 'win11' || !has(self.hardware) || !has(self.hardware.tpm) || self.hardware.tpm.version == 'v2.0'",fieldPath=".hardware.tpm.version",messageExpression="'\"' + self.hardware.tpm.version + '\": options.osType win11 needs a TPM of version v2.0'"
// +kubebuilder:validation:XValidation:rule="!has(self.rawConfig) || !('numa' in self.rawConfig) || self.rawConfig['numa'] != '0' || !has(self.memory.hugepages) && !(has(self.options) && has(self.options.hotplug) && 'memory' in self.options.hotplug)",fieldPath=".rawConfig",messageExpression="'numa \"0\": hugepages, and memory in options.hotplug, need NUMA, which is switched on for them: leave numa out of rawConfig'"
// +kubebuilder:validation:XValidation:rule="has(self.source.template) || !has(self.hardware) || !has(self.hardware.display) || !has(self.hardware.display.type) || !self.hardware.display.type.startsWith('serial') || has(self.hardware.serialPorts)",fieldPath=".hardware.serialPorts",reason="FieldValueRequired",messageExpression="'the console is shown on ' + self.hardware.display.type + ', which a new VM does not have: name it in hardware.serialPorts'"
// +kubebuilder:validation:XValidation:rule="!has(self.source.netboot) || self.network.devices.all(d, d.name != self.source.netboot.device || !has(d.linkDown) || !d.linkDown)",fieldPath=".source.netboot.device",message="source.netboot.device is a device with linkDown, from which nothing boots: name another, or leave linkDown out",messageExpression="'source.netboot.device ' + self.source.netboot.device + ' is a device with linkDown, from which nothing boots: name another, or leave linkDown out'"
// +kubebuilder:validation:XValidation:rule="!has(self.firewall) || !has(self.firewall.enabled) || !self.firewall.enabled || self.network.devices.exists(d, !has(d.firewall) || d.firewall)",fieldPath=".firewall.enabled",messageExpression="\"true: the firewall is enabled, and every device's firewall is false, so that it filters nothing: set firewall to true on the devices to filter\""
// +kubebuilder:validation:XValidation:rule="!has(self.firewall) || !has(self.firewall.enabled) || !self.firewall.enabled || !has(self.firewall.dhcp) || self.firewall.dhcp || has(self.firewall.policyIn) && self.firewall.policyIn == 'ACCEPT' || self.network.devices.all(d, !(!has(d.firewall) || d.firewall) || (!has(d.ipv4) || d.ipv4.method != 'DHCP') && (!has(d.ipv6) || d.ipv6.method != 'DHCP'))",fieldPath=".firewall.dhcp",messageExpression="\"false: firewall.dhcp is false, and a device that is filtered gets its address by DHCP: set dhcp to true, or the device's firewall to false\""
// +kubebuilder:validation:XValidation:rule="!has(self.firewall) || !has(self.firewall.enabled) || !self.firewall.enabled || !has(self.firewall.ndp) || self.firewall.ndp || has(self.firewall.policyIn) && self.firewall.policyIn == 'ACCEPT' || self.network.devices.all(d, !(!has(d.firewall) || d.firewall) || !has(d.ipv6))",fieldPath=".firewall.ndp",messageExpression="\"false: firewall.ndp is false, and IPv6 on a device that is filtered does not work without neighbour discovery: set ndp to true, or the device's firewall to false\""
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

	// hardware is what the VM has besides processor, memory, disks and network devices.
	// +optional
	Hardware Hardware `json:"hardware,omitempty,omitzero"`

	// options are what Proxmox VE's GUI shows as the VM's options.
	// +optional
	Options Options `json:"options,omitempty,omitzero"`

	// firewall is Proxmox VE's firewall in front of the VM.
	// +optional
	Firewall Firewall `json:"firewall,omitempty,omitzero"`

	// highAvailability has Proxmox VE's HA manager look after the VM. It may be changed at any time.
	// +optional
	HighAvailability HighAvailability `json:"highAvailability,omitempty,omitzero"`

	// rawConfig sets keys of the VM's config that no field here is for, in Proxmox VE's own words: `{"kvm": "0"}`. Keys that
	// fields are for, or that are the provider's, are refused. Some keys only root@pam may set.
	// +optional
	RawConfig RawConfig `json:"rawConfig,omitempty"`

	// vmName is the VM's name in Proxmox VE: a DNS name, in which `{{ .Machine }}`, `{{ .Cluster }}` and `{{ .Namespace }}` are
	// replaced. By default it is the machine's name. The guest's host name is always the machine's.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^([A-Za-z0-9.-]|[{][{] *[.](Machine|Cluster|Namespace) *[}][}])+$')",message="vmName is a DNS name, in which {{ .Machine }}, {{ .Cluster }} and {{ .Namespace }} may stand"
	VMName string `json:"vmName,omitempty"`

	// description is put into the VM's notes, in Markdown, below what the provider writes there.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:XValidation:rule="!self.contains('CAPVE-UUID: ')",message="the line CAPVE-UUID: … is the provider's, which writes it into the notes itself"
	Description string `json:"description,omitempty"`

	// tags are Proxmox VE tags that the VM gets besides the template's.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9_][a-z0-9_+.-]*$`
	// +kubebuilder:validation:items:XValidation:rule="!self.startsWith('capve-')",message="tags that start with capve- are the provider's"
	Tags []string `json:"tags,omitempty"`

	// driftPolicy says what becomes of a VM that somebody changed in Proxmox VE: Ignore leaves it alone, Report (the default)
	// says so in the condition ConfigurationUpToDate, and Repair changes back what the spec sets. Nothing restarts a VM.
	// +optional
	// +default="Report"
	DriftPolicy DriftPolicy `json:"driftPolicy,omitempty"`

	// placement restricts where the VM may be put.
	// +optional
	Placement Placement `json:"placement,omitempty,omitzero"`

	// pool is the Proxmox VE resource pool that the VM is put in. It must exist. A pool lets a token have rights on the
	// VMs in it alone. The VM is moved when it changes, and taken out of its pool when it is no longer set.
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
// +kubebuilder:validation:XValidation:rule="has(self.sourceNode) == has(self.sourceVMID)",reason="FieldValueRequired",message="sourceNode and sourceVMID are those of one template: a reservation has both, or none for a VM that is made without a template"
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

	// sourceNode is the node of the template that the VM is cloned from; none for a VM that is made without one.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	SourceNode string `json:"sourceNode,omitempty"`

	// sourceVMID is the VMID of the template that the VM is cloned from; none for a VM that is made without one.
	// +optional
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
	// conditions are Ready, AddressesReady, VirtualMachineReady, ConfigurationUpToDate, FirewallUpToDate,
	// HighAvailabilityUpToDate, BootstrapSeedRemoved, Deleting and Paused.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// initialization tells Cluster API that the machine was provisioned once.
	// +optional
	Initialization ProxmoxMachineInitializationStatus `json:"initialization,omitempty,omitzero"`

	// addresses are the machine's host name and its addresses, the Node's first: those claimed for it, those that follow from
	// its MAC addresses, and those that its guest agent told.
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
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.providerID) || (has(self.providerID) && self.providerID == oldSelf.providerID)",fieldPath=".providerID",messageExpression="(has(self.providerID) ? '\"' + self.providerID + '\"' : 'none') + ': providerID is immutable once set: the Node of the machine has the same'"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.reservation) || (has(self.reservation) && self.reservation.uuid == oldSelf.reservation.uuid)",fieldPath=".reservation",messageExpression="(has(self.reservation) ? '\"' + self.reservation.uuid + '\"' : 'none') + ': reservation.uuid is immutable once set: it is the identity of the VM'"
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
