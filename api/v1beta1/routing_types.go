package v1beta1

// Route is a route in a guest.
// +kubebuilder:validation:XValidation:rule="!has(self.via) || ip(self.via).family() == cidr(self.to).ip().family()",fieldPath=".via",messageExpression="'\"' + self.via + '\" for ' + self.to + ': to and via are of the same family'"
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
// +kubebuilder:validation:XValidation:rule="!has(self.from) || !has(self.to) || cidr(self.from).ip().family() == cidr(self.to).ip().family()",fieldPath=".to",messageExpression="'\"' + self.to + '\" from ' + self.from + ': from and to are of the same family'"
// +kubebuilder:validation:XValidation:rule="has(self.from) || has(self.to)",reason="FieldValueRequired",message="a rule of the routing policy needs from, to or both"
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
// +kubebuilder:validation:XValidation:rule="!(self.table in [253, 254, 255])",fieldPath=".table",messageExpression="(self.table == 253 ? '253' : self.table == 254 ? '254' : '255') + \": tables 253, 254 and 255 are the guest's own (default, main, local): choose another\""
// +kubebuilder:validation:XValidation:rule="!self.name.matches('^(eth[0-9]+|lo)$')",fieldPath=".name",messageExpression="'\"' + self.name + '\": the guest has a device of that name already: choose another'"
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
