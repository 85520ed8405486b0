package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// ClusterFinalizer keeps a ProxmoxCluster until its machines are gone.
const ClusterFinalizer = "proxmoxcluster.infrastructure.cluster.x-k8s.io"

// ProxmoxClusterSpec is what a user asks of a cluster on Proxmox VE.
type ProxmoxClusterSpec struct {
	// controlPlaneEndpoint is the host and port at which the control plane is reached: a virtual IP, a load balancer or a
	// DNS name. When it is not set here, it is taken from the Cluster's spec.controlPlaneEndpoint once a control plane
	// provider has put it there.
	// +optional
	ControlPlaneEndpoint APIEndpoint `json:"controlPlaneEndpoint,omitempty,omitzero"`

	// controlPlaneEndpointPoolRef is the IPAM pool that the host of controlPlaneEndpoint, a virtual IP, is claimed from. The
	// port is 6443, unless the Cluster's spec.clusterNetwork.apiServerPort says otherwise.
	// +optional
	ControlPlaneEndpointPoolRef IPPoolReference `json:"controlPlaneEndpointPoolRef,omitempty,omitzero"`

	// regions are the Proxmox VE clusters in which machines are placed.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Regions []Region `json:"regions,omitempty"`

	// ipv4 are IPv4 addresses for the cluster's machines: an InClusterIPPool `<cluster>-ipv4` is made of them, which devices
	// with method Pool and without a poolRef take their address from.
	// +optional
	IPv4 AddressPool `json:"ipv4,omitempty,omitzero"`

	// ipv6 are IPv6 addresses for the cluster's machines, in an InClusterIPPool `<cluster>-ipv6`.
	// +optional
	IPv6 AddressPool `json:"ipv6,omitempty,omitzero"`

	// vmIDRange bounds the VMIDs given to new machines of the cluster, in regions without a range of their own. Without any
	// range it is 100 to 999999999.
	// +optional
	VMIDRange VMIDRange `json:"vmIDRange,omitempty,omitzero"`
}

// APIEndpoint is a host and a port.
// +kubebuilder:validation:MinProperties=1
type APIEndpoint struct {
	// host is a DNS name or an IP address.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="isIP(self) || self.matches('^[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?$')",message="host is a DNS name or an IP address: give it without scheme, port and brackets"
	Host string `json:"host,omitempty"`

	// port is a TCP port.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`
}

// AddressPool is addresses that machines are given, each one once.
// +kubebuilder:validation:XValidation:rule="!has(self.gateway) || ip(self.gateway).family() == (self.prefix > 32 || self.addresses[0].contains(':') ? 6 : 4)",fieldPath=".gateway",messageExpression="'\"' + self.gateway + '\": gateway is of the same family as the addresses'"
type AddressPool struct {
	// addresses are single addresses, ranges such as 10.0.0.10-10.0.0.99, and networks such as 10.0.1.0/24.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=2
	// +kubebuilder:validation:items:MaxLength=91
	// +kubebuilder:validation:items:XValidation:rule="isIP(self) || isCIDR(self) || self.split('-').size() == 2 && self.split('-').all(a, isIP(a))",message="name an address, a range such as 10.0.0.10-10.0.0.99, or a network such as 10.0.1.0/24"
	Addresses []string `json:"addresses,omitempty"`

	// prefix is the length of the network's prefix.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=128
	Prefix int32 `json:"prefix,omitempty"`

	// gateway is the network's router. Without it the machines get no default route from this pool.
	// +optional
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=45
	// +kubebuilder:validation:XValidation:rule="isIP(self)",message="gateway is an IP address"
	Gateway string `json:"gateway,omitempty"`
}

