package observe

import (
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/plan/vmconfig"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pve"
)

// sightingTTL is how long a sighting is believed: VMIDs come free, and templates are made anew.
const sightingTTL = 5 * time.Minute

// place names a template, or a snapshot of a VM, in a Proxmox VE cluster.
type place struct {
	cluster  PVECluster
	ref      pve.VMRef
	snapshot string
}

// sighting is what was seen at a place, and until when that is believed.
type sighting struct {
	until  time.Time
	config vmconfig.Config
}

func (m *Memory) see(at place, config vmconfig.Config) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sightings[at] = sighting{until: m.clock.Now().Add(sightingTTL), config: config}
}

func (m *Memory) seen(at place) (sighting, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found, ok := m.sightings[at]
	if ok && m.clock.Now().After(found.until) {
		delete(m.sightings, at)
		return sighting{}, false
	}
	return found, ok
}
