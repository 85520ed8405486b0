package pvesim

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// This file writes what is on the cloud-init drive (PVE::QemuServer::Cloudinit).

// isCloudInitOption tells whether an option only means something to the cloud-init drive.
func isCloudInitOption(key string) bool {
	return slices.Contains(cloudInitOptions(), key) || unnumbered(key) == "ipconfig"
}

func cloudInitOptions() []string {
	return []string{"cicustom", "cipassword", "citype", "ciuser", "ciupgrade", "nameserver", "searchdomain", "sshkeys"}
}

// cryptPassword has the form of what crypt makes of a password, $5$SALT$HASH, but is no such hash.
func cryptPassword(password string) string {
	if strings.HasPrefix(password, "$5$") || strings.HasPrefix(password, "$6$") {
		return password
	}
	sum := sha256.Sum256([]byte(password))
	text := base64.RawStdEncoding.EncodeToString(sum[:])
	return "$5$" + strings.NewReplacer("+", ".").Replace(text[:8]+"$"+text)
}

// cloudInitFiles are the files on the drive. Of files that the VM brings as snippets there is nothing.
func (v *vm) cloudInitFiles() map[string]string {
	return map[string]string{"meta-data": v.cloudInitMeta(), "user-data": v.cloudInitUser(), "network-config": v.cloudInitNetwork()}
}

// cloudInitUser is the user-data.
func (v *vm) cloudInitUser() string {
	host, fqdn := v.hostname()
	out := fmt.Sprintf("#cloud-config\nhostname: %s\nmanage_etc_hosts: true\nfqdn: %s\n", host, fqdn)
	user, named := v.config["ciuser"]
	if named {
		out += "user: " + user + "\n"
	}
	if password := v.config["cipassword"]; password != "" {
		out += "password: " + password + "\n"
	}
	if keys, err := url.PathUnescape(v.config["sshkeys"]); err == nil && keys != "" {
		out += "ssh_authorized_keys:\n"
		for key := range strings.SplitSeq(keys, "\n") {
			if strings.TrimSpace(key) != "" {
				out += "  - " + key + "\n"
			}
		}
	}
	out += "chpasswd:\n  expire: False\n"
	if user != "root" {
		out += "users:\n  - default\n"
	}
	if upgrade, given := v.config["ciupgrade"]; !given || upgrade == "1" {
		out += "package_upgrade: true\n"
	}
	return out
}

// hostname is what the guest shall call itself, alone and with its domain.
func (v *vm) hostname() (host, fqdn string) {
	name := v.config["name"]
	if name == "" {
		name = "VM" + v.id.String()
	}
	if host, _, dotted := strings.Cut(name, "."); dotted {
		return host, name
	}
	if domain := strings.TrimSpace(v.config["searchdomain"]); domain != "" {
		return name, name + "." + domain
	}
	return name, name
}

// cloudInitType is the form of the drive: Windows guests read only config drives.
func (v *vm) cloudInitType() string {
	if typ := v.config["citype"]; typ != "" {
		return typ
	}
	if isWindows(v.config["ostype"]) {
		return "configdrive2"
	}
	return "nocloud"
}

// cloudInitMeta is the meta-data: an instance ID that changes with the other files.
func (v *vm) cloudInitMeta() string {
	id := checksum("sha1", []byte(v.cloudInitUser()+v.cloudInitNetwork()))
	if v.cloudInitType() == "configdrive2" {
		return fmt.Sprintf("\n{\n     \"uuid\": %q,\n     \"network_config\": { \"content_path\": \"/content/0000\" }\n}\n", id)
	}
	return "instance-id: " + id + "\n"
}

// cloudInitNetwork is the network config.
func (v *vm) cloudInitNetwork() string {
	if v.cloudInitType() == "configdrive2" {
		return v.debianNetwork()
	}
	out := "version: 1\nconfig:\n"
	for _, n := range v.cloudInitDevices() {
		out += fmt.Sprintf("    - type: physical\n      name: eth%d\n      mac_address: '%s'\n      subnets:\n", n.index, strings.ToLower(n.mac))
		out += n.subnet4() + n.subnet6()
	}
	servers, domains := strings.Fields(v.config["nameserver"]), strings.Fields(v.config["searchdomain"])
	if len(servers)+len(domains) > 0 {
		out += "    - type: nameserver\n" + quotedList("address", servers) + quotedList("search", domains)
	}
	return out
}

