package v1beta1

// Conditions of ProxmoxCluster. Ready, Deleting and Paused have the types and reasons that Cluster API defines.
const (
	// ProxmoxAvailableCondition is True when every region's Proxmox VE answers with the credentials given.
	ProxmoxAvailableCondition = "ProxmoxAvailable"
	// ControlPlaneEndpointSetCondition is True when the cluster has a control plane endpoint.
	ControlPlaneEndpointSetCondition = "ControlPlaneEndpointSet"
	// ZonesValidCondition is True when every zone names nodes that its region has.
	ZonesValidCondition = "ZonesValid"
	// AddressPoolsReadyCondition is True when there are InClusterIPPools as spec.ipv4 and spec.ipv6 say. A cluster with neither
	// has no such condition.
	AddressPoolsReadyCondition = "AddressPoolsReady"
)

// Conditions of ProxmoxMachine. Ready, Deleting and Paused have the types and reasons that Cluster API defines.
const (
	// AddressesReadyCondition is True when every IPAddressClaim of the machine is bound to an IPAddress, and the guest has told
	// the addresses that it got by DHCP or SLAAC, or does without telling them since it has its Node.
	AddressesReadyCondition = "AddressesReady"
	// VirtualMachineReadyCondition is True when the VM exists, is configured as asked and runs.
	VirtualMachineReadyCondition = "VirtualMachineReady"
	// ConfigurationUpToDateCondition is True when the VM's config is as the spec says and in effect. It is False when somebody
	// changed the VM in Proxmox VE, when a change of the spec is not carried out yet or cannot be, and while keys wait for a
	// restart. The VM still runs: Ready does not depend on it.
	ConfigurationUpToDateCondition = "ConfigurationUpToDate"
	// FirewallUpToDateCondition is True when the VM's firewall in Proxmox VE is as spec.firewall says. A machine that asks for
	// none has no such condition. Ready does not depend on it: a VM that does not have its firewall yet is not started.
	FirewallUpToDateCondition = "FirewallUpToDate"
	// HighAvailabilityUpToDateCondition is True when the VM is to Proxmox VE's HA manager what spec.highAvailability says. A machine
	// that asks for nothing there has no such condition. Ready does not depend on it: the VM runs.
	HighAvailabilityUpToDateCondition = "HighAvailabilityUpToDate"
	// BootstrapSeedRemovedCondition is True when the seed ISO with the bootstrap data is gone from Proxmox VE; it is
	// False from the upload until the machine has its Node.
	BootstrapSeedRemovedCondition = "BootstrapSeedRemoved"
)

// Reasons of the conditions above, for the states in which a person may have to do something.
const (
	// AvailableReason says that the dependency answers and is usable.
	AvailableReason = "Available"
	// CredentialsNotFoundReason says that a region's credentials Secret, or a key in it, is missing.
	CredentialsNotFoundReason = "CredentialsNotFound"
	// CredentialsRefusedReason says that Proxmox VE does not accept a region's credentials.
	CredentialsRefusedReason = "CredentialsRefused"
	// InvalidRegionReason says that a region's spec or its credentials cannot be used as they stand: a CA bundle that is no
	// PEM, a token ID that is none.
	InvalidRegionReason = "InvalidRegion"
	// UnreachableReason says that no API endpoint of a region answers.
	UnreachableReason = "Unreachable"
	// OtherProxmoxClusterReason says that a region leads to another Proxmox VE cluster than the one its VMs are in.
	OtherProxmoxClusterReason = "OtherProxmoxCluster"
	// UnknownNodeReason says that a zone names a node that the region does not have.
	UnknownNodeReason = "UnknownNode"
	// EndpointSetReason says that the control plane endpoint is known.
	EndpointSetReason = "EndpointSet"
	// WaitingForEndpointReason says that neither the ProxmoxCluster nor the Cluster has a control plane endpoint yet.
	WaitingForEndpointReason = "WaitingForEndpoint"
	// PoolNotOursReason says that the InClusterIPPool for spec.ipv4 or spec.ipv6 belongs to something else.
	PoolNotOursReason = "PoolNotOurs"
	// PoolAppliedReason says that an InClusterIPPool was made, or changed, after spec.ipv4 or spec.ipv6.
	PoolAppliedReason = "PoolApplied"
	// EndpointInPoolReason says that the Cluster's control plane endpoint is among the addresses of spec.ipv4 or spec.ipv6.
	EndpointInPoolReason = "EndpointInPool"
	// NoIPAMProviderReason says that the in-cluster IPAM provider is not installed, which spec.ipv4 and spec.ipv6 need.
	NoIPAMProviderReason = "NoIPAMProvider"
	// MachinesRemainReason says that deletion waits for ProxmoxMachines to go.
	MachinesRemainReason = "MachinesRemain"
)
