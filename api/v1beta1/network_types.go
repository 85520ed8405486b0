package v1beta1

// Network is a VM's network devices and what the guest is told about its network.
// +kubebuilder:validation:XValidation:rule="self.configVersion != 1 || !has(self.vrfs)",fieldPath=".configVersion",messageExpression="'1: configVersion 1 has no VRFs: use configVersion 2, with a guest that has netplan'"
// +kubebuilder:validation:XValidation:rule="self.configVersion != 1 || self.devices.all(d, !has(d.routingPolicy))",fieldPath=".configVersion",messageExpression="'1: configVersion 1 has no routing policies: use configVersion 2, with a guest that has netplan'"
// +kubebuilder:validation:XValidation:rule="self.configVersion != 1 || self.devices.all(d, !has(d.routes) || d.routes.all(r, has(r.via) && !has(r.table)))",fieldPath=".configVersion",messageExpression="'1: with configVersion 1 a route needs via and has no table: use configVersion 2, with a guest that has netplan'"
// +kubebuilder:validation:XValidation:rule="self.configVersion != 1 || self.devices.all(d, !has(d.ipv4) || d.ipv4.method != 'DHCP' || !(has(d.ipv4.defaultRoute) || has(d.ipv4.metric)))",fieldPath=".configVersion",messageExpression="'1: configVersion 1 cannot say defaultRoute or metric for method DHCP: use configVersion 2'"
type Network struct {
	// devices are the VM's network devices. The first address of the first one is the Node's.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Devices []NetworkDevice `json:"devices,omitempty"`

	// dns is what the guest resolves names with, on devices without a dns of their own.
	// +optional
	DNS DNS `json:"dns,omitempty,omitzero"`

	// vrfs are routing domains in the guest, each with devices and a routing table of its own.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	VRFs []VRF `json:"vrfs,omitempty"`

	// configVersion is the version of cloud-init's network config that the guest gets: 2 (the default), or 1 for guests whose
	// cloud-init, or operating system, does not know 2. Version 1 has no routing policies, tables and VRFs. Guests with netplan
	// do all that version 2 says; what the others leave out depends on their cloud-init.
	// +optional
	// +default=2
	// +kubebuilder:validation:Enum=1;2
	ConfigVersion int32 `json:"configVersion,omitempty"`
}

// NetworkDeviceModel is a model of network card, as Proxmox VE names it.
// +kubebuilder:validation:Enum=virtio;e1000;e1000e;vmxnet3;rtl8139
type NetworkDeviceModel string

// NetworkDevice is one network device of a VM.
// +kubebuilder:validation:XValidation:rule="!has(self.macAddress) || !has(self.macPrefix)",fieldPath=".macPrefix",messageExpression="'\"' + self.macPrefix + '\": give either macAddress or macPrefix: leave one of them out'"
// +kubebuilder:validation:XValidation:rule="!has(self.queues) || !has(self.queuesPerCPU)",fieldPath=".queuesPerCPU",messageExpression="(self.queuesPerCPU ? 'true' : 'false') + ': give either queues or queuesPerCPU: leave one of them out'"
// +kubebuilder:validation:XValidation:rule="self.model == 'virtio' || !(has(self.queues) || has(self.queuesPerCPU) || has(self.mtu))",fieldPath=".model",messageExpression="'\"' + self.model + '\": queues, queuesPerCPU and mtu are for the model virtio: leave them out, or set model to virtio'"
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

	// trunks are the VLANs, or ranges of them such as 100-199, that pass with their tags.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=9
	// +kubebuilder:validation:items:Pattern=`^[1-9][0-9]{0,3}(-[1-9][0-9]{0,3})?$`
	// +kubebuilder:validation:items:XValidation:rule="self.split('-').all(n, int(n) <= 4094) && (!self.contains('-') || int(self.split('-')[0]) < int(self.split('-')[1]))",message="a trunk is a VLAN from 1 to 4094, or a range of them from the lower to the higher"
	Trunks []string `json:"trunks,omitempty"`

	// mtu is the largest packet, in bytes; 1 takes the bridge's. For virtio devices alone. The guest is told of it, too, unless
	// it is 1.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == 1 || self >= 576",message="mtu is 1, for the bridge's, or at least 576"
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65520
	MTU int32 `json:"mtu,omitempty"`

	// macAddress is the MAC address. It can be used once: leave it out of templates that more than one machine is made from. By
	// default it follows from the VM's identity.
	// +optional
	// +kubebuilder:validation:MinLength=17
	// +kubebuilder:validation:MaxLength=17
	// +kubebuilder:validation:Pattern=`^[0-9A-Fa-f][02468ACEace](:[0-9A-Fa-f]{2}){5}$`
	// +kubebuilder:validation:XValidation:rule="self != '00:00:00:00:00:00'",message="00:00:00:00:00:00 is no device's address"
	MACAddress string `json:"macAddress,omitempty"`

	// macPrefix is how the MAC address starts, with one to five bytes; the others follow from the VM's identity. Two devices
	// that get the same one are told, and the second is not made.
	// +optional
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=14
	// +kubebuilder:validation:Pattern=`^[0-9A-Fa-f][02468ACEace](:[0-9A-Fa-f]{2}){0,4}$`
	MACPrefix string `json:"macPrefix,omitempty"`

	// rateLimitKiBps is how many KiB may pass per second: 12207 is 100 Mbit/s.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=104857600
	RateLimitKiBps int32 `json:"rateLimitKiBps,omitempty"`

	// queues is how many queues a virtio device has.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	Queues int32 `json:"queues,omitempty"`

	// queuesPerCPU gives a virtio device one queue for each of the VM's CPUs, 64 at most, in place of queues.
	// +optional
	QueuesPerCPU *bool `json:"queuesPerCPU,omitempty"`

	// firewall has Proxmox VE's firewall filter the device's traffic. By default it stays as the template has it.
	// +optional
	Firewall *bool `json:"firewall,omitempty"`

	// linkDown shows the guest a cable that is not plugged in.
	// +optional
	LinkDown *bool `json:"linkDown,omitempty"`

	// ipv4 is the device's IPv4 addressing; without it there is none.
	// +optional
	IPv4 IPv4Addressing `json:"ipv4,omitempty,omitzero"`

	// ipv6 is the device's IPv6 addressing; without it there is none but the link-local address.
	// +optional
	IPv6 IPv6Addressing `json:"ipv6,omitempty,omitzero"`

	// dns is what the guest resolves names with on this device, in place of the dns for all. Without nameservers of its own it
	// has those.
	// +optional
	DNS DNS `json:"dns,omitempty,omitzero"`

	// routes are routes over this device, besides those to its networks and gateways.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Routes []Route `json:"routes,omitempty"`

	// routingPolicy are rules that say which routing table is used.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	RoutingPolicy []RoutingPolicyRule `json:"routingPolicy,omitempty"`
}

