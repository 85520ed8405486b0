// Package integration_test runs the controllers and the API against a real kube-apiserver and etcd, and against a simulated
// Proxmox VE over HTTPS. It needs their binaries in KUBEBUILDER_ASSETS, which `make test` builds.
package integration_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/pkg/pvesim"
	"github.com/capve/cluster-api-provider-proxmox/test/pveschema"
	"github.com/capve/cluster-api-provider-proxmox/webhooks"
)

// environment is the API server that the tests of this package share. Each test has a namespace of its own.
type environment struct {
	config *rest.Config
	scheme *runtime.Scheme
	client client.Client
	// schemas are what Proxmox VE itself says of its API.
	schemas map[pvesim.Version]*pveschema.Schema
	*envtest.Environment
}

var shared *environment

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// parallel is how many tests run at a time. They wait most of the time, so that it is above the number of CPUs.
const parallel = "12"

func run(m *testing.M) (int, error) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		return m.Run(), nil // each test skips
	}
	if err := parallelism(); err != nil {
		return 1, err
	}
	ctrl.SetLogger(logr.Discard())
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	env, err := start(ctx)
	if err != nil {
		return 1, err
	}
	shared = env
	code := m.Run()
	cancel()
	if err := env.Stop(); err != nil {
		return 1, fmt.Errorf("stop the API server: %w", err)
	}
	return code, nil
}

// parallelism sets -test.parallel unless the command line does.
func parallelism() error {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if given {
		return nil
	}
	return flag.Set("test.parallel", parallel)
}

func start(ctx context.Context) (*environment, error) {
	capi, err := capiCRDs()
	if err != nil {
		return nil, err
	}
	ipam, err := ipamCRDs()
	if err != nil {
		return nil, err
	}
	schemas, err := loadSchemas()
	if err != nil {
		return nil, err
	}
	env := &environment{scheme: runtime.NewScheme(), schemas: schemas, Environment: &envtest.Environment{
		CRDDirectoryPaths:     []string{"../../config/crd/bases", capi, ipam},
		ErrorIfCRDPathMissing: true,
		WebhookInstallOptions: envtest.WebhookInstallOptions{Paths: []string{"../../config/webhook/manifests.yaml"}},
	}}
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, clusterv1.AddToScheme, ipamv1.AddToScheme, v1beta1.AddToScheme,
	} {
		if err := add(env.scheme); err != nil {
			return nil, err
		}
	}
	if env.config, err = env.Start(); err != nil {
		return nil, fmt.Errorf("start the API server: %w", err)
	}
	env.config.QPS = -1 // the tests share the API server, not a budget
	if env.client, err = client.New(env.config, client.Options{Scheme: env.scheme}); err != nil {
		return nil, err
	}
	return env, env.serveWebhooks(ctx)
}

// serveWebhooks serves the webhooks of all tests until the context ends.
func (e *environment) serveWebhooks(ctx context.Context) error {
	options := e.WebhookInstallOptions
	mgr, err := ctrl.NewManager(e.config, ctrl.Options{
		Scheme: e.scheme, Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{Host: options.LocalServingHost, Port: options.LocalServingPort, CertDir: options.LocalServingCertDir}),
	})
	if err != nil {
		return err
	}
	if err := webhooks.SetupWithManager(mgr); err != nil {
		return err
	}
	go func() {
		if err := mgr.Start(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "serve the webhooks:", err)
		}
	}()
	return wait.PollUntilContextTimeout(ctx, poll, patience, true, func(context.Context) (bool, error) {
		return mgr.GetWebhookServer().StartedChecker()(nil) == nil, nil
	})
}

// apiServer returns the shared API server, and skips the test when there is none.
func apiServer(t *testing.T) *environment {
	t.Helper()
	if shared == nil {
		t.Skip("KUBEBUILDER_ASSETS names no etcd and kube-apiserver: run `make test`, or build them with `make assets`")
	}
	return shared
}
