package capi

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/bootstrap/kubeadm/reconcilers/kubeadmconfig"
	bootstrapadmission "sigs.k8s.io/cluster-api/bootstrap/kubeadm/webhooks/admission"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	"sigs.k8s.io/cluster-api/controlplane/kubeadm/pkg/etcd"
	"sigs.k8s.io/cluster-api/controlplane/kubeadm/reconcilers/kubeadmcontrolplane"
	controlplaneadmission "sigs.k8s.io/cluster-api/controlplane/kubeadm/webhooks/admission"
	controlplaneconversion "sigs.k8s.io/cluster-api/controlplane/kubeadm/webhooks/conversion"
	"sigs.k8s.io/cluster-api/core/reconcilers/cluster"
	"sigs.k8s.io/cluster-api/core/reconcilers/clusterclass"
	"sigs.k8s.io/cluster-api/core/reconcilers/clusterresourceset"
	"sigs.k8s.io/cluster-api/core/reconcilers/clusterresourcesetbinding"
	"sigs.k8s.io/cluster-api/core/reconcilers/extensionconfig"
	"sigs.k8s.io/cluster-api/core/reconcilers/machine"
	"sigs.k8s.io/cluster-api/core/reconcilers/machinedeployment"
	"sigs.k8s.io/cluster-api/core/reconcilers/machinehealthcheck"
	"sigs.k8s.io/cluster-api/core/reconcilers/machineset"
	topologycluster "sigs.k8s.io/cluster-api/core/reconcilers/topology/cluster"
	topologymachinedeployment "sigs.k8s.io/cluster-api/core/reconcilers/topology/machinedeployment"
	topologymachineset "sigs.k8s.io/cluster-api/core/reconcilers/topology/machineset"
	coreadmission "sigs.k8s.io/cluster-api/core/webhooks/admission"
	coreconversion "sigs.k8s.io/cluster-api/core/webhooks/conversion"
	runtimeclient "sigs.k8s.io/cluster-api/exp/runtime/client"
	"sigs.k8s.io/cluster-api/feature"
	"sigs.k8s.io/cluster-api/util/contract"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// enableFeatures sets Cluster API's feature gates, which belong to the process, the same for every sandbox in it:
// ClusterClass is on, and so are the runtime extensions and the updates in place, which our provider offers; MachinePool is off
// because it has no machine pools.
func enableFeatures() error {
	if err := feature.MutableGates.Set("ClusterTopology=true,RuntimeSDK=true,InPlaceUpdates=true,MachinePool=false"); err != nil {
		return fmt.Errorf("set Cluster API's feature gates: %w", err)
	}
	return nil
}

// setup is what every controller and webhook is set up with.
type setup struct {
	manager    manager.Manager
	secrets    client.Client
	clusters   clustercache.ClusterCache
	extensions runtimeclient.Client
	options    controller.Options
}

// controllerSetup is the method that all of Cluster API's reconcilers have.
type controllerSetup interface {
	SetupWithManager(context.Context, ctrl.Manager, controller.Options) error
}

// webhookSetup is the method that all of Cluster API's webhooks have.
type webhookSetup interface {
	SetupWebhookWithManager(ctrl.Manager) error
}

func (s setup) reconcilers(ctx context.Context) error {
	c, live := s.manager.GetClient(), s.manager.GetAPIReader()
	for _, reconciler := range append(s.topology(),
		&cluster.Reconciler{Client: c, APIReader: live, ClusterCache: s.clusters, RemoteConnectionGracePeriod: remoteConnectionGrace},
		&machine.Reconciler{
			Client: c, APIReader: live, ClusterCache: s.clusters, RuntimeClient: s.extensions, RemoteConditionsGracePeriod: remoteConditionsGrace,
		},
		&machineset.Reconciler{Client: c, APIReader: live, ClusterCache: s.clusters, PreflightChecks: preflightChecks()},
		&machinedeployment.Reconciler{Client: c, APIReader: live, RuntimeClient: s.extensions},
		&machinehealthcheck.Reconciler{Client: c, ClusterCache: s.clusters},
		&clusterresourcesetbinding.Reconciler{Client: c},
		&kubeadmconfig.Reconciler{
			Client: c, SecretCachingClient: s.secrets, APIReader: live, ClusterCache: s.clusters, TokenTTL: kubeadmconfig.DefaultTokenTTL,
		},
	) {
		if err := reconciler.SetupWithManager(ctx, s.manager, s.options); err != nil {
			return fmt.Errorf("set up %T: %w", reconciler, err)
		}
	}
	if err := s.controlPlane(ctx); err != nil {
		return err
	}
	return s.withSecrets(ctx)
}

// topology are the reconcilers of ClusterClass.
func (s setup) topology() []controllerSetup {
	c, live := s.manager.GetClient(), s.manager.GetAPIReader()
	return []controllerSetup{
		&clusterclass.Reconciler{Client: c, RuntimeClient: s.extensions},
		&topologycluster.Reconciler{Client: c, APIReader: live, RuntimeClient: s.extensions, ClusterCache: s.clusters},
		&topologymachinedeployment.Reconciler{Client: c, APIReader: live},
		&topologymachineset.Reconciler{Client: c, APIReader: live},
	}
}

