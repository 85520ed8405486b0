package pvesim

import (
	"net/http"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/firewall"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

// vnetFirewall is that of an SDN vnet. Its handlers look after the rights themselves, which depend on the vnet's zone.
func vnetFirewall(v Version) firewallPlace {
	return firewallPlace{
		path: "/cluster/sdn/vnets/{vnet}/firewall", place: firewall.VNetPlace, params: []schema.Param{sdnID(v, "vnet")},
		find: func(c *call) *firewall.Config { return orEmptyFile(c.firewalls.vnets[c.params["vnet"]]) },
		keep: func(c *call, f *firewall.Config) { c.firewalls.vnets[c.params["vnet"]] = f },
	}
}

func vnetFirewallRoutes(v Version) []Route {
	p := vnetFirewall(v)
	out := append(p.rules().routes(), p.optionRoutes(vnetFirewallOptions())...)
	for i := range out {
		privileges := []string{"SDN.Allocate"}
		if out[i].Method == http.MethodGet {
			privileges = []string{"SDN.Audit", "SDN.Allocate"}
		}
		out[i].handle = onVNet(out[i].handle, privileges...)
	}
	index := p.index("rules", "options")
	index.permission = rootAlone{}
	return append(out, index)
}

func vnetFirewallOptions() []schema.Param {
	return []schema.Param{schema.Boolean("enable"), schema.Choice("log_level_forward", logLevels()...), schema.Choice("policy_forward", "ACCEPT", "DROP")}
}
