package webhooks

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
)

func (s machineSubject) devicePath(index int) *field.Path {
	return s.path.Child("network", "devices").Index(index)
}

// device finds a network device by its name.
func (s machineSubject) device(name string) (v1beta1.NetworkDevice, bool) {
	at := slices.IndexFunc(s.spec.Network.Devices, func(d v1beta1.NetworkDevice) bool { return d.Name == name })
	if at < 0 {
		return v1beta1.NetworkDevice{}, false
	}
	return s.spec.Network.Devices[at], true
}

func checkCards(s machineSubject) field.ErrorList {
	const leastIPv6 = 1280 // RFC 8200
	var errs field.ErrorList
	had := map[string]string{}
	for i, device := range s.spec.Network.Devices {
		if device.IPv6.Method != "" && device.MTU > 1 && device.MTU < leastIPv6 {
			errs = append(errs, field.Invalid(s.devicePath(i).Child("mtu"), device.MTU, "IPv6 needs an mtu of at least 1280: raise it, or leave ipv6 out"))
		}
		mac := strings.ToLower(device.MACAddress)
		if mac != "" && had[mac] != "" {
			errs = append(errs, field.Invalid(s.devicePath(i).Child("macAddress"), device.MACAddress,
				fmt.Sprintf("two devices have the same macAddress, the other is %s: give one of them another, or leave it out", had[mac])))
		}
		had[mac] = device.Name
	}
	return errs
}

func checkRoutes(s machineSubject) field.ErrorList {
	var errs field.ErrorList
	for i, device := range s.spec.Network.Devices {
		for j, route := range device.Routes {
			if device.IPv4.Method == "" && strings.Contains(route.Via, ".") && !strings.Contains(route.Via, ":") {
				errs = append(errs, field.Invalid(s.devicePath(i).Child("routes").Index(j).Child("via"), route.Via,
					"a route via an IPv4 router needs an IPv4 address on the device: set ipv4, or leave the route out"))
			}
		}
	}
	return errs
}

func checkVRFs(s machineSubject) field.ErrorList {
	var errs field.ErrorList
	vrfOf, tables := map[string]string{}, map[int32]string{}
	for i, vrf := range s.spec.Network.VRFs {
		path := s.path.Child("network", "vrfs").Index(i)
		for j, device := range vrf.Devices {
			if _, found := s.device(device); !found || vrfOf[device] != "" {
				errs = append(errs, field.Invalid(path.Child("devices").Index(j), device,
					"the devices of a VRF are devices of the VM, and each is in one VRF at most: correct the names in devices"))
			}
			vrfOf[device] = vrf.Name
		}
		if other := tables[vrf.Table]; other != "" {
			errs = append(errs, field.Invalid(path.Child("table"), vrf.Table, fmt.Sprintf("each VRF needs a routing table of its own, and %s has it: change table of one of them", other)))
		}
		tables[vrf.Table] = vrf.Name
		errs = append(errs, checkTables(path, vrf)...)
	}
	return errs
}

// checkTables refuses routes and rules of a VRF that are not of its table.
func checkTables(path *field.Path, vrf v1beta1.VRF) field.ErrorList {
	var errs field.ErrorList
	for i, route := range vrf.Routes {
		if route.Table != 0 && route.Table != vrf.Table {
			errs = append(errs, field.Invalid(path.Child("routes").Index(i).Child("table"), route.Table,
				fmt.Sprintf("the routes of a VRF are in its table, %d: leave table out of them", vrf.Table)))
		}
	}
	for i, rule := range vrf.RoutingPolicy {
		if rule.Table != vrf.Table {
			errs = append(errs, field.Invalid(path.Child("routingPolicy").Index(i).Child("table"), rule.Table,
				fmt.Sprintf("the routing policy of a VRF uses its table: set table to the VRF's, %d", vrf.Table)))
		}
	}
	return errs
}

func checkSecurityGroups(s machineSubject) field.ErrorList {
	var errs field.ErrorList
	path, seen := s.path.Child("firewall", "securityGroups"), map[v1beta1.SecurityGroup]bool{}
	for i, group := range s.spec.Firewall.SecurityGroups {
		device, found := s.device(group.Device)
		switch {
		case seen[group]:
			errs = append(errs, field.Invalid(path.Index(i).Child("name"), group.Name, "a security group may be named once for each device: leave one of them out"))
		case group.Device != "" && !found:
			errs = append(errs, field.Invalid(path.Index(i).Child("device"), group.Device,
				"the device of a security group is one of network.devices: correct its name, or leave it out for all"))
		case group.Device != "" && isFalse(device.Firewall):
			errs = append(errs, field.Invalid(path.Index(i).Child("device"), group.Device,
				"a security group is for a device whose firewall is false, so that its rules do nothing: set the device's firewall to true, or leave the group out"))
		}
		seen[group] = true
	}
	return errs
}
