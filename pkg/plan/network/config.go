package network

import (
	"net/netip"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// Config is cloud-init's network config, version 2, which is netplan's format.
// https://cloudinit.readthedocs.io/en/latest/reference/network-config-format-v2.html
type Config struct {
	Version   int                 `json:"version"`
	Ethernets map[string]Ethernet `json:"ethernets"`
}

// Ethernet is one device of a Config, found by its MAC address.
type Ethernet struct {
	Match Match `json:"match"`
	// SetName is the name that the device gets in the guest: eth0 for net0. It makes the name known beforehand, for kube-vip
	// say, and lets networkd find the device, which cloud-init looks for there by name as well.
	SetName   string   `json:"set-name"`
	DHCP4     bool     `json:"dhcp4"`
	DHCP6     bool     `json:"dhcp6"`
	Addresses []string `json:"addresses,omitempty"`
	Routes    []Route  `json:"routes,omitempty"`
	// Gateway6 is the default router of IPv6. netplan would rather have a route to ::/0, but cloud-init 22.4 makes ::/64 of
	// that for networkd, ifupdown and NetworkManager; all of them read this.
	Gateway6    string       `json:"gateway6,omitempty"`
	Nameservers *Nameservers `json:"nameservers,omitempty"`
}

// Match says which device of the guest an Ethernet is.
type Match struct {
	// MACAddress is in lower case, as Linux shows it: netplan compares the text.
	MACAddress string `json:"macaddress"`
}

// Route is a route of an Ethernet.
type Route struct {
	To  string `json:"to"`
	Via string `json:"via"`
}

// Nameservers is the name resolution of an Ethernet.
type Nameservers struct {
	Addresses []string `json:"addresses,omitempty"`
	Search    []string `json:"search,omitempty"`
}

// NewConfig returns the network config of the guest with the given identity and addresses. The first device, by number,
// that has a gateway of a family gets the default route of that family: two of them would fight.
func NewConfig(uuid proxmox.SMBIOSUUID, spec v1beta1.Network, addresses []Address) Config {
	config := Config{Version: 2, Ethernets: map[string]Ethernet{}}
	routed := map[Family]bool{}
	for _, device := range Devices(spec) {
		ethernet := Ethernet{
			Match:       Match{MACAddress: strings.ToLower(DeviceMAC(uuid, device))},
			SetName:     GuestName(device.Name),
			Nameservers: nameservers(spec.DNS),
		}
		for _, address := range onDevice(addresses, device.Name) {
			ethernet.Addresses = append(ethernet.Addresses, address.Prefix.String())
			if address.Gateway.IsValid() && !routed[address.Claim.Family] {
				routed[address.Claim.Family] = true
				ethernet.setGateway(address.Gateway)
			}
		}
		config.Ethernets[ethernet.SetName] = ethernet
	}
	return config
}

// GuestName is the name that a device has in the guest: eth0 for net0.
func GuestName(device string) string { return "eth" + strings.TrimPrefix(device, "net") }

// setGateway sets the default router. A route to `default` is known to no renderer of cloud-init 22.4 but netplan.
func (e *Ethernet) setGateway(gateway netip.Addr) {
	if gateway.Is4() {
		e.Routes = append(e.Routes, Route{To: "0.0.0.0/0", Via: gateway.String()})
		return
	}
	e.Gateway6 = gateway.String()
}

func onDevice(addresses []Address, device string) []Address {
	var found []Address
	for _, address := range addresses {
		if address.Claim.Device == device {
			found = append(found, address)
		}
	}
	return found
}

func nameservers(dns v1beta1.DNS) *Nameservers {
	if len(dns.Nameservers) == 0 && len(dns.SearchDomains) == 0 {
		return nil
	}
	return &Nameservers{Addresses: dns.Nameservers, Search: dns.SearchDomains}
}
