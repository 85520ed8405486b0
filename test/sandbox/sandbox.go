package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
	"github.com/capve/cluster-api-provider-proxmox/test/sandbox/internal/build"
	"github.com/capve/cluster-api-provider-proxmox/test/sandbox/internal/capi"
	"github.com/capve/cluster-api-provider-proxmox/test/sandbox/internal/controlplane"
	"github.com/capve/cluster-api-provider-proxmox/test/sandbox/internal/pki"
	"github.com/capve/cluster-api-provider-proxmox/test/sandbox/internal/process"
	"github.com/capve/cluster-api-provider-proxmox/test/sandbox/internal/progress"
)

// readyTimeout bounds the start of any one part of the sandbox.
const readyTimeout = 2 * time.Minute

// Sandbox is a running sandbox. Stop it.
type Sandbox struct {
	options   Options
	dir       string
	print     *progress.Printer
	builder   build.Builder
	authority *pki.Authority
	ports     ports
	programs  programs

	plane  *controlplane.ControlPlane
	config *rest.Config
	client client.Client

	pve     connection
	world   *pvesim.World   // nil with a real Proxmox VE
	initial map[string]bool // what the world held at the start
	guests  *guests         // nil with a real Proxmox VE

	mu sync.Mutex // guards stops

	stopOnce sync.Once
	stops    []func() // in the order of starting; stopped in reverse
	failed   chan error
}

// ports are the loopback ports that cannot be left to the listener's choice.
type ports struct {
	capiWebhooks, managerWebhooks, managerHealth, managerDiagnostics, ipamHealth, managerExtension int
}

// programs are the paths of what the sandbox runs.
type programs struct {
	controlPlane, ipam, manager string
}

// Start builds what is missing, starts a sandbox and waits until all of it is ready. When it fails it stops what it
// started.
func Start(ctx context.Context, options Options) (*Sandbox, error) {
	s := &Sandbox{options: options, print: options.Progress, failed: make(chan error, 8)}
	if s.print == nil {
		s.print = progress.New(nil, progress.Lines)
	}
	for _, step := range []func(context.Context) error{
		s.makeDirectory, s.build, s.startControlPlane, s.installProviders, s.startControllers,
		s.startIPAM, s.startProxmox, s.startManager, s.registerExtension,
	} {
		if err := step(ctx); err != nil {
			s.Stop()
			return nil, err
		}
	}
	return s, nil
}

// Stop stops everything, the last started first, and removes the sandbox's directory. It may be called again.
func (s *Sandbox) Stop() {
	s.stopOnce.Do(func() {
		s.mu.Lock()
		stops := s.stops
		s.mu.Unlock()
		for _, stop := range slices.Backward(stops) {
			stop()
		}
	})
}

// Failed receives an error when a part of the sandbox ends by itself.
func (s *Sandbox) Failed() <-chan error { return s.failed }

// Programs is the directory with kubectl in the version of the management cluster.
func (s *Sandbox) Programs() string { return s.programs.controlPlane }

// Dir is where the sandbox keeps its data, kubeconfig and logs.
func (s *Sandbox) Dir() string { return s.dir }

// Kubeconfig is the path of the management cluster's kubeconfig, with all rights.
func (s *Sandbox) Kubeconfig() string { return s.plane.Kubeconfig() }

// RESTConfig is the management cluster's client configuration, with all rights.
func (s *Sandbox) RESTConfig() *rest.Config { return rest.CopyConfig(s.config) }

// Client reads and writes the management cluster, without a cache. It knows the kinds of Kubernetes and Cluster API;
// ours are used as unstructured objects.
func (s *Sandbox) Client() client.Client { return s.client }

// onStop has stop called by Stop.
func (s *Sandbox) onStop(stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stops = append(s.stops, stop)
}

func (s *Sandbox) makeDirectory(context.Context) (err error) {
	s.dir = s.options.Dir
	if s.dir == "" {
		s.dir, err = os.MkdirTemp("", "capve-sandbox-")
	} else {
		err = os.MkdirAll(s.dir, 0o700)
	}
	if err != nil {
		return fmt.Errorf("make the sandbox's directory: %w", err)
	}
	s.onStop(func() { _ = os.RemoveAll(s.dir) })
	if s.authority, err = pki.NewAuthority("capve-sandbox-webhooks"); err != nil {
		return err
	}
	free, err := controlplane.FreePorts(6)
	if err != nil {
		return err
	}
	s.ports = ports{free[0], free[1], free[2], free[3], free[4], free[5]}
	return nil
}

func (s *Sandbox) startControlPlane(ctx context.Context) error {
	return s.print.Step("start etcd, kube-apiserver and kube-controller-manager", func(func(string)) (err error) {
		ctx, cancel := context.WithTimeout(ctx, readyTimeout)
		defer cancel()
		s.plane, err = controlplane.Start(ctx, controlplane.Options{Binaries: s.programs.controlPlane, Dir: s.dir})
		if err != nil {
			return err
		}
		s.onStop(s.plane.Stop)
		if s.config, err = s.plane.RESTConfig(); err != nil {
			return err
		}
		scheme, err := capi.NewScheme()
		if err != nil {
			return err
		}
		if s.client, err = client.New(s.config, client.Options{Scheme: scheme}); err != nil {
			return fmt.Errorf("connect to the management cluster: %w", err)
		}
		return nil
	})
}

// startProcess starts a child process that shall run as long as the sandbox.
func (s *Sandbox) startProcess(command process.Command, grace time.Duration) (*process.Process, error) {
	command.LogDir = s.dir
	started, err := process.Start(command)
	if err != nil {
		return nil, err
	}
	stopping := make(chan struct{})
	s.onStop(func() { close(stopping); started.Stop(grace) })
	go func() {
		select {
		case <-stopping:
		case <-started.Done():
			s.fail(fmt.Errorf("%s ended by itself; its log is %s", command.Name, started.Log()))
		}
	}()
	return started, nil
}

// fail reports that a part of the sandbox ended; reports beyond what anybody could read are dropped.
func (s *Sandbox) fail(err error) {
	if err == nil || errors.Is(err, context.Canceled) {
		return
	}
	select {
	case s.failed <- err:
	default:
	}
}

func (s *Sandbox) path(elements ...string) string {
	return filepath.Join(append([]string{s.dir}, elements...)...)
}
