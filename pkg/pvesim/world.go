package pvesim

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
)

// World is a simulated Proxmox VE cluster. Its methods may be called from any goroutine.
type World struct {
	version Version
	speed   float64
	clock   clock.Clock
	name    string
	guests  GuestFactory
	routes  *routeTable
	born    time.Time

	// seed of all that is drawn.
	seed uint64

	mu       sync.Mutex
	random   *rand.Rand
	events   eventQueue
	nextPID  uint32
	nodes    []*node
	storages []*storage
	volumes  map[volumeKey]*volume
	vms      map[proxmox.VMID]*vm
	// containers are the LXC guests; VMIDs are of both kinds together. order are the VMIDs of all guests, see guestIDs.
	containers map[proxmox.VMID]*container
	order      []proxmox.VMID
	// options are those of datacenter.cfg, mappings the resource mappings of PCI devices.
	options  map[string]string
	mappings map[string]*PCIMappingSpec
	// usbMappings are those of USB devices, cpuModels the names of the custom CPU models.
	usbMappings map[string]*USBMappingSpec
	cpuModels   []string
	// downloads are the files on the network, by URL.
	downloads map[string]*DownloadSpec
	pools     map[proxmox.PoolID]*pool
	users     map[string]*user
	groups    map[string]*userGroupEntry
	roles     map[string][]string
	// acl are the entries of the access control list by path.
	acl       map[string][]ACLSpec
	firewalls firewalls
	sdn       sdnState
	tokens    map[string]*token
	tickets   map[string]*ticket
	tasks     *taskList
	flocks    map[flockKey]*flock
	faults    []*faultState
	ha        *haManager
	dhcp      map[proxmox.BridgeName]*dhcpServer
	// faultsAdded counts the faults ever added, striking is what the fault of the present request does to its task.
	faultsAdded uint64
	striking    *taskFault
	requests    []Request
	// stale holds the VMs whose entry in cluster/resources waits for the next pvestatd cycle.
	stale map[proxmox.VMID]bool

	// ca signs the certificates of all servers of the world.
	ca *authority

	wake    chan struct{}
	closed  chan struct{}
	closing sync.Once
	running sync.WaitGroup
}

// NewWorld builds the world that the options describe, starting from DefaultModel. Close it after use. The error names an object
// of the state or the model that cannot be, such as a VM on a node that is missing.
func NewWorld(opts ...Option) (*World, error) {
	m := DefaultModel()
	for _, opt := range opts {
		opt(&m)
	}
	m = m.completed()
	w := emptyWorld(m)
	if err := w.seedModel(m); err != nil {
		return nil, err
	}
	w.running.Add(1)
	go w.runEvents()
	return w, nil
}

func emptyWorld(m Model) *World {
	return &World{
		version: m.Version, speed: m.Speed, clock: m.Clock, name: m.ClusterName, guests: m.Guests, seed: m.Seed,
		routes: newRouteTable(m.Version), born: m.Clock.Now(),
		random:  rand.New(rand.NewPCG(m.Seed, 0x70766573696d)),
		nextPID: 1000, volumes: map[volumeKey]*volume{}, vms: map[proxmox.VMID]*vm{}, containers: map[proxmox.VMID]*container{},
		firewalls: newFirewalls(), sdn: newSDN(),
		options: map[string]string{}, mappings: map[string]*PCIMappingSpec{}, usbMappings: map[string]*USBMappingSpec{}, downloads: map[string]*DownloadSpec{}, pools: map[proxmox.PoolID]*pool{},
		users: map[string]*user{}, groups: map[string]*userGroupEntry{}, roles: specialRoles(m.Version), acl: map[string][]ACLSpec{}, tokens: map[string]*token{}, tickets: map[string]*ticket{}, tasks: newTaskList(),
		flocks: map[flockKey]*flock{}, ha: newHAManager(), dhcp: map[proxmox.BridgeName]*dhcpServer{}, stale: map[proxmox.VMID]bool{},
		wake: make(chan struct{}, 1), closed: make(chan struct{}),
	}
}

// Close stops the world's timers and waits for callbacks of guests that are under way. Requests still waiting for a delay
// end with a closed connection.
func (w *World) Close() {
	w.closing.Do(func() { close(w.closed) })
	w.running.Wait()
}

// Version returns the release that the world speaks as.
func (w *World) Version() Version { return w.version }

// scaled divides a duration of a real host by the world's speed.
func (w *World) scaled(d time.Duration) time.Duration {
	return time.Duration(float64(d) / w.speed)
}

// between draws a duration of a real host.
func (w *World) between(low, high time.Duration) time.Duration {
	return low + time.Duration(w.random.Int64N(int64(high-low)+1))
}

// newMAC draws a MAC address with the prefix that datacenter.cfg names.
func (w *World) newMAC() string {
	n := w.random.Uint32()
	return fmt.Sprintf("%s:%02X:%02X:%02X", w.macPrefix(), byte(n>>16), byte(n>>8), byte(n))
}

// newUUID draws a random (version 4) UUID.
func (w *World) newUUID() string {
	a, b := w.random.Uint64(), w.random.Uint64()
	a = a&^0xf000 | 0x4000
	b = b&^(uint64(3)<<62) | uint64(1)<<63
	return fmt.Sprintf("%08x-%04x-%04x-%04x-%012x", a>>32, a>>16&0xffff, a&0xffff, b>>48, b&0xffffffffffff)
}

// node returns the named node, or nil.
func (w *World) node(name proxmox.NodeName) *node {
	for _, n := range w.nodes {
		if n.Name == name {
			return n
		}
	}
	return nil
}

// vmOn returns the VM when its config is on that node, as qemu-server looks it up.
func (w *World) vmOn(name proxmox.NodeName, id proxmox.VMID) *vm {
	if v := w.vms[id]; v != nil && v.node == name {
		return v
	}
	return nil
}

// poolOf returns the pool that the VM belongs to, or "".
func (w *World) poolOf(id proxmox.VMID) proxmox.PoolID {
	for name, p := range w.pools {
		if p.members[id] {
			return name
		}
	}
	return ""
}

func noConfig(name proxmox.NodeName, id proxmox.VMID) string {
	return fmt.Sprintf("Configuration file 'nodes/%s/qemu-server/%d.conf' does not exist", name, id)
}

func joinTags(tags []string) string { return strings.Join(tags, ";") }
