package observe

import (
	"testing"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
)

func region(endpoints ...string) v1beta1.Region { return v1beta1.Region{Endpoints: endpoints} }

func clusterOf(regions ...v1beta1.Region) v1beta1.ProxmoxCluster {
	return v1beta1.ProxmoxCluster{Spec: v1beta1.ProxmoxClusterSpec{Regions: regions}}
}

func TestRegionsWithAnEndpointInCommonAreOneProxmoxVECluster(t *testing.T) {
	known := identify([]v1beta1.ProxmoxCluster{
		clusterOf(region("https://c:8006", "https://d:8006")),
		clusterOf(region("https://other:8006"), region("https://B:8006/", "https://c:8006/")),
		clusterOf(region("https://a:8006", "https://b:8006")),
	})
	for _, endpoint := range []string{"https://a:8006", "https://b:8006/", "https://c:8006", "https://D:8006"} {
		if got := known.of(region(endpoint)); got != "https://a:8006" {
			t.Errorf("%s leads to %s", endpoint, got)
		}
	}
	for endpoint, want := range map[string]PVECluster{"https://other:8006": "https://other:8006", "https://new:8006/": "https://new:8006"} {
		if got := known.of(region(endpoint)); got != want {
			t.Errorf("%s leads to %s, want %s", endpoint, got, want)
		}
	}
}