// IPv4Method is where a device's IPv4 addresses come from.
// +kubebuilder:validation:Enum=Pool;DHCP
type IPv4Method string

// IPv6Method is where a device's IPv6 addresses come from.
// +kubebuilder:validation:Enum=Pool;DHCP;SLAAC;EUI64
type IPv6Method string

const (
	// IPv4MethodPool claims addresses from IPAM pools.
	IPv4MethodPool IPv4Method = "Pool"
	// IPv4MethodDHCP has the guest ask a DHCP server.
	IPv4MethodDHCP IPv4Method = "DHCP"
	// IPv6MethodPool claims addresses from IPAM pools.
	IPv6MethodPool IPv6Method = "Pool"
	// IPv6MethodDHCP has the guest ask a DHCP server.
	IPv6MethodDHCP IPv6Method = "DHCP"
	// IPv6MethodSLAAC has the guest make an address from what routers advertise.
	IPv6MethodSLAAC IPv6Method = "SLAAC"
	// IPv6MethodEUI64 makes the address from a prefix and the MAC address, as SLAAC would: it is known before the VM is made,
	// and needs neither a pool nor a router that advertises.
	IPv6MethodEUI64 IPv6Method = "EUI64"
)

// IPv4Addressing is where a device's IPv4 addresses come from.
// +kubebuilder:validation:XValidation:rule="!has(self.defaultRoute) || self.defaultRoute || !(has(self.gateway) || has(self.metric))",fieldPath=".defaultRoute",messageExpression="'false: gateway and metric are of the default route, which defaultRoute false takes away: leave them out, or set defaultRoute to true'"
// +kubebuilder:validation:XValidation:rule="self.method == 'Pool' || !(has(self.poolRef) || has(self.additionalPoolRefs) || has(self.gateway))",fieldPath=".method",messageExpression="'\"' + self.method + '\": poolRef, additionalPoolRefs and gateway are for method Pool: leave them out, or set method to Pool'"
// +kubebuilder:validation:XValidation:rule="!has(self.gateway) || ip(self.gateway).family() == 4",fieldPath=".gateway",messageExpression="'\"' + self.gateway + '\": gateway is an IPv4 address: correct it, or set it in ipv6'"
type IPv4Addressing struct {
	// method is Pool (the default) or DHCP.
	// +optional
	// +default="Pool"
	Method IPv4Method `json:"method,omitempty"`

	AddressSource `json:",inline"`
}

