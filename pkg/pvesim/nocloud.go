package pvesim

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// seed is a NoCloud seed, understood as cloud-init would.
type seed struct {
	metaData      map[string]string
	userData      string
	networkConfig string
	network       networkConfig
	// addresses by MAC address, in upper case; filled when the seed meets a VM.
	addresses map[string][]netip.Prefix
}

// networkConfig is version 2 of cloud-init's network configuration, as far as it matters here.
type networkConfig struct {
	Network   *networkConfig      `json:"network"`
	Version   int                 `json:"version"`
	Ethernets map[string]ethernet `json:"ethernets"`
}

type ethernet struct {
	Match struct {
		MACAddress string `json:"macaddress"`
	} `json:"match"`
	SetName   string `json:"set-name"`
	DHCP4     bool   `json:"dhcp4"`
	DHCP6     bool   `json:"dhcp6"`
	Addresses []any  `json:"addresses"`
}

// newSeed reads the files of a seed. Both meta-data and user-data must be there, though user-data may be empty.
func newSeed(files map[string]string) (*seed, error) {
	meta, ok := files["meta-data"]
	if !ok {
		return nil, errors.New("no file meta-data")
	}
	user, ok := files["user-data"]
	if !ok {
		return nil, errors.New("no file user-data")
	}
	s := &seed{networkConfig: files["network-config"]}
	var raw map[string]any
	if err := yaml.Unmarshal([]byte(meta), &raw); err != nil {
		return nil, fmt.Errorf("meta-data is no YAML: %w", err)
	}
	s.metaData = make(map[string]string, len(raw))
	for key, value := range raw {
		s.metaData[key] = fmt.Sprint(value)
	}
	if s.metaData["instance-id"] == "" {
		return nil, errors.New("meta-data has no instance-id")
	}
	s.userData = s.render(user)
	return s, s.readNetwork()
}

func (s *seed) readNetwork() error {
	if strings.TrimSpace(s.networkConfig) == "" {
		return nil
	}
	if err := yaml.Unmarshal([]byte(s.networkConfig), &s.network); err != nil {
		return fmt.Errorf("network-config is no YAML: %w", err)
	}
	if s.network.Network != nil {
		s.network = *s.network.Network
	}
	if s.network.Version != 2 {
		return fmt.Errorf("network-config has version %d, only 2 is understood", s.network.Version)
	}
	return nil
}

const jinjaHeader = "## template: jinja"

// render fills in the placeholders of user-data that asks for it, as cloud-init does with Jinja: {{ ds.meta_data.x }} and
// {{ v1.x }}. Keys may be written with _ for -. What is unknown becomes cloud-init's CI_MISSING_JINJA_VAR.
func (s *seed) render(text string) string {
	header, rest, _ := strings.Cut(text, "\n")
	if !strings.EqualFold(strings.TrimSpace(header), jinjaHeader) {
		return text
	}
	placeholder := regexp.MustCompile(`\{\{-?\s*(ds\.meta_data|v1)(?:\.(\w+)|\[["']([^"']+)["']\])\s*-?\}\}`)
	return placeholder.ReplaceAllStringFunc(rest, func(match string) string {
		m := placeholder.FindStringSubmatch(match)
		return s.variable(m[1], m[2]+m[3])
	})
}

func (s *seed) variable(scope, name string) string {
	if scope == "v1" {
		switch name {
		case "local_hostname":
			name = "local-hostname"
		case "instance_id":
			name = "instance-id"
		}
	}
	for _, key := range []string{name, strings.ReplaceAll(name, "_", "-"), strings.ReplaceAll(name, "-", "_")} {
		if value, ok := s.metaData[key]; ok {
			return value
		}
	}
	return "CI_MISSING_JINJA_VAR/" + name
}

// describe fills in what the seed says of the guest, after checking it against the VM's network devices.
func (s *seed) describe(g *BootedGuest) error {
	if err := s.resolve(g.MACs); err != nil {
		return err
	}
	if name := s.metaData["local-hostname"]; name != "" {
		g.Hostname = name
	} else if name := s.metaData["hostname"]; name != "" {
		g.Hostname = name
	}
	g.InstanceID, g.MetaData = s.metaData["instance-id"], maps.Clone(s.metaData)
	g.UserData, g.NetworkConfig = s.userData, s.networkConfig
	for _, mac := range g.MACs {
		g.Addresses = append(g.Addresses, s.addresses[strings.ToUpper(mac)]...)
	}
	return nil
}

// resolve gives every configured interface a network device: by its MAC address, or else in the order of the names.
func (s *seed) resolve(macs []string) error {
	s.addresses = map[string][]netip.Prefix{}
	for i, name := range slices.Sorted(maps.Keys(s.network.Ethernets)) {
		e := s.network.Ethernets[name]
		mac := strings.ToUpper(e.Match.MACAddress)
		switch {
		case mac == "" && i < len(macs):
			mac = strings.ToUpper(macs[i])
		case mac == "":
			return fmt.Errorf("network-config: interface %s has no network device, the VM has %d", name, len(macs))
		case !slices.ContainsFunc(macs, func(m string) bool { return strings.EqualFold(m, mac) }):
			return fmt.Errorf("network-config: interface %s wants MAC address %s, the VM has %s", name, mac, strings.Join(macs, ", "))
		}
		for _, a := range e.Addresses {
			prefix, err := netip.ParsePrefix(addressOf(a))
			if err != nil {
				return fmt.Errorf("network-config: address of interface %s: %w", name, err)
			}
			s.addresses[mac] = append(s.addresses[mac], prefix)
		}
	}
	return nil
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

// generatedSeed is what Proxmox VE writes on its own cloud-init drive from the VM's config.
func generatedSeed(v *vm) map[string]string {
	user := "#cloud-config\nhostname: " + v.name() + "\nmanage_etc_hosts: true\n"
	if name := v.config["ciuser"]; name != "" {
		user += "user: " + name + "\n"
	}
	network := ""
	format, devices := ipConfigFormat(), netFormat()
	for i := range 32 {
		p, _ := format.parse(v.config[fmt.Sprintf("ipconfig%d", i)])
		device, _ := devices.parse(v.config[fmt.Sprintf("net%d", i)])
		if p["ip"] == "" || p["ip"] == "dhcp" || device["macaddr"] == "" {
			continue
		}
		network += fmt.Sprintf("  eth%d:\n    match: {macaddress: %q}\n    addresses: [%q]\n", i, device["macaddr"], p["ip"])
	}
	if network != "" {
		network = "version: 2\nethernets:\n" + network
	}
	id := checksum("sha1", []byte(user+network))
	return map[string]string{"meta-data": "instance-id: " + id + "\n", "user-data": user, "network-config": network}
}
