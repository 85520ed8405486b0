// Package capi runs the real Cluster API controllers and webhooks inside this process: core, the kubeadm bootstrap
// provider and the kubeadm control plane provider, which upstream ships as three managers. One manager with one cache
// serves them all here, so the cache keeps what any of them needs: upstream's own cache options blank fields that the
// other providers read.
package capi

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimesdk "sigs.k8s.io/cluster-api/capve-sandbox-runtimesdk"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	"sigs.k8s.io/cluster-api/util/index"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

const (
	// concurrency is how many objects of a kind are reconciled at a time.
	concurrency = 10
	// reconnectEvery is how often the connection to a workload cluster is tried: upstream's 30 s would make everybody
	// wait for a control plane that boots within seconds.
	reconnectEvery = 2 * time.Second
	// remoteTimeout bounds one request to a workload cluster, all of which are on loopback.
	remoteTimeout = 5 * time.Second
	// remoteConditionsGrace is how long a workload cluster may be unreachable before its conditions turn Unknown:
	// upstream's default.
	remoteConditionsGrace = 5 * time.Minute
	// remoteConnectionGrace is the same for the condition RemoteConnectionProbe.
	remoteConnectionGrace = 50 * time.Second
	resyncEvery           = 10 * time.Minute
)

// Options configures the controllers.
type Options struct {
	// Host and Port are where the webhooks are served, with Certificate.
	Host        string
	Port        int
	Certificate *tls.Certificate
	// Logger receives the controllers' logs.
	Logger logr.Logger
}

// Controllers are Cluster API's controllers, set up but not running.
type Controllers struct {
	manager manager.Manager
}

// New sets the controllers up. The CRDs must be there already.
func New(ctx context.Context, rest *rest.Config, options Options) (*Controllers, error) {
	if err := enableFeatures(); err != nil {
		return nil, err
	}
	mgr, err := newManager(rest, options)
	if err != nil {
		return nil, err
	}
	if err := index.AddDefaultIndexes(ctx, mgr); err != nil {
		return nil, fmt.Errorf("add indexes: %w", err)
	}
	secrets, err := client.New(mgr.GetConfig(), client.Options{
		HTTPClient: mgr.GetHTTPClient(),
		Cache:      &client.CacheOptions{Reader: mgr.GetCache()},
	})
	if err != nil {
		return nil, fmt.Errorf("make the client of cached Secrets: %w", err)
	}
	clusters, err := newClusterCache(ctx, mgr, secrets)
	if err != nil {
		return nil, err
	}
	extensions, err := runtimesdk.NewClient(ctx, mgr.GetClient())
	if err != nil {
		return nil, err
	}
	setup := setup{
		manager: mgr, secrets: secrets, clusters: clusters, extensions: extensions,
		options: controller.Options{MaxConcurrentReconciles: concurrency},
	}
	if err := setup.reconcilers(ctx); err != nil {
		return nil, err
	}
	return &Controllers{manager: mgr}, setup.webhooks(ctx)
}

// Run runs the controllers until the context ends.
func (c *Controllers) Run(ctx context.Context) error {
	if err := c.manager.Start(ctx); err != nil {
		return fmt.Errorf("run Cluster API's controllers: %w", err)
	}
	return nil
}

// Ready reports whether the webhooks answer.
func (c *Controllers) Ready() error {
	return c.manager.GetWebhookServer().StartedChecker()(nil)
}

func newManager(rest *rest.Config, options Options) (manager.Manager, error) {
	scheme, err := NewScheme()
	if err != nil {
		return nil, err
	}
	ofCluster, err := labels.NewRequirement(clusterv1.ClusterNameLabel, selection.Exists, nil)
	if err != nil {
		return nil, fmt.Errorf("select Secrets of clusters: %w", err)
	}
	mgr, err := ctrl.NewManager(rest, ctrl.Options{
		Scheme: scheme,
		Logger: options.Logger,
		Controller: config.Controller{
			UsePriorityQueue: ptr.To(true),
			// Two sandboxes in one process run the same controllers twice.
			SkipNameValidation: ptr.To(true),
		},
		Metrics:                metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
		Cache: cache.Options{
			SyncPeriod: ptr.To(resyncEvery),
			ByObject: map[client.Object]cache.ByObject{
				&corev1.Secret{}: {Label: labels.NewSelector().Add(*ofCluster)},
			},
		},
		Client: client.Options{Cache: &client.CacheOptions{
			DisableFor:   []client.Object{&corev1.ConfigMap{}, &corev1.Secret{}},
			Unstructured: true,
		}},
		WebhookServer: webhook.NewServer(webhook.Options{
			Host:    options.Host,
			Port:    options.Port,
			TLSOpts: []func(*tls.Config){serveWith(options.Certificate)},
		}),
	})
	if err != nil {
		return nil, fmt.Errorf("make Cluster API's manager: %w", err)
	}
	return mgr, nil
}

func serveWith(certificate *tls.Certificate) func(*tls.Config) {
	return func(config *tls.Config) {
		config.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return certificate, nil }
	}
}

func newClusterCache(ctx context.Context, mgr manager.Manager, secrets client.Reader) (clustercache.ClusterCache, error) {
	clusters, err := clustercache.SetupWithManager(ctx, mgr, clustercache.Options{
		SecretClient: secrets,
		Cache: clustercache.CacheOptions{
			DefaultTransform: cache.TransformStripManagedFields(),
			Indexes:          []clustercache.CacheOptionsIndex{clustercache.NodeProviderIDIndex},
		},
		Client: clustercache.ClientOptions{
			Timeout:   remoteTimeout,
			QPS:       100,
			Burst:     200,
			UserAgent: "capve-sandbox",
			// Pods are read live: two of the three providers would cache different parts of them.
			Cache: clustercache.ClientCacheOptions{DisableFor: []client.Object{
				&corev1.ConfigMap{}, &corev1.Secret{}, &corev1.Pod{}, &appsv1.DaemonSet{}, &appsv1.Deployment{},
				&storagev1.VolumeAttachment{}, &corev1.PersistentVolume{},
			}},
		},
	}, controller.Options{MaxConcurrentReconciles: concurrency})
	if err != nil {
		return nil, fmt.Errorf("set up the cache of workload clusters: %w", err)
	}
	if adjustable, ok := clusters.(interface{ SetConnectionCreationRetryInterval(time.Duration) }); ok {
		adjustable.SetConnectionCreationRetryInterval(reconnectEvery)
	}
	return clusters, nil
}
