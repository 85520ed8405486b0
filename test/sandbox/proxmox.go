package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/go-logr/logr"

	"github.com/capve/cluster-api-provider-proxmox/pkg/proxmox"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
	"github.com/capve/cluster-api-provider-proxmox/test/sandbox/internal/build"
	"github.com/capve/cluster-api-provider-proxmox/test/sandbox/internal/controlplane"
	"github.com/capve/cluster-api-provider-proxmox/test/sandbox/internal/guest"
	"github.com/capve/cluster-api-provider-proxmox/test/sandbox/internal/workload"
)

// startProxmox starts the simulated Proxmox VE, unless there is a real one.
func (s *Sandbox) startProxmox(context.Context) error {
	if remote := s.options.Remote; remote != nil {
		s.pve = connection{URL: remote.URL.String(), TokenID: remote.TokenID, TokenSecret: remote.TokenSecret, Authority: remote.Authority}
		return nil
	}
	return s.print.Step("start the simulated Proxmox VE", func(note func(string)) error {
		logger, err := s.openLog("guests.log")
		if err != nil {
			return err
		}
		s.guests = &guests{log: logger, clusters: map[string]*workload.Cluster{}, booted: map[proxmox.VMID]guest.Machine{}, networks: map[proxmox.VMID]string{}}
		state, err := furnished()
		if err != nil {
			return err
		}
		if s.world, err = pvesim.NewWorld(append(s.worldOptions(), pvesim.FromState(state))...); err != nil {
			return fmt.Errorf("make the simulated Proxmox VE: %w", err)
		}
		s.initial = inventory(s.world)
		s.onStop(s.world.Close)
		server, err := pvesim.Serve(s.world, controlplane.Loopback+":0")
		if err != nil {
			return fmt.Errorf("serve the simulated Proxmox VE: %w", err)
		}
		s.onStop(server.Close)
		s.pve = connection{
			URL: server.URL, TokenID: server.Token.ID, TokenSecret: Secret(server.Token.Secret), Authority: server.CAPEM,
		}
		note(server.URL)
		return nil
	})
}

func (s *Sandbox) worldOptions() []pvesim.Option {
	options := []pvesim.Option{pvesim.WithGuests(pvesim.Booting(pvesim.BootHooks{
		OnBoot: s.guests.boot, OnBootFailed: s.guests.refuse, OnStop: s.guests.stop,
	}))}
	if s.options.PVEVersion != "" {
		options = append(options, pvesim.WithVersion(s.options.PVEVersion))
	}
	if s.options.Speed > 0 {
		options = append(options, pvesim.WithSpeed(s.options.Speed))
	}
	return options
}

// World is the simulated Proxmox VE; nil with a real one.
func (s *Sandbox) World() *pvesim.World { return s.world }

// ProxmoxURL is where Proxmox VE's API is.
func (s *Sandbox) ProxmoxURL() string { return s.pve.URL }

// BootFailures says which virtual machines did not become Nodes, and why.
func (s *Sandbox) BootFailures() []string {
	if s.guests == nil {
		return nil
	}
	s.guests.mu.Lock()
	defer s.guests.mu.Unlock()
	return append([]string(nil), s.guests.failures...)
}

// NetworkConfig is what the seed told the guest of a virtual machine about its network; empty while it has not booted.
func (s *Sandbox) NetworkConfig(vmid int) string {
	if s.guests == nil {
		return ""
	}
	s.guests.mu.Lock()
	defer s.guests.mu.Unlock()
	return s.guests.networks[proxmox.VMID(vmid)]
}

// inventory is what a simulated Proxmox VE holds, by description.
func inventory(world *pvesim.World) map[string]bool {
	held := map[string]bool{}
	for _, vm := range world.VMs() {
		held[fmt.Sprintf("VM %d %q on %s", vm.VMID, vm.Config["name"], vm.Node)] = true
	}
	for _, volume := range world.Volumes() {
		held[fmt.Sprintf("volume %s on %q", volume.ID, volume.Node)] = true
	}
	return held
}

// Leftovers says what a simulated Proxmox VE holds that was not there when the sandbox started: virtual machines,
// volumes, running tasks, and whatever breaks the simulator's own invariants. Without clusters there is nothing.
func (s *Sandbox) Leftovers() []string {
	if s.world == nil {
		return nil
	}
	left := s.world.Check()
	for thing := range inventory(s.world) {
		if !s.initial[thing] {
			left = append(left, thing)
		}
	}
	if running := s.world.RunningTasks(); running > 0 {
		left = append(left, fmt.Sprintf("%d running tasks", running))
	}
	slices.Sort(left)
	return left
}

