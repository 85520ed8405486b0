package network

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// Interface is a network interface as a guest tells of it.
type Interface struct {
	MAC       string
	Addresses []netip.Prefix
}

// Reported returns the addresses, of those that a guest tells of, that it got from the network, and says which devices still
// lack some; empty when none does. The endpoint, which a guest may hold for a while, is nobody's own.
func Reported(uuid proxmox.SMBIOSUUID, spec v1beta1.Network, interfaces []Interface, endpoint string) (addresses []Address, lacking string) {
	var without []string
	for _, device := range Devices(spec) {
		mac := DeviceMAC(uuid, device)
		for _, family := range families() {
			from := addressingOf(device, family)
			if !from.isAutomatic() {
				continue
			}
			found := ofInterface(interfaces, mac, family, endpoint)
			for _, prefix := range found {
				addresses = append(addresses, Address{Claim: Claim{Device: device.Name, Family: family}, Prefix: prefix})
			}
			if len(found) == 0 {
				without = append(without, fmt.Sprintf("%s (%s by %s)", device.Name, family, from.method))
			}
		}
	}
	return addresses, strings.Join(without, ", ")
}

// ofInterface returns a device's addresses of a family: the one that follows from the MAC address first, since it stays, and
// the others in an order that stays.
func ofInterface(interfaces []Interface, mac string, family Family, endpoint string) []netip.Prefix {
	var found []netip.Prefix
	for _, candidate := range interfaces {
		if !strings.EqualFold(candidate.MAC, mac) {
			continue
		}
		for _, prefix := range candidate.Addresses {
			ip := prefix.Addr()
			isOwn := ip.IsGlobalUnicast() && ip.String() != endpoint && (ip.Is6() || prefix.Bits() < ip.BitLen())
			if isOwn && ip.Is4() == (family == IPv4) && !slices.Contains(found, prefix) {
				found = append(found, prefix)
			}
		}
	}
	slices.SortFunc(found, func(a, b netip.Prefix) int {
		if isA, isB := follows(a, mac), follows(b, mac); isA != isB {
			if isA {
				return -1
			}
			return 1
		}
		return a.Addr().Compare(b.Addr())
	})
	return found
}

func follows(address netip.Prefix, mac string) bool {
	made, ok := EUI64(address, mac)
	return ok && made == address.Addr()
}
