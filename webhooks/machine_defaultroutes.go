package webhooks

import (
	"cmp"
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
	// table is the routing table: a VRF's, mainTable, or one that the route names.
	table int32
	// metric is -1 where it is left to the guest.
	metric int32
}

// mainTable is the number of the main routing table (rt_tables).
const mainTable = 254

// checkDefaultRoutes refuses two default routes of one family and metric in one routing table: which of them is used would be
// chance.
func checkDefaultRoutes(s machineSubject) field.ErrorList {
	var errs field.ErrorList
	seen := map[defaultRoutePlace]*field.Path{}
	for _, route := range s.defaultRoutes() {
		if other := seen[route.place]; other != nil {
			errs = append(errs, field.Invalid(route.path, route.value, fmt.Sprintf(
				"two %s default routes of the same metric are in the %s, the other is %s: keep one of them, or give them different metrics", route.place.family, s.nameOf(route.place.table), other)))
			continue
		}
		seen[route.place] = route.path
	}
	return errs
}

func (s machineSubject) defaultRoutes() []defaultRoute {
	var all []defaultRoute
	for i, device := range s.spec.Network.Devices {
		path, table := s.devicePath(i), s.tableOf(device.Name)
		for _, from := range []struct {
			field, family string
			source        v1beta1.AddressSource
		}{{"ipv4", "IPv4", device.IPv4.AddressSource}, {"ipv6", "IPv6", device.IPv6.AddressSource}} {
			if isTrue(from.source.DefaultRoute) {
				all = append(all, defaultRoute{path.Child(from.field, "defaultRoute"), true, defaultRoutePlace{family: from.family, table: table, metric: orUnset(from.source.Metric)}})
			}
		}
		all = append(all, written(path.Child("routes"), table, device.Routes)...)
	}
	for i, vrf := range s.spec.Network.VRFs {
		all = append(all, written(s.path.Child("network", "vrfs").Index(i).Child("routes"), vrf.Table, vrf.Routes)...)
	}
	return all
}

// written are the default routes among routes, which are in the table where they name none.
func written(path *field.Path, table int32, routes []v1beta1.Route) []defaultRoute {
	var all []defaultRoute
	for i, route := range routes {
		if !strings.HasSuffix(route.To, "/0") {
			continue
		}
		place := defaultRoutePlace{family: "IPv4", table: cmp.Or(route.Table, table), metric: orUnset(route.Metric)}
		if strings.Contains(route.To, ":") {
			place.family = "IPv6"
		}
		all = append(all, defaultRoute{path.Index(i).Child("to"), route.To, place})
	}
	return all
}

// tableOf is the routing table of a device's routes.
func (s machineSubject) tableOf(device string) int32 {
	for _, vrf := range s.spec.Network.VRFs {
		if slices.Contains(vrf.Devices, device) {
			return vrf.Table
		}
	}
	return mainTable
}

// nameOf says which routing table it is.
func (s machineSubject) nameOf(table int32) string {
	for _, vrf := range s.spec.Network.VRFs {
		if vrf.Table == table {
			return "VRF " + vrf.Name
		}
	}
	if table == mainTable {
		return "main routing table"
	}
	return fmt.Sprintf("routing table %d", table)
}

func orUnset(metric *int32) int32 {
	if metric == nil {
		return -1
	}
	return *metric
}
