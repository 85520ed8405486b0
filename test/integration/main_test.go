// Package integration_test runs the controllers and the API against a real kube-apiserver and etcd, and against a simulated
// Proxmox VE over HTTPS. It needs their binaries in KUBEBUILDER_ASSETS, which `make test` builds.
package integration_test

import (
	"fmt"
	"os"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
)

// environment is the API server that the tests of this package share. Each test has a namespace of its own.
type environment struct {
	config *rest.Config
	scheme *runtime.Scheme
	client client.Client
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

func run(m *testing.M) (int, error) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		return m.Run(), nil // each test skips
	}
	env, err := start()
	if err != nil {
		return 1, err
	}
	shared = env
	code := m.Run()
	if err := env.Stop(); err != nil {
		return 1, fmt.Errorf("stop the API server: %w", err)
	}
	return code, nil
}

func start() (*environment, error) {
	capi, err := capiCRDs()
	if err != nil {
		return nil, err
	}
	env := &environment{scheme: runtime.NewScheme(), Environment: &envtest.Environment{
		CRDDirectoryPaths:     []string{"../../config/crd/bases", capi},
		ErrorIfCRDPathMissing: true,
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
	env.client, err = client.New(env.config, client.Options{Scheme: env.scheme})
	return env, err
}

// apiServer returns the shared API server, and skips the test when there is none.
func apiServer(t *testing.T) *environment {
	t.Helper()
	if shared == nil {
		t.Skip("KUBEBUILDER_ASSETS names no etcd and kube-apiserver: run `make test`, or build them with `make assets`")
	}
	return shared
}
