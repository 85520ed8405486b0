package pvesim

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/nocloud"
)

const (
	// bootDelay is from power-on until cloud-init has read its seed, on a host of speed 1.
	bootDelay = 8 * time.Second
	// shutdownDelay is how long the booted system takes to go down.
	shutdownDelay = 3 * time.Second
)

// BootHooks are told what booting guests do. They are called in the goroutine of the VM, in order for one VM and at the same
// time for several, and may block.
type BootHooks struct {
	// Delay is the time from power-on to OnBoot on a host of speed 1. Zero means 8 s.
	Delay time.Duration
	// OnBoot is called when a guest has read a good seed, on every boot.
	OnBoot func(BootedGuest)
	// OnBootFailed is called when there is none; Err says why.
	OnBootFailed func(BootedGuest)
	// OnStop is called when a guest that had booted loses its power, and again when it is destroyed.
	OnStop func(BootedGuest, PowerOffCause)
}

// BootedGuest is what a guest found when it booted.
type BootedGuest struct {
	VMID proxmox.VMID
	Node proxmox.NodeName
	UUID proxmox.SMBIOSUUID
	// Name of the VM in Proxmox VE.
	Name string
	// Hostname is local-hostname of the seed's meta-data, or the VM's name.
	Hostname   string
	InstanceID string
	// Addresses are the static ones of the seed's network-config.
	Addresses []netip.Prefix
	// MACs of the VM's network devices, net0 first.
	MACs     []string
	MetaData map[string]string
	// UserData with its placeholders filled in.
	UserData      string
	NetworkConfig string
	// Boots counts from 1.
	Boots int
	// Err is why the guest did not come up; nil if it did.
	Err error
}

// Booting makes guests that boot as a Linux with cloud-init does: after a while they read the NoCloud seed on their CD-ROMs,
// take its addresses and report them through the guest agent. A guest that has once booted keeps its seed, so that it comes
// up again after the medium was taken away.
func Booting(h BootHooks) GuestFactory {
	if h.Delay == 0 {
		h.Delay = bootDelay
	}
	return func(proxmox.VMID) Guest { return &booting{hooks: h} }
}

type booting struct {
	hooks BootHooks

	mu         sync.Mutex
	up         bool
	interfaces []NetworkInterface

	// The rest is touched only in the goroutine of the VM.
	seed  *nocloud.Seed
	boots int
	last  *BootedGuest
}

// PowerOn boots the guest after a while.
func (g *booting) PowerOn(m Machine) { m.After(g.hooks.Delay, func() { g.boot(m) }) }

func (g *booting) boot(m Machine) {
	g.boots++
	found := BootedGuest{VMID: m.VMID, Node: m.Node, UUID: m.UUID, Name: m.Name, Hostname: m.Name, MACs: m.MACs, Boots: g.boots}
	s, err := readSeed(m.Media())
	if err != nil && g.seed != nil {
		s, err = g.seed, nil
	}
	var addresses map[string][]netip.Prefix
	if err == nil {
		addresses, err = found.take(s)
	}
	if found.Err = err; err != nil {
		if g.hooks.OnBootFailed != nil {
			g.hooks.OnBootFailed(found)
		}
		return
	}
	g.seed, g.last = s, &found
	g.comeUp(interfacesOf(m.MACs, addresses))
	if g.hooks.OnBoot != nil {
		g.hooks.OnBoot(found)
	}
}

func (g *booting) comeUp(list []NetworkInterface) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.up, g.interfaces = true, list
}

// PowerOff ends the guest.
func (g *booting) PowerOff(cause PowerOffCause) {
	g.mu.Lock()
	g.up, g.interfaces = false, nil
	g.mu.Unlock()
	if g.last != nil && g.hooks.OnStop != nil {
		g.hooks.OnStop(*g.last, cause)
	}
}

// Shutdown is obeyed.
func (g *booting) Shutdown() (time.Duration, bool) { return shutdownDelay, true }

// Interfaces is what the agent reports once the guest is up.
func (g *booting) Interfaces() ([]NetworkInterface, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.interfaces), g.up
}

// take fills in what the seed says, after checking it against the VM's network devices, and returns the addresses of each.
func (g *BootedGuest) take(s *nocloud.Seed) (map[string][]netip.Prefix, error) {
	addresses, err := s.Addresses(g.MACs)
	if err != nil {
		return nil, err
	}
	if name := s.Hostname(); name != "" {
		g.Hostname = name
	}
	g.InstanceID, g.MetaData = s.InstanceID(), maps.Clone(s.MetaData)
	g.UserData, g.NetworkConfig = s.UserData, s.NetworkConfig
	for _, mac := range g.MACs {
		g.Addresses = append(g.Addresses, addresses[strings.ToUpper(mac)]...)
	}
	return addresses, nil
}

// interfacesOf are the loopback and one per network device, with the addresses by MAC address in upper case.
func interfacesOf(macs []string, addresses map[string][]netip.Prefix) []NetworkInterface {
	out := []NetworkInterface{{Name: "lo", MAC: "00:00:00:00:00:00", Addresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/8")}}}
	names := []string{"eth0", "eth1", "eth2", "eth3", "eth4", "eth5", "eth6", "eth7"}
	for i, mac := range macs {
		if i >= len(names) {
			break
		}
		out = append(out, NetworkInterface{Name: names[i], MAC: strings.ToLower(mac), Addresses: addresses[strings.ToUpper(mac)]})
	}
	return out
}
