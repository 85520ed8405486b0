package pvesim

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// DHCPSpec is a DHCP server in the network of a bridge or vnet. All bridges of that name are one network.
type DHCPSpec struct {
	// Bridge is the bridge or vnet.
	Bridge proxmox.BridgeName `json:"bridge"`
	// Subnet whose addresses are given away, for example 10.20.0.0/16. The first is the server's own.
	Subnet string `json:"subnet"`
	// Leases are the addresses given away, by MAC address.
	Leases map[string]string `json:"leases,omitempty"`
}

// dhcpServer gives every MAC address the lowest address that is free, and gives it again as long as the VM is there.
type dhcpServer struct {
	subnet netip.Prefix
	leases map[string]dhcpLease
}

type dhcpLease struct {
	address netip.Addr
	// vmid is zero for leases of a loaded state whose VM has not asked again.
	vmid proxmox.VMID
}

// loadDHCP enters the servers. The error names one that cannot be.
func (w *World) loadDHCP(specs []DHCPSpec) error {
	for _, s := range specs {
		subnet, err := netip.ParsePrefix(s.Subnet)
		if s.Bridge == "" || err != nil || w.dhcp[s.Bridge] != nil {
			return fmt.Errorf("add DHCP server on %q: want a bridge without one and a subnet, have %q", s.Bridge, s.Subnet)
		}
		server := &dhcpServer{subnet: subnet.Masked(), leases: map[string]dhcpLease{}}
		for mac, text := range s.Leases {
			address, err := netip.ParseAddr(text)
			if err != nil {
				return fmt.Errorf("add DHCP server on %q: lease of %s: %w", s.Bridge, mac, err)
			}
			server.leases[strings.ToUpper(mac)] = dhcpLease{address: address}
		}
		w.dhcp[s.Bridge] = server
	}
	return nil
}

func (w *World) dumpDHCP() []DHCPSpec {
	var out []DHCPSpec
	for _, bridge := range slices.Sorted(maps.Keys(w.dhcp)) {
		spec := DHCPSpec{Bridge: bridge, Subnet: w.dhcp[bridge].subnet.String()}
		for mac, l := range w.dhcp[bridge].leases {
			if spec.Leases == nil {
				spec.Leases = map[string]string{}
			}
			spec.Leases[mac] = l.address.String()
		}
		out = append(out, spec)
	}
	return out
}

// lease is the address of a network device of the VM.
func (w *World) lease(v *vm, mac string) (netip.Prefix, bool) {
	mac = strings.ToUpper(mac)
	format := netFormat()
	for key, value := range v.config {
		p, _ := format.Parse(value)
		if !strings.HasPrefix(key, "net") || !strings.EqualFold(p["macaddr"], mac) {
			continue
		}
		if server := w.dhcp[proxmox.BridgeName(p["bridge"])]; server != nil && p["link_down"] != "1" {
			return server.give(mac, v.id)
		}
	}
	return netip.Prefix{}, false
}

func (s *dhcpServer) give(mac string, id proxmox.VMID) (netip.Prefix, bool) {
	if l, known := s.leases[mac]; known {
		s.leases[mac] = dhcpLease{address: l.address, vmid: id}
		return netip.PrefixFrom(l.address, s.subnet.Bits()), true
	}
	taken := map[netip.Addr]bool{}
	for _, l := range s.leases {
		taken[l.address] = true
	}
	for a := s.subnet.Addr().Next().Next(); s.subnet.Contains(a); a = a.Next() {
		last := a.Is4() && !s.subnet.Contains(a.Next())
		if !taken[a] && !last {
			s.leases[mac] = dhcpLease{address: a, vmid: id}
			return netip.PrefixFrom(a, s.subnet.Bits()), true
		}
	}
	return netip.Prefix{}, false
}

// releaseLeases gives back the addresses of a VM that is gone.
func (w *World) releaseLeases(id proxmox.VMID) {
	for _, server := range w.dhcp {
		maps.DeleteFunc(server.leases, func(_ string, l dhcpLease) bool { return l.vmid == id })
	}
}
