// Command manager is the CAPVE provider: it runs the controllers and webhooks of the Proxmox VE kinds.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/component-base/logs"
	logsv1 "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register" // the JSON log format
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/capve/cluster-api-provider-proxmox/api/v1beta1"
	"github.com/capve/cluster-api-provider-proxmox/controllers"
	"github.com/capve/cluster-api-provider-proxmox/extension"
	"github.com/capve/cluster-api-provider-proxmox/pkg/act"
	"github.com/capve/cluster-api-provider-proxmox/pkg/observe"
	"github.com/capve/cluster-api-provider-proxmox/webhooks"
)

// name is how the manager calls itself in logs, in requests and on events.
const name = "capve"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "manager: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	var config config
	set := pflag.NewFlagSet("manager", pflag.ContinueOnError)
	config.addFlags(set)
	if err := set.Parse(args); errors.Is(err, pflag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	if err := logsv1.ValidateAndApply(config.logs, nil); err != nil {
		return fmt.Errorf("logging flags: %w", err)
	}
	defer logs.FlushLogs()
	ctrl.SetLogger(klog.Background())
	ctx := ctrl.SetupSignalHandler()
	mgr, err := newManager(config)
	if err != nil {
		return err
	}
	if err := setup(ctx, mgr, config); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func newManager(config config) (ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, clusterv1.AddToScheme, ipamv1.AddToScheme, v1beta1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("build the scheme: %w", err)
		}
	}
	rest, err := config.restConfig()
	if err != nil {
		return nil, err
	}
	options, err := config.managerOptions(scheme)
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(rest, options)
	if err != nil {
		return nil, fmt.Errorf("make the manager: %w", err)
	}
	return mgr, nil
}

// setup puts the parts together.
func setup(ctx context.Context, mgr ctrl.Manager, config config) error {
	observer, polling, err := observe.New(observe.Options{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Clock: clock.RealClock{}, RequestLog: os.Getenv("PVE_REQUEST_LOG"),
		Registerer: metrics.Registry, Logger: mgr.GetLogger().WithName("proxmox"), UserAgent: name,
	})
	if err != nil {
		return err
	}
	if err := mgr.Add(polling); err != nil {
		return fmt.Errorf("add the poller of Proxmox VE: %w", err)
	}
	events := controllers.EventRecorder{Recorder: mgr.GetEventRecorder(name)}
	machines := &controllers.MachineReconciler{
		Client: mgr.GetClient(), Observer: observer, Events: events,
		Actor: act.New(mgr.GetClient(), observer),
	}
	clusters := &controllers.ClusterReconciler{Client: mgr.GetClient(), Observer: observer, Events: events}
	return errors.Join(
		machines.SetupWithManager(ctx, mgr, controllers.SetupOptions{WatchFilter: config.watchFilter, Concurrency: config.machineConcurrency}),
		clusters.SetupWithManager(ctx, mgr, controllers.SetupOptions{WatchFilter: config.watchFilter, Concurrency: config.clusterConcurrency}),
		webhooks.SetupWithManager(mgr),
		addExtension(mgr, config),
		mgr.AddReadyzCheck("webhook", mgr.GetWebhookServer().StartedChecker()),
		mgr.AddHealthzCheck("webhook", mgr.GetWebhookServer().StartedChecker()),
	)
}

// addExtension adds the server of Cluster API's runtime hooks, if that is wished for.
func addExtension(mgr ctrl.Manager, config config) error {
	if config.extensionPort == 0 {
		return nil
	}
	options, err := config.extensionOptions()
	if err != nil {
		return err
	}
	return extension.SetupWithManager(mgr, options)
}
