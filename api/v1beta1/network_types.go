package v1beta1

// Network is a VM's network devices and what the guest is told about its network.
// +kubebuilder:validation:XValidation:rule="!has(self.vrfs) || self.vrfs.all(v, v.devices.all(d, self.devices.exists(n, n.name == d) && self.vrfs.exists_one(o, d in o.devices)))",message="the devices of a VRF are devices of the VM, and each is in one VRF at most"
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
	// cloud-init, or operating system, does not know 2. Version 1 has no routing policies and no VRFs.
	// +optional
	// +default=2
	// +kubebuilder:validation:Enum=1;2
	ConfigVersion int32 `json:"configVersion,omitempty"`
}

// NetworkDeviceModel is a model of network card, as Proxmox VE names it.
// +kubebuilder:validation:Enum=virtio;e1000;e1000e;vmxnet3;rtl8139
type NetworkDeviceModel string

// NetworkDevice is one network device of a VM.
// +kubebuilder:validation:XValidation:rule="!has(self.macAddress) || !has(self.macPrefix)",message="give either macAddress or macPrefix"
// +kubebuilder:validation:XValidation:rule="!has(self.queues) || !has(self.queuesPerCPU)",message="give either queues or queuesPerCPU"
// +kubebuilder:validation:XValidation:rule="self.model == 'virtio' || !(has(self.queues) || has(self.queuesPerCPU) || has(self.mtu))",message="queues, queuesPerCPU and mtu are for the model virtio"
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

	// dns is what the guest resolves names with on this device.
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
// +kubebuilder:validation:XValidation:rule="self.method == 'Pool' || !(has(self.poolRef) || has(self.additionalPoolRefs) || has(self.gateway))",message="poolRef, additionalPoolRefs and gateway are for method Pool"
type IPv4Addressing struct {
	// method is Pool (the default) or DHCP.
	// +optional
	// +default="Pool"
	Method IPv4Method `json:"method,omitempty"`

	AddressSource `json:",inline"`
}

// IPv6Addressing is where a device's IPv6 addresses come from.
// +kubebuilder:validation:XValidation:rule="self.method == 'Pool' || !(has(self.poolRef) || has(self.additionalPoolRefs))",message="poolRef and additionalPoolRefs are for method Pool"
// +kubebuilder:validation:XValidation:rule="self.method in ['Pool', 'EUI64'] || !has(self.gateway)",message="gateway is for the methods Pool and EUI64"
// +kubebuilder:validation:XValidation:rule="(self.method == 'EUI64') == has(self.prefix)",message="prefix and method EUI64 belong together"
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
	// device that has one.
	// +optional
	DefaultRoute *bool `json:"defaultRoute,omitempty"`

	// metric is the metric of the default route; the lowest is used.
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

// Route is a route in a guest.
// +kubebuilder:validation:XValidation:rule="!has(self.via) || ip(self.via).family() == cidr(self.to).ip().family()",message="to and via are of the same family"
type Route struct {
	// to is the network that is reached: 10.1.0.0/16, or 0.0.0.0/0 and ::/0 for the default route.
	// +required
	// +kubebuilder:validation:MinLength=4
	// +kubebuilder:validation:MaxLength=43
	// +kubebuilder:validation:XValidation:rule="isCIDR(self)",message="to is a network, such as 10.1.0.0/16"
	To string `json:"to,omitempty"`

	// via is the router. Without it the network is on the link.
	// +optional
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=45
	// +kubebuilder:validation:XValidation:rule="isIP(self)",message="via is an IP address"
	Via string `json:"via,omitempty"`

	// metric is the metric; of several routes to a network the one with the lowest is used.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Metric *int32 `json:"metric,omitempty"`

	// table is the routing table that the route is in; by default the main one, or its VRF's.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	Table int32 `json:"table,omitempty"`
}

// RoutingPolicyRule says which traffic uses which routing table.
// +kubebuilder:validation:XValidation:rule="has(self.from) || has(self.to)",message="a rule of the routing policy needs from, to or both"
type RoutingPolicyRule struct {
	// from is the network that the traffic comes from.
	// +optional
	// +kubebuilder:validation:MinLength=4
	// +kubebuilder:validation:MaxLength=43
	// +kubebuilder:validation:XValidation:rule="isCIDR(self)",message="from is a network, such as 10.1.0.0/16"
	From string `json:"from,omitempty"`

	// to is the network that the traffic goes to.
	// +optional
	// +kubebuilder:validation:MinLength=4
	// +kubebuilder:validation:MaxLength=43
	// +kubebuilder:validation:XValidation:rule="isCIDR(self)",message="to is a network, such as 10.1.0.0/16"
	To string `json:"to,omitempty"`

	// table is the routing table to use.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	Table int32 `json:"table,omitempty"`

	// priority is the rule's place; lower ones come first.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Priority *int32 `json:"priority,omitempty"`
}

// VRF is a routing domain in a guest.
type VRF struct {
	// name is the name of the VRF's device in the guest.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=15
	// +kubebuilder:validation:Pattern=`^[A-Za-z][A-Za-z0-9_.-]*$`
	Name string `json:"name,omitempty"`

	// table is the VRF's routing table.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	Table int32 `json:"table,omitempty"`

	// devices are the names of the network devices in the VRF.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=4
	// +kubebuilder:validation:items:MaxLength=5
	Devices []string `json:"devices,omitempty"`

	// routes are routes of the VRF.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Routes []Route `json:"routes,omitempty"`

	// routingPolicy are rules of the VRF.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	RoutingPolicy []RoutingPolicyRule `json:"routingPolicy,omitempty"`
}