// withEndpoint opens a workload cluster's port for the cluster and makes it the control plane's endpoint, unless the
// cluster names an endpoint of its own.
func (s *Sandbox) withEndpoint(ctx context.Context, cluster Cluster) (Cluster, error) {
	if cluster.Host != "" {
		return cluster, nil
	}
	if s.guests == nil {
		return cluster, errors.New("a cluster on a real Proxmox VE needs a control plane endpoint: a virtual IP or a load balancer")
	}
	opened, err := workload.New(ctx, s.guests.log)
	if err != nil {
		return cluster, err
	}
	s.onStop(opened.Close)
	s.guests.add(opened)
	cluster.Host, cluster.Port = controlplane.Loopback, opened.Port()
	return cluster, nil
}

// guests turns what happens to the simulated virtual machines into what their clusters see of it.
type guests struct {
	log logr.Logger

	mu       sync.Mutex
	clusters map[string]*workload.Cluster // by endpoint
	booted   map[proxmox.VMID]guest.Machine
	networks map[proxmox.VMID]string
	failures []string
}

func (g *guests) add(cluster *workload.Cluster) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.clusters[cluster.Endpoint()] = cluster
}

// boot is called when a virtual machine has booted and read its seed.
func (g *guests) boot(booted pvesim.BootedGuest) {
	if err := g.bootstrap(booted); err != nil {
		g.fail(booted, err)
		return
	}
	g.log.Info("machine became a node", "vmid", booted.VMID, "host", booted.Node, "hostname", booted.Hostname, "boots", booted.Boots)
}

func (g *guests) bootstrap(booted pvesim.BootedGuest) error {
	ctx := context.Background() // a machine's boot belongs to no caller
	if machine, known := g.machine(booted.VMID); known && booted.Boots > 1 {
		cluster, err := g.cluster(machine.Seed.Endpoint)
		if err != nil {
			return err
		}
		return machine.PowerOn(ctx, cluster)
	}
	seed, err := guest.Parse(booted.UserData)
	if err != nil {
		return err
	}
	cluster, err := g.cluster(seed.Endpoint)
	if err != nil {
		return err
	}
	if len(booted.Addresses) == 0 {
		return errors.New("the machine has no address")
	}
	machine := guest.Machine{
		Hostname: booted.Hostname, Address: booted.Addresses[0].Addr(), KubeletVersion: build.KubernetesVersion, Seed: seed,
	}
	g.mu.Lock()
	g.booted[booted.VMID], g.networks[booted.VMID] = machine, booted.NetworkConfig
	g.mu.Unlock()
	return machine.Bootstrap(ctx, cluster)
}

// refuse is called when a virtual machine could not make use of its seed.
func (g *guests) refuse(booted pvesim.BootedGuest) { g.fail(booted, booted.Err) }

// stop is called when a virtual machine that had booted lost power or was destroyed.
func (g *guests) stop(booted pvesim.BootedGuest, cause pvesim.PowerOffCause) {
	machine, known := g.machine(booted.VMID)
	if !known {
		return
	}
	cluster, err := g.cluster(machine.Seed.Endpoint)
	if err != nil {
		return
	}
	ctx := context.Background() // a machine's end belongs to no caller
	if cause == pvesim.CauseDestroy {
		err = machine.Remove(ctx, cluster)
	} else {
		err = machine.PowerOff(ctx, cluster)
	}
	g.log.Info("machine stopped", "vmid", booted.VMID, "hostname", booted.Hostname, "cause", cause, "err", err)
}

func (g *guests) machine(vmid proxmox.VMID) (guest.Machine, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	machine, ok := g.booted[vmid]
	return machine, ok
}

func (g *guests) cluster(endpoint string) (*workload.Cluster, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	cluster, ok := g.clusters[endpoint]
	if !ok {
		return nil, fmt.Errorf("no cluster at %q, the endpoint in the seed", endpoint)
	}
	return cluster, nil
}

func (g *guests) fail(booted pvesim.BootedGuest, err error) {
	g.log.Error(err, "machine did not become a node", "vmid", booted.VMID, "host", booted.Node, "name", booted.Name)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.failures = append(g.failures, fmt.Sprintf("VM %d (%s): %v", booted.VMID, booted.Name, err))
}
