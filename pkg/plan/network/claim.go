// Package network plans a machine's addresses: which it claims from IPAM pools, whether what it was given can be used,
// which MAC addresses its devices have, and what the guest is told about its network.
package network

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
)

// Family is an IP address family.
type Family string

// The two families, as they stand in the names of claims.
const (
	IPv4 Family = "ipv4"
	IPv6 Family = "ipv6"
)

// Claim is one address that a machine wants: of one family, on one device, from one pool.
type Claim struct {
	// Name is the name of the IPAddressClaim: `<machine>-<device>-<family>` for the first address, which the Node has if the
	// device is the first; `<machine>-<device>-<family>-1` and so on for the further ones.
	Name   string
	Device string
	Family Family
	Pool   v1beta1.IPPoolReference
}

// Claims returns the claims of a machine of a Cluster, those of net0 first, IPv4 before IPv6.
func Claims(machine, cluster string, spec v1beta1.Network) []Claim {
	var claims []Claim
	for _, device := range Devices(spec) {
		for _, family := range families() {
			for i, pool := range pools(addressingOf(device, family), cluster, family) {
				name := fmt.Sprintf("%s-%s-%s", machine, device.Name, family)
				if i > 0 {
					name += "-" + strconv.Itoa(i)
				}
				claims = append(claims, Claim{Name: name, Device: device.Name, Family: family, Pool: pool})
			}
		}
	}
	return claims
}

// pools are the pools that one address each is claimed from.
func pools(from addressing, cluster string, family Family) []v1beta1.IPPoolReference {
	if from.method != methodPool {
		return nil
	}
	first := from.PoolRef
	if first.Name == "" {
		first = DefaultPool(cluster, family)
	}
	return append([]v1beta1.IPPoolReference{first}, from.AdditionalPoolRefs...)
}

// EndpointClaim is the claim of the virtual IP of a Cluster's control plane. Its family is the pool's.
func EndpointClaim(cluster string, pool v1beta1.IPPoolReference) Claim {
	return Claim{Name: cluster + "-control-plane-endpoint", Pool: pool}
}

// DefaultPool is the pool that is made from the spec.ipv4, or spec.ipv6, of a Cluster's ProxmoxCluster.
func DefaultPool(cluster string, family Family) v1beta1.IPPoolReference {
	return v1beta1.IPPoolReference{APIGroup: "ipam.cluster.x-k8s.io", Kind: "InClusterIPPool", Name: cluster + "-" + string(family)}
}

// Devices returns the devices by number, so that net2 comes before net10.
func Devices(spec v1beta1.Network) []v1beta1.NetworkDevice {
	devices := slices.Clone(spec.Devices)
	slices.SortStableFunc(devices, func(a, b v1beta1.NetworkDevice) int {
		return cmp.Compare(deviceNumber(a.Name), deviceNumber(b.Name))
	})
	return devices
}

func deviceNumber(name string) int {
	number, err := strconv.Atoi(strings.TrimPrefix(name, "net"))
	if err != nil {
		return 1 << 16 // not a name the API accepts; kept, behind all others
	}
	return number
}

func families() []Family { return []Family{IPv4, IPv6} }

// The methods of either family. A family without a method has no addresses.
const (
	methodPool  = "Pool"
	methodDHCP  = "DHCP"
	methodSLAAC = "SLAAC"
	methodEUI64 = "EUI64"
)

// addressing is where a device's addresses of a family come from.
type addressing struct {
	v1beta1.AddressSource
	method string
	prefix string
}

func addressingOf(device v1beta1.NetworkDevice, family Family) addressing {
	from := addressing{AddressSource: device.IPv4.AddressSource, method: string(device.IPv4.Method)}
	if family == IPv6 {
		from = addressing{AddressSource: device.IPv6.AddressSource, method: string(device.IPv6.Method), prefix: device.IPv6.Prefix}
	}
	if from.method == "" && (from.PoolRef.Name != "" || len(from.AdditionalPoolRefs) > 0) {
		from.method = methodPool // the API server's default, for objects that did not pass it
	}
	return from
}

// isAutomatic reports whether the guest gets its addresses, and its router, from the network.
func (a addressing) isAutomatic() bool { return a.method == methodDHCP || a.method == methodSLAAC }
