package network

import (
	"net/netip"

	"k8s.io/utils/ptr"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
)

// routing says which devices have a default route. In each routing domain, the main one or a VRF, and for each family that is
// those that say so or, where none does, the first that has a router and does not say that it is none: two would fight.
type routing struct {
	domains map[string]v1beta1.VRF // by device
	routers map[place]Address      // the first address of those with a gateway
	chosen  map[place]bool
}

// place is a family on a device.
type place struct {
	device string
	family Family
}

func newRouting(spec v1beta1.Network, addresses []Address) routing {
	r := routing{domains: map[string]v1beta1.VRF{}, routers: map[place]Address{}, chosen: map[place]bool{}}
	for _, vrf := range spec.VRFs {
		for _, device := range vrf.Devices {
			r.domains[device] = vrf
		}
	}
	for _, address := range addresses {
		at := place{address.Claim.Device, address.Claim.Family}
		if _, found := r.routers[at]; !found && address.Gateway.IsValid() {
			r.routers[at] = address
		}
	}
	for _, family := range families() {
		r.choose(Devices(spec), family)
	}
	return r
}

func (r routing) choose(devices []v1beta1.NetworkDevice, family Family) {
	said, first := map[string]bool{}, map[string]string{}
	for _, device := range devices {
		domain, from := r.domains[device.Name].Name, addressingOf(device, family)
		_, hasGateway := r.routers[place{device.Name, family}]
		switch {
		case !hasGateway && !from.isAutomatic():
		case from.DefaultRoute == nil && first[domain] == "":
			first[domain] = device.Name
		case ptr.Deref(from.DefaultRoute, false):
			said[domain], r.chosen[place{device.Name, family}] = true, true
		}
	}
	for domain, device := range first {
		if !said[domain] {
			r.chosen[place{device, family}] = true
		}
	}
}

// table is the routing table of a device's routes; 0 for the main one.
func (r routing) table(device string) int32 { return r.domains[device].Table }

// set gives a device its default route of a family, or keeps what it learns from the network from becoming one.
func (r routing) set(ethernet *Ethernet, device v1beta1.NetworkDevice, family Family) {
	at, from := place{device.Name, family}, addressingOf(device, family)
	router, hasGateway := r.routers[at]
	switch {
	case from.method == methodDHCP && family == IPv4:
		ethernet.DHCP4Overrides = overrides(from, r.chosen[at])
	case hasGateway && r.chosen[at]:
		ethernet.setGateway(router, from.Metric, r.table(device.Name))
	}
}

// overrides says what becomes of a DHCP server's routes; nil for what guests do with them by themselves.
func overrides(from addressing, isDefault bool) *DHCPOverrides {
	switch {
	case from.DefaultRoute != nil && !*from.DefaultRoute:
		return &DHCPOverrides{UseRoutes: ptr.To(false)}
	case from.Metric != nil:
		return &DHCPOverrides{RouteMetric: from.Metric}
	case !isDefault:
		return &DHCPOverrides{RouteMetric: ptr.To[int32](standbyMetric)}
	}
	return nil
}

// setGateway sets the default router. A route to `default` is known to no renderer of cloud-init 22.4 but netplan, and of
// routes to ::/0 see Gateway6; that says nothing of metrics and tables.
func (e *Ethernet) setGateway(router Address, metric *int32, table int32) {
	gateway := router.Gateway
	isFar := (gateway.Is4() || !gateway.IsLinkLocalUnicast()) && !router.Prefix.Contains(gateway)
	if gateway.Is6() && metric == nil && table == 0 && !isFar {
		e.Gateway6 = gateway.String()
		return
	}
	e.Routes = append(e.Routes, Route{
		To: defaultNetwork(gateway), Via: gateway.String(), OnLink: isFar, Metric: metric, Table: table,
	})
}

func defaultNetwork(gateway netip.Addr) string {
	if gateway.Is4() {
		return "0.0.0.0/0"
	}
	return "::/0"
}
