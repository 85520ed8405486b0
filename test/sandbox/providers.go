package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/capve/cluster-api-provider-proxmox/test/sandbox/internal/build"
	"github.com/capve/cluster-api-provider-proxmox/test/sandbox/internal/capi"
	"github.com/capve/cluster-api-provider-proxmox/test/sandbox/internal/controlplane"
	"github.com/capve/cluster-api-provider-proxmox/test/sandbox/internal/install"
	"github.com/capve/cluster-api-provider-proxmox/test/sandbox/internal/pki"
)

// build makes the programs that the sandbox runs.
func (s *Sandbox) build(ctx context.Context) (err error) {
	if s.builder, err = build.New(); err != nil {
		return err
	}
	bin := s.path("bin")
	if err := os.MkdirAll(bin, 0o700); err != nil {
		return fmt.Errorf("make %s: %w", bin, err)
	}
	return errors.Join(
		s.print.Step("build Kubernetes "+build.KubernetesVersion, func(note func(string)) (err error) {
			s.programs.controlPlane, err = s.builder.ControlPlane(ctx, note)
			return err
		}),
		s.print.Step("build the in-cluster IPAM provider", func(note func(string)) (err error) {
			s.programs.ipam, err = s.builder.IPAM(ctx, note)
			return err
		}),
		s.print.Step("build our manager", func(note func(string)) (err error) {
			s.programs.manager, err = s.builder.Manager(ctx, bin, note)
			return err
		}),
	)
}

// installProviders installs the CRDs and webhook configurations of Cluster API, the IPAM provider and ours.
func (s *Sandbox) installProviders(ctx context.Context) error {
	return s.print.Step("install CRDs and webhooks", func(func(string)) error {
		ctx, cancel := context.WithTimeout(ctx, readyTimeout)
		defer cancel()
		components, err := s.components(ctx)
		if err != nil {
			return err
		}
		return install.Apply(ctx, s.config, components...)
	})
}

func (s *Sandbox) components(ctx context.Context) ([]install.Component, error) {
	clusterAPI, err := s.builder.ClusterAPI(ctx)
	if err != nil {
		return nil, err
	}
	ipam, err := s.builder.IPAMConfig(ctx)
	if err != nil {
		return nil, err
	}
	// What config/crd/kustomization.yaml of the kubeadm providers sets; core's CRDs are not referenced by contract.
	contract := map[string]string{clusterv1.GroupVersion.Group + "/v1beta1": "v1beta1", clusterv1.GroupVersion.Group + "/v1beta2": "v1beta2"}
	webhooks := s.webhooks(s.ports.capiWebhooks)
	return []install.Component{
		{Name: "capi", Config: filepath.Join(clusterAPI, "core", "config"), Webhooks: webhooks},
		{Name: "capi-bootstrap", Config: filepath.Join(clusterAPI, "bootstrap", "kubeadm", "config"), Labels: contract, Webhooks: webhooks},
		{Name: "capi-control-plane", Config: filepath.Join(clusterAPI, "controlplane", "kubeadm", "config"), Labels: contract, Webhooks: webhooks},
		{Name: "ipam", Config: ipam},
		{
			Name: "capve", Config: s.builder.Config(), Webhooks: s.webhooks(s.ports.managerWebhooks),
			Labels: map[string]string{clusterv1.GroupVersion.Group + "/v1beta2": "v1beta1"},
		},
	}, nil
}

func (s *Sandbox) webhooks(port int) *install.Webhooks {
	return &install.Webhooks{URL: fmt.Sprintf("https://%s:%d", controlplane.Loopback, port), Authority: s.authority.PEM()}
}

// startControllers runs Cluster API's controllers in this process.
func (s *Sandbox) startControllers(ctx context.Context) error {
	return s.print.Step("start Cluster API's controllers", func(func(string)) error {
		logger, err := s.openLog("capi.log")
		if err != nil {
			return err
		}
		pair, err := s.authority.Issue(pki.Subject{CommonName: "capi-webhooks", Hosts: []string{controlplane.Loopback}})
		if err != nil {
			return err
		}
		certificate, err := pair.TLS()
		if err != nil {
			return err
		}
		// The controllers outlive Start's context; Stop ends them.
		running, cancel := context.WithCancel(context.WithoutCancel(ctx))
		controllers, err := capi.New(running, s.config, capi.Options{
			Host: controlplane.Loopback, Port: s.ports.capiWebhooks, Certificate: certificate, Logger: logger,
		})
		if err != nil {
			cancel()
			return err
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			s.fail(controllers.Run(running))
		}()
		s.onStop(func() { cancel(); <-ended })
		return waitFor(ctx, func(context.Context) error { return controllers.Ready() })
	})
}

// openLog makes a logger that writes to a file in the sandbox's directory. Libraries that log through the process-wide
// loggers of klog and controller-runtime end up in the log of the sandbox that was started last.
func (s *Sandbox) openLog(name string) (logr.Logger, error) {
	file, err := os.OpenFile(s.path(name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return logr.Logger{}, fmt.Errorf("open log: %w", err)
	}
	s.onStop(func() { _ = file.Close() })
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(file), textlogger.Verbosity(2)))
	klog.SetLogger(logger)
	ctrl.SetLogger(logger)
	return logger, nil
}
