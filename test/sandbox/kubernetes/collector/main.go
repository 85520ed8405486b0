// Command collector runs the two controllers of kube-controller-manager that a Cluster API management cluster cannot do
// without: the garbage collector, for owner references, and the namespace controller. It goes with prebuilt binaries of
// etcd and kube-apiserver, which come without a kube-controller-manager, and builds in a fraction of its time.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/namespace"
)

const (
	workers = 10
	// discoverEvery is how often new kinds are looked for, resyncEvery how often all objects are gone through again:
	// kube-controller-manager's values.
	discoverEvery = 30 * time.Second
	resyncEvery   = 12 * time.Hour
	namespaceSync = 5 * time.Minute
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "kubeconfig with all rights")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *kubeconfig)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "collector:", err)
		os.Exit(1)
	}
}

// run runs the controllers until the context ends.
func run(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	config.QPS, config.Burst = 200, 400
	client, errClient := kubernetes.NewForConfig(config)
	objects, errObjects := metadata.NewForConfig(config)
	if err := errors.Join(errClient, errObjects); err != nil {
		return fmt.Errorf("connect to the API server: %w", err)
	}
	shared := informers.NewSharedInformerFactory(client, resyncEvery)
	namespaces := namespace.NewNamespaceController(ctx, client, objects, client.Discovery().ServerPreferredNamespacedResources,
		shared.Core().V1().Namespaces(), namespaceSync, corev1.FinalizerKubernetes)
	collector, started, err := newCollector(ctx, config, client, objects, shared)
	if err != nil {
		return err
	}
	shared.Start(ctx.Done())
	close(started)
	var running sync.WaitGroup
	running.Go(func() { namespaces.Run(ctx, workers) })
	running.Go(func() { collector.Run(ctx, workers, discoverEvery) })
	running.Go(func() { collector.Sync(ctx, client.Discovery(), discoverEvery) })
	running.Wait()
	return nil
}

// newCollector makes the garbage collector. It may start its informers once the channel it returns is closed.
func newCollector(
	ctx context.Context, config *rest.Config, client kubernetes.Interface, objects metadata.Interface, shared informers.SharedInformerFactory,
) (*garbagecollector.GarbageCollector, chan struct{}, error) {
	kinds, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("connect to the API server: %w", err)
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(kinds))
	factory := informerfactory.NewInformerFactory(shared, metadatainformer.NewSharedInformerFactory(objects, resyncEvery))
	started := make(chan struct{})
	collector, err := garbagecollector.NewGarbageCollector(ctx, client, objects, mapper, garbagecollector.DefaultIgnoredResources(), factory, started)
	if err != nil {
		return nil, nil, fmt.Errorf("make the garbage collector: %w", err)
	}
	return collector, started, nil
}
