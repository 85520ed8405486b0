package pvesim

import (
	"fmt"

	"k8s.io/utils/clock"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim/internal/schema"
)

// Version is the release of Proxmox VE that a world speaks as.
type Version string

// The releases that can be simulated.
const (
	V84 Version = "8.4"
	V92 Version = "9.2"
)

// ParseVersion returns the Version named by s; the error lists the known ones.
func ParseVersion(s string) (Version, error) {
	switch v := Version(s); v {
	case V84, V92:
		return v, nil
	}
	return "", fmt.Errorf("parse Proxmox VE version %q: want 8.4 or 9.2", s)
}

// full is what GET /version reports.
func (v Version) full() string {
	if v == V84 {
		return "8.4.21"
	}
	return "9.2.11"
}

// wording is how the release words its refusals of parameters.
func (v Version) wording() schema.Wording {
	if v == V84 {
		return schema.Wording8
	}
	return schema.Wording9
}

// TemplateSpec describes a VM template and where its copies are.
type TemplateSpec struct {
	// Name of the template, a DNS name. All copies share it.
	Name string
	// Tags of the template, in any order.
	Tags []string
	// Disk is the size of scsi0. Zero means 10 GiB.
	Disk proxmox.GiB
	// Memory is the template's memory. Zero means 2048 MiB.
	Memory proxmox.MiB
	// Cores of the template. Zero means 2.
	Cores int
	// Storage holds the disks. Node-local storages get one copy of the template per node, shared ones a single copy on the
	// first node. Empty means local-lvm.
	Storage proxmox.StorageID
	// FirstVMID numbers the copies: FirstVMID on the first node, then +1, +2 … Zero means the first free from 9001.
	FirstVMID proxmox.VMID
}

// Model says what world to build. The zero value of a field means the default that DefaultModel documents.
type Model struct {
	// Version to speak as.
	Version Version
	// Seed of everything drawn: MAC addresses, UUIDs, task durations. Two worlds with one seed and the same requests in the
	// same order give the same answers, times aside.
	Seed uint64
	// Speed divides every delay of the simulated hosts; 1 is like a real one.
	Speed float64
	// Clock tells the time and drives the delays.
	Clock clock.Clock
	// ClusterName is the name in GET /cluster/status.
	ClusterName string
	// Nodes is how many hosts there are, named pve1, pve2 …; a negative number means none.
	Nodes int
	// CPUs of each host.
	CPUs int
	// Memory of each host.
	Memory proxmox.MiB
	// State is the whole world. With it Nodes, CPUs, Memory and Templates mean nothing.
	State *State
	// Templates present at the start. Nil means one, ubuntu-2404-k8s; empty means none.
	Templates []TemplateSpec
	// Guests makes what runs inside the VMs.
	Guests GuestFactory
}

// DefaultModel is the world of the sandbox: Proxmox VE 9.2, three nodes pve1..pve3 of 32 CPUs and 128 GiB, storages local
// (dir), local-lvm (lvmthin) and shared (nfs), bridge vmbr0, pool capi, and the template ubuntu-2404-k8s with a copy on every
// node (VMIDs 9001..9003), at the speed of real hosts, with guests that do nothing.
func DefaultModel() Model {
	return Model{
		Version: V92, Seed: 1, Speed: 1, Clock: clock.RealClock{}, ClusterName: "pvesim", Nodes: 3, CPUs: 32,
		Memory:    128 * 1024,
		Templates: []TemplateSpec{{Name: "ubuntu-2404-k8s", Tags: []string{"kubernetes", "ubuntu"}}},
		Guests:    Inert,
	}
}

// Option changes the Model that NewWorld or Run starts from.
type Option func(*Model)

// WithModel replaces the whole model; zero fields mean their defaults.
func WithModel(m Model) Option { return func(into *Model) { *into = m } }

// WithVersion sets the release to speak as.
func WithVersion(v Version) Option { return func(m *Model) { m.Version = v } }

// WithSpeed divides all delays by the factor.
func WithSpeed(factor float64) Option { return func(m *Model) { m.Speed = factor } }

// WithSeed sets the seed of what is drawn.
func WithSeed(seed uint64) Option { return func(m *Model) { m.Seed = seed } }

// WithClock injects a clock, for example k8s.io/utils/clock/testing.FakeClock.
func WithClock(c clock.Clock) Option { return func(m *Model) { m.Clock = c } }

// FromState builds the world from a state instead of that of DefaultModel.
func FromState(s State) Option { return func(m *Model) { m.State = &s } }

// WithNodes sets the number of hosts.
func WithNodes(n int) Option { return func(m *Model) { m.Nodes = n } }

// WithTemplates replaces the templates; without arguments there are none.
func WithTemplates(specs ...TemplateSpec) Option {
	return func(m *Model) { m.Templates = append([]TemplateSpec{}, specs...) }
}

// WithGuests sets what runs inside the VMs.
func WithGuests(f GuestFactory) Option { return func(m *Model) { m.Guests = f } }

// completed fills zero fields with their defaults.
func (m Model) completed() Model {
	d := DefaultModel()
	if s := m.State; s != nil && s.Version != "" {
		m.Version = s.Version
	}
	if s := m.State; s != nil && s.ClusterName != "" {
		m.ClusterName = s.ClusterName
	}
	orDefault(&m.Version, d.Version)
	orDefault(&m.Seed, d.Seed)
	orDefault(&m.ClusterName, d.ClusterName)
	orDefault(&m.Nodes, d.Nodes)
	orDefault(&m.CPUs, d.CPUs)
	orDefault(&m.Memory, d.Memory)
	if m.Speed <= 0 {
		m.Speed = d.Speed
	}
	if m.Clock == nil {
		m.Clock = d.Clock
	}
	if m.Guests == nil {
		m.Guests = d.Guests
	}
	if m.Templates == nil {
		m.Templates = d.Templates
	}
	return m
}

func orDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func (s TemplateSpec) completed() TemplateSpec {
	orDefault(&s.Disk, 10)
	orDefault(&s.Memory, 2048)
	orDefault(&s.Cores, 2)
	orDefault(&s.Storage, "local-lvm")
	orDefault(&s.FirstVMID, 9001)
	return s
}
