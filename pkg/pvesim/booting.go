package pvesim

import (
	"fmt"
	"maps"
	"net"
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
	// NoAgent makes guests without a guest agent.
	NoAgent bool
	// AgentDelay is how long the guest agent takes for every answer on a host of speed 1. Proxmox VE gives up after 3 s.
	AgentDelay time.Duration
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
	// Addresses are the static ones of the seed's network-config, and those that DHCP gave.
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

// Booting makes guests that boot as Debian 12 with cloud-init and the guest agent does: after a while they read the NoCloud seed
// on their CD-ROMs, take its addresses or ask for one by DHCP, and report them through the agent. A guest that has once booted
// keeps its seed, so that it comes up again after the medium was taken away.
func Booting(h BootHooks) GuestFactory {
	if h.Delay == 0 {
		h.Delay = bootDelay
	}
	return func(proxmox.VMID) Guest { return &booting{hooks: h} }
}

type booting struct {
	hooks BootHooks

	mu     sync.Mutex
	system *debian

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
	var interfaces []NetworkInterface
	if err == nil {
		interfaces, err = found.take(s, m.Lease)
	}
	if found.Err = err; err != nil {
		if g.hooks.OnBootFailed != nil {
			g.hooks.OnBootFailed(found)
		}
		return
	}
	g.seed, g.last = s, &found
	g.comeUp(newDebian(m, found.Hostname, interfaces))
	if g.hooks.OnBoot != nil {
		g.hooks.OnBoot(found)
	}
}

func (g *booting) comeUp(system *debian) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.system = system
}

// PowerOff ends the guest.
func (g *booting) PowerOff(cause PowerOffCause) {
	g.comeUp(nil)
	if g.last != nil && g.hooks.OnStop != nil {
		g.hooks.OnStop(*g.last, cause)
	}
}

// Shutdown is obeyed.
func (g *booting) Shutdown() (time.Duration, bool) { return shutdownDelay, true }

// Agent answers once the guest is up.
func (g *booting) Agent(cmd AgentCommand) AgentAnswer {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.system == nil || g.hooks.NoAgent {
		return AgentAnswer{Absent: true}
	}
	answer := g.system.answer(cmd)
	answer.Delay = g.hooks.AgentDelay
	return answer
}

// take fills in what the seed says, after checking it against the VM's network devices, and returns the interfaces.
func (g *BootedGuest) take(s *nocloud.Seed, lease func(string) (netip.Prefix, bool)) ([]NetworkInterface, error) {
	links, err := s.Links(g.MACs)
	if err != nil {
		return nil, err
	}
	if name := s.Hostname(); name != "" {
		g.Hostname = name
	}
	g.InstanceID, g.MetaData = s.InstanceID(), maps.Clone(s.MetaData)
	g.UserData, g.NetworkConfig = s.UserData, s.NetworkConfig
	out := []NetworkInterface{{Name: "lo", MAC: "00:00:00:00:00:00", Addresses: []netip.Prefix{
		netip.MustParsePrefix("127.0.0.1/8"), netip.MustParsePrefix("::1/128"),
	}}}
	for i, mac := range g.MACs {
		l, configured := links[strings.ToUpper(mac)]
		addresses := slices.Clone(l.Addresses)
		if l.DHCP {
			if given, ok := lease(mac); ok {
				addresses = append(addresses, given)
			}
		}
		g.Addresses = append(g.Addresses, addresses...)
		if configured {
			addresses = append(addresses, linkLocal(mac)...)
		}
		name := l.Name
		if name == "" {
			name = fmt.Sprintf("eth%d", i)
		}
		out = append(out, NetworkInterface{Name: name, MAC: strings.ToLower(mac), Addresses: addresses})
	}
	return out, nil
}

// linkLocal is the IPv6 address that the kernel makes of the MAC address of a device that is up (EUI-64).
func linkLocal(mac string) []netip.Prefix {
	b, err := net.ParseMAC(mac)
	if err != nil || len(b) != 6 {
		return nil
	}
	a := [16]byte{0: 0xfe, 1: 0x80, 8: b[0] ^ 2, 9: b[1], 10: b[2], 11: 0xff, 12: 0xfe, 13: b[3], 14: b[4], 15: b[5]}
	return []netip.Prefix{netip.PrefixFrom(netip.AddrFrom16(a), 64)}
}
