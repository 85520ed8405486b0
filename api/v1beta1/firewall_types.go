package v1beta1

// Firewall is Proxmox VE's firewall in front of a VM. It filters only devices with the firewall flag, and only when the
// firewall of the Proxmox VE cluster is on.
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="has(self.enabled) || !(has(self.securityGroups) || has(self.ipFilter) && self.ipFilter)",fieldPath=".enabled",reason="FieldValueRequired",message="securityGroups and ipFilter have an effect only while the firewall is on: set enabled to true, or to false to prepare them"
type Firewall struct {
	// enabled switches the VM's firewall on or off. By default it stays as the template has it.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`

	// policyIn is what becomes of traffic to the VM that no rule speaks of. Proxmox VE's default is DROP.
	// +optional
	PolicyIn FirewallPolicy `json:"policyIn,omitempty"`

	// policyOut is what becomes of traffic from the VM that no rule speaks of. Proxmox VE's default is ACCEPT.
	// +optional
	PolicyOut FirewallPolicy `json:"policyOut,omitempty"`

	// ipFilter lets the VM use the addresses alone that it was given: each device has an IP set with its own addresses. What it
	// forwards for others, as for pods without an overlay, or a virtual IP, is dropped.
	// +optional
	IPFilter *bool `json:"ipFilter,omitempty"`

	// macFilter lets the VM use its own MAC addresses alone. Proxmox VE's default is true.
	// +optional
	MACFilter *bool `json:"macFilter,omitempty"`

	// dhcp lets DHCP through.
	// +optional
	DHCP *bool `json:"dhcp,omitempty"`

	// ndp lets IPv6's neighbour discovery through.
	// +optional
	NDP *bool `json:"ndp,omitempty"`

	// routerAdvertisement lets the VM send router advertisements.
	// +optional
	RouterAdvertisement *bool `json:"routerAdvertisement,omitempty"`

	// logLevelIn is with which level dropped traffic to the VM is logged.
	// +optional
	LogLevelIn FirewallLogLevel `json:"logLevelIn,omitempty"`

	// logLevelOut is with which level dropped traffic from the VM is logged.
	// +optional
	LogLevelOut FirewallLogLevel `json:"logLevelOut,omitempty"`

	// securityGroups are security groups of the Proxmox VE cluster, in the order in which their rules are looked at. They must
	// exist. Rules of others stay behind them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	SecurityGroups []SecurityGroup `json:"securityGroups,omitempty"`
}

// FirewallPolicy is what becomes of traffic that no rule speaks of.
// +kubebuilder:validation:Enum=ACCEPT;DROP;REJECT
type FirewallPolicy string

// FirewallLogLevel is a level of logging, as Proxmox VE names it.
// +kubebuilder:validation:Enum=emerg;alert;crit;err;warning;notice;info;debug;nolog
type FirewallLogLevel string

// SecurityGroup is a security group whose rules apply to a VM.
type SecurityGroup struct {
	// name is the group's name. Proxmox VE keeps the names of groups in lower case.
	// +required
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=18
	// +kubebuilder:validation:Pattern=`^[a-z][a-z0-9_-]+$`
	Name string `json:"name,omitempty"`

	// device is the network device that the rules apply to; by default, all.
	// +optional
	// +kubebuilder:validation:MinLength=4
	// +kubebuilder:validation:MaxLength=5
	// +kubebuilder:validation:Pattern=`^net([0-9]|[12][0-9]|3[01])$`
	Device string `json:"device,omitempty"`
}