func quotedList(key string, values []string) string {
	if len(values) == 0 {
		return ""
	}
	out := "      " + key + ":\n"
	for _, v := range values {
		out += "      - '" + v + "'\n"
	}
	return out
}

// cloudInitDevice is a network device with the addresses it shall have.
type cloudInitDevice struct {
	index                 int
	mac                   string
	ip, gw, ip6, gateway6 string
}

func (v *vm) cloudInitDevices() []cloudInitDevice {
	var out []cloudInitDevice
	format, devices := ipConfigFormat(), netFormat()
	for i := range 32 {
		device, _ := devices.Parse(v.config[fmt.Sprintf("net%d", i)])
		p, _ := format.Parse(v.config[fmt.Sprintf("ipconfig%d", i)])
		if len(device) > 0 && len(p) > 0 {
			out = append(out, cloudInitDevice{index: i, mac: device["macaddr"], ip: p["ip"], gw: p["gw"], ip6: p["ip6"], gateway6: p["gw6"]})
		}
	}
	return out
}

func (n cloudInitDevice) subnet4() string {
	switch n.ip {
	case "":
		return ""
	case "dhcp":
		return "      - type: dhcp4\n"
	}
	address, mask := splitNetwork(n.ip)
	out := fmt.Sprintf("      - type: static\n        address: '%s'\n        netmask: '%s'\n", address, mask)
	if n.gw != "" {
		out += fmt.Sprintf("        gateway: '%s'\n", n.gw)
	}
	return out
}

func (n cloudInitDevice) subnet6() string {
	switch n.ip6 {
	case "":
		return ""
	case "dhcp":
		return "      - type: dhcp6\n"
	case "auto":
		return "      - type: ipv6_slaac\n"
	}
	out := fmt.Sprintf("      - type: static6\n        address: '%s'\n", n.ip6)
	if n.gateway6 != "" {
		out += fmt.Sprintf("        gateway: '%s'\n", n.gateway6)
	}
	return out
}

// splitNetwork is the address and the netmask of 10.0.0.1/24.
func splitNetwork(cidr string) (address, mask string) {
	p, err := netip.ParsePrefix(cidr)
	if err != nil {
		return cidr, ""
	}
	return p.Addr().String(), net.IP(net.CIDRMask(p.Bits(), p.Addr().BitLen())).String()
}

// debianNetwork is the network config of a config drive: Debian's file of interfaces.
func (v *vm) debianNetwork() string {
	out := "auto lo\niface lo inet loopback\n\n"
	for _, n := range v.cloudInitDevices() {
		out += fmt.Sprintf("auto eth%d\n", n.index)
		switch n.ip {
		case "":
		case "dhcp":
			out += fmt.Sprintf("iface eth%d inet dhcp\n", n.index)
		default:
			address, mask := splitNetwork(n.ip)
			out += fmt.Sprintf("iface eth%d inet static\n        address %s\n        netmask %s\n", n.index, address, mask)
			if n.gw != "" {
				out += fmt.Sprintf("        gateway %s\n", n.gw)
			}
		}
		out += n.debian6()
	}
	if servers := strings.Join(strings.Fields(v.config["nameserver"]), " "); servers != "" {
		out += "        dns_nameservers " + servers + "\n"
	}
	if domains := strings.Join(strings.Fields(v.config["searchdomain"]), " "); domains != "" {
		out += "        dns_search " + domains + "\n"
	}
	return out
}

func (n cloudInitDevice) debian6() string {
	switch n.ip6 {
	case "":
		return ""
	case "auto", "dhcp":
		return fmt.Sprintf("iface eth%d inet6 %s\n", n.index, n.ip6)
	}
	address, bits, _ := strings.Cut(n.ip6, "/")
	out := fmt.Sprintf("iface eth%d inet6 static\n        address %s\n        netmask %s\n", n.index, address, bits)
	if n.gateway6 != "" {
		out += fmt.Sprintf("        gateway %s\n", n.gateway6)
	}
	return out
}