// Region is one Proxmox VE cluster, or a single host.
type Region struct {
	// name names the region. With several regions it is the first part of the failure domains, `<region>.<zone>`.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name,omitempty"`

	// endpoints are the URLs of the Proxmox VE API, `https://host:8006`, in order of preference: one per node lets the
	// provider go on while a node is down.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:items:XValidation:rule="isURL(self) && url(self).getScheme() == 'https' && url(self).getHostname() != '' && (url(self).getEscapedPath() == '' || url(self).getEscapedPath() == '/') && url(self).getQuery().size() == 0 && !self.contains('@') && !self.contains('#')",message="an endpoint is https://host or https://host:port, without a path, query or user; for Proxmox VE itself the port is 8006"
	Endpoints []string `json:"endpoints,omitempty"`

	// credentialsRef names the Secret with the credentials for the region, in the namespace of the ProxmoxCluster: keys
	// `tokenID` (user@realm!name) and `tokenSecret`, or `username` (user@realm) and `password`.
	// +required
	CredentialsRef SecretReference `json:"credentialsRef,omitempty,omitzero"`

	// tls says how the certificates of the endpoints are verified. Without it the system's certificate authorities count.
	// +optional
	TLS RegionTLS `json:"tls,omitempty,omitzero"`

	// zones are the failure domains of the region: sets of nodes that fail together. Without zones every node is its own
	// zone, named like the node. With zones, nodes in none of them get no machines.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Zones []Zone `json:"zones,omitempty"`

	// vmIDRange bounds the VMIDs given to new machines in this region. A machine's own range goes before it, and it goes
	// before the cluster's.
	// +optional
	VMIDRange VMIDRange `json:"vmIDRange,omitempty,omitzero"`

	// cloneLimits bounds how many VMs are cloned at the same time, so that clones do not time out each other's locks.
	// +optional
	CloneLimits CloneLimits `json:"cloneLimits,omitempty,omitzero"`
}

// DefaultCloneLimit is how many clones run at the same time on a host, or onto a storage, where nothing else is set.
const DefaultCloneLimit = 2

// CloneLimits bounds how many VMs are made at the same time, as clones or from images. All machines of a Proxmox VE cluster count, each against the
// limits of its own ProxmoxCluster.
// +kubebuilder:validation:MinProperties=1
type CloneLimits struct {
	// perHost is how many VMs may be made on a host at the same time: of a clone it is the one that the template is on, which
	// does the work. It is 2 by default.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	PerHost int32 `json:"perHost,omitempty"`

	// perStorage is how many VMs that are being made may write to a storage: the one of source.template.storage, or else the
	// one with the template's boot disk; without a template, disks.boot.storage. It is 2 by default. A storage that is not
	// shared is another one on each host.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	PerStorage int32 `json:"perStorage,omitempty"`
}

// SecretReference names a Secret in the same namespace.
type SecretReference struct {
	// name is the Secret's name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name,omitempty"`
}

// RegionTLS says how the certificates of a region's endpoints are verified.
// +kubebuilder:validation:MinProperties=1
type RegionTLS struct {
	// caBundle is one or more certificates in PEM form that sign the endpoints' certificates: for a Proxmox VE cluster
	// with its own CA, /etc/pve/pve-root-ca.pem.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	CABundle []byte `json:"caBundle,omitempty"`

	// fingerprints are SHA-256 fingerprints of the endpoints' certificates, as Proxmox VE's GUI shows them: 32 bytes in
	// hexadecimal with colons. When set, one of them must match; names and issuers are then not looked at unless caBundle
	// is set too.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:Pattern=`^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){31}$`
	// +kubebuilder:validation:items:MinLength=95
	// +kubebuilder:validation:items:MaxLength=95
	Fingerprints []string `json:"fingerprints,omitempty"`
}

// Zone is a set of nodes of one region that fail together.
type Zone struct {
	// name names the zone within its region.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name,omitempty"`

	// nodes are the names of the Proxmox VE nodes in the zone.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?$`
	Nodes []string `json:"nodes,omitempty"`

	// controlPlane says whether control plane machines may be placed in the zone.
	// +optional
	// +default=true
	ControlPlane *bool `json:"controlPlane,omitempty"`
}