// IPv6Addressing is where a device's IPv6 addresses come from.
// +kubebuilder:validation:XValidation:rule="!has(self.defaultRoute) || self.defaultRoute || !(has(self.gateway) || has(self.metric))",fieldPath=".defaultRoute",messageExpression="'false: gateway and metric are of the default route, which defaultRoute false takes away: leave them out, or set defaultRoute to true'"
// +kubebuilder:validation:XValidation:rule="self.method == 'Pool' || !(has(self.poolRef) || has(self.additionalPoolRefs))",fieldPath=".method",messageExpression="'\"' + self.method + '\": poolRef and additionalPoolRefs are for method Pool: leave them out, or set method to Pool'"
// +kubebuilder:validation:XValidation:rule="self.method in ['Pool', 'EUI64'] || !has(self.gateway)",fieldPath=".gateway",messageExpression="'\"' + self.gateway + '\"' + ' with method ' + self.method + ': gateway is for the methods Pool and EUI64: leave it out'"
// +kubebuilder:validation:XValidation:rule="self.method in ['Pool', 'EUI64'] || !(has(self.defaultRoute) || has(self.metric))",fieldPath=".method",messageExpression="'\"' + self.method + '\": defaultRoute and metric are for the methods Pool and EUI64: with DHCP and SLAAC the routers say what is routed over them'"
// +kubebuilder:validation:XValidation:rule="!has(self.gateway) || ip(self.gateway).family() == 6",fieldPath=".gateway",messageExpression="'\"' + self.gateway + '\": gateway is an IPv6 address: correct it, or set it in ipv4'"
// +kubebuilder:validation:XValidation:rule="self.method != 'EUI64' || !has(self.prefix) || !has(self.gateway) || !isIP(self.gateway) || !isCIDR(self.prefix) || ip(self.gateway).family() != 6 || ip(self.gateway).isLinkLocalUnicast() || cidr(self.prefix).containsIP(self.gateway)",fieldPath=".gateway",message="gateway is neither link-local nor in prefix, so that the guest does not reach it: correct one of them",messageExpression="'gateway ' + self.gateway + ' is neither link-local nor in prefix ' + self.prefix + ', so that the guest does not reach it: correct one of them'"
// +kubebuilder:validation:XValidation:rule="self.method != 'EUI64' || !has(self.defaultRoute) || !self.defaultRoute || has(self.gateway)",fieldPath=".defaultRoute",messageExpression="'true: with method EUI64 nothing but gateway tells the router: set gateway, or leave defaultRoute out'"
// +kubebuilder:validation:XValidation:rule="(self.method == 'EUI64') == has(self.prefix)",fieldPath=".prefix",messageExpression="(has(self.prefix) ? '\"' + self.prefix + '\" with method ' + self.method : 'none with method EUI64') + ': prefix and method EUI64 belong together: give both, or leave prefix out'"
type IPv6Addressing struct {
	// method is Pool (the default), DHCP, SLAAC or EUI64.
	// +optional
	// +default="Pool"
	Method IPv6Method `json:"method,omitempty"`

	AddressSource `json:",inline"`

	// prefix is the network, with 64 bits, that the method EUI64 makes the address in: 2001:db8:1:2::/64.
	// +optional
	// +kubebuilder:validation:MinLength=5
	// +kubebuilder:validation:MaxLength=43
	// +kubebuilder:validation:XValidation:rule="isCIDR(self) && cidr(self).ip().family() == 6 && cidr(self).prefixLength() == 64 && cidr(self) == cidr(self).masked()",message="prefix is an IPv6 network of 64 bits, such as 2001:db8:1:2::/64"
	Prefix string `json:"prefix,omitempty"`
}

// AddressSource says which pools a device's addresses of a family are claimed from, and how it is routed.
type AddressSource struct {
	// poolRef is the IPAM pool that the address is claimed from, for example an InClusterIPPool. By default it is the pool of
	// the family that is made from the ProxmoxCluster's spec.ipv4 or spec.ipv6.
	// +optional
	PoolRef IPPoolReference `json:"poolRef,omitempty,omitzero"`

	// additionalPoolRefs are pools that one further address each is claimed from.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	AdditionalPoolRefs []IPPoolReference `json:"additionalPoolRefs,omitempty"`

	// gateway is the router of the family, in place of the pool's.
	// +optional
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=45
	// +kubebuilder:validation:XValidation:rule="isIP(self)",message="gateway is an IP address"
	Gateway string `json:"gateway,omitempty"`

	// defaultRoute says whether the family's default route goes over the device's gateway. By default that is so for the first
	// device that has one, be it from a pool or from the network, if no device says true; devices in different VRFs have
	// nothing to do with each other. With method DHCP, false ignores all routes that the server gives.
	// +optional
	DefaultRoute *bool `json:"defaultRoute,omitempty"`

	// metric is the metric of the default route, or with method DHCP of all routes that the server gives; the lowest is used.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Metric *int32 `json:"metric,omitempty"`
}

// IPPoolReference names a pool of an IPAM provider that follows Cluster API's IPAM contract, in the machine's namespace, or
// without a namespace.
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
