package observe

import (
	"strings"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
)

// PVECluster identifies a Proxmox VE cluster among those that ProxmoxClusters name, each under its own region names. It is
// the first, in the order of the alphabet, of all endpoints that are known to lead to it.
type PVECluster string

// pveClusters tells which endpoints lead to one Proxmox VE cluster: those of a region do, and so those of regions that have
// one in common.
type pveClusters map[string]PVECluster

func identify(clusters []v1beta1.ProxmoxCluster) pveClusters {
	known := pveClusters{}
	for changed := true; changed; {
		changed = false
		for i := range clusters {
			for _, region := range clusters[i].Spec.Regions {
				changed = known.join(region) || changed
			}
		}
	}
	return known
}

// join gives all endpoints of a region the lowest identity that one of them has, and reports whether that changed any.
func (p pveClusters) join(region v1beta1.Region) (changed bool) {
	lowest := p.of(region)
	for _, endpoint := range region.Endpoints {
		if endpoint = normal(endpoint); p[endpoint] != lowest {
			p[endpoint], changed = lowest, true
		}
	}
	return changed
}

// of returns the identity of the Proxmox VE cluster of a region.
func (p pveClusters) of(region v1beta1.Region) PVECluster {
	var lowest PVECluster
	for _, endpoint := range region.Endpoints {
		endpoint = normal(endpoint)
		identity := PVECluster(endpoint)
		if known, found := p[endpoint]; found {
			identity = known
		}
		if lowest == "" || identity < lowest {
			lowest = identity
		}
	}
	return lowest
}

func normal(endpoint string) string { return strings.ToLower(strings.TrimSuffix(endpoint, "/")) }
