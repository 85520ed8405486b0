package webhooks

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
)

// defaultRoute is a default route that a spec asks for.
type defaultRoute struct {
	path  *field.Path
	value any
	// place is what two default routes of different places have nothing to do with each other for.
	place defaultRoutePlace
}

type defaultRoutePlace struct {
	family string
	// vrf is the VRF, or empty for the main routing domain; table is the table where the route names one.
	vrf   string
	table int32
	// metric is -1 where it is left to the guest.
	metric int32
}

// checkDefaultRoutes refuses two default routes of one family and metric in one routing domain: which of them is used would be
// chance.
func checkDefaultRoutes(s machineSubject) field.ErrorList {
	var errs field.ErrorList
	seen := map[defaultRoutePlace]*field.Path{}
	for _, route := range s.defaultRoutes() {
		if other := seen[route.place]; other != nil {
			where := "main routing table"
			if route.place.vrf != "" {
				where = "VRF " + route.place.vrf
			}
			errs = append(errs, field.Invalid(route.path, route.value, fmt.Sprintf(
				"two %s default routes of the same metric are in the %s, the other is %s: keep one of them, or give them different metrics", route.place.family, where, other)))
			continue
		}
		seen[route.place] = route.path
	}
	return errs
}

func (s machineSubject) defaultRoutes() []defaultRoute {
	var all []defaultRoute
	for i, device := range s.spec.Network.Devices {
		path, vrf := s.devicePath(i), s.vrfOf(device.Name)
		for _, from := range []struct {
			field, family string
			source        v1beta1.AddressSource
		}{{"ipv4", "IPv4", device.IPv4.AddressSource}, {"ipv6", "IPv6", device.IPv6.AddressSource}} {
			if isTrue(from.source.DefaultRoute) {
				all = append(all, defaultRoute{path.Child(from.field, "defaultRoute"), true, defaultRoutePlace{family: from.family, vrf: vrf, metric: orUnset(from.source.Metric)}})
			}
		}
		all = append(all, written(path.Child("routes"), vrf, device.Routes)...)
	}
	for i, vrf := range s.spec.Network.VRFs {
		all = append(all, written(s.path.Child("network", "vrfs").Index(i).Child("routes"), vrf.Name, vrf.Routes)...)
	}
	return all
}

// written are the default routes among routes.
func written(path *field.Path, vrf string, routes []v1beta1.Route) []defaultRoute {
	var all []defaultRoute
	for i, route := range routes {
		if !strings.HasSuffix(route.To, "/0") {
			continue
		}
		place := defaultRoutePlace{family: "IPv4", vrf: vrf, table: route.Table, metric: orUnset(route.Metric)}
		if strings.Contains(route.To, ":") {
			place.family = "IPv6"
		}
		if vrf != "" {
			place.table = 0 // the VRF's, whether it is named or not
		}
		all = append(all, defaultRoute{path.Index(i).Child("to"), route.To, place})
	}
	return all
}

func (s machineSubject) vrfOf(device string) string {
	for _, vrf := range s.spec.Network.VRFs {
		if slices.Contains(vrf.Devices, device) {
			return vrf.Name
		}
	}
	return ""
}

func orUnset(metric *int32) int32 {
	if metric == nil {
		return -1
	}
	return *metric
}
