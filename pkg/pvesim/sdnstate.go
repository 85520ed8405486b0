package pvesim

import (
	"maps"
	"reflect"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/sdn"
)

// loadSDN enters the software-defined network of a state that has its nodes already. All hosts that run have made their bridges.
func (w *World) loadSDN(s SDNSpec) {
	w.sdn.running = s.config()
	w.sdn.config = s.config()
	if s.Configured != nil {
		w.sdn.config = s.Configured.config()
	}
	for id, options := range s.IPAMs {
		w.sdn.config.IPAMs[id] = maps.Clone(options)
	}
	for id, options := range s.DNS {
		w.sdn.config.DNS[id] = maps.Clone(options)
	}
	if w.sdn.version = s.Version; s.Version == 0 && len(s.Zones) > 0 {
		w.sdn.version = 1
	}
	for _, n := range w.nodes {
		if n.online && !n.NoIfupdown2 && w.sdn.version > 0 {
			w.sdn.apply(n)
		}
	}
	for id, f := range s.Firewalls {
		w.firewalls.vnets[id] = f.config()
	}
}

// config is the network without what is never pending.
func (s SDNSpec) config() sdn.Config {
	out := sdn.Empty()
	for id, options := range s.Zones {
		out.Zones[id] = maps.Clone(options)
	}
	for id, options := range s.VNets {
		out.VNets[id] = withDefaults(options, "type", "vnet")
	}
	for id, options := range s.Controllers {
		out.Controllers[id] = maps.Clone(options)
	}
	for vnet, subnets := range s.Subnets {
		for id, options := range subnets {
			out.Subnets[id] = withDefaults(options, "type", "subnet", "vnet", vnet)
		}
	}
	return out
}

func withDefaults(options map[string]string, pairs ...string) sdn.Section {
	out := sdn.Section{}
	for i := 0; i+1 < len(pairs); i += 2 {
		out[pairs[i]] = pairs[i+1]
	}
	maps.Copy(out, options)
	return out
}

func (w *World) dumpSDN(s *State) {
	s.SDN = sdnSpec(w.sdn.running)
	if configured := sdnSpec(w.sdn.config); !reflect.DeepEqual(configured, s.SDN) {
		s.SDN.Configured = &configured
	}
	s.SDN.Version = w.sdn.version
	for id, options := range w.sdn.config.IPAMs {
		if id != "pve" {
			s.SDN.IPAMs = put(s.SDN.IPAMs, id, without(options))
		}
	}
	for id, options := range w.sdn.config.DNS {
		s.SDN.DNS = put(s.SDN.DNS, id, without(options))
	}
	for id, f := range w.firewalls.vnets {
		s.SDN.Firewalls = put(s.SDN.Firewalls, id, firewallSpec(f))
	}
}

func sdnSpec(c sdn.Config) SDNSpec {
	var out SDNSpec
	for id, options := range c.Zones {
		out.Zones = put(out.Zones, id, without(options))
	}
	for id, options := range c.VNets {
		out.VNets = put(out.VNets, id, without(options, "type"))
	}
	for id, options := range c.Controllers {
		out.Controllers = put(out.Controllers, id, without(options))
	}
	for id, options := range c.Subnets {
		vnet := options["vnet"]
		out.Subnets = put(out.Subnets, vnet, put(out.Subnets[vnet], id, without(options, "type", "vnet")))
	}
	return out
}

func without(options sdn.Section, keys ...string) map[string]string {
	out := maps.Clone(options)
	for _, key := range keys {
		delete(out, key)
	}
	return out
}

// put sets a key of a map that is made when it is needed.
func put[V any, M ~map[string]V](m M, key string, value V) M {
	if m == nil {
		m = M{}
	}
	m[key] = value
	return m
}