// VMIDRange is a range of VMIDs, both ends included.
// +kubebuilder:validation:MinProperties=1
type VMIDRange struct {
	// start is the lowest VMID to use.
	// +required
	// +kubebuilder:validation:Minimum=100
	// +kubebuilder:validation:Maximum=999999999
	Start int32 `json:"start,omitempty"`

	// end is the highest VMID to use.
	// +required
	// +kubebuilder:validation:Minimum=100
	// +kubebuilder:validation:Maximum=999999999
	End int32 `json:"end,omitempty"`
}

// ProxmoxClusterStatus is what was observed of a cluster.
// +kubebuilder:validation:MinProperties=1
type ProxmoxClusterStatus struct {
	// conditions are Ready, ProxmoxAvailable, ControlPlaneEndpointSet, ZonesValid, AddressPoolsReady, Deleting and Paused.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// initialization tells Cluster API that the infrastructure was provisioned once.
	// +optional
	Initialization ProxmoxClusterInitializationStatus `json:"initialization,omitempty,omitzero"`

	// failureDomains are the zones that machines can be placed in.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	FailureDomains []clusterv1.FailureDomain `json:"failureDomains,omitempty"`
}

// ProxmoxClusterInitializationStatus holds what Cluster API's contract asks for at the first provisioning.
// +kubebuilder:validation:MinProperties=1
type ProxmoxClusterInitializationStatus struct {
	// provisioned is true from the moment the cluster's infrastructure was ready for the first time.
	// +optional
	Provisioned *bool `json:"provisioned,omitempty"`
}

// ProxmoxCluster is the infrastructure of a Cluster API Cluster on Proxmox VE: where it may put machines, with which
// credentials, and where its control plane is reached.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:path=proxmoxclusters,scope=Namespaced,categories=cluster-api
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1beta1"
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".metadata.labels['cluster\\.x-k8s\\.io/cluster-name']",description="Cluster to which this ProxmoxCluster belongs"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].status",description="Cluster infrastructure is ready"
// +kubebuilder:printcolumn:name="Reason",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].reason",description="Why it is, or is not",priority=1
// +kubebuilder:printcolumn:name="Endpoint",type="string",JSONPath=".spec.controlPlaneEndpoint.host",description="Control plane endpoint"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
type ProxmoxCluster struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what is asked for.
	// +required
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.controlPlaneEndpoint) || (has(self.controlPlaneEndpoint) && self.controlPlaneEndpoint == oldSelf.controlPlaneEndpoint)",fieldPath=".controlPlaneEndpoint",messageExpression="(has(self.controlPlaneEndpoint) ? self.controlPlaneEndpoint.host : 'none') + ': controlPlaneEndpoint is immutable once set: clients and certificates of the cluster already use it'"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.controlPlaneEndpointPoolRef) || (has(self.controlPlaneEndpointPoolRef) && self.controlPlaneEndpointPoolRef == oldSelf.controlPlaneEndpointPoolRef)",fieldPath=".controlPlaneEndpointPoolRef",messageExpression="(has(self.controlPlaneEndpointPoolRef) ? '\"' + self.controlPlaneEndpointPoolRef.name + '\"' : 'none') + ': controlPlaneEndpointPoolRef is immutable once set: an address was claimed from it'"
	Spec ProxmoxClusterSpec `json:"spec,omitempty,omitzero"`
	// status is what was observed.
	// +optional
	Status ProxmoxClusterStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions, for Cluster API's condition functions.
func (c *ProxmoxCluster) GetConditions() []metav1.Condition { return c.Status.Conditions }

// SetConditions replaces the conditions, for Cluster API's condition functions.
func (c *ProxmoxCluster) SetConditions(conditions []metav1.Condition) {
	c.Status.Conditions = conditions
}

// ProxmoxClusterList is a list of ProxmoxClusters.
// +kubebuilder:object:root=true
type ProxmoxClusterList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the ProxmoxClusters.
	Items []ProxmoxCluster `json:"items"`
}
