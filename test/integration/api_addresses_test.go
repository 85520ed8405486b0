package integration_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
)

// addressRefusals are those of the addresses in a ProxmoxCluster's spec, which is below the prefix.
func addressRefusals(spec string) []refusal {
	pool := func(family string, prefix int64, gateway string, addresses ...any) []edit {
		made := anything{"addresses": addresses, "prefix": prefix}
		if gateway != "" {
			made["gateway"] = gateway
		}
		return one(spec+family, made)
	}
	const endpoint = "10.1.255.254" // of clusterSpec
	return []refusal{
		{"no addresses", one(spec+"ipv4", anything{"prefix": int64(24)}), "ipv4.addresses: Required value"},
		{"no prefix", one(spec+"ipv4", anything{"addresses": []any{"10.0.0.9"}}), "ipv4.prefix: Required value"},
		{"an address by name", pool("ipv4", 24, "", "machines"), "name an address, a range such as 10.0.0.10-10.0.0.99, or a network such as 10.0.1.0/24"},
		{"a gateway by name", pool("ipv4", 24, "router", "10.0.0.9"), "gateway is an IP address"},
		{"a gateway of the other family", pool("ipv4", 24, "fe80::1", "10.0.0.9"), "gateway is of the same family as the addresses"},
		{"IPv6 addresses in ipv4", pool("ipv4", 64, "", "fd00::9"), "ipv4.addresses[0]: Invalid value: \"fd00::9\": is not of the family ipv4"},
		{"a prefix that is too long", pool("ipv4", 33, "", "10.0.0.9"), "ipv4.prefix: Invalid value: \"33\": is too long for the family ipv4"},
		{"a range backwards", pool("ipv4", 24, "", "10.0.0.9-10.0.0.8"), "is no range: 10.0.0.9 comes after 10.0.0.8"},
		{"two networks", pool("ipv4", 24, "", "10.0.0.9", "10.0.1.9"), "ipv4.addresses[1]: Invalid value: \"10.0.1.9\": is not in 10.0.0.0/24, the network of the first address"},
		{"the gateway among the addresses", pool("ipv6", 64, "fd00::20", "fd00::10-fd00::99"), "ipv6.addresses[0]: Invalid value: \"fd00::10-fd00::99\": contains the gateway fd00::20"},
		{"the endpoint among the addresses", pool("ipv4", 16, "", "10.1.0.0/16"), "contains " + endpoint + ", the host of controlPlaneEndpoint, which no machine may have: name ranges before and behind it"},
		{"the endpoint as the gateway", pool("ipv4", 16, endpoint, "10.1.0.9"), "ipv4.gateway: Invalid value: \"" + endpoint + "\": is the host of controlPlaneEndpoint, too"},
	}
}

func TestAddressesOfAClusterThatAreRefused(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.refuses(func() client.Object { return d.validCluster() }, addressRefusals("spec."))
	d.refuses(func() client.Object {
		return &v1beta1.ProxmoxClusterTemplate{ObjectMeta: d.meta("template"), Spec: v1beta1.ProxmoxClusterTemplateSpec{
			Template: v1beta1.ProxmoxClusterTemplateResource{Spec: clusterSpec()},
		}}
	}, addressRefusals("spec.template.spec."))
}

func TestAddressesOfAClusterAreCheckedWhenTheyChange(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	cluster := d.validCluster()
	cluster.Spec.IPv4 = v1beta1.AddressPool{Addresses: []string{"10.1.0.10-10.1.0.99", "10.1.4.0/24"}, Prefix: 16, Gateway: "10.1.0.1"}
	d.Expect(d.client.Create(t.Context(), cluster)).To(Succeed())
	cluster.Spec.IPv4.Addresses = append(cluster.Spec.IPv4.Addresses, "10.1.255.0/24")
	d.Expect(d.client.Update(t.Context(), cluster)).To(MatchError(ContainSubstring("contains 10.1.255.254, the host of controlPlaneEndpoint")))
	cluster.Spec.IPv4.Addresses[2] = "10.1.254.0/24"
	d.Expect(d.client.Update(t.Context(), cluster)).To(Succeed())
	cluster.Spec.ControlPlaneEndpointPoolRef = v1beta1.IPPoolReference{Name: "vips"}
	d.Expect(d.client.Update(t.Context(), cluster)).To(Succeed())
	cluster.Spec.ControlPlaneEndpointPoolRef = v1beta1.IPPoolReference{}
	d.Expect(d.client.Update(t.Context(), cluster)).To(MatchError(ContainSubstring("controlPlaneEndpointPoolRef is immutable once set")))
	cluster.Spec.ControlPlaneEndpointPoolRef = v1beta1.IPPoolReference{Name: "others"}
	d.Expect(d.client.Update(t.Context(), cluster)).To(MatchError(ContainSubstring("controlPlaneEndpointPoolRef is immutable once set")))
	d.Expect(d.client.Delete(t.Context(), cluster)).To(Succeed())
}