func (s setup) controlPlane(ctx context.Context) error {
	options := s.options
	// It asks every etcd member in turn, which may take longer than the usual minute: upstream's value.
	options.ReconciliationTimeout = 3 * time.Minute
	if err := (&kubeadmcontrolplane.Reconciler{
		Client:                      s.manager.GetClient(),
		APIReader:                   s.manager.GetAPIReader(),
		SecretCachingClient:         s.secrets,
		ClusterCache:                s.clusters,
		EtcdDialTimeout:             remoteTimeout,
		EtcdCallTimeout:             etcd.DefaultCallTimeout,
		EtcdLogger:                  zap.NewNop(),
		RuntimeClient:               s.extensions,
		RemoteConditionsGracePeriod: remoteConditionsGrace,
	}).SetupWithManager(ctx, s.manager, options); err != nil {
		return fmt.Errorf("set up KubeadmControlPlane: %w", err)
	}
	return nil
}

// withSecrets sets up the controllers of ClusterResourceSets and ExtensionConfigs, which want a cache of the metadata of all
// Secrets.
func (s setup) withSecrets(ctx context.Context) error {
	secrets, err := cache.New(s.manager.GetConfig(), cache.Options{
		Scheme:     s.manager.GetScheme(),
		Mapper:     s.manager.GetRESTMapper(),
		HTTPClient: s.manager.GetHTTPClient(),
	})
	if err != nil {
		return fmt.Errorf("make the cache of Secrets' metadata: %w", err)
	}
	if err := s.manager.Add(secrets); err != nil {
		return fmt.Errorf("add the cache of Secrets' metadata: %w", err)
	}
	if err := (&clusterresourceset.Reconciler{Client: s.manager.GetClient(), ClusterCache: s.clusters}).
		SetupWithManager(ctx, s.manager, s.options, secrets); err != nil {
		return fmt.Errorf("set up ClusterResourceSet: %w", err)
	}
	if err := (&extensionconfig.Reconciler{
		Client: s.manager.GetClient(), APIReader: s.manager.GetAPIReader(), RuntimeClient: s.extensions, PartialSecretCache: secrets,
	}).SetupWithManager(ctx, s.manager, s.options); err != nil {
		return fmt.Errorf("set up ExtensionConfig: %w", err)
	}
	return nil
}

func (s setup) webhooks(context.Context) error {
	s.convertReferences()
	c, live := s.manager.GetClient(), s.manager.GetAPIReader()
	for _, hook := range []webhookSetup{
		&coreadmission.ClusterClass{Client: c},
		&coreadmission.Cluster{Client: c, ClusterCacheReader: s.clusters},
		&coreadmission.Machine{}, &coreadmission.MachineSet{}, &coreadmission.MachineDeployment{},
		&coreadmission.MachineDrainRule{}, &coreadmission.MachinePool{}, &coreadmission.MachineHealthCheck{},
		&coreadmission.ClusterResourceSet{}, &coreadmission.ClusterResourceSetBinding{}, &coreadmission.ExtensionConfig{},
		&coreadmission.IPAddress{Client: live}, &coreadmission.IPAddressClaim{},
		&bootstrapadmission.KubeadmConfig{}, &bootstrapadmission.KubeadmConfigTemplate{},
		&controlplaneadmission.KubeadmControlPlane{}, &controlplaneadmission.KubeadmControlPlaneTemplate{},
		&controlplaneadmission.ScaleValidator{Client: c},
	} {
		if err := hook.SetupWebhookWithManager(s.manager); err != nil {
			return fmt.Errorf("set up %T: %w", hook, err)
		}
	}
	return nil
}

// convertReferences tells the conversion webhooks how to find a kind's API version: v1beta2 references name only the
// kind, v1beta1 ones the version too.
func (s setup) convertReferences() {
	version := func(ctx context.Context, kind schema.GroupKind) (string, error) {
		return apiVersion(ctx, s.manager.GetClient(), kind)
	}
	coreconversion.SetAPIVersionGetter(version)
	controlplaneconversion.SetAPIVersionGetter(version)
}

// apiVersion is the newest version of the kind that implements the contract v1beta2, by its CRD's label.
func apiVersion(ctx context.Context, c client.Reader, kind schema.GroupKind) (string, error) {
	definition := &metav1.PartialObjectMetadata{}
	definition.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	key := client.ObjectKey{Name: contract.CalculateCRDName(kind.Group, kind.Kind)}
	if err := c.Get(ctx, key, definition); err != nil {
		return "", fmt.Errorf("get CRD %s: %w", key.Name, err)
	}
	version, err := newestVersion(definition.Labels[clusterv1.GroupVersion.String()])
	if err != nil {
		return "", fmt.Errorf("find the version of %s: %w", kind, err)
	}
	return schema.GroupVersion{Group: kind.Group, Version: version}.String(), nil
}
