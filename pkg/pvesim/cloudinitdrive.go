package pvesim

import "fmt"

// generatedSeed is what Proxmox VE writes on its own cloud-init drive from the VM's config.
func generatedSeed(v *vm) map[string]string {
	user := "#cloud-config\nhostname: " + v.name() + "\nmanage_etc_hosts: true\n"
	if name := v.config["ciuser"]; name != "" {
		user += "user: " + name + "\n"
	}
	network := ""
	format, devices := ipConfigFormat(), netFormat()
	for i := range 32 {
		p, _ := format.Parse(v.config[fmt.Sprintf("ipconfig%d", i)])
		device, _ := devices.Parse(v.config[fmt.Sprintf("net%d", i)])
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
