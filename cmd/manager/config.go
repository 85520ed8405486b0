package main

import (
	"flag"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	logsv1 "k8s.io/component-base/logs/api/v1"
	"sigs.k8s.io/cluster-api/feature"
	"sigs.k8s.io/cluster-api/util/flags"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	clientconfig "sigs.k8s.io/controller-runtime/pkg/client/config"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/capve/cluster-api-provider-proxmox/extension"
)

// config is what the flags say. Their names and defaults are those of Cluster API's own managers.
type config struct {
	logs *logsv1.LoggingConfiguration

	leaderElection                            bool
	leaseDuration, renewDeadline, retryPeriod time.Duration
	namespace, watchFilter                    string
	profilerAddress, healthAddress            string
	syncPeriod                                time.Duration
	qps                                       float32
	burst                                     int
	machineConcurrency, clusterConcurrency    int
	webhookHost                               string
	webhookPort                               int
	webhookCertDir, webhookCert, webhookKey   string
	extensionPort                             int
	manager                                   flags.ManagerOptions
}

func (c *config) addFlags(set *pflag.FlagSet) {
	c.logs = logsv1.NewLoggingConfiguration()
	logsv1.AddFlags(c.logs, set)
	set.AddGoFlagSet(kubeconfigFlag())
	set.BoolVar(&c.leaderElection, "leader-elect", false, "Let one of several managers lead, and only that one work.")
	set.DurationVar(&c.leaseDuration, "leader-elect-lease-duration", 15*time.Second, "How long others wait before they take over the lead.")
	set.DurationVar(&c.renewDeadline, "leader-elect-renew-deadline", 10*time.Second, "How long the leader tries to renew before it gives up.")
	set.DurationVar(&c.retryPeriod, "leader-elect-retry-period", 2*time.Second, "How long to wait between two tries to lead.")
	set.StringVar(&c.namespace, "namespace", "", "Namespace to watch; all when empty.")
	set.StringVar(&c.watchFilter, "watch-filter", "", "Value of the label cluster.x-k8s.io/watch-filter that objects must have; all objects when empty.")
	set.StringVar(&c.profilerAddress, "profiler-address", "", "Address to serve pprof on (e.g. localhost:6060); none when empty.")
	set.StringVar(&c.healthAddress, "health-addr", ":9440", "Address to serve health checks on.")
	set.DurationVar(&c.syncPeriod, "sync-period", 10*time.Minute, "How often every object is looked at, also when nothing changed.")
	set.Float32Var(&c.qps, "kube-api-qps", 100, "Requests per second to the Kubernetes API server.")
	set.IntVar(&c.burst, "kube-api-burst", 200, "Requests in one burst to the Kubernetes API server.")
	set.IntVar(&c.machineConcurrency, "proxmoxmachine-concurrency", 100, "Number of ProxmoxMachines to process simultaneously.")
	set.IntVar(&c.clusterConcurrency, "proxmoxcluster-concurrency", 50, "Number of ProxmoxClusters to process simultaneously.")
	set.StringVar(&c.webhookHost, "webhook-host", "", "Address to serve webhooks on; all addresses when empty.")
	set.IntVar(&c.webhookPort, "webhook-port", 9443, "Port to serve webhooks on.")
	set.StringVar(&c.webhookCertDir, "webhook-cert-dir", "/tmp/k8s-webhook-server/serving-certs/", "Directory of the webhook server's certificate and key.")
	set.StringVar(&c.webhookCert, "webhook-cert-name", "tls.crt", "File name of the certificate.")
	set.StringVar(&c.webhookKey, "webhook-key-name", "tls.key", "File name of the key.")
	set.IntVar(&c.extensionPort, "runtime-extension-port", 0, "Port to serve Cluster API's hooks for updates in place on, at the address and with the certificate of the webhooks; they are not served when 0.")
	flags.AddManagerOptions(set, &c.manager)
	feature.MutableGates.AddFlag(set)
}

// kubeconfigFlag returns controller-runtime's --kubeconfig alone.
func kubeconfigFlag() *flag.FlagSet {
	set := flag.NewFlagSet("kubeconfig", flag.ContinueOnError)
	clientconfig.RegisterFlags(set)
	return set
}

func (c *config) restConfig() (*rest.Config, error) {
	restConfig, err := ctrl.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("find the Kubernetes API server: %w", err)
	}
	restConfig.QPS, restConfig.Burst, restConfig.UserAgent = c.qps, c.burst, name
	return restConfig, nil
}

// extensionOptions are those of the server of runtime hooks.
func (c *config) extensionOptions() (extension.Options, error) {
	tlsOptions, _, err := flags.GetManagerOptions(c.manager)
	if err != nil {
		return extension.Options{}, fmt.Errorf("manager flags: %w", err)
	}
	return extension.Options{
		Host: c.webhookHost, Port: c.extensionPort, CertDir: c.webhookCertDir, CertName: c.webhookCert, KeyName: c.webhookKey, TLSOptions: tlsOptions,
	}, nil
}

func (c *config) managerOptions(scheme *runtime.Scheme) (ctrl.Options, error) {
	tlsOptions, metricsOptions, err := flags.GetManagerOptions(c.manager)
	if err != nil {
		return ctrl.Options{}, fmt.Errorf("manager flags: %w", err)
	}
	options := ctrl.Options{
		Scheme:         scheme,
		LeaderElection: c.leaderElection, LeaderElectionID: "controller-leader-election-capve",
		LeaderElectionResourceLock: resourcelock.LeasesResourceLock,
		LeaseDuration:              &c.leaseDuration, RenewDeadline: &c.renewDeadline, RetryPeriod: &c.retryPeriod,
		HealthProbeBindAddress: c.healthAddress, PprofBindAddress: c.profilerAddress, Metrics: *metricsOptions,
		Controller: ctrlconfig.Controller{CacheSyncTimeout: 5 * time.Minute, UsePriorityQueue: new(feature.Gates.Enabled(feature.PriorityQueue))},
		Cache:      cache.Options{SyncPeriod: &c.syncPeriod, DefaultTransform: cache.TransformStripManagedFields()},
		// Credentials and bootstrap data are read when they are used and kept nowhere.
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
		WebhookServer: webhook.NewServer(webhook.Options{
			Host: c.webhookHost, Port: c.webhookPort, CertDir: c.webhookCertDir, CertName: c.webhookCert, KeyName: c.webhookKey, TLSOpts: tlsOptions,
		}),
	}
	if c.namespace != "" {
		options.Cache.DefaultNamespaces = map[string]cache.Config{c.namespace: {}}
	}
	return options, nil
}
