// Package runtimesdk makes Cluster API's own client of runtime extensions, as its managers do.
package runtimesdk

import (
	"context"
	"fmt"

	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimeclient "sigs.k8s.io/cluster-api/exp/runtime/client"
	internal "sigs.k8s.io/cluster-api/internal/runtime/client"
	"sigs.k8s.io/cluster-api/internal/runtime/registry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NewClient makes a client of the extensions that are registered with it, which the controller of ExtensionConfigs does.
func NewClient(ctx context.Context, reader client.Client) (runtimeclient.Client, error) {
	catalog := runtimecatalog.New()
	if err := runtimehooksv1.AddToCatalog(catalog); err != nil {
		return nil, fmt.Errorf("build the catalog of runtime hooks: %w", err)
	}
	extensions, _, err := internal.New(ctx, internal.Options{Catalog: catalog, Registry: registry.New(), Client: reader})
	if err != nil {
		return nil, fmt.Errorf("make the client of runtime extensions: %w", err)
	}
	return extensions, nil
}
