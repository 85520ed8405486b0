package network_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/network"
)

// guestSays are the interfaces of a guest with addresses that are separated by spaces, by MAC address.
func guestSays(interfaces ...string) []network.Interface {
	var all []network.Interface
	for i := 0; i+1 < len(interfaces); i += 2 {
		one := network.Interface{MAC: interfaces[i]}
		for text := range strings.FieldsSeq(interfaces[i+1]) {
			one.Addresses = append(one.Addresses, netip.MustParsePrefix(text))
		}
		all = append(all, one)
	}
	return all
}

func TestTheAddressesThatAGuestTells(t *testing.T) {
	dhcp := func(d *v1beta1.NetworkDevice) { d.IPv4.Method = v1beta1.IPv4MethodDHCP }
	slaac := func(d *v1beta1.NetworkDevice) { d.IPv6.Method = v1beta1.IPv6MethodSLAAC }
	one := devices(with(device("net0", "", ""), dhcp))
	dual := devices(with(with(device("net0", "", ""), dhcp), slaac))
	mixed := devices(device("net0", "p", ""), with(device("net1", "", ""), dhcp))
	cases := []struct {
		name     string
		spec     v1beta1.Network
		says     []network.Interface
		endpoint string
		want     string
		lacking  string
	}{
		{"one by DHCP", one, guestSays("", "127.0.0.1/8 ::1/128", mac0, "10.0.0.9/24 fe80::1/64"), "", "net0 10.0.0.9/24", ""},
		{"of a guest that writes MAC addresses otherwise", one, guestSays(strings.ToUpper(mac0), "10.0.0.9/24"), "", "net0 10.0.0.9/24", ""},
		{"none yet", one, guestSays(mac0, "fe80::1/64"), "", "", "net0 (ipv4 by DHCP)"},
		{"none that it gave itself", one, guestSays(mac0, "169.254.3.4/16"), "", "", "net0 (ipv4 by DHCP)"},
		{"not those of a container network", one, guestSays("02:00:00:00:00:01", "10.244.0.1/24"), "", "", "net0 (ipv4 by DHCP)"},
		{"not the control plane's, nor a service's", one, guestSays(mac0, "10.0.0.250/24 10.0.0.9/24 10.0.0.240/32"), "10.0.0.250", "net0 10.0.0.9/24", ""},
		{
			"by SLAAC, the one that stays first", dual, guestSays(mac0, "10.0.0.9/24 2001:db8::1:2:3:4/64 2001:db8::34de:7dff:fe5e:b31d/64 fe80::1/64"), "",
			"net0 10.0.0.9/24, net0 2001:db8::34de:7dff:fe5e:b31d/64, net0 2001:db8::1:2:3:4/64", "",
		},
		{"half of them", dual, guestSays(mac0, "10.0.0.9/24"), "", "net0 10.0.0.9/24", "net0 (ipv6 by SLAAC)"},
		{"not those of devices with an address from a pool", mixed, guestSays(mac0, "10.0.0.5/24 10.0.0.6/24", mac1, "10.1.0.9/24"), "", "net1 10.1.0.9/24", ""},
		{"nothing", one, nil, "", "", "net0 (ipv4 by DHCP)"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			addresses, lacking := network.Reported(uuid, c.spec, c.says, c.endpoint)
			var got []string
			for _, address := range addresses {
				got = append(got, address.Claim.Device+" "+address.Prefix.String())
			}
			if diff := cmp.Diff([]string{c.want, c.lacking}, []string{strings.Join(got, ", "), lacking}); diff != "" {
				t.Errorf("addresses, and what lacks (-want +got):\n%s", diff)
			}
		})
	}
}
