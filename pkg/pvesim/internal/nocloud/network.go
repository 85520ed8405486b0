package nocloud

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Link is what a seed wants of one network device.
type Link struct {
	// Name is that of the interface; empty if the seed leaves it to the guest.
	Name string
	// Addresses are static.
	Addresses []netip.Prefix
	// DHCP asks for an IPv4 address.
	DHCP bool
}

// networkConfig is cloud-init's network configuration of version 1 or 2, as far as it matters here.
type networkConfig struct {
	Network   *networkConfig      `json:"network"`
	Version   int                 `json:"version"`
	Ethernets map[string]ethernet `json:"ethernets"`
	Config    []device            `json:"config"`
}

// ethernet is an interface of version 2.
type ethernet struct {
	Match struct {
		MACAddress string `json:"macaddress"`
	} `json:"match"`
	SetName   string `json:"set-name"`
	DHCP4     bool   `json:"dhcp4"`
	Addresses []any  `json:"addresses"`
}

// device is an entry of version 1.
type device struct {
	Type       string   `json:"type"`
	Name       string   `json:"name"`
	MACAddress string   `json:"mac_address"`
	Subnets    []subnet `json:"subnets"`
}

type subnet struct {
	Type    string `json:"type"`
	Address string `json:"address"`
	Netmask string `json:"netmask"`
}

func (s *Seed) readNetwork() error {
	if strings.TrimSpace(s.NetworkConfig) == "" {
		return nil
	}
	if err := yaml.Unmarshal([]byte(s.NetworkConfig), &s.network); err != nil {
		return fmt.Errorf("network-config is no YAML: %w", err)
	}
	if s.network.Network != nil {
		s.network = *s.network.Network
	}
	if s.network.Version != 1 && s.network.Version != 2 {
		return fmt.Errorf("network-config has version %d, only 1 and 2 are understood", s.network.Version)
	}
	return nil
}

// Links returns what the network devices shall have, by MAC address in upper case. A configured interface means the device
// with its MAC address or, without one, the device of the same place in the order of the names (version 2) or of the list
// (version 1). An interface without a device is an error. Without any network configuration the first device has DHCP.
func (s *Seed) Links(macs []string) (map[string]Link, error) {
	switch {
	case s.network.Version == 1:
		return s.linksOfVersion1(macs)
	case s.network.Version == 2:
		return s.linksOfVersion2(macs)
	case len(macs) > 0:
		return map[string]Link{strings.ToUpper(macs[0]): {DHCP: true}}, nil
	}
	return map[string]Link{}, nil
}

func (s *Seed) linksOfVersion2(macs []string) (map[string]Link, error) {
	out := map[string]Link{}
	for i, name := range slices.Sorted(maps.Keys(s.network.Ethernets)) {
		e := s.network.Ethernets[name]
		mac, err := findDevice(name, e.Match.MACAddress, i, macs)
		if err != nil {
			return nil, err
		}
		l := Link{Name: e.SetName, DHCP: e.DHCP4}
		if e.Match.MACAddress == "" && l.Name == "" {
			l.Name = name
		}
		for _, a := range e.Addresses {
			prefix, err := netip.ParsePrefix(addressOf(a))
			if err != nil {
				return nil, fmt.Errorf("network-config: address of interface %s: %w", name, err)
			}
			l.Addresses = append(l.Addresses, prefix)
		}
		out[mac] = l
	}
	return out, nil
}

func (s *Seed) linksOfVersion1(macs []string) (map[string]Link, error) {
	out := map[string]Link{}
	i := 0
	for _, d := range s.network.Config {
		if d.Type != "physical" {
			continue
		}
		mac, err := findDevice(d.Name, d.MACAddress, i, macs)
		if err != nil {
			return nil, err
		}
		i++
		l := Link{Name: d.Name}
		for _, sub := range d.Subnets {
			switch sub.Type {
			case "dhcp", "dhcp4":
				l.DHCP = true
			case "static", "static6":
				prefix, err := sub.prefix()
				if err != nil {
					return nil, fmt.Errorf("network-config: address of interface %s: %w", d.Name, err)
				}
				l.Addresses = append(l.Addresses, prefix)
			}
		}
		out[mac] = l
	}
	return out, nil
}

// prefix takes both forms of version 1: an address with its length, or with a netmask beside it.
func (s subnet) prefix() (netip.Prefix, error) {
	if s.Netmask == "" || strings.Contains(s.Address, "/") {
		return netip.ParsePrefix(s.Address)
	}
	address, err := netip.ParseAddr(s.Address)
	if err != nil {
		return netip.Prefix{}, err
	}
	mask, err := netip.ParseAddr(s.Netmask)
	if err != nil {
		return netip.Prefix{}, err
	}
	bits := 0
	for _, b := range mask.AsSlice() {
		for ; b&0x80 != 0; b <<= 1 {
			bits++
		}
	}
	return netip.PrefixFrom(address, bits), nil
}

// findDevice returns the MAC address of the device that an interface means.
func findDevice(name, mac string, place int, macs []string) (string, error) {
	mac = strings.ToUpper(mac)
	switch {
	case mac == "" && place < len(macs):
		return strings.ToUpper(macs[place]), nil
	case mac == "":
		return "", fmt.Errorf("network-config: interface %s has no network device, the VM has %d", name, len(macs))
	case !slices.ContainsFunc(macs, func(m string) bool { return strings.EqualFold(m, mac) }):
		return "", fmt.Errorf("network-config: interface %s wants MAC address %s, the VM has %s", name, mac, strings.Join(macs, ", "))
	}
	return mac, nil
}

// addressOf takes both forms of netplan: an address, or a map from the address to its options.
func addressOf(a any) string {
	if options, ok := a.(map[string]any); ok {
		for address := range options {
			return address
		}
	}
	return fmt.Sprint(a)
}
